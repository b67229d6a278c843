"""What is forged once for all functional tests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.functional.home import Home
from tests.functional.journey import Journey, travel
from tests.functional.peer import Peer
from tests.world.harbour import HarbourApi, harbour_api
from tests.world.powerdns import PowerDNS, powerdns_for_tests
from tests.world.site import Site
from tests.world.zones import owners_api, zones_api


@pytest.fixture(scope="session")
def powerdns(engine_name: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PowerDNS]:
    """A server per engine: what the journey makes there must not be there before it."""
    with powerdns_for_tests(tmp_path_factory.mktemp("powerdns")) as server:
        yield server


@pytest.fixture(scope="session")
def journey(toolwright_home: Home, powerdns: PowerDNS) -> Journey:
    """From a task to DNS records that answer; leaves the server `powerdns` in the home."""
    return travel(toolwright_home, powerdns)


@pytest.fixture(scope="session")
def harbour(
    toolwright_home: Home, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[HarbourApi]:
    """The example API, with the server `harbour` forged for it."""
    with harbour_api(tmp_path_factory.mktemp("harbour")) as api:
        host = api.url.removeprefix("http://")
        toolwright_home.person("forge", "list berths", "--source", api.url, "--allow", host)
        yield api


@pytest.fixture(scope="session")
def _serving(toolwright_home: Home, harbour: HarbourApi) -> Iterator[Peer]:
    with Peer(replace(toolwright_home, fresh=True), "serve") as peer:
        yield peer


@pytest.fixture
def served(_serving: Peer) -> Peer:
    """A client of a `toolwright serve` that all tests share; none of them may end it."""
    assert _serving.process.poll() is None
    return _serving


@pytest.fixture
def zones() -> Iterator[Site]:
    """The API of zones, for runs of tasks."""
    with zones_api() as here:
        yield here


@pytest.fixture
def owners() -> Iterator[Site]:
    """The API of owners, for runs of tasks."""
    with owners_api() as here:
        yield here
