"""Servers that mend themselves: APIs on loopback limit, change, move and lie."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import Any

import pytest
from click.testing import CliRunner

from bench.heal import PIN, allow, healed, limited_api
from orchestrator.app import App, open_app
from orchestrator.calls import Call, Done, RefusedCall, Reply
from orchestrator.cli.main import toolwright
from orchestrator.forging.order import ForgeOrder
from orchestrator.healing.drift import Drift
from orchestrator.healing.replace import VersionReplacer
from orchestrator.healing.reprove import Reprover
from orchestrator.healing.versions import find_version
from orchestrator.settings import load_settings
from registry.health.causes import find_cause, find_drift
from registry.health.repairs import DAY, REPAIRS_A_DAY
from registry.models import ENDED_JOBS, DraftRow, Entry, Invocation, Job, build_entry
from registry.secrets.pin import verify_pin
from sandbox.bundle.ratelimit import Pace
from sandbox.session.recorded_case import RecordedCase
from tests.crash.documents import described, reading
from tests.engine.samples import bundle
from tests.world.site import Asked, Page, Site, site

JSON = (("Content-Type", "application/json"),)
THING = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "state": {"type": "string", "enum": ["on", "off"]}},
}
DOCUMENT = "/openapi.json"
BROKEN_CODE = """
from toolwright import http, tool


@tool
def get_thing():
    answer = http.request("GET", "/thing")
    if answer.data.count(b"sail") == 5:
        raise KeyError("sail")
    return answer
"""


def page(value: Any, status: int = 200) -> Page:
    return Page(json.dumps(value).encode(), status, JSON)


SAILS = page({"name": "sail, sail, sail, sail and sail"})
"""What makes `BROKEN_CODE` fail."""
LIMITED = page({"error": "too many requests"}, 429)


@dataclass(frozen=True)
class World:
    """An API that a test changes, and the app whose server asks it."""

    app: App
    api: Site
    entry: Entry

    async def call(self, tool: str = "get_thing", **arguments: Any) -> Reply:
        reply = await self.app.dispatch.call_tool(
            Call(self.entry.name, tool, arguments, task="look")
        )
        return reply

    async def failing(self, times: int, **arguments: Any) -> None:
        for _ in range(times):
            reply = await self.call(**arguments)
            assert isinstance(reply, Done)
            assert not reply.outcome.ok

    async def differing(self, times: int, **arguments: Any) -> None:
        """Calls whose answers differ from the description: no failure, and delivered whole."""
        for _ in range(times):
            reply = await self.call(**arguments)
            assert isinstance(reply, Done)
            assert reply.outcome.ok
            assert reply.outcome.difference is not None
            assert not reply.cause

    async def written(self, times: int) -> tuple[Invocation, ...]:
        """The server's calls, newest first, once so many are on disk and were looked into."""
        async for _ in self.app.watch_changes(120.0):
            await self.app.dispatch.ledger.wait_written()
            calls = self.app.store.calls.find(self.entry.name)
            if len(calls) >= times:
                return calls
        raise AssertionError(f"{times} calls were not stored")

    async def frozen(self, wanted: bool) -> None:
        """Return when the process has noticed a freeze, or its end."""
        async for _ in self.app.watch_changes(120.0):
            if self.app.kill_switch.engaged is wanted:
                return
        raise AssertionError("the freeze was not noticed")

    async def put_on_trial(self, code: str) -> None:
        """Register a second version with this code, after a call of the first that it passes."""
        await self.call()
        await self.written(1)
        shelf = self.app.forge.shelf
        after = replace(shelf.load_bundle(self.entry), source_code=code)
        replacing = VersionReplacer(self.app.store, self.app.forge)
        replaced = await replacing.replace_version(self.entry, after, lambda step: None)
        assert (replaced.entry.version, replaced.rehearsed.again) == (2, 1)
        self.app.roster.forget_servers()

    async def repaired(self) -> Job:
        """The server's newest repair, once it has ended."""
        async for _ in self.app.watch_changes(120.0):
            jobs = self.app.store.repairs.find(self.entry.name, time.time())
            if jobs and jobs[0].state in ENDED_JOBS:
                return jobs[0]
        raise AssertionError("no repair has ended")

    def current(self) -> Entry:
        return self.app.store.servers.get(self.entry.name)

    def kinds(self) -> list[str]:
        return [row.kind for row in self.app.store.audit.find(200)]


Play = Callable[[World], Awaitable[None]]
Player = Callable[[Play], None]


@dataclass(frozen=True)
class Played:
    """One app for all tests of the module, and the loop it lives on."""

    runner: asyncio.Runner
    app: App

    def run(self, work: Coroutine[Any, Any, Any]) -> None:
        self.runner.run(work)


@pytest.fixture(scope="module")
def played(any_engine: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    home = tmp_path_factory.mktemp("healing")
    settings = load_settings(home=home, engine=any_engine)
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        app = runner.run(stack.enter_async_context(open_app(settings, "test", patient=True)))
        try:
            yield Played(runner, app)
        finally:
            runner.run(stack.aclose())


@pytest.fixture
def play(played: Played, request: pytest.FixtureRequest) -> Player:
    """Plays against a fresh server of an API with one thing."""
    name = f"s{abs(hash(request.node.name))}"[:30]

    async def acted(act: Play) -> None:
        paths = {"/thing": reading(THING, operationId="get_thing")}
        with site({DOCUMENT: Page(described(paths)), "/thing": page({"name": "oar"})}) as api:
            allow(played.app, api.url)
            order = ForgeOrder(source=f"{api.url}{DOCUMENT}", name=name)
            forged = await played.app.forge.forge_server(order, lambda step: None)
            # Else the app looks at the description by itself while a test goes on, sooner or later.
            descriptions = played.app.store.descriptions
            descriptions.claim_check(forged.entry.source, time.time(), DAY)
            await act(World(played.app, api, forged.entry))

    return lambda act: played.run(acted(act))


def test_an_api_that_refuses_a_crowd_teaches_its_server_the_rate(played: Played) -> None:
    async def act() -> None:
        app = played.app
        with limited_api(5) as api:
            allow(app, api.url)
            job, _ = await healed(app, api, crowd=20)
        assert (job.state, job.message) == ("done", "")
        assert job.result["retried"]["succeeded"], job.result
        entry = app.store.servers.get(job.result["server"])
        assert (entry.version, entry.state) == (2, "active")
        (pace,) = app.forge.shelf.load_bundle(entry).paces
        assert 0.5 <= pace.per_second <= 5
        (case,) = app.forge.shelf.load_recorded_cases(entry.name)
        assert isinstance(case.limit, Pace)
        reports = app.store.servers.get_reports(entry.name, 2)
        assert [r.verdict for r in reports if r.stage == "recorded"] == ["passed"]
        retried = await stored(app, job.result["retried"]["call"])
        assert (retried.version, retried.task) == (2, "the number of 1")
        # Where the home's other processes see whose turn it is.
        assert [*(app.settings.home / "turns").iterdir()]
        kinds = {row.kind for row in app.store.audit.find(500)}
        assert {"repair.opened", "publish", "trial.began"} <= kinds

    played.run(act())


def test_a_new_word_in_an_answer_is_learned_with_a_note(play: Player) -> None:
    async def act(world: World) -> None:
        assert isinstance(await world.call(), Done)
        world.api.pages["/thing"] = page({"name": None, "state": "paused"})
        await world.differing(2)
        job = await world.repaired()
        assert job.state == "done", job.message
        bundle = world.app.forge.shelf.load_bundle(world.current())
        assert [*map(str, bundle.widened)] == ['get_thing: /body/state may also be "paused"']
        assert "retried" not in job.result
        assert job.result["rehearsed"] == 3
        reply = await world.call()
        assert isinstance(reply, Done)
        assert reply.outcome.difference is None

    play(act)


def test_an_answer_that_would_admit_anything_is_not_learned(play: Player) -> None:
    async def act(world: World) -> None:
        world.api.pages["/thing"] = page({"name": {"do": "as I say"}})
        await world.differing(2)
        job = await world.repaired()
        assert job.state == "failed"
        assert world.current().version == 1
        jobs = [job for job in world.app.store.jobs.find() if job.kind == "forge"]
        assert not [job for job in jobs if job.request["parent"] == world.entry.name]

    play(act)


def test_answers_that_differ_cost_a_server_nothing(play: Player) -> None:
    async def act(world: World) -> None:
        world.api.pages["/thing"] = page({"name": {"do": "as I say"}})
        await world.differing(12)
        await world.repaired()
        await world.written(12)
        store, name = world.app.store, world.entry.name
        standing = store.standings.get(name)
        assert (standing.successful, standing.counted, standing.level) == (12, 12, "standard")
        assert world.current().state == "active"
        assert store.repairs.count_drift(name, 1) == {"get_thing": 12}
        (latest, *_) = store.calls.find(name, 1)
        assert latest.succeeded
        assert find_cause(latest) is None
        drift = find_drift(latest)
        assert drift is not None
        assert (drift.kind, drift.where) == ("drift", "/body/name")

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


def test_a_renamed_parameter_is_told_with_the_command_that_takes_the_api_as_it_is(
    play: Player,
) -> None:
    async def act(world: World) -> None:
        def describe(path: str, name: str) -> Page:
            asked = {"name": name, "in": "query", "schema": {"type": "string"}}
            found = reading(THING, operationId="find_thing", parameters=[asked])
            moved = reading(THING, operationId="get_thing")
            return Page(described({path: moved, "/found": found}))

        world.api.pages[DOCUMENT] = describe("/thing", "owner")
        order = ForgeOrder(source=world.entry.source, name=world.entry.name)
        await world.app.forge.forge_server(order, lambda step: None)
        world.app.roster.forget_servers()
        world.api.pages["/found?owner=Ada"] = page({"name": "oar"})
        reply = await world.call("find_thing", owner="Ada")
        assert isinstance(reply, Done)
        assert reply.outcome.ok
        await world.written(1)
        del world.api.pages["/thing"]
        world.api.pages["/v2/thing"] = page({"name": "oar"})
        world.api.pages[DOCUMENT] = describe("/v2/thing", "holder")
        await world.failing(2)
        job = await world.repaired()
        assert job.state == "failed"
        assert job.message.count("was not repaired") == 1
        assert "does not come out as it did" in job.message
        assert f"`toolwright forge {world.entry.source} --name {world.entry.name}`" in job.message

    play(act)


def test_whoever_calls_is_told_of_a_drift_and_what_became_of_its_repair(play: Player) -> None:
    async def act(world: World) -> None:
        # The operation is gone and the description says nothing of it, so nothing mends it.
        del world.api.pages["/thing"]
        await world.failing(2)
        job = await world.repaired()
        assert job.state == "failed"
        reply = await world.call()
        assert isinstance(reply, Done)
        assert "the API answers 404 where its description has an operation" in reply.cause
        assert f"job {job.id} could not mend it" in reply.cause

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
        for number in range(REPAIRS_A_DAY * 4):
            await world.call()
            await world.written(number + 1)
            for job in world.app.store.repairs.find(world.entry.name, time.time()):
                while world.app.store.jobs.get(job.id).state not in ENDED_JOBS:
                    await world.app.pulse.wait_for_change()
        assert (
            1 <= len(world.app.store.repairs.find(world.entry.name, time.time())) <= REPAIRS_A_DAY
        )
        assert world.current().version <= 1 + REPAIRS_A_DAY

    play(act)


def test_nothing_is_repaired_while_frozen(play: Player) -> None:
    async def act(world: World) -> None:
        store, name = world.app.store, world.entry.name
        world.api.pages["/thing"] = page({"name": {}})
        await world.differing(1)
        (differed,) = await world.written(1)
        store.processes.freeze(time.time(), "test")
        try:
            await world.frozen(True)
            assert isinstance(await world.call(), RefusedCall)
            # The last call before the freeze is stored after it.
            world.app.healing.record_call(differed)
            assert store.repairs.find(name, time.time()) == ()
        finally:
            signer = verify_pin(world.app.settings.pin, PIN, time.time()).signer
            assert signer is not None
            store.processes.unfreeze(time.time(), "test", signer.sign)
        await world.frozen(False)
        world.app.healing.record_call(differed)
        await world.repaired()

    play(act)


def test_an_outage_and_a_callers_own_mistake_mend_nothing(play: Player) -> None:
    async def act(world: World) -> None:
        for status in (500, 503, 400, 401):
            world.api.pages["/thing"] = page({"error": "no"}, status)
            await world.failing(1)
        await world.written(4)
        assert world.app.store.repairs.find(world.entry.name, time.time()) == ()

    play(act)


def test_a_version_on_trial_that_does_worse_is_taken_back_and_nobody_notices(play: Player) -> None:
    async def act(world: World) -> None:
        await world.put_on_trial(BROKEN_CODE)
        world.api.pages["/thing"] = SAILS
        for _ in range(3):
            reply = await world.call()
            assert isinstance(reply, Done)
            assert reply.outcome.ok
        async for _ in world.app.watch_changes(120.0):
            if world.current().version == 3:
                break
        assert world.app.forge.shelf.load_bundle(world.current()).tools == _tools(world, 1)
        assert {"trial.ended", "rollback"} <= set(world.kinds())

    play(act)


@pytest.mark.parametrize(("answer", "versions"), [(SAILS, [1, 2, 1]), (LIMITED, [2, 1])])
def test_a_failure_on_trial_is_answered_by_the_version_before_but_a_rate_limit_is_not(
    answer: Page, versions: list[int], play: Player
) -> None:
    async def act(world: World) -> None:
        await world.put_on_trial(BROKEN_CODE)
        world.api.pages["/thing"] = answer
        reply = await world.call()
        assert isinstance(reply, Done)
        assert reply.outcome.ok is (answer is SAILS)
        calls = await world.written(len(versions))
        # The newest first: the one that is on trial, and what was asked instead of it.
        assert [call.version for call in calls] == versions
        assert calls[-2].counted is (answer is SAILS)
        assert not calls[-2].succeeded

    play(act)


def test_versions_are_listed_compared_and_gone_back_to_by_command(play: Player) -> None:
    async def act(world: World) -> None:
        name, forge = world.entry.name, world.app.forge
        paced = replace(forge.shelf.load_bundle(world.entry), paces=(Pace("127.0.0.1", 5),))
        replacing = VersionReplacer(world.app.store, forge)
        crowd = RecordedCase("a crowd", "get_thing", {}, (), Pace("127.0.0.1", 6), 9)
        await replacing.replace_version(world.entry, paced, lambda step: None, case=crowd)
        assert forge.shelf.load_recorded_cases(name) == (crowd,)
        home = str(world.app.settings.home)

        def read(*words: str) -> Any:
            environment = {"TOOLWRIGHT_HOME": home}
            ran = CliRunner().invoke(toolwright, [*words, "--json"], env=environment)
            return json.loads(ran.stdout) if ran.exit_code == 0 else ran.exit_code

        listed = read("versions", name)["versions"]
        assert [row["version"] for row in listed] == [2, 1]
        assert listed[0]["learned"] == ["5 requests in 1 s to 127.0.0.1"]
        assert "+requests = 5" in read("diff", name)["lines"]
        assert read("rollback", name)["version"] == 3
        assert forge.shelf.load_recorded_cases(name) == ()
        assert read("versions", name)["versions"][0]["learned"] == []
        assert read("rollback", name, "7") == 1
        assert read("show", name)["health"]["trial"]["outcome"] == "rolled back by terminal"

    play(act)


def test_going_back_to_a_version_that_may_do_more_wants_the_pin(play: Player) -> None:
    async def act(world: World) -> None:
        paths: dict[str, Any] = {"/thing": reading(THING, operationId="get_thing")}
        more = described({**paths, "/more": reading(THING, operationId="more")})
        name, app = world.entry.name, world.app
        for version, document in ((2, more), (3, described(paths))):
            world.api.pages[DOCUMENT] = Page(document)
            order = ForgeOrder(source=world.entry.source, name=name)
            forged = await app.forge.forge_server(order, lambda step: None)
            assert forged.entry.version == version
        environment = {"TOOLWRIGHT_HOME": str(app.settings.home)}
        ran = CliRunner().invoke(
            toolwright, ["rollback", name, "--json"], input="", env=environment
        )
        assert ran.exit_code != 0
        assert world.current().version == 3
        given = ["rollback", name, "--pin-file", "-"]
        ran = CliRunner().invoke(toolwright, given, input=f"{PIN}\n", env=environment)
        assert (ran.exit_code, world.current().version) == (0, 4)

    play(act)


def test_a_description_that_changes_opens_a_repair_before_a_call_fails(play: Player) -> None:
    async def act(world: World) -> None:
        drift = Drift(world.app.store, world.app.forge, world.app.healing)
        asked: list[str] = []

        def document(schema: Any) -> Any:
            body = described({"/thing": reading(schema, operationId="get_thing")})

            def answer(request: Asked) -> Page:
                asked.append(request.headers.get("if-none-match", ""))
                known = asked[-1] == '"v1"' and schema is THING
                return Page(b"" if known else body, 304 if known else 200, (("ETag", '"v1"'),))

            return answer

        world.api.pages[DOCUMENT] = document(THING)
        world.app.store.descriptions.release_check(world.entry.source)
        await drift.check_description(world.entry)
        await drift.check_description(world.entry)
        assert asked == [""]
        await drift.check_description(world.entry, 0.0)
        assert asked == ["", '"v1"']
        assert world.app.store.repairs.find(world.entry.name, time.time()) == ()
        wider = {"type": "object", "properties": {"size": {"type": "integer"}}}
        world.api.pages[DOCUMENT] = document(wider)
        await drift.check_description(world.entry, 0.0)
        job = await world.repaired()
        assert (job.state, job.message) == ("done", "")
        assert "size" in json.dumps(world.current().get_tool("get_thing").definition)
        assert "drift.document" in world.kinds()

    play(act)


def test_the_same_description_again_is_registered_already_and_not_proved_again(
    play: Player,
) -> None:
    async def act(world: World) -> None:
        order = ForgeOrder(source=world.entry.source, name=world.entry.name)
        stages: list[str] = []
        unchanged: list[bool] = []

        async def forge(order: ForgeOrder) -> int:
            stages.clear()
            made = await world.app.forge.forge_server(order, lambda s: stages.append(s.stage))
            unchanged[:] = [made.is_unchanged]
            assert made.proof.passed
            assert {each.stage for each in made.proof.reports} >= {"static", "mock"}
            return made.entry.version

        version = world.current().version
        assert await forge(order) == version
        assert "static" not in stages
        assert unchanged == [True]
        wider = {**THING, "properties": {**THING["properties"], "size": {"type": "integer"}}}
        body = described({"/thing": reading(wider, operationId="get_thing")})
        world.api.pages[DOCUMENT] = Page(body)
        assert await forge(order) == version + 1
        assert "static" in stages
        assert unchanged == [False]
        world.app.store.servers.set_state(world.entry.name, "quarantined", time.time(), "test")
        assert await forge(order) == version + 1
        assert "static" in stages

    play(act)


def test_every_description_that_is_due_is_looked_at_once(play: Player) -> None:
    async def act(world: World) -> None:
        asked: list[str] = []
        body = described({"/thing": reading(THING, operationId="get_thing")})

        def answer(request: Asked) -> Page:
            asked.append(request.headers.get("if-none-match", ""))
            known = asked[-1] == '"v1"'
            return Page(b"" if known else body, 304 if known else 200, (("ETag", '"v1"'),))

        world.api.pages[DOCUMENT] = answer
        world.app.store.descriptions.release_check(world.entry.source)
        while await world.app.drift.check_due():
            pass
        assert asked == [""]
        assert await world.app.drift.check_due(0.0) > 0
        assert asked == ["", '"v1"']
        assert world.app.store.repairs.find(world.entry.name, time.time()) == ()

    play(act)


DIVIDE = """
from toolwright import ToolError, tool

@tool
def divide(n):
    return {"parts": 120 // n}
"""
NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
PARTS = {"type": "object", "properties": {"parts": {"type": "integer"}}, "required": ["parts"]}


def test_a_bug_waits_for_an_author_whose_code_has_to_pass_the_call_that_failed(
    played: Played,
) -> None:
    async def act() -> None:
        app = played.app
        made = bundle(DIVIDE, "divide", pure=True)
        tool = replace(made.tools[0], input_schema=NUMBER, output_schema=PARTS)
        made = replace(made, name="divider", tools=(tool,), permissions=(), base_url="")
        app.forge.shelf.publish_bundle(made, build_entry(made, time.time()), (), None)
        for _ in range(3):
            reply = await app.dispatch.call_tool(Call("divider", "divide", {"n": 0}))
            assert isinstance(reply, Done)
            assert reply.cause.startswith("bug: ")
        job = await forging(app, "divider")
        told = app.store.jobs.get(job.id).result["brief"]
        assert "ZeroDivisionError" in told
        assert app.store.servers.get("divider").version == 1
        cases = [
            {"tool": "divide", "arguments": {"n": n}, "result": {"parts": 120 // n}}
            for n in (1, 7, 50)
        ]
        poor = DIVIDE.replace("120 // n", "120 // (n or 1) if n else 1 // n")
        good = DIVIDE.replace("120 // n", "120 // n if n else 0")
        for code, version in ((poor, 1), (good, 2)):
            draft = {"code": code, "tools": [{"name": "divide"}], "cases": cases, "why": "by 0"}
            taken = app.submissions.submit_draft(job.id, draft)
            assert isinstance(taken, DraftRow), taken
            job = await forging(app, "divider")
            judged = app.store.drafts.find(job.id)[-1]
            assert app.store.servers.get("divider").version == version, judged.diagnosis
        (case,) = app.forge.shelf.load_recorded_cases("divider")
        assert case.arguments == {"n": 0}

    played.run(act())


async def forging(app: App, server: str) -> Job:
    """The job that forges the server anew, once it waits or has ended."""
    async for _ in app.watch_changes(120.0):
        for job in app.store.jobs.find():
            mine = job.kind == "forge" and job.request.get("parent") == server
            if mine and job.state in ("waiting", *ENDED_JOBS):
                return job
    raise AssertionError(f"no job forges {server}")


def test_what_is_proved_again_stays_and_what_fails_is_told(play: Player) -> None:
    async def act(world: World) -> None:
        reproving = Reprover(world.app.store, world.app.forge)
        found = await reproving.reprove_server(world.entry, lambda step: None)
        assert (found.verdict, found.version) == ("proved", 1)
        made = world.app.forge.shelf.load_bundle(world.entry)
        case = RecordedCase("a crowd", "get_thing", {}, (), Pace("127.0.0.1", 2), 5)
        entry = build_entry(replace(made, version=2), time.time())
        shelf = world.app.forge.shelf
        shelf.publish_bundle(replace(made, version=2), entry, (), None, (), (case,))
        found = await reproving.reprove_server(entry, lambda step: None)
        assert (found.verdict, found.version) == ("failed", 2)
        assert "a crowd" in found.reason
        assert {"reproved", "reprove.failed"} <= set(world.kinds())

    play(act)


def _tools(world: World, version: int) -> Any:
    entry = find_version(world.app.store.servers, world.entry.name, version)
    return world.app.forge.shelf.load_bundle(entry).tools


async def stored(app: App, identity: str) -> Invocation:
    """A call, once it is on disk."""
    async for _ in app.watch_changes(120.0):
        for call in app.store.calls.find():
            if call.id == identity:
                return call
    raise AssertionError(f"{identity} was not stored")
