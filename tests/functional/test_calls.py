"""A forged tool that calls registered tools: each call goes through gate, record and permission."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import pytest

from orchestrator.app import App, open_app
from orchestrator.approvals.decide import Decision, decide_with_pin
from orchestrator.approvals.needs import allow_needs as allow_needs
from orchestrator.approvals.rules import classify_operation
from orchestrator.calls import Call, Done, Pending, RefusedCall, Reply
from orchestrator.settings import Settings, load_settings
from registry.models import Approval, Invocation, Job, build_entry
from registry.needs import PermissionNeed
from registry.servers.classifications import Level
from sandbox.broker.broker import Broker
from sandbox.broker.host.tools import (
    ToolCallResult,
    build_success,
    get_called_tool,
    parse_call_request,
)
from sandbox.bundle.model import Bundle
from sandbox.bundle.permissions import build_request_pattern
from sandbox.killswitch import KillSwitch
from sandbox.wire.exchange import Exchange, WireRequest, WriteMode
from sandbox.wire.policy import Policy
from tests.engine.samples import body, bundle
from tests.functional.home import ROOT, until
from tests.granted import PIN, allow, person
from tests.world.harbour import SLOW_SECONDS, HarbourApi, harbour_api, slow_reports
from tests.world.network import line_server

EXAMPLE = ROOT / "examples" / "mooring"
T = TypeVar("T")
BOOKING = {
    "berth": 1,
    "boat": {"name": "X", "length": 3, "kind": "sail"},
    "arrival": "2027-06-01",
    "nights": 1,
}
RELAY = """
from toolwright import ToolError, servers, tool

@tool
def relay(to="", arguments=None):
    return {"got": servers.call(to, arguments or {})}

@tool
def often(to="", times=0):
    return {"got": [servers.call(to, {})["n"] for _ in range(times)]}
"""
LEAF = """
from toolwright import ToolError, tool

@tool
def one():
    return {"n": 1}

@tool
def fail():
    raise ToolError("out of order")
"""


@dataclass
class Place:
    """One open process on a home with the harbour's server."""

    app: App
    settings: Settings
    api: HarbourApi
    run: Callable[[Coroutine[Any, Any, Any]], Any]

    def call(self, tool: str, **arguments: Any) -> Reply:
        server, _, name = tool.partition(".")
        made = Call(server, name, arguments, task="the task", reason="the reason", session="s")
        reply: Reply = self.run(self.app.dispatch.call_tool(made))
        return reply

    def publish(self, made: Bundle, *granted: str) -> None:
        self.app.forge.shelf.publish_bundle(made, build_entry(made, 1.0), (), None)
        self.app.roster.forget_servers()
        for permission in granted:
            self.grant(made.name, permission)

    def grant(self, server: str, *permissions: str) -> None:
        job = Job("x", "forge", {}, created=0, updated=0, state="waiting")
        needs = PermissionNeed(server, permissions)
        signer = person(self.settings.pin)
        store = self.app.store
        allow_needs(store.grants, self.app.consents, replace(job, needs=needs), "test", signer)

    def classify(self, server: str, tool: str, level: Level, *, signed: bool = True) -> None:
        """As `toolwright classify` does, with the PIN or as somebody who has only the files."""
        store, made = (
            self.app.store,
            self.app.forge.shelf.load_bundle(self.app.store.servers.get(server)),
        )
        assert classify_operation(
            store.classifications, made, tool, level, person(self.settings.pin), time.time()
        )
        if not signed:
            (said,) = store.classifications.find(server).values()
            store.classifications.store_classification(replace(said, signature=""))
        self.app.roster.forget_servers()

    def records(self, server: str) -> tuple[Invocation, ...]:
        """Of a server's calls, newest first."""
        self.run(self.app.dispatch.ledger.close())
        return self.app.store.calls.find(server)

    def approve(self, approval: Approval) -> Reply:
        now, store = time.time(), self.app.store
        wanted = Decision(approval.id, True, PIN, "test", "", approval.wire_digest)
        assert not decide_with_pin(self.settings, store, wanted, now).refused
        forgery = self.app.signed_policy.check_forgery
        claimed = store.approvals.claim(approval.id, self.app.process, now, forgery)
        assert claimed is not None
        reply: Reply = self.run(self.app.dispatch.carry_out_approval(claimed))
        return reply


def relaying(name: str, *calls: str, access: Any = "read") -> Bundle:
    """A server whose two tools may call these."""
    asked = tuple(pattern for call in calls if (pattern := build_request_pattern(f"call:{call}")))
    made = bundle(RELAY, "relay", "often", pure=True)
    tools = tuple(replace(tool, requests=asked, access=access) for tool in made.tools)
    permissions = tuple(f"call:{call}" for call in calls)
    return replace(made, name=name, tools=tools, permissions=permissions)


async def worked(app: App, job: str) -> Job:
    claimed = app.store.jobs.claim(job, app.process, time.time())
    assert claimed is not None
    await app.jobs.run_job(claimed)
    return app.store.jobs.get(job)


@pytest.fixture(scope="module")
def place(any_engine: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    settings = load_settings(home=tmp_path_factory.mktemp("calls"), engine=any_engine)
    with (
        harbour_api(tmp_path_factory.mktemp("harbour")) as api,
        asyncio.Runner() as runner,
    ):
        stack = AsyncExitStack()
        app = runner.run(stack.enter_async_context(open_app(settings, "do")))
        try:
            allow(settings, app.store, api.url)
            forge = app.jobs.create_job("forge", {"source": api.url, "name": "harbour"})
            assert runner.run(worked(app, forge.id)).state == "done"
            here = Place(app, settings, api, runner.run)
            here.publish(replace(bundle(LEAF, "one", "fail", pure=True), name="leaf"))
            yield here
        finally:
            runner.run(stack.aclose())


def drafted() -> dict[str, Any]:
    draft: dict[str, Any] = json.loads((EXAMPLE / "draft.json").read_text())
    return {**draft, "code": (EXAMPLE / "server.py").read_text()}


@pytest.fixture(scope="module")
def mooring(place: Place) -> tuple[Job, Job]:
    """The example's job, when it waits for a person and when it is done."""
    order = {"task": "find and book a berth for a boat", "source": "none", "name": "mooring"}
    job = place.app.jobs.create_job("forge", order).id
    assert place.run(worked(place.app, job)).state == "waiting"
    place.app.submissions.submit_draft(job, drafted())
    waiting = place.run(worked(place.app, job))
    allow_needs(
        place.app.store.grants, place.app.consents, waiting, "test", person(place.settings.pin)
    )
    place.app.store.jobs.resume(job, "test", time.time())
    done = place.run(worked(place.app, job))
    assert done.state == "done", (done.message, done.result)
    place.app.roster.forget_servers()
    return waiting, done


def ok(reply: Reply) -> Done:
    assert isinstance(reply, Done), reply
    assert reply.outcome.ok, reply.outcome.failure
    return reply


def small_boat(place: Place) -> dict[str, Any]:
    found = ok(place.call("harbour.search_boats", query="a")).outcome.structured["body"]
    boats: list[dict[str, Any]] = [each["boat"] for each in found]
    return min(boats, key=lambda boat: float(boat["length"]))


def refusal(reply: Reply) -> str:
    assert isinstance(reply, Done), reply
    assert reply.outcome.failure is not None
    assert reply.outcome.failure.kind == "refused"
    return reply.outcome.failure.message


def test_a_draft_that_calls_tools_waits_until_a_person_allows_each(
    mooring: tuple[Job, Job],
) -> None:
    waiting, done = mooring
    assert waiting.state == "waiting"
    assert isinstance(waiting.needs, PermissionNeed)
    assert waiting.needs.server == "mooring"
    assert "call:harbour.book_berth" in waiting.needs.permissions
    assert isinstance(done.result, dict)
    assert done.result["tools"] == ["mooring.find_berth", "mooring.move_boat"]


def test_four_calls_are_one_and_each_has_a_record_that_names_it(
    place: Place, mooring: tuple[Job, Job]
) -> None:
    boat = ok(place.call("harbour.search_boats", query="a")).outcome.structured["body"][0]
    before = len(place.records("harbour"))
    reply = ok(place.call("mooring.find_berth", boat=boat["boat"]["name"]))
    found = reply.outcome.structured
    assert found["from"] == boat["berth"]
    assert found["to"] != found["from"]
    inner = place.records("harbour")[: len(place.records("harbour")) - before]
    called = [f"{each.entry}.{each.tool}" for each in reversed(inner)]
    assert called == [
        "harbour.search_boats",
        "harbour.get_berth",
        "harbour.list_berths",
        "harbour.list_bookings",
    ]
    for each in inner:
        assert f"mooring.find_berth, call {reply.invocation}" in each.reason
        assert (each.task, each.session) == ("the task", "s")
    asked = [(e.request.method, e.request.url) for e in reply.outcome.exchanges]
    assert asked == [("CALL", f"call:{name}") for name in called]


def test_a_replay_answers_calls_from_the_recording(place: Place, mooring: tuple[Job, Job]) -> None:
    boat = ok(place.call("harbour.search_boats", query="a")).outcome.structured["body"][0]
    reply = ok(place.call("mooring.find_berth", boat=boat["boat"]["name"]))
    before = len(place.records("harbour"))

    async def replayed() -> Any:
        async with place.app.replays() as replays:
            return await replays.replay_recorded(reply.invocation)

    (again,) = place.run(replayed())
    assert (again.verdict, again.reason) == ("same", "")
    assert len(place.records("harbour")) == before


def test_the_write_of_a_called_tool_is_shown_and_made_once_and_exactly_so(
    place: Place, mooring: tuple[Job, Job]
) -> None:
    wanted: dict[str, Any] = {
        "boat": small_boat(place)["name"],
        "arrival": "2027-06-01",
        "nights": 2,
    }
    sent = len(place.api.received("POST"))
    pending = place.call("mooring.move_boat", **wanted)
    assert isinstance(pending, Pending)
    wire = pending.approval.wire
    assert (wire.method, wire.url) == ("POST", f"{place.api.url}/bookings")
    assert json.loads(wire.body)["nights"] == 2
    assert len(place.api.received("POST")) == sent
    done = ok(place.approve(pending.approval))
    assert len(place.api.received("POST")) == sent + 1
    assert place.app.store.approvals.get(pending.approval.id).state == "done"
    (record,) = [each for each in place.records("harbour") if each.access == "write"]
    assert (record.tool, record.state) == ("book_berth", "done")
    assert f"call {done.invocation}" in record.reason


def test_an_approval_is_of_one_request_whatever_the_calls_answer_later(
    place: Place, mooring: tuple[Job, Job]
) -> None:
    wanted: dict[str, Any] = {
        "boat": small_boat(place)["name"],
        "arrival": "2027-06-01",
        "nights": 1,
    }
    first, second = (place.call("mooring.move_boat", **wanted) for _ in range(2))
    assert isinstance(first, Pending)
    assert isinstance(second, Pending)
    ok(place.approve(first.approval))
    sent = len(place.api.received("POST"))
    # The berth is booked: the same call would book another.
    again = place.approve(second.approval)
    assert isinstance(again, Pending)
    assert again.approval.wire != second.approval.wire
    assert len(place.api.received("POST")) == sent


def test_a_tool_has_the_class_of_its_strongest_step(place: Place) -> None:
    place.publish(relaying("modest", "harbour.book_berth"), "call:harbour.book_berth")
    assert place.app.roster.find_tool("modest", "relay").access == "write"
    sent = len(place.api.received("POST"))
    reply = place.call("modest.relay", to="harbour.book_berth", arguments={"body": BOOKING})
    assert isinstance(reply, Pending)
    assert reply.approval.wire.method == "POST"
    assert len(place.api.received("POST")) == sent


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        ({"permissions": ["call:harbour.book_berth"], "access": "read"}, "writes"),
        ({"permissions": ["call:harbour.sink_boat"]}, "no tool harbour.sink_boat"),
        ({"permissions": ["call:again.other"]}, "of this server"),
    ],
)
def test_a_draft_that_says_wrongly_what_it_calls_is_sent_back(
    place: Place, said: dict[str, Any], wanted: str
) -> None:
    order = {"task": "call something", "source": "none", "name": "again"}
    job = place.app.jobs.create_job("forge", order).id
    place.run(worked(place.app, job))
    (permission,) = said["permissions"]
    code = f"""
from toolwright import servers, tool

@tool
def relay(n):
    return servers.call({permission.removeprefix("call:")!r}, {{"n": n}})
"""
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    tool = {"name": "relay", "description": "Calls.", "input_schema": schema, **said}
    tool["output_schema"] = {"type": "object"}
    assert not isinstance(
        place.app.submissions.submit_draft(job, {"code": code, "tools": [tool]}), tuple
    )
    told = place.run(worked(place.app, job))
    assert told.state == "waiting"
    assert wanted in told.message
    place.app.store.jobs.cancel(job, "test", time.time())


def test_what_is_not_declared_or_not_granted_is_not_called(place: Place) -> None:
    place.publish(relaying("narrow", "leaf.one"))
    told = refusal(place.call("narrow.relay", to="leaf.one"))
    assert "toolwright grant narrow call:leaf.one" in told
    place.grant("narrow", "call:leaf.one", "call:leaf.fail")
    assert ok(place.call("narrow.relay", to="leaf.one")).outcome.structured == {"got": {"n": 1}}
    assert "declares" in refusal(place.call("narrow.relay", to="leaf.fail"))
    place.app.store.grants.remove_grant("narrow call:leaf.one", "permission", "test", time.time())
    assert "nobody granted" in refusal(place.call("narrow.relay", to="leaf.one"))


def test_the_failure_of_a_called_tool_is_told(place: Place) -> None:
    place.publish(relaying("careful", "leaf.fail"), "call:leaf.fail")
    reply = place.call("careful.relay", to="leaf.fail")
    assert isinstance(reply, Done)
    assert reply.outcome.failure
    assert "leaf.fail failed (tool): out of order" in reply.outcome.failure.message


def test_calls_are_at_most_fifty_and_at_most_three_deep(place: Place) -> None:
    place.publish(relaying("deep1", "leaf.one"), "call:leaf.one")
    for number in (2, 3, 4):
        below = f"deep{number - 1}.relay"
        place.publish(relaying(f"deep{number}", below), f"call:{below}")
    inner: dict[str, Any] = {"to": "leaf.one"}
    for number in (2, 3):
        inner = {"to": f"deep{number - 1}.relay", "arguments": inner}
    assert ok(place.call("deep3.relay", **inner)).outcome.structured
    deeper = place.call("deep4.relay", to="deep3.relay", arguments=inner)
    assert isinstance(deeper, Done)
    assert deeper.outcome.failure
    assert "at most 3 deep" in deeper.outcome.failure.message
    assert ok(place.call("deep1.often", to="leaf.one", times=50))
    assert "more than 50" in refusal(place.call("deep1.often", to="leaf.one", times=51))


def test_a_call_does_not_come_back_to_a_server_above_it(place: Place) -> None:
    place.publish(relaying("ring1", "ring2.relay"), "call:ring2.relay")
    place.publish(relaying("ring2", "ring1.relay"), "call:ring1.relay")
    back = {"to": "ring1.relay", "arguments": {"to": "ring2.relay"}}
    reply = place.call("ring1.relay", to="ring2.relay", arguments=back)
    assert isinstance(reply, Done)
    assert reply.outcome.failure
    assert "own server" in reply.outcome.failure.message


def test_a_called_server_keeps_its_gate(place: Place) -> None:
    place.publish(replace(bundle(LEAF, "one", "fail", pure=True), name="shut"))
    place.publish(relaying("hopeful", "shut.one"), "call:shut.one")
    place.app.store.servers.set_state("shut", "quarantined", time.time(), "test", "")
    place.app.roster.forget_servers()
    assert "quarantined" in refusal(place.call("hopeful.relay", to="shut.one"))


def test_a_call_of_an_archived_server_is_told_what_brings_it_back(place: Place) -> None:
    servers = place.app.store.servers
    servers.set_state("harbour", "archived", time.time(), "test", "")
    place.app.roster.forget_servers()
    reply = place.call("harbour.search_boats", query="a")
    servers.set_state("harbour", "active", time.time(), "test", "")
    place.app.roster.forget_servers()
    assert isinstance(reply, RefusedCall)
    assert f"toolwright forge {servers.get('harbour').source} --name harbour" in reply.reason


def test_a_called_server_that_changed_is_called_as_what_it_became(place: Place) -> None:
    place.publish(relaying("alter", "harbour.search_boats"), "call:harbour.search_boats")
    place.publish(relaying("trusting", "alter.relay"), "call:alter.relay")
    look = {"to": "harbour.search_boats", "arguments": {"query": "a"}}
    assert ok(place.call("trusting.relay", to="alter.relay", arguments=look))
    place.publish(
        replace(relaying("alter", "harbour.book_berth"), version=2), "call:harbour.book_berth"
    )
    sent = len(place.api.received("POST"))
    book = {"to": "harbour.book_berth", "arguments": {"body": BOOKING}}
    reply = place.call("trusting.relay", to="alter.relay", arguments=book)
    assert isinstance(reply, Pending)
    assert reply.approval.wire.method == "POST"
    assert len(place.api.received("POST")) == sent


def test_no_word_of_a_person_makes_a_tool_that_calls_a_write_one_that_reads(place: Place) -> None:
    place.publish(relaying("meek", "harbour.book_berth"), "call:harbour.book_berth")
    place.classify("meek", "relay", "read")
    sent = len(place.api.received("POST"))
    reply = place.call("meek.relay", to="harbour.book_berth", arguments={"body": BOOKING})
    assert isinstance(reply, Pending)
    assert len(place.api.received("POST")) == sent


def test_nothing_is_called_while_all_is_frozen_or_from_where_nothing_answers() -> None:
    class Asked:
        def __init__(self) -> None:
            self.names: list[str] = []

        async def perform(self, request: WireRequest, writes: WriteMode) -> ToolCallResult:
            self.names.append(get_called_tool(request))
            return ToolCallResult(Exchange(request, build_success({"n": 1})))

    request = parse_call_request({"tool": "leaf.one"}, b"{}")
    assert request
    calls, kill_switch = Asked(), KillSwitch()
    broker = Broker(Policy(()), body(b"{}"), kill_switch=kill_switch)
    assert asyncio.run(broker.perform(request, calls)).response
    assert asyncio.run(broker.perform(request)).refusal == "refused"
    kill_switch.engage()
    assert asyncio.run(broker.perform(request, calls)).refusal == "frozen"
    assert calls.names == ["leaf.one"]


TALKER = """
from toolwright import network, tool

@tool
def talk(port=0, line=""):
    return {"got": network.tcp("127.0.0.1", port, line + "\\n").decode()}

@tool
def look(port=0):
    return {"got": network.tcp("127.0.0.1", port, "look\\n").decode()}
"""


def test_a_tool_that_talks_waits_for_a_person_and_lends_its_right_to_no_other(
    place: Place,
) -> None:
    with line_server({b"hello": b"hi", b"look": b"seen"}) as lines:
        permission = f"tcp:127.0.0.1:{lines.port}"
        asked = build_request_pattern(permission)
        assert asked
        made = replace(bundle(TALKER, "talk", "look", pure=True), name="talker")
        talk = replace(made.tools[0], requests=(asked,), access="write")
        made = replace(made, tools=(talk, made.tools[1]), permissions=(permission,))
        place.publish(made)
        wanted: dict[str, Any] = {"port": lines.port, "line": "hello"}
        assert "toolwright grant" in refusal(place.call("talker.look", port=lines.port))
        place.grant("talker", permission)
        assert "declare" in refusal(place.call("talker.look", port=lines.port))
        pending = place.call("talker.talk", **wanted)
        assert isinstance(pending, Pending)
        wire = pending.approval.wire
        assert (wire.method, wire.url) == ("TALK", f"tcp://127.0.0.1:{lines.port}")
        assert lines.asked == []
        assert ok(place.approve(pending.approval)).outcome.structured == {"got": "hi"}
        assert lines.asked == [b"hello"]
        assert place.app.store.approvals.get(pending.approval.id).state == "done"


def talker(name: str, port: int, version: int = 1) -> tuple[Bundle, str]:
    """A server whose tool `talk` may talk to that port, and the permission."""
    permission = f"tcp:127.0.0.1:{port}"
    (asked,) = filter(None, [build_request_pattern(permission)])
    made = replace(bundle(TALKER, "talk", "look", pure=True), name=name, version=version)
    talk = replace(made.tools[0], requests=(asked,), access="write")
    return replace(made, tools=(talk, made.tools[1]), permissions=(permission,)), permission


def test_a_person_may_say_that_a_tool_that_talks_reads_and_nobody_else(place: Place) -> None:
    with line_server({b"hello": b"hi"}) as lines:
        made, permission = talker("chatty", lines.port)
        place.publish(made, permission)
        wanted: dict[str, Any] = {"port": lines.port, "line": "hello"}
        store, now = place.app.store, time.time()
        assert not classify_operation(store.classifications, made, "talk", "read", None, now)
        place.classify("chatty", "talk", "read", signed=False)
        assert isinstance(place.call("chatty.talk", **wanted), Pending)
        assert lines.asked == []
        place.classify("chatty", "talk", "read")
        assert ok(place.call("chatty.talk", **wanted)).outcome.structured == {"got": "hi"}
        assert lines.asked == [b"hello"]
        (record,) = [each for each in place.records("chatty") if each.state == "done"]
        assert record.access == "read"
        place.publish(relaying("asking", "chatty.talk"), "call:chatty.talk")
        place.call("asking.relay", to="chatty.talk", arguments=wanted)
        assert lines.asked == [b"hello"] * 2


def test_a_tool_that_reads_by_a_persons_word_talks_to_no_other_place(place: Place) -> None:
    with line_server({b"hello": b"hi"}) as lines, line_server({b"hello": b"ho"}) as others:
        made, permission = talker("wordy", lines.port)
        place.publish(made, permission)
        place.classify("wordy", "talk", "read")
        wanted: dict[str, Any] = {"port": lines.port, "line": "hello"}
        assert "toolwright grant" in refusal(place.call("wordy.talk", port=others.port, line="x"))
        later, elsewhere = talker("wordy", others.port, version=2)
        place.publish(later, elsewhere)
        assert isinstance(place.call("wordy.talk", **{**wanted, "port": others.port}), Pending)
        place.app.store.grants.remove_grant(f"wordy {elsewhere}", "permission", "test", time.time())
        place.classify("wordy", "talk", "read")
        assert "toolwright grant" in refusal(place.call("wordy.talk", port=others.port, line="x"))
        assert (lines.asked, others.asked) == ([], [])


def test_a_tool_that_reads_by_a_persons_word_waits_where_its_server_always_asks(
    place: Place,
) -> None:
    with line_server({b"hello": b"hi"}) as lines:
        made, permission = talker("raw", lines.port)
        place.publish(made, permission)
        place.classify("raw", "talk", "read")
        place.app.store.servers.set_state("raw", "experimental", time.time(), "test", "")
        place.app.roster.forget_servers()
        held = place.call("raw.talk", port=lines.port, line="hello")
        assert isinstance(held, Pending)
        assert lines.asked == []
        place.app.store.servers.set_state("raw", "quarantined", time.time(), "test", "")
        place.app.roster.forget_servers()
        assert isinstance(place.call("raw.talk", port=lines.port, line="hello"), RefusedCall)
        assert lines.asked == []


def test_a_read_that_nobody_waits_for_is_cancelled_at_the_end_of_its_process(place: Place) -> None:
    before = slow_reports(place.api)

    async def work() -> str:
        async with open_app(place.settings, "do") as app:
            slow = Call("harbour", "occupancy_report", {"seconds": SLOW_SECONDS})
            identity, task = app.dispatch.start_call(slow)
            asked = asyncio.create_task(
                asyncio.to_thread(until, lambda: slow_reports(place.api) > before, "it was asked")
            )
            await asyncio.wait({task, asked}, return_when=asyncio.FIRST_COMPLETED)
            assert not task.done(), task.result()
        return identity

    call = place.app.store.calls.get(place.run(work()))
    assert call.failure is not None
    # It says nothing of its server.
    assert call.failure.kind == "cancelled"
