"""Where secrets are kept: an interface, and one encrypted file behind it."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from pathlib import Path
from typing import Any, Protocol

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from registry.errors import VaultDamaged
from registry.files import create_secret, locked, write_atomically

FORMAT = b"toolwright-vault-1"
_SCRYPT = {"n": 2**15, "r": 8, "p": 1, "maxmem": 64 * 1024 * 1024, "dklen": 32}
_MAX_BYTES = 16 * 1024 * 1024


class Secret:
    """A secret value that does not show itself: only `reveal` gives it away."""

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
    """Secrets by server and name. Every method raises VaultDamaged."""

    def get(self, server: str, name: str) -> Secret | None: ...

    def put(self, server: str, name: str, secret: Secret) -> None: ...

    def delete(self, server: str, name: str) -> bool:
        """Remove a secret; False where there was none."""
        ...

    def names(self) -> tuple[tuple[str, str], ...]:
        """Server and name of every secret, sorted."""
        ...


class FileVault:
    """One file, encrypted with AES-256-GCM (NIST SP 800-38D); read anew whenever it is asked.

    The key is a private file beside it, or comes from a passphrase (scrypt, RFC 7914). A file that
    cannot be opened is never overwritten.
    """

    def __init__(self, path: Path, passphrase: Secret | None = None) -> None:
        self._path = path
        self._passphrase = passphrase
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)

    def __repr__(self) -> str:
        return f"FileVault({str(self._path)!r})"

    def get(self, server: str, name: str) -> Secret | None:
        value = self._read().get(server, {}).get(name)
        return None if value is None else Secret(value)

    def put(self, server: str, name: str, secret: Secret) -> None:
        with locked(self._path):
            secrets = self._read()
            secrets.setdefault(server, {})[name] = secret.reveal()
            self._write(secrets)

    def delete(self, server: str, name: str) -> bool:
        with locked(self._path):
            secrets = self._read()
            if name not in secrets.get(server, {}):
                return False
            del secrets[server][name]
            self._write({server: named for server, named in secrets.items() if named})
            return True

    def names(self) -> tuple[tuple[str, str], ...]:
        secrets = self._read()
        return tuple(sorted((server, name) for server in secrets for name in secrets[server]))

    def _read(self) -> dict[str, dict[str, str]]:
        try:
            with self._path.open("rb") as file:
                content = file.read(_MAX_BYTES)
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise VaultDamaged(str(self._path), str(error)) from error
        try:
            envelope = json.loads(content)
            salt, nonce, sealed = (
                base64.b64decode(envelope[part], validate=True)
                for part in ("salt", "nonce", "sealed")
            )
            opened = AESGCM(self._key(salt, create=False)).decrypt(nonce, sealed, FORMAT + salt)
            secrets: dict[str, dict[str, str]] = json.loads(opened)
        except InvalidTag as error:
            reason = "it was changed, or the key or passphrase is not the one it was written with"
            raise VaultDamaged(str(self._path), reason) from error
        except (ValueError, KeyError, TypeError) as error:
            raise VaultDamaged(str(self._path), f"it is not a vault: {error}") from error
        return secrets

    def _write(self, secrets: dict[str, dict[str, str]]) -> None:
        salt = os.urandom(16) if self._passphrase else b""
        nonce = os.urandom(12)
        cipher = AESGCM(self._key(salt, create=True))
        parts = {
            "salt": salt,
            "nonce": nonce,
            "sealed": cipher.encrypt(nonce, json.dumps(secrets).encode(), FORMAT + salt),
        }
        envelope = {name: base64.b64encode(part).decode() for name, part in parts.items()}
        write_atomically(self._path, json.dumps(envelope).encode())

    def _key(self, salt: bytes, create: bool) -> bytes:
        if self._passphrase is not None:
            return hashlib.scrypt(self._passphrase.reveal().encode(), salt=salt, **_SCRYPT)
        path = self._path.with_suffix(".key")
        try:
            key = create_secret(path, os.urandom(32)) if create else path.read_bytes()
        except OSError as error:
            raise VaultDamaged(str(self._path), f"its key {path.name}: {error}") from error
        if len(key) != 32:
            raise VaultDamaged(str(self._path), f"its key {path.name} is damaged")
        return key
