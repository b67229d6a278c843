from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from registry.store import Store
from tests.registry.samples import entry


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "registry.db", "main") as opened:
        yield opened


@pytest.fixture
def dns(store: Store) -> Store:
    """A store in which one server, `dns`, is registered."""
    store.servers.publish(entry(), now=10.0)
    return store
