"""Accounts: several secrets of one credential, by name, and which of them a call goes out with."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType

from orchestrator.approvals.grants import Grants
from orchestrator.errors import OrchestratorError
from registry.secrets.vault import Vault
from sandbox.wire.exchange import WriteStep

SOURCES = "sources"
"""The vault's section for the secrets of sources, which belong to no server yet."""
MARK = "@"
ACCOUNT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}\Z")
CHOSEN: ContextVar[Mapping[tuple[str, str], str]] = ContextVar(
    "chosen accounts", default=MappingProxyType({})
)
"""The accounts that this call or process was told to use: by server and credential ("" for all of
the server's), the account's name.
"""


def check_account(account: str) -> str:
    """The name of an account. Raises OrchestratorError for what is none; "" is the one without."""
    if account and not ACCOUNT.match(account):
        raise OrchestratorError(
            f"{account[:60]!r} is no name of an account: up to 40 letters, digits, '.', '_', '-'."
        )
    return account


def name_secret(credential: str, account: str) -> str:
    """The vault's name of a credential's secret: `oauth@work`; `oauth` without an account."""
    return f"{credential}{MARK}{account}" if account else credential


def split_secret(name: str) -> tuple[str, str]:
    """The credential and the account of a secret's name in the vault."""
    credential, mark, account = name.rpartition(MARK)
    return (credential, account) if mark and ACCOUNT.match(account) else (name, "")


def list_accounts(vault: Vault, server: str, credential: str) -> tuple[str, ...]:
    """The accounts of a server's credential in the vault; "" is the one without a name."""
    found = map(split_secret, _list_secrets(vault, server))
    return tuple(account for own, account in found if own == credential)


def find_secret(vault: Vault, consents: Grants, server: str, credential: str) -> str:
    """The vault's name of the secret that a server's credential is taken from: of the account that
    was chosen for this call, else of the one that a person made the default.

    An account that was chosen by name is never replaced by another one: its secret may be missing.
    Only a credential that has no part in it, beside one that has, keeps its own.
    """
    chosen = CHOSEN.get()
    exact = chosen.get((server, credential))
    if exact is not None:
        return name_secret(credential, exact)
    asked = chosen.get((server, ""), "")
    if asked:
        found = map(split_secret, _list_secrets(vault, server))
        having = {own for own, account in found if account == asked}
        if credential in having or not having:
            return name_secret(credential, asked)
    return name_secret(credential, consents.find_account(server, credential))


def _list_secrets(vault: Vault, server: str) -> list[str]:
    return [name for own, name in vault.list_names() if own == server]


@contextmanager
def choose_account(server: str, account: str | None) -> Iterator[None]:
    """Within the block, what this task and those that it starts call of a server goes out with this
    account; None changes nothing.
    """
    given = {} if account is None else {(server, ""): check_account(account)}
    token = CHOSEN.set({**CHOSEN.get(), **given})
    try:
        yield
    finally:
        CHOSEN.reset(token)


@contextmanager
def choose_approved(steps: Iterable[WriteStep]) -> Iterator[None]:
    """Within the block, each server's credentials are those of the accounts that a person approved
    a write with.
    """
    chosen = dict(CHOSEN.get())
    for step in steps:
        for use in step.credentials:
            section, _, name = use.secret.partition(".")
            credential, account = split_secret(name)
            if section == step.server and credential == use.name:
                chosen[step.server, credential] = account
    token = CHOSEN.set(chosen)
    try:
        yield
    finally:
        CHOSEN.reset(token)
