"""SIGKILL before and after each step of a forge: the next start carries it out, once."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator

import pytest

from registry.models import Job, generate_id
from tests.crash.installation import Installation
from tests.crash.victim import finished, killed_at
from tests.world.harbour import HarbourApi, harbour_api

STAGES = ("find", "compile", "static", "mock", "live", "register")
MOMENTS = {
    "before it is claimed": r"UPDATE jobs .*'running'",
    **{f"before {stage} is told": rf"UPDATE jobs .*'{stage}'" for stage in STAGES},
    **{f"after {stage} is told": rf"after UPDATE jobs .*'{stage}'" for stage in STAGES},
    "while the version is published": r"INSERT INTO audit .*'publish'",
    "before the files are put in place": r"os\.rename .*\.staging-",
    "after the job is ended": r"after UPDATE jobs .*'done'",
}
_names = itertools.count(1)


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HarbourApi]:
    with harbour_api(tmp_path_factory.mktemp("harbour")) as api:
        yield api


@pytest.fixture(scope="module")
def shared(
    tmp_path_factory: pytest.TempPathFactory, any_engine: str, api: HarbourApi
) -> Installation:
    home = tmp_path_factory.mktemp("killed") / "home"
    installation = Installation.made(home, any_engine)
    installation.allow(api.url)
    return installation


def queued(installation: Installation, api: HarbourApi) -> Job:
    """A forge job for a server of a new name."""
    name = f"harbour_{next(_names)}"
    request = {"task": "list the berths", "source": api.url, "name": name, "files": "typed"}
    job = Job(generate_id(), "forge", request, created=time.time(), updated=time.time())
    with installation.store() as store:
        store.jobs.create(job)
    return job


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_forge_killed_at_any_moment_ends_in_one_whole_server(
    moment: str, shared: Installation, api: HarbourApi
) -> None:
    job = queued(shared, api)
    before = len(shared.listed())
    killed_at(MOMENTS[moment], shared.settings)
    ended = finished(shared.settings, job.id)
    assert ended.state == "done", ended
    assert ended.result["version"] == 1
    assert shared.troubles() == []
    assert len(shared.listed()) == before + 1
