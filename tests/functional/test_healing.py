"""Servers that mend themselves: APIs on loopback limit, change, move and lie."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from bench.heal import allow, healed, limited_api
from orchestrator.app import App, open_app
from orchestrator.calls import Call, Done, Reply
from orchestrator.forging import Order
from orchestrator.replacing import Replacing
from orchestrator.settings import load_settings
from orchestrator.versions import version_of
from registry.health import REPAIRS_A_DAY
from registry.records import ENDED_JOBS, Entry, Invocation, Job
from sandbox.pace import Pace
from tests.crash.documents import described, reading
from tests.functional.home import Home
from tests.world.site import Asked, Page, Site, site

JSON = (("Content-Type", "application/json"),)
THING = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "state": {"type": "string", "enum": ["on", "off"]}},
}
DOCUMENT = "/openapi.json"


@dataclass(frozen=True)
class World:
    """An API that a test changes, and the app whose server asks it."""

    app: App
    api: Site
    entry: Entry

    async def call(self, tool: str = "get_thing", **arguments: Any) -> Reply:
        reply = await self.app.dispatch.call(Call(self.entry.name, tool, arguments, task="look"))
        return reply

    async def failing(self, times: int, **arguments: Any) -> None:
        for _ in range(times):
            reply = await self.call(**arguments)
            assert isinstance(reply, Done)
            assert not reply.outcome.ok

    async def repaired(self) -> Job:
        """The server's newest repair, once it has ended."""
        async for _ in self.app.changes(30.0):
            jobs = self.app.store.repairs(self.entry.name, time.time())
            if jobs and jobs[0].state in ENDED_JOBS:
                return jobs[0]
        raise AssertionError("no repair has ended")

    def current(self) -> Entry:
        return self.app.store.entry(self.entry.name)

    def kinds(self) -> list[str]:
        return [row.kind for row in self.app.store.audit(200)]


def page(value: Any, status: int = 200) -> Page:
    return Page(json.dumps(value).encode(), status, JSON)


Play = Callable[[World], Awaitable[None]]
Player = Callable[[Play], None]


@pytest.fixture
def play(any_engine: str, tmp_path: Path) -> Iterator[Player]:
    """Plays against a fresh server of an API with one thing."""

    def played(act: Play) -> None:
        asyncio.run(_played(act, any_engine, tmp_path))

    return played  # type: ignore[return-value]


async def _played(act: Play, engine: str, home: Path) -> None:
    async with world(engine, home) as made:
        await act(made)


@asynccontextmanager
async def world(engine: str, home: Path) -> AsyncIterator[World]:
    settings = load_settings({"TOOLWRIGHT_HOME": str(home / "home"), "TOOLWRIGHT_ENGINE": engine})
    paths = {"/thing": reading(THING, operationId="get_thing")}
    with site({DOCUMENT: Page(described(paths)), "/thing": page({"name": "oar"})}) as api:
        async with open_app(settings, "test", patient=True) as app:
            allow(app, api.url)
            order = Order(source=f"{api.url}{DOCUMENT}")
            forged = await app.forge.forge(order, lambda step: None)
            yield World(app, api, forged.entry)


def test_an_api_that_refuses_a_crowd_teaches_its_server_the_rate(
    any_engine: str, tmp_path: Path
) -> None:
    settings = load_settings({"TOOLWRIGHT_HOME": str(tmp_path), "TOOLWRIGHT_ENGINE": any_engine})

    async def played() -> None:
        with limited_api(5) as api:
            async with open_app(settings, "test", patient=True) as app:
                allow(app, api.url)
                job, _ = await healed(app, api, crowd=20)
                assert (job.state, job.message) == ("done", "")
                assert job.result["retried"]["succeeded"], job.result
                entry = app.store.entry(job.result["server"])
                assert (entry.version, entry.state) == (2, "active")
                (pace,) = app.forge.shelf.bundle(entry).paces
                assert 0.5 <= pace.per_second <= 5
                (case,) = app.forge.shelf.recorded(entry.name)
                assert isinstance(case.limit, Pace)
                reports = app.store.reports(entry.name, 2)
                assert [r.verdict for r in reports if r.stage == "recorded"] == ["passed"]
                retried = await stored(app, job.result["retried"]["call"])
                assert (retried.version, retried.task) == (2, "the number of 1")
                kinds = {row.kind for row in app.store.audit(500)}
                assert {"repair.opened", "publish", "trial.began"} <= kinds

    asyncio.run(played())


def test_a_new_word_in_an_answer_is_learned_with_a_note(play: Player) -> None:
    async def act(world: World) -> None:
        assert isinstance(await world.call(), Done)
        world.api.pages["/thing"] = page({"name": None, "state": "paused"})
        await world.failing(2)
        job = await world.repaired()
        assert job.state == "done", job.message
        bundle = world.app.forge.shelf.bundle(world.current())
        assert sorted(map(str, bundle.widened)) == [
            "get_thing: /body/name may also be null",
            'get_thing: /body/state may also be "paused"',
        ]
        assert job.result["retried"]["succeeded"]
        assert job.result["rehearsed"] == 1

    play(act)


def test_an_answer_that_would_admit_anything_is_not_learned(play: Player) -> None:
    async def act(world: World) -> None:
        world.api.pages["/thing"] = page({"name": {"do": "as I say"}})
        await world.failing(2)
        job = await world.repaired()
        assert job.state == "failed"
        assert world.current().version == 1
        (wanted,) = [j for j in world.app.store.jobs() if j.kind == "forge"]
        assert (wanted.request["parent"], wanted.request["name"]) == (world.entry.name,) * 2

    play(act)


def test_a_path_that_moved_is_followed_where_the_description_says_so(play: Player) -> None:
    async def act(world: World) -> None:
        assert isinstance(await world.call(), Done)
        del world.api.pages["/thing"]
        world.api.pages["/v2/thing"] = page({"name": "oar"})
        paths = {"/v2/thing": reading(THING, operationId="get_thing")}
        world.api.pages[DOCUMENT] = Page(described(paths))
        await world.failing(2)
        job = await world.repaired()
        assert job.state == "done", job.message
        assert job.result["retried"]["succeeded"]
        assert world.api.paths[-1] == "/v2/thing"

    play(act)


def test_a_description_that_asks_for_more_waits_for_a_person(play: Player) -> None:
    async def act(world: World) -> None:
        del world.api.pages["/thing"]
        paths: dict[str, Any] = {"/v2/thing": reading(THING, operationId="get_thing")}
        paths["/v2/thing"]["delete"] = {"responses": {"204": {"description": "gone"}}}
        world.api.pages[DOCUMENT] = Page(described(paths))
        await world.failing(2)
        job = await world.repaired()
        assert job.state == "failed"
        assert "DELETE" in job.message
        assert "toolwright forge --source" in job.message
        assert world.current().version == 1

    play(act)


def test_a_description_that_names_another_host_gives_it_nothing(play: Player) -> None:
    async def act(world: World) -> None:
        del world.api.pages["/thing"]
        paths = {"/thing": reading(THING, operationId="get_thing")}
        world.api.pages[DOCUMENT] = Page(described(paths, "http://127.0.0.1:9"))
        await world.failing(2)
        job = await world.repaired()
        assert job.state == "failed"
        assert "network:127.0.0.1:9" in job.message
        assert world.current().version == 1

    play(act)


def test_an_api_cannot_drive_repairs_in_a_loop(play: Player) -> None:
    async def act(world: World) -> None:
        words = iter(range(1000))

        def lying(asked: Asked) -> Page:
            return page({"name": "oar", "state": f"word{next(words)}"})

        world.api.pages["/thing"] = lying
        for _ in range(REPAIRS_A_DAY * 12):
            await world.call()
            for job in world.app.store.repairs(world.entry.name, time.time()):
                while world.app.store.job(job.id).state not in ENDED_JOBS:
                    await world.app.pulse.changed()
        assert len(world.app.store.repairs(world.entry.name, time.time())) == REPAIRS_A_DAY
        assert world.current().version <= 1 + REPAIRS_A_DAY

    play(act)


def test_nothing_is_repaired_while_frozen(play: Player) -> None:
    async def act(world: World) -> None:
        world.api.pages["/thing"] = page({"name": None})
        await world.failing(1)
        world.app.store.freeze(time.time(), "test")
        await world.call()
        assert world.app.store.repairs(world.entry.name, time.time()) == ()

    play(act)


def test_an_outage_and_a_callers_own_mistake_mend_nothing(play: Player) -> None:
    async def act(world: World) -> None:
        for status in (500, 503, 400, 401):
            world.api.pages["/thing"] = page({"error": "no"}, status)
            await world.failing(1)
        assert world.app.store.repairs(world.entry.name, time.time()) == ()

    play(act)


def test_a_version_on_trial_that_does_worse_is_taken_back_and_nobody_notices(play: Player) -> None:
    async def act(world: World) -> None:
        first = await world.call()
        assert isinstance(first, Done)
        await stored(world.app, first.invocation)
        narrow = {"type": "object", "properties": {"name": {"type": "string", "enum": ["oar"]}}}
        paths = {"/thing": reading(narrow, operationId="get_thing")}
        world.api.pages[DOCUMENT] = Page(described(paths))
        after = await world.app.forge.compiled_again(world.entry, lambda step: None)
        replacing = Replacing(world.app.store, world.app.forge)
        replaced = await replacing.replace(world.entry, after, lambda step: None)
        assert (replaced.entry.version, replaced.rehearsed.again) == (2, 1)
        world.app.roster.forget()
        world.api.pages["/thing"] = page({"name": "sail"})
        for _ in range(3):
            reply = await world.call()
            assert isinstance(reply, Done)
            assert reply.outcome.ok
        async for _ in world.app.changes(10.0):
            if world.current().version == 3:
                break
        assert world.app.forge.shelf.bundle(world.current()).tools == _tools(world, 1)
        assert {"trial.ended", "rollback"} <= set(world.kinds())

    play(act)


def test_versions_are_listed_compared_and_gone_back_to_by_command(
    any_engine: str, tmp_path: Path
) -> None:
    async def prepared() -> str:
        async with world(any_engine, tmp_path) as made:
            bundle = made.app.forge.shelf.bundle(made.entry)
            paced = replace(bundle, paces=(Pace("127.0.0.1", 5),))
            replacing = Replacing(made.app.store, made.app.forge)
            await replacing.replace(made.entry, paced, lambda step: None)
            return made.entry.name

    name = asyncio.run(prepared())
    home = Home(tmp_path / "home", {**os.environ, "TOOLWRIGHT_HOME": str(tmp_path / "home")})
    listed = home.read("versions", name)
    assert [row["version"] for row in listed["versions"]] == [2, 1]
    assert listed["versions"][0]["learned"] == ["5 requests in 1 s to 127.0.0.1"]
    assert "+requests = 5" in home.read("diff", name)["lines"]
    assert home.read("rollback", name)["version"] == 3
    assert home.read("versions", name)["versions"][0]["learned"] == []
    assert home.run("rollback", name, "7").returncode == 1
    shown = home.read("show", name)["health"]
    assert shown["trial"]["outcome"] == "rolled back by terminal"


def _tools(world: World, version: int) -> Any:
    entry = version_of(world.app.store, world.entry.name, version)
    return world.app.forge.shelf.bundle(entry).tools


async def stored(app: App, identity: str) -> Invocation:
    """A call, once it is on disk."""
    async for _ in app.changes(10.0):
        for call in app.store.invocations():
            if call.id == identity:
                return call
    raise AssertionError(f"{identity} was not stored")
