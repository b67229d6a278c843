"""What tests of several folders share: the world's parts, the engines, a home."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from functools import lru_cache

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

from orchestrator.processes.garbage import collect_rarely
from orchestrator.settings import load_engine_settings
from sandbox.engines.docker.engine import Client, connect_engine
from sandbox.engines.docker.image import build_base
from sandbox.engines.wasm.component import LoadedComponent, build_component
from sandbox.errors import EngineUnavailable
from tests.functional.home import Home, new_home
from tests.world.node import node_modules
from tests.world.powerdns import powerdns

# A time limit per example, or for making one, would say more of the machine's load than of the
# code.
settings.register_profile("toolwright", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("toolwright")

# A second and 200 MB of each process; tests/registry/search/test_vectors.py is about it.
os.environ.setdefault("TOOLWRIGHT_SEMANTIC", "off")
# Nothing that a test's commands start outlives it; tests about the resident process switch it on.
os.environ["TOOLWRIGHT_RESIDENT"] = "off"

__all__ = ["base_image", "node_modules", "powerdns", "toolwright_home"]

ENGINES = (pytest.param("docker", marks=pytest.mark.docker), "wasm")
HOMES = {
    "powerdns": frozenset(
        f"tests/functional/test_{name}.py" for name in ("clients", "export", "powerdns")
    ),
    "harbour": frozenset(
        f"tests/functional/test_{name}.py"
        for name in ("approvals", "arrived", "graphql", "kill", "prosedocs", "resident", "run")
    ),
    "drafts": frozenset(
        f"tests/{name}.py"
        for name in ("attacks/test_handed_in", "functional/test_drafts", "functional/test_suites")
    ),
}
"""Files whose tests share `toolwright_home` and what is in it, so that a process makes it once."""
SLOW = tuple(f"tests/{folder}/" for folder in ("functional", "crash", "engine", "attacks", "world"))
ANY = "any"
"""Docker where it answers, else WASM."""
ONE_ENGINE = frozenset(
    f"test_{name}.py"
    for name in (
        *("approvals", "arrived", "clients", "demo", "drafts", "graphql", "prosedocs"),
        *("resident", "suites", "task_runs"),
    )
)
"""Files whose way is the same on every engine: what runs code is held on both in tests/engine."""
NEED_DOCKER = frozenset({"base_image", "docker_engine"})
"""The only fixtures that reach a Docker engine."""


class PlaceScheduling(LoadScopeScheduling):
    """Hands out to one process together what shares a home, or else the tests of a file on an
    engine.

    Homes come first, then what starts engines and commands, which is slow and mostly waits; the
    thousands of short tests come last, when they can fill whichever process is free.
    """

    def _split_scope(self, nodeid: str) -> str:
        return find_place(nodeid)

    def _assign_work_unit(self, node: WorkerController) -> None:
        first = min(self.workqueue, key=rank_place)
        self.workqueue.move_to_end(first, last=False)
        super()._assign_work_unit(node)


def find_place(nodeid: str) -> str:
    """Which tests go together: those of one place."""
    file, _, name = nodeid.partition("::")
    parameters = name.partition("[")[2].rstrip("]").split("-")
    engine = next((engine for engine in ("docker", "wasm") if engine in parameters), "")
    home = next((home for home, files in HOMES.items() if file in files), "")
    return f"{home or file} {engine}".rstrip()


def rank_place(place: str) -> int:
    """Earlier ones first; where it is the same, the place with more tests."""
    return 0 if place.split()[0] in HOMES else 1 if place.startswith(SLOW) else 2


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> PlaceScheduling:
    return PlaceScheduling(config, log)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Let a test that names an engine run on each, or on one of them where that says it all."""
    marks = metafunc.definition.iter_markers("parametrize")
    if "engine_name" in metafunc.fixturenames and not any(
        "engine_name" in m.args[0] for m in marks
    ):
        engines = [ANY] if metafunc.definition.path.name in ONE_ENGINE else ENGINES
        metafunc.parametrize("engine_name", engines, indirect=True, scope="session")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as `docker` what uses one of Docker's fixtures."""
    for item in items:
        if NEED_DOCKER.intersection(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.docker)


def pytest_collection_finish() -> None:
    """No look for cycles goes through what the thousands of collected tests hold."""
    gc.collect()
    gc.freeze()
    collect_rarely()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what is about Docker where no engine answers, before any fixture is made; refuse what
    would make the shared home once more in each process.
    """
    if item.get_closest_marker("docker") and not docker_answers():
        pytest.skip("about Docker itself, and no Docker engine answers")
    if "toolwright_home" in getattr(item, "fixturenames", ()):
        shared = find_place(item.nodeid).split()[0] in HOMES
        assert shared, f"{item.nodeid} shares a home: its file has to be in HOMES"


@lru_cache(maxsize=1)
def docker_answers() -> bool:
    try:
        connect_engine().close()
    except EngineUnavailable:
        return False
    return True


@pytest.fixture(scope="session", autouse=True)
def vault_key(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The key of all vaults of the run, and of what it starts, away from the person's own."""
    with pytest.MonkeyPatch.context() as environment:
        key = tmp_path_factory.mktemp("config") / "vault.key"
        environment.setenv("TOOLWRIGHT_VAULT_KEY_FILE", str(key))
        yield


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Whatever the test starts hears of an interrupt. A shell without job control makes what it
    starts in the background, as the tests may be, ignore SIGINT, and children inherit that.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def docker_engine(base_image: str) -> Iterator[tuple[Client, str]]:
    """A client of the engine, and the base image's name."""
    client = connect_engine()
    yield client, base_image
    client.close()


@pytest.fixture(scope="session")
def base_image() -> str:
    """The name of the base image, built if it is missing."""
    client = connect_engine()
    try:
        return build_base(client, print).reference
    finally:
        client.close()


@pytest.fixture(scope="session")
def component() -> LoadedComponent:
    """The component of the WASM engine, built if it is missing."""
    return build_component(load_engine_settings().cache, print)


@pytest.fixture(scope="session")
def engine_name(request: pytest.FixtureRequest) -> str:
    """`docker`, then `wasm`: made ready, for what has to hold on both. ONE_ENGINE has one."""
    return _ready(request, _choose_engine() if request.param == ANY else request.param)


@pytest.fixture(scope="session")
def any_engine(request: pytest.FixtureRequest) -> str:
    """Docker where it answers, else `wasm`: made ready, for what does not depend on which."""
    return _ready(request, _choose_engine())


def _choose_engine() -> str:
    return "docker" if docker_answers() else "wasm"


def _ready(request: pytest.FixtureRequest, name: str) -> str:
    request.getfixturevalue("base_image" if name == "docker" else "component")
    return name


@pytest.fixture(scope="session")
def toolwright_home(engine_name: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """The home that all tests of one engine share, at first without a server."""
    with new_home(tmp_path_factory.mktemp("toolwright"), engine_name) as home:
        yield home
