"""A right server is not punished for its callers and its API, and a wrong one cannot hide."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest

from bench.heal import allow
from orchestrator.app import App, open_app
from orchestrator.calls import Call, Done, RefusedCall, Reply
from orchestrator.forging.order import ForgeOrder
from orchestrator.healing.reprove import Reprover
from orchestrator.settings import load_settings
from orchestrator.tasks.suggestions import find_quarantined
from registry.health.repairs import REPAIR
from registry.models import ENDED_JOBS, Job, build_entry, generate_id
from sandbox.bundle.example import Example
from sandbox.bundle.model import Bundle
from sandbox.stages.prove import prove_own_cases
from tests.crash.documents import described, reading
from tests.functional.test_healing import DOCUMENT, THING, page
from tests.sandbox.computing import computing
from tests.world.site import Asked, Page, site

CALLS = 100
TEXT = {"type": "string", "maxLength": 20}
DECLARED = """
from toolwright import Refused, tool

METRES = {"m": 1.0, "km": 1000.0}

@tool
def halve(unit):
    if unit not in METRES:
        raise Refused("unknown_unit", f"unknown unit {unit!r}")
    return {"half": METRES[unit] / 2}
"""
SILENT = """
from toolwright import tool

METRES = {"m": 1.0, "km": 1000.0}

@tool
def halve(unit):
    return {"half": METRES[unit] / 2}
"""
LYING = """
from toolwright import Refused, tool

@tool
def halve(unit):
    raise Refused("unknown_unit", "not today")
"""
RAISING = """
from toolwright import tool

METRES = {"m": 1.0, "km": 1000.0}

@tool
def halve(unit):
    return {"half": METRES[unit] / 2} if unit in METRES else {"whole": unit}
"""
COUNTING = """
from toolwright import tool

@tool
def halve(unit):
    return {"half": len(unit) / 2}
"""
HALVED = {"type": "object", "properties": {"half": {"type": "number"}}, "required": ["half"]}
OLDER = "sha256:of-an-older-base"
GOOD = (
    Example("halve", {"unit": "m"}, {"half": 0.5}),
    Example("halve", {"unit": "km"}, {"half": 500.0}),
)
REFUSED = Example("halve", {"unit": "parsec"}, failure="tool", code="unknown_unit")
REFUSALS = {"unknown_unit": "the unit is neither m nor km"}


@dataclass(frozen=True)
class Place:
    app: App
    run: Callable[[Coroutine[Any, Any, Any]], Any]

    async def call(self, server: str, tool: str, **arguments: Any) -> Reply:
        return await self.app.dispatch.call_tool(Call(server, tool, arguments, task="t"))

    def publish(
        self, name: str, code: str, *examples: Example, base: str = "", **changes: Any
    ) -> Bundle:
        made = computing(code, unit=TEXT)
        tools = tuple(replace(tool, **changes) for tool in made.tools)
        proved = replace(made.provenance, base_image=base or self.app.forge.engine.base)
        made = replace(made, name=name, tools=tools, provenance=proved)
        self.app.forge.shelf.publish_bundle(made, build_entry(made, 1.0), (), None, examples)
        return made

    async def checked(self, server: str) -> Job:
        """The server's check by its own cases, once it has ended."""
        return await self.ended(
            lambda job: bool(job.request.get("check")) and job.request["server"] == server
        )

    async def ended(self, wanted: Callable[[Job], bool]) -> Job:
        """The newest job of that sort, once it has ended."""
        async for _ in self.app.watch_changes(120.0):
            found = [job for job in self.app.store.jobs.find() if wanted(job)]
            if found and found[0].state in ENDED_JOBS:
                return found[0]
        raise AssertionError("no such job has ended")

    async def repaired(self, server: str, call: str) -> Job:
        """The server's repair after a call, once it has ended."""
        request = {"server": server, "version": 1, "call": call, "cause": "it failed"}
        now = time.time()
        made = Job(generate_id(), REPAIR, request, now, now)
        assert self.app.store.repairs.queue_repair(made, now)
        return await self.ended(lambda job: job.id == made.id)

    async def written(self) -> None:
        await self.app.dispatch.ledger.wait_written()

    def kinds(self, server: str) -> set[str]:
        calls = self.app.store.calls.find(server, 2 * CALLS)
        return {call.failure.kind for call in calls if call.failure}


@pytest.fixture(scope="module")
def place(any_engine: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    settings = load_settings(home=tmp_path_factory.mktemp("right"), engine=any_engine)
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        app = runner.run(stack.enter_async_context(open_app(settings, "test", patient=True)))
        try:
            yield Place(app, runner.run)
        finally:
            runner.run(stack.aclose())


@asynccontextmanager
async def shaky_shop(app: App) -> AsyncIterator[str]:
    """A compiled server of an API that is down for every tenth request."""
    asked = iter(range(10 * CALLS))

    def answer(request: Asked) -> Page:
        if next(asked) % 10 == 9:
            return page({"error": "down"}, 500)
        return page({"name": "oar"})

    number = {"name": "key", "in": "path", "required": True, "schema": {"type": "integer"}}
    paths = {"/things/{key}": reading(THING, operationId="get_thing", parameters=[number])}
    with site({DOCUMENT: Page(described(paths)), "/things/1": answer}) as api:
        allow(app, api.url)
        order = ForgeOrder(source=f"{api.url}{DOCUMENT}", name="shop")
        yield (await app.forge.forge_server(order, lambda step: None)).entry.name


def test_right_servers_survive_a_hundred_mixed_calls(place: Place) -> None:
    # In 100 calls 30 with what cannot be answered; every tenth request meets an outage.
    async def act() -> None:
        place.publish("declared", DECLARED, *GOOD, REFUSED, refusals=REFUSALS)
        place.publish("silent", SILENT, *GOOD)
        async with shaky_shop(place.app) as shop:
            for number in range(CALLS):
                bad = number % 10 in (0, 3, 6)
                await place.call(shop, "get_thing", key=number if bad else 1)
                unit = "parsec" if bad else "km"
                for server in ("declared", "silent"):
                    # What the schema refuses never reaches the code.
                    given = {"units": ["m"]} if bad and number % 20 == 0 else {"unit": unit}
                    await place.call(server, "halve", **given)
                await place.written()
        check = await place.checked("silent")
        assert check.result["told"].startswith("its own cases pass"), check
        store = place.app.store
        states = {name: store.servers.get(name).state for name in (shop, "declared", "silent")}
        assert set(states.values()) == {"active"}, states
        standings = {name: store.standings.get(name) for name in states}
        assert [each.failed for each in standings.values()] == [0, 0, 0]
        assert (standings[shop].unclear, standings["declared"].unclear) == (0, 0)
        assert standings["declared"].level == "trusted"
        # Nobody said what is right there: it is shown, and it rises no further.
        assert standings["silent"].unclear > 0
        assert standings["silent"].level != "trusted"
        assert place.kinds(shop) == {"http"}
        assert place.kinds("declared") == {"arguments", "refusal"}
        assert place.kinds("silent") == {"arguments", "exception"}
        assert not [job for job in store.jobs.find(limit=500) if job.request.get("parent")]

    place.run(act())


def test_a_server_that_refuses_everything_looks_no_better_for_it(place: Place) -> None:
    async def act() -> None:
        place.publish("lying", LYING, REFUSED, refusals=REFUSALS)
        for _ in range(6):
            await place.call("lying", "halve", unit="m")
        await place.written()
        standing = place.app.store.standings.get_operation("lying", "halve")
        assert (standing.refusing, standing.version_successes) == (1.0, 0)
        (line,) = [s for s in place.app.store.servers.find_summaries() if s.name == "lying"]
        assert line.refusing == ("halve",)

    place.run(act())


def test_a_declared_refusal_without_a_case_is_not_registered(place: Place) -> None:
    made = place.publish("unproved", DECLARED, refusals=REFUSALS)
    proof = place.run(prove_own_cases(made, place.app.forge.engine, GOOD))
    failed = [case.case for report in proof.reports for case in report.list_failures()]
    assert failed == ["refusal unknown_unit"]
    assert place.run(prove_own_cases(made, place.app.forge.engine, (*GOOD, REFUSED))).passed


def test_a_server_whose_own_cases_fail_is_quarantined_told_and_lifted_by_its_proof(
    place: Place,
) -> None:
    async def act() -> None:
        store = place.app.store
        place.publish("broken", SILENT, *GOOD, Example("halve", {"unit": "cm"}, {"half": 0.005}))
        for _ in range(5):
            await place.call("broken", "halve", unit="cm")
        await place.written()
        check = await place.checked("broken")
        assert check.result["told"].startswith("quarantined, since its own cases fail: halve case")
        assert store.servers.get("broken").state == "quarantined"
        refused = await place.call("broken", "halve", unit="m")
        assert isinstance(refused, RefusedCall)
        assert "its own cases fail" in refused.reason
        assert "`toolwright reprove broken`" in refused.reason
        (found,) = find_quarantined(store, "halve it", 3).items()
        assert found[0] == "broken.halve"
        assert "broken" not in [match.entry for match in store.search.find_tools("halve it")]
        again = Reprover(store, place.app.forge)
        kept = await again.reprove_server(store.servers.get("broken"), lambda step: None)
        assert (kept.verdict, store.servers.get("broken").state) == ("failed", "quarantined")
        # The same quarantine of a server that passes is lifted, and its ladder starts again.
        assert store.quarantine.condemn("declared", 1, "its own cases fail: x", time.time())
        good = await again.reprove_server(store.servers.get("declared"), lambda step: None)
        assert good.reason == "it passes every stage again: it is active again", good
        assert store.standings.get("declared").level == "probationary"
        place.app.roster.forget_servers()
        assert isinstance(await place.call("declared", "halve", unit="m"), Done)

    place.run(act())


@pytest.mark.parametrize("by", ["reprove", "repair"])
def test_a_quarantined_server_that_is_good_on_a_renewed_base_is_in_use_again(
    place: Place, by: str
) -> None:
    async def act() -> None:
        store, name = place.app.store, f"moved_{by}"
        place.publish(name, DECLARED, *GOOD, REFUSED, base=OLDER, refusals=REFUSALS)
        assert store.quarantine.condemn(name, 1, "its own cases fail: x", time.time())
        if by == "reprove":
            again = Reprover(store, place.app.forge)
            found = await again.reprove_server(store.servers.get(name), lambda step: None)
            assert (found.verdict, found.version) == ("renewed", 2), found
            assert found.reason == "it passes every stage again: it is active again"
        else:
            job = await place.repaired(name, "")
            told = "on the present base image it passes every stage again: it is active again"
            assert (job.state, job.result.get("told")) == ("done", told), job
        entry = store.servers.get(name)
        assert (entry.state, entry.base_image) == ("active", place.app.forge.engine.base)
        standing = store.standings.get(name)
        assert (standing.level, standing.window) == ("probationary", 0)
        place.app.roster.forget_servers()
        assert isinstance(await place.call(name, "halve", unit="m"), Done)

    place.run(act())


def test_a_renewed_base_lifts_no_quarantine_of_what_fails_there_too(place: Place) -> None:
    async def act() -> None:
        store, again = place.app.store, Reprover(place.app.store, place.app.forge)
        # Its cases pass: what counted against it is a call that no case asks for.
        place.publish("raising", RAISING, *GOOD, base=OLDER, output_schema=HALVED)
        for _ in range(5):
            await place.call("raising", "halve", unit="cm")
        await place.written()
        (failed, *_) = store.calls.find("raising", 1)
        store.quarantine.condemn("raising", 1, "its own cases fail: x", time.time())
        found = await again.reprove_server(store.servers.get("raising"), lambda step: None)
        assert (found.verdict, found.version) == ("failed", 1), found
        assert f"call {failed.id} fails again" in found.reason
        # Nor of what somebody else has put there for another reason.
        place.publish("guarded", SILENT, *GOOD, base=OLDER)
        store.servers.set_state("guarded", "quarantined", time.time(), "trial", "it did worse")
        found = await again.reprove_server(store.servers.get("guarded"), lambda step: None)
        assert (found.verdict, found.version) == ("failed", 1), found
        assert found.reason.startswith("it stays quarantined by trial: it did worse")
        states = {store.servers.get(name).state for name in ("raising", "guarded")}
        assert states == {"quarantined"}

    place.run(act())


def test_nothing_waits_while_arguments_are_held_against_a_schema(place: Place) -> None:
    async def act() -> None:
        texts = {"type": "object", "properties": {"unit": {"type": "array", "items": TEXT}}}
        place.publish("counting", COUNTING, input_schema=texts)
        # A session is there from now on.
        assert isinstance(await place.call("counting", "halve", unit=["m"]), Done)
        calling = asyncio.create_task(place.call("counting", "halve", unit=[["m"]] * 20_000))
        turns = 0
        while not calling.done():
            turns += 1
            await asyncio.sleep(0)
        reply = await calling
        assert isinstance(reply, Done)
        assert reply.outcome.failure is not None
        assert reply.outcome.failure.kind == "arguments"
        assert turns > 1_000

    place.run(act())
