"""Setting a secret: into the vault, bound to where a person was shown that it goes."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Collection, Iterable

from orchestrator.approvals.accounts import SOURCES
from orchestrator.approvals.granting import bind_secret, unbind_secret
from orchestrator.approvals.grants import Grants
from orchestrator.errors import OrchestratorError
from registry.secrets.signing import Signer
from registry.secrets.vault import Secret, Vault
from registry.store import Store
from sandbox.bundle.credential import Credential
from sandbox.credentials.uses import SecretUse, goes_in_header
from sandbox.wire.policy import parse_origin
from sandbox.wire.redaction import ANYWHERE, MARK, MAX_SECRET

SHORT = "It is so short that it cannot be kept out of answers for certain."
LIKE_A_WORD = (
    "It is as short as a word: wherever an answer has it, in longer words too, there will be "
    f"{MARK} instead. A longer one leaves answers whole."
)
WORD_LETTERS = 8


def store_secret(
    store: Store,
    vault: Vault,
    server: str,
    name: str,
    value: str,
    uses: Iterable[SecretUse],
    by: str,
    signer: Signer,
) -> str:
    """Set a secret that may go to these places and nowhere else; a warning, or "". Raises
    OrchestratorError for a value that is empty or too long.
    """
    whole = name if server == SOURCES else f"{server}.{name}"
    if not value.strip():
        raise OrchestratorError(f"the value of {whole} is empty. Nothing was set.")
    if len(value) > MAX_SECRET:
        raise OrchestratorError(
            f"the value of {whole} is longer than a secret may be ({MAX_SECRET} characters)."
        )
    now = time.time()
    # Neither the old value goes where the new one may, nor the new one where the old did.
    unbind_secret(store.grants, server, name, by, now)
    with vault.lock_secret(server, name):
        vault.put(server, name, Secret(value))
    places = tuple(uses)
    if places:
        bind_secret(store.grants, server, name, places, by, signer)
    store.audit.add_note("secret.set", whole, {}, now)
    return warn_of_length(value)


def warn_of_length(value: str) -> str:
    """What is to be known of a secret that is short, or of a short password after a user's name;
    "" for any other.
    """
    length = min(len(value), len(value.partition(":")[2] or value))
    if length < ANYWHERE:
        return SHORT
    return LIKE_A_WORD if length < WORD_LETTERS else ""


def remove_secret(store: Store, vault: Vault, server: str, name: str, by: str) -> bool:
    """Delete a secret and let its name go nowhere; False where there was none."""
    now = time.time()
    removed = vault.delete(server, name)
    if server != SOURCES:
        unbind_secret(store.grants, server, name, by, now)
    if removed:
        whole = name if server == SOURCES else f"{server}.{name}"
        store.audit.add_note("secret.remove", whole, {}, now)
    return removed


def find_lender(
    consents: Grants,
    credential: Credential,
    uses: Collection[SecretUse],
    names: Collection[tuple[str, str]],
) -> str:
    """The name of the source's secret that a credential without one of its own is sent with, where
    one serves all of its `uses`; else "". `names` are the secrets that are set.
    """
    lending = {
        (source.secret, parse_origin(source.url))
        for source in consents.find_sources()
        if (SOURCES, source.secret) in names and goes_in_header(credential, source.header)
    }
    wanted = {use.origin for use in uses}
    found = (name for name, _ in sorted(lending, key=lambda each: each[0]))
    fitting = (name for name in found if all((name, origin) in lending for origin in wanted))
    return next(fitting, "") if wanted else ""


def hash_uses(uses: Iterable[SecretUse]) -> str:
    """The sha256 of where a secret would go, which a person was shown."""
    return hashlib.sha256("\n".join(sorted(map(str, uses))).encode()).hexdigest()
