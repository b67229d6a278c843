"""Keeping a log-in: its secret in the vault, and the grants that say where that goes."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence

from orchestrator.approvals.accounts import list_accounts, name_secret
from orchestrator.approvals.granting import (
    add_grant,
    add_source,
    allow_host,
    bind_secret,
    unbind_secret,
)
from orchestrator.approvals.grants import Grants
from orchestrator.errors import LoginFailed
from orchestrator.logins.exchange import Client
from orchestrator.logins.flow import LoginResult
from orchestrator.logins.plan import LoginPlan
from registry.secrets.signing import Signer
from registry.secrets.vault import Secret, Vault
from registry.store import Store
from sandbox.credentials.oauth_secret import OAuthSecret, parse_oauth_secret
from sandbox.credentials.uses import TOKEN_REQUEST, SecretUse
from sandbox.wire.policy import parse_origin


def build_secret(plan: LoginPlan, result: LoginResult, now: float) -> str:
    """The secret of a log-in, as `sandbox.credentials.oauth_secret` reads it."""
    tokens, client = result.tokens, result.client
    fields = {
        "grant": result.grant,
        "issuer": plan.server.issuer,
        "token_url": plan.server.token_url,
        "revocation_url": plan.server.revocation_url,
        "client_id": client.id,
        "client_secret": client.secret,
        "client_auth": client.auth if client.secret else "body",
        "scope": tokens.scope or " ".join(plan.wanted.scopes),
        "resource": plan.wanted.resource,
        "refresh_token": tokens.refresh_token,
        "access_token": tokens.access_token,
    }
    kept: dict[str, object] = {name: value for name, value in fields.items() if value}
    if tokens.seconds is not None:
        # One that says nothing of its end is used until the API refuses it.
        kept["expires_at"] = now + tokens.seconds
    return json.dumps(kept | ({"registered": True} if result.registered else {}))


def find_known_client(vault: Vault, server: str, credential: str, account: str) -> Client | None:
    """The client of an earlier log-in of this account or of another one, or that a person set; not
    one that was registered for a single log-in.
    """
    others = list_accounts(vault, server, credential)
    for each in dict.fromkeys((account, *others)):
        held = vault.get(server, name_secret(credential, each))
        known = parse_oauth_secret(held.reveal(), None) if held else OAuthSecret()
        if known.client_id and not known.registered:
            return Client(known.client_id, known.client_secret, known.client_auth or "basic")
    return None


def list_new_hosts(plan: LoginPlan, consents: Grants) -> tuple[str, ...]:
    """The `host:port`s of a plan that nobody allowed yet."""
    source = plan.order.source
    own = (parse_origin(source.url),) if source else ()
    origins = dict.fromkeys((*filter(None, own), *plan.list_origins()))
    hosts = (f"{origin.host}:{origin.port}" for origin in origins)
    return tuple(host for host in hosts if host not in consents.find_hosts())


def keep_login(
    store: Store,
    vault: Vault,
    consents: Grants,
    plan: LoginPlan,
    result: LoginResult,
    signer: Signer,
    *,
    default: bool,
) -> None:
    """Keep a log-in: allow its hosts, store its tokens, let them go where the plan says and nowhere
    else, and make its account the default where it is the only one or the person says so.
    """
    order, now = plan.order, time.time()
    name = name_secret(order.credential.name, order.account)
    hosts = list_new_hosts(plan, consents)
    first = not list_accounts(vault, order.server, order.credential.name)
    with vault.lock_secret(order.server, name):
        for host in hosts:
            allow_host(store.grants, host, "terminal", signer)
        # Neither the old tokens go where the new ones may, nor the new ones where the old did.
        unbind_secret(store.grants, order.server, name, "terminal", now)
        vault.put(order.server, name, Secret(build_secret(plan, result, now)))
        bind_secret(store.grants, order.server, name, plan.uses, "terminal", signer)
        if order.source is not None:
            add_source(store.grants, order.source, "terminal", signer)
    if default or (first and order.account):
        set_default(store, order.server, order.credential.name, order.account, signer)
    store.audit.add_note("login", f"{order.server}.{name}", {"grant": result.grant}, now)


def set_default(store: Store, server: str, credential: str, account: str, signer: Signer) -> None:
    """Let a server's credential be taken from this account where a call names none."""
    add_grant(store.grants, f"{server}.{credential}", "account", "terminal", signer, account)


def forget_login(
    store: Store, vault: Vault, consents: Grants, server: str, credential: str, account: str
) -> None:
    """Remove an account's tokens, with all that they were let do."""
    name, now = name_secret(credential, account), time.time()
    with vault.lock_secret(server, name):
        vault.delete(server, name)
        unbind_secret(store.grants, server, name, "terminal", now)
    if consents.find_account(server, credential) == account:
        store.grants.remove_grant(f"{server}.{credential}", "account", "terminal", now)
    store.audit.add_note("logout", f"{server}.{name}", {}, now)


def find_accounts(
    vault: Vault, server: str, credentials: Sequence[str]
) -> dict[tuple[str, str], OAuthSecret]:
    """The secrets of a server, log-ins and others, by credential and account."""
    found = {}
    for credential in credentials:
        for account in list_accounts(vault, server, credential):
            held = vault.get(server, name_secret(credential, account))
            found[credential, account] = parse_oauth_secret(held.reveal() if held else "", None)
    return found


def list_token_uses(vault: Vault, server: str, name: str) -> tuple[SecretUse, ...]:
    """Where a log-in, by the vault's name of its secret, is renewed and revoked."""
    held = vault.get(server, name)
    login = parse_oauth_secret(held.reveal(), None) if held else OAuthSecret()
    urls = (login.token_url, login.revocation_url) if login.is_login else ()
    origins = dict.fromkeys(origin for url in urls if (origin := parse_origin(url)))
    return tuple(SecretUse(origin, TOKEN_REQUEST) for origin in origins)


def choose_one(
    found: Iterable[tuple[str, str]], server: str, account: str | None
) -> tuple[str, str]:
    """The one that is meant: credential and account. Raises LoginFailed."""
    fitting = [each for each in found if account is None or each[1] == account]
    if len(fitting) == 1:
        return fitting[0]
    if not fitting:
        raise LoginFailed(f"{server} has no such account. `toolwright accounts {server}`")
    raise LoginFailed(f"{server} has several accounts; say which: `--account NAME`")
