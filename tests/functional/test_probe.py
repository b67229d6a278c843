"""A server knows its API's real answers before it is registered: a forge asks a few safe reads."""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from bench.heal import allow
from orchestrator.app import App, open_app
from orchestrator.calls import Call, Done
from orchestrator.forging.order import ForgeOrder, ForgeResult, ForgeStep
from orchestrator.settings import load_settings
from registry.servers.classifications import Classification
from tests.crash.documents import described, reading
from tests.functional.test_powerdns import files_with
from tests.world.site import Asked, Page, Site, site

DOCUMENT = "/openapi.json"
SECRET = "value-of-an-answer-77120"
JSON = (("Content-Type", "application/json"),)
FIELDS = {
    "id": {"type": "string"},
    "size": {"type": "integer"},
    "note": {"type": "string"},
    "owner": {"type": "string"},
}
BOX = {"type": "object", "properties": FIELDS}
ONE = [{"name": "box_id", "in": "path", "required": True, "schema": {"type": "string"}}]


def get(identity: str, schema: Any = BOX, **more: Any) -> dict[str, Any]:
    return {"get": {**reading(schema)["get"], "operationId": identity, **more}}


PATHS = {
    "/boxes": get("list_boxes", {"type": "array", "items": BOX}),
    "/boxes/{box_id}": get("get_box", parameters=ONE),
    "/logout": get("leave"),
    "/tokens": get("list_access"),
}
REAL = {"id": "b-1", "size": "4 cm", "note": None, "owner": "Ada"}


def page(value: Any) -> Page:
    return Page(json.dumps(value).encode(), 200, JSON)


@dataclass(frozen=True)
class World:
    """An API, the app that makes servers of it, and what a forge told."""

    app: App
    api: Site
    name: str
    told: list[ForgeStep]

    async def forge(self, **more: Any) -> ForgeResult:
        self.api.asked.clear()
        order = ForgeOrder(source=f"{self.api.url}{DOCUMENT}", name=self.name, **more)
        return await self.app.forge.forge_server(order, self.told.append)

    def asked(self) -> list[str]:
        return [path for path in self.api.paths if path != DOCUMENT]


Play = Callable[[Callable[[World], Coroutine[Any, Any, None]]], None]


@pytest.fixture(scope="module")
def started(
    any_engine: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[asyncio.Runner, App]]:
    home = tmp_path_factory.mktemp("probe")
    settings = load_settings({"TOOLWRIGHT_PROBE_SECONDS": "120"}, home=home, engine=any_engine)
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        app = runner.run(stack.enter_async_context(open_app(settings, "test")))
        try:
            yield runner, app
        finally:
            runner.run(stack.aclose())


@pytest.fixture
def play(started: tuple[asyncio.Runner, App], request: pytest.FixtureRequest) -> Play:
    runner, app = started

    @asynccontextmanager
    async def opened() -> AsyncIterator[World]:
        pages = {
            DOCUMENT: Page(described(PATHS)),
            "/boxes": page([REAL]),
            "/boxes/b-1": page(REAL),
        }
        with site(pages) as api:
            allow(app, api.url)
            yield World(app, api, f"s{abs(hash(request.node.name))}"[:30], [])

    async def acted(act: Callable[[World], Coroutine[Any, Any, None]]) -> None:
        async with opened() as world:
            await act(world)

    return lambda act: runner.run(acted(act))


def test_two_forges_of_one_server_at_once_are_two_versions_of_it(play: Play) -> None:
    async def act(world: World) -> None:
        asked, met = itertools.count(), threading.Barrier(2)

        def change(_: Asked) -> Page:
            number = next(asked)
            if number < 2:
                met.wait()
            boxes = get("list_boxes", summary=f"List boxes, {number}")
            return Page(described({"/boxes": boxes}))

        world.api.pages[DOCUMENT] = change
        made = await asyncio.gather(world.forge(no_probe=True), world.forge(no_probe=True))
        assert sorted(each.entry.version for each in made) == [1, 2]
        assert [step for step in world.told if "It is made again." in step.message]

    play(act)


def test_the_first_call_of_a_user_already_fits(play: Play) -> None:
    async def act(world: World) -> None:
        made = await world.forge()
        assert world.asked() == ["/boxes", "/boxes/b-1"]
        assert made.entry.version == 1
        learned = {str(one) for one in made.bundle.widened}
        assert "list_boxes: /body/*/size may also be string" in learned
        assert "get_box: /body/size may also be string" in learned
        for tool, given in (("list_boxes", {}), ("get_box", {"box_id": "b-1"})):
            reply = await world.app.dispatch.call_tool(Call(world.name, tool, given, task="look"))
            assert isinstance(reply, Done)
            assert (reply.outcome.failure, reply.outcome.structured["status"]) == (None, 200)
        await world.app.dispatch.ledger.wait_written()
        assert not world.app.store.repairs.find(world.name, time.time())

    play(act)


def test_what_was_learned_is_told_and_kept_without_a_value(play: Play) -> None:
    async def act(world: World) -> None:
        world.api.pages["/boxes"] = page([{**REAL, "owner": SECRET}])
        world.api.pages["/boxes/b-1"] = page({**REAL, "owner": SECRET})
        made = await world.forge()
        reports = world.app.store.servers.get_reports(world.name, 1)
        report = next(report for report in reports if report.stage == "live")
        assert "`size` of get_box is a string in practice" in report.note
        assert "2 fields are null in practice" in report.note
        assert report.learned == tuple(one for one in report.learned if one in made.bundle.widened)
        assert [step for step in world.told if "in practice" in step.message]
        assert world.app.forge.brokers.footnotes is not None
        await world.app.forge.brokers.footnotes.close()
        (row,) = [
            row
            for row in world.app.store.audit.find(500)
            if row.kind == "probe" and row.subject == world.name
        ]
        assert "/boxes/{box_id}: 200" in json.dumps(row.payload)
        for value in (SECRET, "4 cm", "b-1"):
            assert files_with(world.app.settings.home / "servers", value.encode()) == []
        assert files_with(world.app.settings.home, SECRET.encode()) == []

    play(act)


def test_a_version_of_a_changed_description_keeps_what_was_learned(play: Play) -> None:
    async def act(world: World) -> None:
        first = await world.forge()
        again = await world.forge()
        assert (again.entry.version, again.entry.digest) == (1, first.entry.digest)
        more = {**PATHS, "/lids": get("list_lids")}
        world.api.pages[DOCUMENT] = Page(described(more))
        changed = await world.forge(no_probe=True)
        assert changed.entry.version == 2
        assert changed.bundle.widened == first.bundle.widened

    play(act)


def test_a_forge_without_a_probe_asks_the_api_nothing(play: Play) -> None:
    async def act(world: World) -> None:
        made = await world.forge(no_probe=True)
        assert world.asked() == []
        assert made.bundle.widened == ()
        assert {report.stage: report.verdict for report in made.proof.reports}["live"] == "skipped"

    play(act)


def test_what_a_person_called_a_write_is_not_asked_again(play: Play) -> None:
    async def act(world: World) -> None:
        await world.forge(no_probe=True)
        ruled = Classification(world.name, "list_boxes", "write", (), time.time(), "terminal")
        world.app.store.classifications.store_classification(ruled)
        await world.forge()
        assert world.asked() == []

    play(act)
