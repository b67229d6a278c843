"""The manifest of a backup: what is in the file, with the size and SHA-256 of each member."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from registry.database.canonical import to_canonical_json
from registry.errors import BackupRefused
from sandbox.errors import ArchiveRefused
from sandbox.packages.archive import check_tree_name

FORMAT = "toolwright-backup-1"
MANIFEST = "manifest.json"
DATABASE, CHECKPOINTS = "toolwright.db", "checkpoints.db"
VAULT, PIN, PUSH, INSTANCE = "vault.json", "pin.json", "push.json", "instance"
SERVERS, AUDIT = "servers", "audit"
FILES = (DATABASE, CHECKPOINTS, VAULT, PIN, PUSH, INSTANCE)
"""Files that lie directly in a home and belong into a backup."""
MAX_NAME = 240
"""Bytes of a name that every tar header has room for (POSIX.1-1988 ustar: 155 + 1 + 100)."""
_ARCHIVE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*\Z")
_DIGEST = re.compile(r"[0-9a-f]{64}\Z")


@dataclass(frozen=True)
class BackupMember:
    """One file of a home: its name below the home, its size in bytes, its SHA-256 in hex."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """`made` is in epoch seconds. `schema` is the fingerprint of the database's tables, `key` that
    of the person's key ("" for none), `vault_key` where the vault's key lay ("" for no vault).
    """

    made: float
    toolwright: str
    schema: str
    instance: str
    key: str
    vault_key: str
    members: tuple[BackupMember, ...]

    @property
    def total(self) -> int:
        """The bytes of all members."""
        return sum(member.size for member in self.members)

    @property
    def digest(self) -> str:
        """SHA-256 of the manifest, which covers all members."""
        return hashlib.sha256(self.to_bytes()).hexdigest()

    def has(self, name: str) -> bool:
        return any(member.name == name for member in self.members)

    def to_bytes(self) -> bytes:
        said: dict[str, Any] = {
            "format": FORMAT,
            **vars(self),
            "members": [[member.name, member.size, member.sha256] for member in self.members],
        }
        return to_canonical_json(said).encode()


def parse_manifest(file: str, content: bytes) -> Manifest:
    """Raises BackupRefused for what is no manifest, or names what is no file of a home."""
    try:
        said = json.loads(content)
        if said["format"] != FORMAT:
            raise BackupRefused(file, f"its format is {str(said['format'])[:60]!r}, not {FORMAT}")
        members = tuple(_parse_member(one) for one in said["members"])
        texts = {name: _read_text(said, name) for name in _TEXTS}
        manifest = Manifest(made=float(said["made"]), members=members, **texts)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise BackupRefused(file, f"its manifest cannot be read: {error}") from error
    names = [member.name for member in members]
    if len(set(names)) != len(names):
        raise BackupRefused(file, "it names a file twice")
    for name in names:
        check_member_name(file, name)
    for name in (DATABASE, INSTANCE):
        if name not in names:
            raise BackupRefused(file, f"{name} is not in it")
    return manifest


def check_member_name(file: str, name: str) -> None:
    """Raises BackupRefused for a name that is none of a home's files."""
    try:
        parts = check_tree_name(name)
    except (ArchiveRefused, UnicodeError) as error:
        raise BackupRefused(file, f"{name[:80]!r} leads elsewhere, or is no plain name") from error
    inside = parts[0] == SERVERS and len(parts) > 2
    archived = parts[0] == AUDIT and len(parts) == 2 and _ARCHIVE.match(parts[1])
    if len(name.encode()) > MAX_NAME or not (name in FILES or inside or archived):
        raise BackupRefused(file, f"{name[:80]!r} is no file of a home")


_TEXTS = ("toolwright", "schema", "instance", "key", "vault_key")


def _read_text(said: Mapping[str, Any], name: str) -> str:
    text = said[name]
    if not isinstance(text, str) or len(text) > 1000:
        raise ValueError(f"{name} is no short text")
    return text


def _parse_member(said: Any) -> BackupMember:
    name, size, digest = said
    if not isinstance(name, str) or type(size) is not int or size < 0:
        raise ValueError("a member has no name or no size")
    if not isinstance(digest, str) or not _DIGEST.match(digest):
        raise ValueError("a member has no digest")
    return BackupMember(name, size, digest)
