"""The environment that a third-party server is started with, and the interface that provides it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from sandbox.bundle.model import Bundle
from sandbox.bundle.permissions import Permission
from sandbox.session.interface import Limits
from sandbox.thirdparty.egress import EgressProxy

LIMITS = Limits(
    memory_mb=512,
    cpus=1.0,
    pids=128,
    files=1024,
    scratch_mb=64,
    start_seconds=60.0,
    line_bytes=16 * 1024 * 1024,
)
"""Default limits of a third-party server: a Node process alone takes 80 MB."""


@dataclass(frozen=True)
class LaunchEnvironment:
    """Variables, paths and egress proxy of a session. Values of `environment` are secrets."""

    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    paths: tuple[Permission, ...] = ()
    exit: EgressProxy | None = None


class EnvironmentProvider(Protocol):
    """Provides the environment of a server: what it declares and a person granted by now."""

    def __call__(self, bundle: Bundle) -> LaunchEnvironment:
        """The environment of the bundle's server. Raises PermissionMissing, also for a secret that
        is not in the vault.
        """
        ...
