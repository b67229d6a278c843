"""Push targets: the URLs that messages are sent to, and how they are stored.

A URL whose messages carry deciding links is a credential, since whoever reads them can approve; it
is sealed with the key that only the PIN opens. A URL for plain notices is kept in the vault.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from orchestrator.errors import OrchestratorError
from registry.approvals.decisions import Delegation, sign_delegation
from registry.database.files import lock_file, write_atomically
from registry.secrets.signing import Signer
from registry.secrets.vault import Secret, Vault

VAULT_SECTION = "push"
UNLOCKED_SECONDS = 7 * 86400.0
NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}\Z")
_PURPOSE = "push targets"


@dataclass(frozen=True)
class PushTarget:
    """A target of messages. `links` says whether they carry links that decide."""

    name: str
    url: str = field(repr=False)
    links: bool


@dataclass(frozen=True)
class Deputy:
    """A key in one process's memory that may sign decisions for the person `until` a time."""

    signer: Signer
    delegation: Delegation
    until: float


def create_deputy(signer: Signer, now: float, seconds: float = UNLOCKED_SECONDS) -> Deputy:
    """A fresh key with a delegation signed by the person's key."""
    own = Signer.generate()
    until = now + seconds
    return Deputy(own, sign_delegation(signer, own.public, now, until), until)


def check_target_name(name: str) -> None:
    """Raises OrchestratorError."""
    if not NAME.match(name):
        raise OrchestratorError(f"{name!r} is no name for a target: use a-z, 0-9, - and _.")


def parse_scheme(url: str) -> str:
    """The scheme of a URL, which may be shown. Raises OrchestratorError for no URL."""
    scheme, colon, rest = url.partition("://")
    if not colon or not rest or not re.fullmatch(r"[a-zA-Z][a-zA-Z0-9+.-]{0,30}", scheme):
        raise OrchestratorError(
            "that is no URL of Apprise's, such as ntfy://TOPIC or mailto://…; see "
            "https://github.com/caronc/apprise/wiki."
        )
    return scheme.lower()


def add_sealed_target(path: Path, name: str, url: str, signer: Signer) -> None:
    """Store a URL sealed with the person's key. Raises OrchestratorError."""
    check_target_name(name)
    scheme = parse_scheme(url)
    with lock_file(path):
        targets = _read_targets(path)
        targets[name] = {"scheme": scheme, "sealed": _seal_url(name, url, signer)}
        _write_targets(path, targets)


def remove_sealed_target(path: Path, name: str) -> bool:
    with lock_file(path):
        targets = _read_targets(path)
        if targets.pop(name, None) is None:
            return False
        _write_targets(path, targets)
    return True


def list_sealed_targets(path: Path) -> Mapping[str, str]:
    """Name and scheme of every sealed target. Raises OrchestratorError for a damaged file."""
    return {name: str(target["scheme"]) for name, target in sorted(_read_targets(path).items())}


def find_locked_targets(path: Path, links_until: float, now: float) -> tuple[str, ...]:
    """The sealed targets, where no control plane sends links by now: they get nothing. Raises
    OrchestratorError for a damaged file.
    """
    return () if links_until > now else tuple(list_sealed_targets(path))


def open_sealed_targets(path: Path, signer: Signer) -> tuple[PushTarget, ...]:
    """The sealed targets. Raises OrchestratorError where one was sealed with another key."""
    return tuple(
        PushTarget(name, _open_url(name, str(target["sealed"]), signer), links=True)
        for name, target in sorted(_read_targets(path).items())
    )


def reseal_targets(path: Path, old: Signer, new: Signer) -> None:
    """Open the targets with the old key and seal them with the new one."""
    for target in open_sealed_targets(path, old):
        add_sealed_target(path, target.name, target.url, new)


def load_notice_targets(vault: Vault) -> tuple[PushTarget, ...]:
    """The targets of plain notices."""
    names = [name for section, name in vault.list_names() if section == VAULT_SECTION]
    found = ((name, vault.get(VAULT_SECTION, name)) for name in names)
    return tuple(PushTarget(name, url.reveal(), links=False) for name, url in found if url)


def add_notice_target(vault: Vault, name: str, url: str) -> None:
    """Raises OrchestratorError."""
    check_target_name(name)
    parse_scheme(url)
    vault.put(VAULT_SECTION, name, Secret(url))


def _seal_url(name: str, url: str, signer: Signer) -> str:
    nonce = os.urandom(12)
    cipher = AESGCM(signer.derive_sealing_key(_PURPOSE))
    return (nonce + cipher.encrypt(nonce, url.encode(), name.encode())).hex()


def _open_url(name: str, sealed: str, signer: Signer) -> str:
    try:
        content = bytes.fromhex(sealed)
        cipher = AESGCM(signer.derive_sealing_key(_PURPOSE))
        return cipher.decrypt(content[:12], content[12:], name.encode()).decode()
    except (InvalidTag, ValueError) as error:
        raise OrchestratorError(
            f"the push target {name} cannot be opened: it was changed, or sealed under another "
            "key. Remove it and add it again."
        ) from error


def _read_targets(path: Path) -> dict[str, dict[str, Any]]:
    try:
        value = json.loads(path.read_bytes())
        return {
            str(name): {"scheme": str(target["scheme"]), "sealed": str(target["sealed"])}
            for name, target in value.items()
        }
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise OrchestratorError(
            f"the file {path} cannot be read ({error}). Remove it and add the targets again."
        ) from error


def _write_targets(path: Path, targets: Mapping[str, Mapping[str, str]]) -> None:
    write_atomically(path, json.dumps(targets).encode())
