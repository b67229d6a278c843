"""The vault's key: telling where it is, exporting it, and opening a restored vault with it."""

from __future__ import annotations

from pathlib import Path

from orchestrator.errors import RestoreRefused
from orchestrator.settings import Settings
from registry.backup.manifest import Manifest
from registry.secrets.key_export import open_foreign_vault, seal_vault_key
from registry.secrets.vault import FileVault, find_key

NO_KEY = (
    "the backup's secrets are sealed, and the key that opens them ({place}) is not on this "
    "machine. On the machine where it is: `toolwright backup FILE --with-key KEYFILE`, then "
    "`restore --key KEYFILE` here; or `restore --without-secrets` and enter them again"
)


def export_vault_key(settings: Settings, passphrase: str) -> bytes | None:
    """The vault's key, sealed under a passphrase; None where there is no vault. Raises
    VaultDamaged, KeyUnusable.
    """
    key = FileVault(settings.vault, key=find_key(settings)).export_key()
    return None if key is None else seal_vault_key(key, passphrase)


def open_restored_vault(
    settings: Settings, vault: Path, manifest: Manifest, given: bytes | None
) -> str:
    """Make sure that the home's own key opens a vault that was unpacked there; where another one
    does, it is sealed anew. Returns what was done, in words. Raises RestoreRefused, KeyUnusable.
    """
    own = find_key(settings)
    opens, anew = open_foreign_vault(vault, own, manifest.instance, given)
    if not opens:
        raise RestoreRefused(NO_KEY.format(place=manifest.vault_key or "unknown"))
    return f"{'sealed anew with' if anew else 'opened by'} the key in {own.where}"
