"""A vault's key in a file, sealed under a passphrase, for a restore on another machine.

AES-256-GCM (NIST SP 800-38D) under a key that scrypt (RFC 7914) makes of the passphrase, at the
cost of a PIN's.
"""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from registry.errors import KeyUnusable, VaultDamaged
from registry.secrets.vault import FileVault, find_keyring_entry
from registry.secrets.vault_key import KEY_BYTES, VaultKey

MIN_PASSPHRASE = 12
FORMAT = "toolwright-vault-key-1"
_SCRYPT = {"n": 2**17, "r": 8, "p": 1, "maxmem": 160 * 1024 * 1024, "dklen": 32}


def seal_vault_key(key: bytes, passphrase: str) -> bytes:
    """The content of the file. Raises KeyUnusable for a passphrase that is too short."""
    if len(passphrase) < MIN_PASSPHRASE:
        reason = f"its passphrase needs at least {MIN_PASSPHRASE} characters"
        raise KeyUnusable("the exported file", reason)
    salt, nonce = os.urandom(16), os.urandom(12)
    cipher = AESGCM(hashlib.scrypt(passphrase.encode(), salt=salt, **_SCRYPT))
    sealed = cipher.encrypt(nonce, key, FORMAT.encode())
    parts = {"salt": salt.hex(), "nonce": nonce.hex(), "sealed": sealed.hex()}
    return json.dumps({"format": FORMAT, **parts}).encode()


def open_vault_key(where: str, content: bytes, passphrase: str) -> bytes:
    """The key of a file that `seal_vault_key` made. Raises KeyUnusable."""
    try:
        said = json.loads(content)
        salt, nonce, sealed = (bytes.fromhex(said[name]) for name in ("salt", "nonce", "sealed"))
        if said["format"] != FORMAT:
            raise ValueError("another format")
        cipher = AESGCM(hashlib.scrypt(passphrase.encode(), salt=salt, **_SCRYPT))
        key = cipher.decrypt(nonce, sealed, FORMAT.encode())
    except InvalidTag as error:
        raise KeyUnusable(where, "the passphrase is another one, or it was changed") from error
    except (ValueError, TypeError, KeyError) as error:
        raise KeyUnusable(where, f"it is no exported key: {error}") from error
    if len(key) != KEY_BYTES:
        raise KeyUnusable(where, "it is damaged")
    return key


class GivenKey:
    """A vault's key that lies nowhere: it came out of an exported file."""

    where = "the exported file"

    def __init__(self, key: bytes) -> None:
        self._key = key

    def load(self) -> bytes:
        return self._key

    def load_or_create(self) -> bytes:
        return self._key


def open_foreign_vault(
    path: Path, own: VaultKey, instance: str, given: bytes | None
) -> tuple[bool, bool]:
    """Make sure that a home's `own` key opens a vault of another home, of that `instance`: whether
    it does, and whether the vault was sealed anew for that. `given` is the key of an exported file.
    """
    first: VaultKey = own if given is None else GivenKey(given)
    for key in (first, find_keyring_entry(instance)):
        with suppress(VaultDamaged, KeyUnusable):
            vault = FileVault(path, key=key or own)
            vault.list_names()
            known = vault.export_key() == own.load()
            if not known:
                vault.move_to_key(own)
            return True, not known
    return False, False
