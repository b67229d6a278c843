"""The vault of secrets: its interface, and the implementation as one encrypted file."""

from __future__ import annotations

import base64
import hashlib
import hmac
import importlib
import json
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from registry.database.files import lock_file, write_atomically
from registry.errors import KeyUnusable, VaultDamaged
from registry.secrets.vault_key import KeyFile, KeyringEntry, VaultKey

FORMAT = b"toolwright-vault-1"
_MARKS = b"toolwright-marks-1"
_SCRYPT = {"n": 2**15, "r": 8, "p": 1, "maxmem": 64 * 1024 * 1024, "dklen": 32}
_MAX_BYTES = 16 * 1024 * 1024
_NOT_ITS_KEY = "it was changed, or the key or passphrase is not the one it was written with"


class Secret:
    """A secret value that its repr does not show and that cannot be pickled; see `reveal`."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        return self._value

    def __repr__(self) -> str:
        return "Secret(***)"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._value == other._value

    def __hash__(self) -> int:
        return hash((Secret, self._value))

    def __reduce__(self) -> Any:
        raise TypeError("a Secret is not pickled or copied out of the process")


class Vault(Protocol):
    """Secrets by server and name. Every method raises VaultDamaged and KeyUnusable."""

    def get(self, server: str, name: str) -> Secret | None: ...

    def put(self, server: str, name: str, secret: Secret) -> None: ...

    def delete(self, server: str, name: str) -> bool:
        """Remove a secret; False where there was none."""
        ...

    def list_names(self) -> tuple[tuple[str, str], ...]:
        """Server and name of every secret, sorted."""
        ...

    def lock_secret(self, server: str, name: str) -> AbstractContextManager[None]:
        """A lock over all processes for what reads a secret, asks somebody else for the one that
        follows it, and puts that one in its place. It blocks, and may be held for seconds.
        """
        ...

    def mark_text(self, text: str) -> str:
        """A short mark that another text does not have. Nobody without the vault's key can find the
        text by it, nor whether it is a certain one.
        """
        ...


SEALED = "approvals"
"""The vault's section for the writes that wait for a person and have a secret in them."""


def list_own_secrets(vault: Vault) -> tuple[tuple[str, str], ...]:
    """Server and name of every secret that a person set or logged in for."""
    return tuple(each for each in vault.list_names() if each[0] != SEALED)


class FileVault:
    """One file, encrypted with AES-256-GCM (NIST SP 800-38D); read anew whenever it is asked.

    `key` is where its key is made when the first secret is put in; by default a file beside the
    vault. Which one was used is written in it, so that it is found again by a process that would
    look elsewhere. A key beside the vault is given up for `key` at `adopt`. With a passphrase the
    key comes from that (scrypt, RFC 7914). A file that cannot be opened is never overwritten.
    """

    def __init__(
        self, path: Path, passphrase: Secret | None = None, key: VaultKey | None = None
    ) -> None:
        self._path = path
        self._passphrase = passphrase
        self._beside = KeyFile(path.with_suffix(".key"))
        self._preferred: VaultKey = key or self._beside
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)

    def __repr__(self) -> str:
        return f"FileVault({str(self._path)!r})"

    def get(self, server: str, name: str) -> Secret | None:
        value = self._read_vault().secrets.get(server, {}).get(name)
        return None if value is None else Secret(value)

    def put(self, server: str, name: str, secret: Secret) -> None:
        with lock_file(self._path):
            opened = self._read_vault()
            opened.secrets.setdefault(server, {})[name] = secret.reveal()
            self._write_vault(opened)

    def delete(self, server: str, name: str) -> bool:
        with lock_file(self._path):
            opened = self._read_vault()
            if name not in opened.secrets.get(server, {}):
                return False
            del opened.secrets[server][name]
            self._write_vault(opened)
            return True

    def list_names(self) -> tuple[tuple[str, str], ...]:
        secrets = self._read_vault().secrets
        return tuple(sorted((server, name) for server in secrets for name in secrets[server]))

    def lock_secret(self, server: str, name: str) -> AbstractContextManager[None]:
        digest = hashlib.sha256(json.dumps([server, name]).encode()).hexdigest()
        return lock_file(self._path.with_name(f"{self._path.name}.{digest[:16]}"))

    def mark_text(self, text: str) -> str:
        opened = self._read_vault()
        if self._passphrase is not None:
            key = hashlib.scrypt(self._passphrase.reveal().encode(), salt=_MARKS, **_SCRYPT)
        else:
            key = (opened.key or self._preferred).load_or_create()
        return hmac.new(key, _MARKS + text.encode(), hashlib.sha256).hexdigest()[:16]

    def adopt_key(self) -> bool:
        """Re-encrypt a vault whose key lies beside it with the preferred key; True where it did.

        The old key is removed last, so that after a crash an existing key still opens the vault.
        """
        if self._passphrase or self._preferred is self._beside or not self._beside.path.exists():
            return False
        with lock_file(self._path):
            opened = self._read_vault()
            if opened.key is self._beside:
                self._write_vault(_OpenedVault(opened.secrets, None))
            self._beside.remove()
        return True

    def export_key(self) -> bytes | None:
        """The key that opens the vault; None where there is no vault, or it has a passphrase."""
        key = self._read_vault().key
        return None if key is None else key.load()

    def move_to_key(self, key: VaultKey) -> None:
        """Encrypt the vault with another key, which is created where there is none."""
        with lock_file(self._path):
            self._write_vault(_OpenedVault(self._read_vault().secrets, key))

    def _read_vault(self) -> _OpenedVault:
        try:
            with self._path.open("rb") as file:
                content = file.read(_MAX_BYTES)
        except FileNotFoundError:
            return _OpenedVault({}, None)
        except OSError as error:
            raise VaultDamaged(str(self._path), str(error)) from error
        try:
            envelope = json.loads(content)
            salt, nonce, sealed = (
                base64.b64decode(envelope[part], validate=True)
                for part in ("salt", "nonce", "sealed")
            )
            return self._open_content(salt, nonce, sealed, str(envelope.get("key", "")))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise VaultDamaged(str(self._path), f"it is not a vault: {error}") from error

    def _open_content(self, salt: bytes, nonce: bytes, sealed: bytes, hint: str) -> _OpenedVault:
        """Decrypt with the first of the available keys that fits. Raises VaultDamaged,
        ValueError.
        """
        problems = []
        for key in self._iterate_keys(hint):
            try:
                secret = self._derive_key(salt) if key is None else key.load()
            except KeyUnusable as error:
                problems.append(f"its key {error.where}: {error.reason}")
                continue
            if secret is None:
                continue
            try:
                opened = AESGCM(secret).decrypt(nonce, sealed, FORMAT + salt)
            except InvalidTag:
                problems.append(_NOT_ITS_KEY)
                continue
            return _OpenedVault(json.loads(opened), key)
        missing = f"its key {hint or self._preferred.where} is gone"
        raise VaultDamaged(str(self._path), "; ".join(dict.fromkeys(problems)) or missing)

    def _iterate_keys(self, hint: str) -> Iterator[VaultKey | None]:
        if self._passphrase is not None:
            yield None
            return
        yield self._preferred
        if self._beside is not self._preferred:
            yield self._beside
        if hint.startswith("/") and hint not in (self._preferred.where, self._beside.where):
            yield KeyFile(Path(hint))

    def _write_vault(self, opened: _OpenedVault) -> None:
        salt = os.urandom(16) if self._passphrase else b""
        nonce = os.urandom(12)
        key = opened.key or self._preferred
        secret = self._derive_key(salt) if self._passphrase else key.load_or_create()
        secrets = {server: named for server, named in opened.secrets.items() if named}
        parts = {
            "salt": salt,
            "nonce": nonce,
            "sealed": AESGCM(secret).encrypt(nonce, json.dumps(secrets).encode(), FORMAT + salt),
        }
        envelope = {name: base64.b64encode(part).decode() for name, part in parts.items()}
        if not self._passphrase:
            envelope["key"] = key.where
        write_atomically(self._path, json.dumps(envelope).encode())

    def _derive_key(self, salt: bytes) -> bytes:
        assert self._passphrase is not None
        return hashlib.scrypt(self._passphrase.reveal().encode(), salt=salt, **_SCRYPT)


@dataclass(frozen=True)
class _OpenedVault:
    """The secrets by server and name, and the key that opened them (None: none, or passphrase)."""

    secrets: dict[str, dict[str, str]]
    key: VaultKey | None


USABLE_PRIORITY = 1
"""Backends of `keyring` with a lower priority store nothing, or store it unencrypted."""


class VaultSettings(Protocol):
    """The settings of a vault: its file, the file of its key (`own_key` where a person chose that
    file), and the name of the home in the system's keyring.
    """

    @property
    def vault(self) -> Path: ...
    @property
    def vault_key(self) -> Path: ...
    @property
    def own_key(self) -> bool: ...
    @property
    def instance(self) -> str: ...


def read_key_place(path: Path) -> str:
    """Where a vault's file says that its key is; "" where it says nothing."""
    try:
        return str(json.loads(path.read_bytes()).get("key", ""))
    except (OSError, ValueError, AttributeError):
        return ""


def open_vault(settings: VaultSettings) -> FileVault:
    """Open a home's vault. A key that still lies beside it is replaced by one in the preferred
    place.

    A vault that cannot be opened raises only when it is used.
    """
    vault = FileVault(settings.vault, key=find_key(settings))
    with suppress(VaultDamaged, KeyUnusable):
        vault.adopt_key()
    return vault


def find_key(settings: VaultSettings) -> VaultKey:
    """Find where the vault's key belongs: the file that somebody named, else the system's keyring
    where the extra `keyring` is installed and finds one, else a file of the user's configuration.
    """
    if not settings.own_key:
        entry = find_keyring_entry(settings.instance)
        if entry is not None:
            return entry
    return KeyFile(settings.vault_key)


def find_keyring_entry(instance: str) -> VaultKey | None:
    """The entry of another home in the system's keyring; None where there is no keyring."""
    ring = _find_keyring()
    if ring is None:
        return None
    return KeyringEntry(ring.get_keyring(), instance, (ring.errors.KeyringError,))


def _find_keyring() -> Any:
    """The `keyring` package, or None where it is missing or has no keyring to talk to."""
    try:
        ring: Any = importlib.import_module("keyring")
        importlib.import_module("keyring.errors")
    except ImportError:
        return None
    return ring if ring.get_keyring().priority >= USABLE_PRIORITY else None
