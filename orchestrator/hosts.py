"""Hosts that a server or a forge reaches: named by a person, or waited for."""

from __future__ import annotations

from collections.abc import Iterable

from orchestrator.brokers import origins
from orchestrator.consents import Consents
from orchestrator.errors import ForgeWaits
from sandbox.bundle import Bundle
from sandbox.policy import Origin, origin_of

NETWORK = "network:"
"""How the permission to reach a host begins."""


def check_hosts(consents: Consents, bundle: Bundle, permissions: Iterable[str] = ()) -> None:
    """Raises ForgeWaits for the first host that no person has named, of those that a bundle asks
    for and of those among permissions.
    """
    named = (p.removeprefix(NETWORK) for p in permissions if p.startswith(NETWORK))
    hosts = filter(None, (origin_of(f"https://{host}") for host in named))
    check_origins(consents, origins(bundle) | frozenset(hosts))


def check_origins(consents: Consents, wanted: Iterable[Origin]) -> None:
    """Raises ForgeWaits for the first origin that no person has named."""
    named = consents.hosts()
    for origin in sorted(wanted, key=str):
        host = f"{origin.host}:{origin.port}"
        if host not in named:
            raise ForgeWaits("host", host, f"toolwright source allow {host}")
