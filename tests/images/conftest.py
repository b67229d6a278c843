from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

RUNTIME = Path(__file__).parents[2] / "images" / "base" / "runtime"
sys.path.insert(0, str(RUNTIME))

from tests.images.host import Host  # noqa: E402

Start = Callable[..., Host]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts runtime processes with `Host`'s arguments; ends them all."""
    hosts: list[Host] = []

    def started(*arguments: str, environment: dict[str, str] | None = None) -> Host:
        hosts.append(Host(RUNTIME, arguments, environment or {}))
        return hosts[-1]

    yield started
    for host in hosts:
        host.close()
