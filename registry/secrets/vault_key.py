"""Storage of the vault's key: a private file apart from the vault, or the system's keyring."""

from __future__ import annotations

import base64
import binascii
import os
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from registry.database.files import create_secret
from registry.errors import KeyUnusable

KEY_BYTES = 32


class VaultKey(Protocol):
    """Storage for one key. `where` names it in messages, and is written into the vault so that the
    key is found again.
    """

    @property
    def where(self) -> str: ...

    def load(self) -> bytes | None:
        """The key, or None where there is none. Raises KeyUnusable."""
        ...

    def load_or_create(self) -> bytes:
        """The key, created where there is none; concurrent callers get the same one.

        Raises KeyUnusable.
        """
        ...


class KeyFile:
    """A file that only its owner can read."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def where(self) -> str:
        return str(self.path)

    def load(self) -> bytes | None:
        try:
            return _check_length(self.path.read_bytes(), self.where)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise KeyUnusable(self.where, error.strerror or str(error)) from error

    def load_or_create(self) -> bytes:
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            return _check_length(create_secret(self.path, os.urandom(KEY_BYTES)), self.where)
        except OSError as error:
            raise KeyUnusable(self.where, error.strerror or str(error)) from error

    def remove(self) -> None:
        """Remove the file; errors are ignored, since nothing is encrypted with the key any more."""
        with suppress(OSError):
            self.path.unlink()


class Keyring(Protocol):
    """The part of the `keyring` package that is used (https://pypi.org/project/keyring/)."""

    def get_password(self, service: str, username: str) -> str | None: ...

    def set_password(self, service: str, username: str, password: str) -> None: ...


class KeyringEntry:
    """An entry of the system's keyring. `failures` are the exceptions that the keyring raises."""

    SERVICE = "toolwright"

    def __init__(self, ring: Keyring, name: str, failures: tuple[type[Exception], ...]) -> None:
        self._ring, self._name, self._failures = ring, name, failures

    @property
    def where(self) -> str:
        return f"keyring:{self.SERVICE}/{self._name}"

    def load(self) -> bytes | None:
        try:
            found = self._ring.get_password(self.SERVICE, self._name)
            return None if found is None else _check_length(base64.b64decode(found), self.where)
        except self._failures as error:
            raise KeyUnusable(self.where, str(error)) from error
        except binascii.Error as error:
            raise KeyUnusable(self.where, "it is no key") from error

    def load_or_create(self) -> bytes:
        found = self.load()
        if found is not None:
            return found
        fresh = os.urandom(KEY_BYTES)
        try:
            self._ring.set_password(self.SERVICE, self._name, base64.b64encode(fresh).decode())
        except self._failures as error:
            raise KeyUnusable(self.where, str(error)) from error
        kept = self.load()
        if kept is None:
            raise KeyUnusable(self.where, "the keyring did not keep it")
        return kept


def _check_length(key: bytes, where: str) -> bytes:
    if len(key) != KEY_BYTES:
        raise KeyUnusable(where, "it is damaged")
    return key
