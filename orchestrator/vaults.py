"""The vault of an installation, its key where the system keeps such things."""

from __future__ import annotations

import importlib
from contextlib import suppress
from typing import Any

from orchestrator.settings import Settings
from registry.errors import KeyUnusable, VaultDamaged
from registry.keys import Key, KeyFile, KeyInRing
from registry.vault import FileVault

USABLE_PRIORITY = 1
"""Below it a backend of `keyring` keeps nothing, or keeps it in clear."""


def open_vault(settings: Settings) -> FileVault:
    """The vault, its key taken away from beside it if it still lies there. One that cannot be
    opened says so when it is asked.
    """
    vault = FileVault(settings.vault, key=vault_key(settings))
    with suppress(VaultDamaged, KeyUnusable):
        vault.adopt()
    return vault


def vault_key(settings: Settings) -> Key:
    """Where the key belongs: the file that somebody named, else the system's keyring where the
    extra `keyring` is installed and finds one, else a file of the user's configuration.
    """
    if not settings.own_key:
        ring = _keyring()
        if ring is not None:
            return KeyInRing(ring.get_keyring(), settings.instance, (ring.errors.KeyringError,))
    return KeyFile(settings.vault_key)


def _keyring() -> Any:
    """The `keyring` package, or None where it is missing or has no keyring to talk to."""
    try:
        ring: Any = importlib.import_module("keyring")
        importlib.import_module("keyring.errors")
    except ImportError:
        return None
    return ring if ring.get_keyring().priority >= USABLE_PRIORITY else None
