"""A person names a host: from then on it may be talked to, wherever its address is."""

from __future__ import annotations

import time

from orchestrator.errors import OrchestratorError
from registry.records import Grant
from registry.store import Store
from sandbox.policy import origin_of


def allow_host(store: Store, host: str, by: str) -> None:
    """Grant a `host:port`. Raises OrchestratorError for anything else."""
    origin = origin_of(f"http://{host}")
    if origin is None or f"{origin.host}:{origin.port}" != host.lower():
        raise OrchestratorError(f"{host!r} is not of the form HOST:PORT, such as localhost:8081.")
    now = time.time()
    # In this order: a job that waits for the first would go on before the second is there.
    store.add_grant(Grant(host.lower(), "private_host", by, now))
    store.add_grant(Grant(host.lower(), "host", by, now))
