"""Where messages go: the URLs a person added, and what of them is open at present.

A URL whose messages carry links that decide is a credential, since who can read its messages can
approve; it is sealed with the key that only the PIN opens. One for plain notices is in the vault.
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
from registry.decisions import Delegation, delegate
from registry.files import locked, write_atomically
from registry.signing import Signer
from registry.vault import Secret, Vault

VAULT_SECTION = "push"
UNLOCKED_SECONDS = 7 * 86400.0
NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}\Z")
_PURPOSE = "push targets"


@dataclass(frozen=True)
class Target:
    """A place that messages go to. `links` says whether they carry links that decide."""

    name: str
    url: str = field(repr=False)
    links: bool


@dataclass(frozen=True)
class Deputy:
    """A key that lives in one process and may sign decisions for the person until a time."""

    signer: Signer
    delegation: Delegation
    until: float


def appoint(signer: Signer, now: float, seconds: float = UNLOCKED_SECONDS) -> Deputy:
    """A fresh key with the person's word for it."""
    own = Signer.fresh()
    until = now + seconds
    return Deputy(own, delegate(signer, own.public, now, until), until)


def check_name(name: str) -> None:
    """Raises OrchestratorError."""
    if not NAME.match(name):
        raise OrchestratorError(f"{name!r} is no name for a target: use a-z, 0-9, - and _.")


def scheme_of(url: str) -> str:
    """What may be shown of a URL. Raises OrchestratorError where it is none."""
    scheme, colon, rest = url.partition("://")
    if not colon or not rest or not re.fullmatch(r"[a-zA-Z][a-zA-Z0-9+.-]{0,30}", scheme):
        raise OrchestratorError(
            "that is no URL of Apprise's, such as ntfy://TOPIC or mailto://…; see "
            "https://github.com/caronc/apprise/wiki."
        )
    return scheme.lower()


def add_sealed(path: Path, name: str, url: str, signer: Signer) -> None:
    """Keep a URL that only the PIN opens. Raises OrchestratorError."""
    check_name(name)
    scheme = scheme_of(url)
    with locked(path):
        targets = _read(path)
        targets[name] = {"scheme": scheme, "sealed": _sealed(name, url, signer)}
        _write(path, targets)


def remove_sealed(path: Path, name: str) -> bool:
    with locked(path):
        targets = _read(path)
        if targets.pop(name, None) is None:
            return False
        _write(path, targets)
    return True


def sealed_names(path: Path) -> Mapping[str, str]:
    """Name and scheme of every sealed target. Raises OrchestratorError for a damaged file."""
    return {name: str(target["scheme"]) for name, target in sorted(_read(path).items())}


def open_sealed(path: Path, signer: Signer) -> tuple[Target, ...]:
    """The sealed targets. Raises OrchestratorError where one was sealed with another key."""
    return tuple(
        Target(name, _opened(name, str(target["sealed"]), signer), links=True)
        for name, target in sorted(_read(path).items())
    )


def reseal(path: Path, old: Signer, new: Signer) -> None:
    """Seal what the old key opens with its successor."""
    for target in open_sealed(path, old):
        add_sealed(path, target.name, target.url, new)


def notice_targets(vault: Vault) -> tuple[Target, ...]:
    """The targets of plain notices."""
    names = [name for section, name in vault.names() if section == VAULT_SECTION]
    found = ((name, vault.get(VAULT_SECTION, name)) for name in names)
    return tuple(Target(name, url.reveal(), links=False) for name, url in found if url)


def add_notice(vault: Vault, name: str, url: str) -> None:
    """Raises OrchestratorError."""
    check_name(name)
    scheme_of(url)
    vault.put(VAULT_SECTION, name, Secret(url))


def _sealed(name: str, url: str, signer: Signer) -> str:
    nonce = os.urandom(12)
    cipher = AESGCM(signer.sealing_key(_PURPOSE))
    return (nonce + cipher.encrypt(nonce, url.encode(), name.encode())).hex()


def _opened(name: str, sealed: str, signer: Signer) -> str:
    try:
        content = bytes.fromhex(sealed)
        cipher = AESGCM(signer.sealing_key(_PURPOSE))
        return cipher.decrypt(content[:12], content[12:], name.encode()).decode()
    except (InvalidTag, ValueError) as error:
        raise OrchestratorError(
            f"the push target {name} cannot be opened: it was changed, or sealed under another "
            "key. Remove it and add it again."
        ) from error


def _read(path: Path) -> dict[str, dict[str, Any]]:
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


def _write(path: Path, targets: Mapping[str, Mapping[str, str]]) -> None:
    write_atomically(path, json.dumps(targets).encode())
