"""SIGKILL in every node of a task run: the next start carries it on, to one right end, and nothing
of a write is done twice.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from orchestrator.app import open_app
from orchestrator.settings import Settings, load_settings
from orchestrator.tasks.task_graph import build_graph
from registry.jobs.jobs import is_parked
from registry.models import ENDED_JOBS, Job, generate_id
from tests.crash.installation import Installation
from tests.crash.victim import idled, killed_at
from tests.functional.asking import UNSURE, decide
from tests.world.model import Model, Said, model, purpose, said
from tests.world.site import Page, Site
from tests.world.zones import JSON, ZONES, build_page, owners_api, zones_api

SECONDS = 120.0
THREE = "list the zones, then create a record in the first one, then list its records"
ZONE = {"$ref": "s1", "path": "$[0].id"}
STEPS: list[dict[str, Any]] = [
    {"id": "s1", "task": "list the zones", "tool": "zones.list_zones"},
    {
        "id": "s2",
        "task": "create a record in the first one",
        "tool": "zones.create_record",
        "arguments": {"zone_id": ZONE, "body": {"name": "ftp", "content": "192.0.2.7"}},
    },
    {
        "id": "s3",
        "task": "list its records",
        "tool": "zones.list_records",
        "arguments": {"zone_id": ZONE},
        "after": ["s2"],
    },
]
IN_A_WRITE = ("plan", "route", "arguments", "gate", "execute", "check", "assemble")
AFTER_A_LOST_ANSWER = ("retry", "diagnose", "escalate")
IN_A_REPAIR = ("repair", "escalate")
ALONE = ("confirm", "choose", "forge", "adapt", "replan")
"""The nodes that a test of their own kills a run in."""
WRITE = ("POST", "/zones/z-4711/records")
MOMENTS = {
    **{f"in {node}": rf"after UPDATE jobs .*'{node}'" for node in IN_A_WRITE},
    "before execute": r"UPDATE jobs .*'execute'",
    "before the approval is asked for": r"INSERT INTO approvals",
    "after the approval is asked for": r"after INSERT INTO approvals",
    "before the rest is queued": r"INSERT INTO jobs",
    "after the rest is queued": r"after INSERT INTO jobs",
    "before the run ends": r"UPDATE jobs .*'done'",
    "after the run ended": r"after UPDATE jobs .*'done'",
}


@dataclass(frozen=True)
class World:
    """An installation with both servers, the sites they speak to, and a model that plans."""

    home: Installation
    zones: Site
    owners: Site
    endpoint: Model

    @property
    def settings(self) -> Settings:
        """With the endpoint."""
        here = {"OPENAI_BASE_URL": self.endpoint.url, "OPENAI_API_KEY": "k", "OPENAI_MODEL": "m-1"}
        told = {**os.environ, **here, "TOOLWRIGHT_HOME": str(self.home.home)}
        return load_settings({**told, "TOOLWRIGHT_ENGINE": self.home.engine})

    @property
    def alone(self) -> Settings:
        """Without any endpoint."""
        return self.home.settings

    def queue(self, **request: Any) -> Job:
        now = time.time()
        job = Job(generate_id(), "do", request, created=now, updated=now)
        with self.home.store() as store:
            store.jobs.create(job)
        return job

    def get(self, job: str) -> Job:
        with self.home.store() as store:
            return store.jobs.get(job)

    def count(self, method: str, path: str) -> int:
        asked = [*self.zones.asked, *self.owners.asked]
        return sum((each.method, each.path) == (method, path) for each in asked)

    def forget(self) -> None:
        self.zones.asked.clear()
        self.owners.asked.clear()
        self.endpoint.asked.clear()


def answer_model(request: Mapping[str, Any]) -> Said:
    if purpose(request) == "plan":
        return said({"steps": STEPS})
    if purpose(request) == "choice":
        return said({"tool": "zones.list_zones"})
    return said({"arguments": {}, "missing": ["what is not said"]})


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, any_engine: str) -> Iterator[World]:
    home = Installation.made(tmp_path_factory.mktemp("tasks") / "home", any_engine)
    with zones_api() as zones, owners_api() as owners, model(answer_model) as endpoint:
        for name, site in (("zones", zones), ("owners", owners)):
            home.allow(site.url)
            made = home.run("forge", f"{name} server", "--source", site.url, "--name", name)
            assert made.exit_code == 0, made.stdout
        yield World(home, zones, owners, endpoint)


@pytest.fixture(autouse=True)
def _forgotten(world: World) -> None:
    world.forget()


def carry_on(settings: Settings, job: str, to_end: bool = False) -> Job:
    """Open the installation as the next `serve`; the job when it has ended or waits, `to_end` when
    it has ended.
    """

    async def work() -> Job:
        async with open_app(settings, "serve", patient=True) as app:
            async for _ in app.watch_changes(SECONDS):
                found = app.store.jobs.get(job)
                if found.state in ENDED_JOBS or (is_parked(found) and not to_end):
                    return found
            raise AssertionError(f"{found.state} {found.stage} {found.message}")

    return asyncio.run(work())


def answer(world: World, job: Job, **given: Any) -> None:
    """Answer what a waiting run asks, as another process does."""

    async def work() -> None:
        async with open_app(world.alone, "do") as app:
            named = {"question": job.result["question"]["id"], **given}
            assert isinstance(app.answering.take_answer(job.id, named, "test"), Job)

    asyncio.run(work())


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_run_with_a_write_killed_at_any_moment_asks_for_one_approval_and_writes_once(
    moment: str, world: World
) -> None:
    job = world.queue(task=THREE)
    killed_at(MOMENTS[moment], world.settings)
    ended = carry_on(world.settings, job.id)
    assert (ended.state, ended.result["state"]) == ("done", "pending"), ended.message
    with world.home.store() as store:
        pending = [each.id for each in store.approvals.find("pending")]
    assert pending == [ended.result["approval"]]
    assert world.count(*WRITE) == 0
    assert world.endpoint.purposes() == ["plan"]
    with world.home.store() as store:
        decide(world.alone, store, ended.result["approval"])
    idled(world.settings)
    rest = carry_on(world.settings, ended.result["next"], to_end=True)
    assert (rest.state, rest.result["state"]) == ("done", "answered"), rest.message
    assert [step["state"] for step in rest.result["steps"]] == ["done"] * 3
    assert world.count(*WRITE) == 1
    assert world.count("GET", "/zones/z-4711/records") == 1
    assert world.home.troubles() == []


@pytest.mark.parametrize("node", ["plan", "route", "arguments", "gate", "execute", "assemble"])
def test_the_run_after_an_approval_killed_in_a_node_does_the_rest_once(
    node: str, world: World
) -> None:
    job = world.queue(task=THREE)
    ended = carry_on(world.settings, job.id)
    with world.home.store() as store:
        decide(world.alone, store, ended.result["approval"])
    # The write may be carried out by the process that is killed, or by the one after it.
    killed_at(rf"after UPDATE jobs .*'{node}'", world.settings)
    idled(world.settings)
    rest = carry_on(world.settings, ended.result["next"], to_end=True)
    assert (rest.state, rest.result["state"]) == ("done", "answered"), rest.message
    assert world.count(*WRITE) == 1
    assert world.home.troubles() == []


@pytest.mark.parametrize("moment", ["UPDATE jobs .*'confirm'", "after UPDATE jobs .*'confirm'"])
def test_a_run_killed_while_it_asks_asks_the_same_and_goes_on_with_the_answer(
    moment: str, world: World
) -> None:
    job = world.queue(task=UNSURE)
    killed_at(moment, world.alone)
    asked = carry_on(world.alone, job.id)
    assert asked.result["question"]["shown"]["tool"] == "zones.list_zones"
    answer(world, asked, confirm=True)
    killed_at(moment, world.alone)
    ended = carry_on(world.alone, job.id)
    assert ended.result["state"] == "answered", ended.message
    assert world.count("GET", "/zones") == 1


def test_a_run_killed_while_it_chooses_ends_with_the_models_choice(world: World) -> None:
    job = world.queue(task=UNSURE)
    killed_at(r"after UPDATE jobs .*'choose'", world.settings)
    ended = carry_on(world.settings, job.id)
    assert ended.result["state"] == "answered", ended.message
    assert world.endpoint.purposes() == ["choice"]


def test_a_run_is_killed_in_every_node_that_there_is() -> None:
    killed = {*IN_A_WRITE, *AFTER_A_LOST_ANSWER, *IN_A_REPAIR, *ALONE}
    assert killed == {*build_graph().nodes}


@contextmanager
def broken(world: World, page: Page) -> Iterator[None]:
    kept = world.zones.pages["/zones"]
    world.zones.pages["/zones"] = page
    yield
    world.zones.pages["/zones"] = kept


@pytest.mark.parametrize("node", AFTER_A_LOST_ANSWER)
def test_a_run_killed_while_it_mends_a_lost_answer_ends_with_a_person(
    node: str, world: World
) -> None:
    endless = (*JSON, ("Content-Length", "50"))
    with broken(world, Page(headers=endless, chunks=lambda: iter([b'{"name":']))):
        job = world.queue(task="x", tool="zones.list_zones")
        killed_at(rf"after UPDATE jobs .*'{node}'", world.alone)
        ended = carry_on(world.alone, job.id)
    assert ended.state == "done"
    assert ended.result["given_up"]["attempts"] == 3


@pytest.mark.parametrize("node", IN_A_REPAIR)
def test_a_run_killed_while_a_server_is_repaired_ends_once(node: str, world: World) -> None:
    with broken(world, Page(b'{"error": "gone"}', 410, JSON)):
        job = world.queue(task="x", tool="zones.list_zones")
        killed_at(rf"after UPDATE jobs .*'{node}'", world.alone)
        ended = carry_on(world.alone, job.id)
    assert ended.state == "done"
    assert ended.result["given_up"]["tool"] == "zones.list_zones"


@pytest.mark.parametrize("moment", ["'forge'", "'compile'", "'register'"])
def test_a_run_killed_while_it_forges_makes_one_server_and_goes_on(
    moment: str, world: World, tmp_path: Path
) -> None:
    with owners_api() as site:
        site.pages["/openapi.json"] = world.owners.pages["/openapi.json"]
        world.home.allow(site.url)
        with world.home.store() as store:
            before = len(store.servers.find_summaries())
        order = {"source": site.url, "name": f"counts_{moment.strip(chr(39))}"}
        job = world.queue(task="count the owners", tool="none", **order)
        killed_at(rf"after UPDATE jobs .*{moment}", world.alone)
        ended = carry_on(world.alone, job.id)
        assert ended.result["state"] == "answered", ended.message
        assert ended.result["answer"]["structuredContent"]["body"] == {"count": 2}
        with world.home.store() as store:
            assert len(store.servers.find_summaries()) == before + 1


def test_a_run_killed_while_it_extends_a_server_makes_one_version_and_goes_on(
    world: World,
) -> None:
    place = "/weather"
    page = world.owners.pages["/openapi.json"]
    assert isinstance(page, Page)
    document = json.loads(page.body)
    document["paths"][place] = {
        "get": {
            "operationId": "showWeather",
            "summary": "Show the weather in the machine room",
            "responses": {"200": {"description": "ok"}},
        }
    }
    world.owners.pages |= {
        "/openapi.json": build_page(document),
        place: build_page({"celsius": 19}),
    }
    with world.home.store() as store:
        before = {each.name: each.version for each in store.servers.find_summaries()}
    job = world.queue(task=f"show the weather in the machine room ({world.owners.url})")
    killed_at(r"after UPDATE jobs .*'adapt'", world.alone)
    asked = carry_on(world.alone, job.id)
    answer(world, asked, confirm=True)
    ended = carry_on(world.alone, job.id)
    assert ended.result["state"] == "answered", ended.message
    assert ended.result["answer"]["structuredContent"]["body"] == {"celsius": 19}
    with world.home.store() as store:
        after = {each.name: each.version for each in store.servers.find_summaries()}
    assert after == {**before, "owners": before["owners"] + 1}


def test_a_run_killed_while_it_turns_to_another_server_asks_that_once(world: World) -> None:
    endless = (*JSON, ("Content-Length", "50"))
    with zones_api() as mirror:
        world.home.allow(mirror.url)
        made = world.home.run("forge", "zones mirror", "--source", mirror.url, "--name", "mirror")
        assert made.exit_code == 0, made.stdout
        mirror.asked.clear()
        with broken(world, Page(headers=endless, chunks=lambda: iter([b'{"name":']))):
            job = world.queue(task="list the zones")
            asked = carry_on(world.alone, job.id)
            if asked.result["question"]["kind"] == "confirm":
                answer(world, asked, confirm=False)
                asked = carry_on(world.alone, job.id)
            answer(world, asked, tool="zones.list_zones")
            killed_at(r"after UPDATE jobs .*'replan'", world.alone)
            asked = carry_on(world.alone, job.id)
        question = asked.result["question"]
        assert "zones.list_zones failed" in question["text"]
        assert world.count("GET", "/zones") == 3
        answer(world, asked, tool="mirror.list_zones")
        ended = carry_on(world.alone, job.id)
        assert ended.result["state"] == "answered", ended.message
        assert ended.result["answer"]["structuredContent"]["body"] == ZONES
        assert world.count("GET", "/zones") == 3
        assert mirror.paths == ["/zones"]
        assert world.home.run("archive", "mirror").exit_code == 0
