"""What a third-party server is started with, and who says so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from sandbox.bundle import Bundle
from sandbox.egress import Exit
from sandbox.permissions import Permission
from sandbox.runner import Limits

LIMITS = Limits(
    memory_mb=512,
    cpus=1.0,
    pids=128,
    files=1024,
    scratch_mb=64,
    start_seconds=30.0,
    line_bytes=16 * 1024 * 1024,
)
"""What a third-party server may use where nobody says otherwise: a Node process takes 80 MB."""


@dataclass(frozen=True)
class Outfit:
    """What a session is started with. Values of `environment` are secrets, by variable."""

    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    paths: tuple[Permission, ...] = ()
    exit: Exit | None = None


class Outfitter(Protocol):
    """Says what a server may have at this moment: what it declares and a person granted."""

    def __call__(self, bundle: Bundle) -> Outfit:
        """Raises PermissionMissing, for a secret that is not in the vault."""
        ...
