from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.settings import Settings, load_settings
from registry.models import Approval
from registry.secrets.pin import set_pin
from registry.store import Store
from tests.orchestrator.plane import plane
from tests.registry.samples import REPORTS, approval, entry

__all__ = ["plane"]

PIN = "correct horse"


@pytest.fixture(scope="session")
def pin_record(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The file of the PIN; here one that costs nothing to try."""
    path = tmp_path_factory.mktemp("pin") / "pin.json"
    set_pin(path, PIN, cost=2**4)
    return path.read_bytes()


@pytest.fixture
def settings(tmp_path: Path, pin_record: bytes) -> Settings:
    """A home with a PIN."""
    settings = load_settings({"TOOLWRIGHT_HOME": str(tmp_path / "home")})
    settings.pin.write_bytes(pin_record)
    return settings


@pytest.fixture
def store(settings: Settings) -> Iterator[Store]:
    with Store.open(settings.database_url, "test") as store:
        yield store


@pytest.fixture
def waiting(store: Store) -> Approval:
    """A request of a registered server that waits for a person."""
    now = time.time()
    store.servers.publish(entry(), REPORTS, now=now)
    store.approvals.add_pending(replace(approval(), created=now, expires=now + 3600))
    return store.approvals.get(approval().id)
