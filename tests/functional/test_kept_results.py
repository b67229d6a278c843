"""Large answers of a session: kept, shown in parts, and referred to in later calls."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import Any

import pytest

from orchestrator.app import App, open_app
from orchestrator.calls import Call, RefusedCall
from orchestrator.frontends.server import build_front_server
from orchestrator.frontends.tool_front import ToolFront
from orchestrator.results.keeper import ANSWER_BYTES
from orchestrator.results.shape import count_tokens
from orchestrator.settings import load_settings
from registry.models import build_entry
from sandbox.bundle.model import Bundle
from tests.engine.samples import bundle
from tests.functional.test_calls import BOOKING
from tests.granted import allow
from tests.world.harbour import harbour_api

GIVE = """
from toolwright import tool

@tool
def give(many=1, hidden="", depth=0):
    value = {"n": 1}
    for _ in range(depth):
        value = {"in": value}
    items = [{"id": number, "name": f"item {number}{hidden}"} for number in range(many)]
    return {"items": items, "deep": value, hidden + "key": 1}

@tool
def echo(value=None):
    return {"got": value}
"""


@dataclass
class Front:
    """The seven tools of one open process."""

    app: App
    runner: asyncio.Runner

    def ask(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        async def tell(done: float, total: float | None, message: str) -> None:
            return None

        front = ToolFront(self.app)
        return self.runner.run(front.call_tool(name, arguments, tell))

    def read(self, tool: str, session: str, **arguments: Any) -> dict[str, Any]:
        return self.ask("call_read", tool=tool, arguments=arguments, session=session)

    def publish(self, made: Bundle) -> None:
        self.app.forge.shelf.publish_bundle(made, build_entry(made, 1.0), (), None)
        self.app.roster.forget_servers()


def giving(name: str, *permissions: str) -> Bundle:
    made = bundle(GIVE, "give", "echo", pure=True)
    return replace(made, name=name, permissions=permissions)


@pytest.fixture(scope="module")
def front(any_engine: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    settings = load_settings(home=tmp_path_factory.mktemp("kept"), engine=any_engine)
    with (
        harbour_api(tmp_path_factory.mktemp("harbour")) as api,
        asyncio.Runner() as runner,
    ):
        stack = AsyncExitStack()
        app = runner.run(stack.enter_async_context(open_app(settings, "do")))
        try:
            allow(settings, app.store, api.url)
            forge = app.jobs.create_job("forge", {"source": api.url, "name": "harbour"})
            claimed = app.store.jobs.claim(forge.id, app.process, forge.created)
            assert claimed is not None
            runner.run(app.jobs.run_job(claimed))
            here = Front(app, runner)
            here.publish(giving("north", "network:api.north"))
            here.publish(giving("south", "network:api.south"))
            here.publish(giving("plain"))
            yield here
        finally:
            runner.run(stack.aclose())


def text_of(result: dict[str, Any]) -> str:
    return "\n".join(block["text"] for block in result["content"])


def keep(front: Front, session: str, tool: str = "north.give", **arguments: Any) -> str:
    """The handle of a large answer."""
    kept = front.read(tool, session, many=500, **arguments)
    assert not kept.get("isError"), text_of(kept)
    handle: str = kept["structuredContent"]["result"]
    return handle


def test_a_reference_stands_for_no_call_s_arguments_as_a_whole(front: Front) -> None:
    handle = keep(front, "whole")
    for path in ("$", "$.items", "$.items[0]", "$.items[0].id"):
        refused = front.read("north.echo", "whole", **{"$ref": handle, "path": path})
        assert refused["isError"]
        assert "stands for the value of an argument" in text_of(refused)
    value = {"$ref": handle, "path": "$.items[0].id"}
    assert front.read("north.echo", "whole", value=value)["structuredContent"] == {"got": 0}


def test_arguments_nested_too_deep_are_refused_before_anything_is_begun(front: Front) -> None:
    for depth in (241, 985, 5_000):
        value: Any = 1
        for _ in range(depth):
            value = {"a": value}
        call = Call("plain", "echo", {"value": value})
        reply = front.runner.run(front.app.dispatch.call_tool(call))
        assert isinstance(reply, RefusedCall)
        assert "nested deeper than 240" in reply.reason
    # Nor does a server pay for it with its good name.
    assert front.read("plain.echo", "deep", value=1)["structuredContent"] == {"got": 1}


def test_a_large_answer_of_a_session_is_given_by_shape_sample_and_handle(front: Front) -> None:
    kept = front.read("north.give", "shape", many=500)
    told = kept["structuredContent"]
    assert told["result"] == "r1"
    assert told["shape"]["$.items"] == "array of 500 elements"
    assert told["shape"]["$.items[*].id"] == "integer"
    assert told["sample"]["items"][0] == {"id": 0, "name": "item 0"}
    assert "result='r1'" in told["next"]
    assert len(text_of(kept).encode()) <= ANSWER_BYTES
    assert count_tokens(json.dumps(told)) <= 1500
    assert kept["_meta"]["toolwright"]["call"]


def test_a_small_answer_and_one_without_a_session_are_given_whole(front: Front) -> None:
    small = front.read("north.give", "small", many=3)
    whole = front.ask("call_read", tool="north.give", arguments={"many": 500})
    assert len(small["structuredContent"]["items"]) == 3
    assert len(whole["structuredContent"]["items"]) == 500


def test_a_kept_result_is_shown_in_parts_that_make_the_whole(front: Front) -> None:
    handle = keep(front, "parts")
    seen: list[Any] = []
    offset: int | None = 0
    while offset is not None:
        part = front.ask("status", session="parts", result=handle, path="$.items", offset=offset)
        assert len(text_of(part).encode()) <= ANSWER_BYTES
        seen += part["structuredContent"]["value"]
        offset = part["structuredContent"].get("offset")
    assert [each["id"] for each in seen] == list(range(500))
    name = front.ask("status", session="parts", result=handle, path="$.items[-1].name")
    assert name["structuredContent"]["value"] == "item 499"


def test_an_argument_may_be_a_part_of_a_kept_result(front: Front) -> None:
    handle = keep(front, "refer")
    reference = {"$ref": handle, "path": "$.items[3].id"}
    got = front.read("north.echo", "refer", value={"inner": [reference, 7]})
    assert got["structuredContent"] == {"got": {"inner": [3, 7]}}
    rows = [row for row in front.app.store.audit.find(2000) if row.kind == "result.used"]
    assert json.loads(rows[0].payload)["path"] == "$.items[3].id"


def test_what_only_looks_like_a_reference_is_sent_as_it_is(front: Front) -> None:
    looks = [{"$ref": "#/definitions/x"}, {"$ref": "r1", "path": "$", "more": 1}, {"$ref": "rr1"}]
    got = front.read("north.echo", "looks", value=looks)
    assert got["structuredContent"] == {"got": looks}


def test_a_reference_inside_a_value_is_not_followed(front: Front) -> None:
    handle = keep(front, "once")
    first = front.read("north.echo", "once", value={"$ref": handle, "path": "$.items[0]"})
    assert first["structuredContent"] == {"got": {"id": 0, "name": "item 0"}}
    # The answer holds something that looks like a reference, and is large enough to be kept.
    planted = [{"$ref": handle, "path": "$.items[1].id"}] + ["x" * 50] * 200
    held = front.app.results.shorten_result(
        {"content": [], "structuredContent": {"a": planted}}, "once", "planted", "north.give", ()
    )["structuredContent"]["result"]
    second = front.read("north.echo", "once", value={"$ref": held, "path": "$.a[0]"})
    assert second["structuredContent"] == {"got": planted[0]}


@pytest.mark.parametrize(
    ("reference", "told"),
    [
        ({"$ref": "r99"}, "there is no r99"),
        ({"$ref": "r1", "path": "$.nothing"}, "nothing at $.nothing"),
        ({"$ref": "r1", "path": "items"}, "begins with `$`"),
        ({"$ref": "r1", "path": "$..id"}, "none of"),
    ],
)
def test_a_reference_that_stands_for_nothing_sends_nothing(
    front: Front, reference: dict[str, Any], told: str
) -> None:
    front.read("north.give", "nothing", many=500)
    refused = front.read("north.echo", "nothing", value=reference)
    assert refused["isError"]
    assert told in text_of(refused)
    assert "nothing was sent" in text_of(refused)


def test_another_session_cannot_read_or_use_a_handle(front: Front) -> None:
    handle = keep(front, "mine")
    for session in ("theirs", "", "mine ", "%"):
        shown = front.ask("status", session=session, result=handle)
        used = front.read("north.echo", session, value={"$ref": handle})
        for refused in (shown, used):
            assert refused["isError"]
            assert f"there is no {handle}" in text_of(refused)
    assert not front.ask("status", session="mine", result=handle).get("isError")


def test_a_read_does_not_take_one_apis_answer_to_another(front: Front) -> None:
    handle = keep(front, "across")
    reference = {"$ref": handle, "path": "$.items[0].name"}
    refused = front.read("south.echo", "across", value=reference)
    assert refused["isError"]
    assert "api.south:443" in text_of(refused)
    assert "give the value itself" in text_of(refused)
    # What reaches nothing gets it, and what that makes of it is still the first API's.
    computed = front.read("plain.echo", "across", value=reference)
    assert computed["structuredContent"] == {"got": "item 0"}
    carried = front.read("plain.echo", "across", value={"$ref": handle})
    again = carried["structuredContent"]["result"]
    still = front.read("south.echo", "across", value={"$ref": again, "path": "$.got.items[0].id"})
    assert still["isError"]


def test_a_write_says_in_its_approval_what_it_takes_from_where(front: Front) -> None:
    handle = keep(front, "write")
    boat: dict[str, Any] = dict(BOOKING["boat"])  # type: ignore[call-overload]
    boat["name"] = {"$ref": handle, "path": "$.items[1].name"}
    tools = {tool.name for tool in front.app.store.servers.get("harbour").tools}
    assert "book_berth" in tools
    held = front.ask(
        "call_write",
        tool="harbour.book_berth",
        arguments={"body": {**BOOKING, "boat": boat}},
        session="write",
        reason="because",
    )
    approval = front.app.store.approvals.get(held["structuredContent"]["approval"])
    assert approval.arguments["body"]["boat"]["name"] == "item 1"
    assert approval.reason.startswith("/body/boat/name is taken from an answer of north (r1)")
    assert approval.reason.endswith("because")


def test_hidden_text_and_depth_do_not_get_out(front: Front) -> None:
    hidden = "\u200b\U000e0041"
    kept = front.read("north.give", "hostile", many=500, hidden=hidden, depth=50)
    assert not kept.get("isError"), text_of(kept)
    part = front.ask("status", session="hostile", result="r1", path="$.items[0]")
    assert hidden not in json.dumps(kept, ensure_ascii=False)
    assert part["structuredContent"]["value"]["name"] == "item 0"
    assert len(text_of(kept).encode()) <= ANSWER_BYTES


def test_a_session_is_told_what_was_done_in_it_and_why(front: Front) -> None:
    front.ask(
        "call_read",
        tool="north.give",
        arguments={"many": 500},
        session="told",
        task="see the items",
        reason="the user asked",
    )
    front.runner.run(front.app.dispatch.ledger.wait_written())
    told = front.ask("status", session="told")["structuredContent"]
    assert "The last was north.give for “see the items”: ok, kept as r1." in told["summary"]
    assert told["calls"][0]["why"] == "the user asked"
    other = front.ask("status", session="not told")["structuredContent"]
    assert other["summary"] == "Nothing is known of this session."


def test_the_answer_of_a_task_run_is_kept_for_its_session_or_itself_alone(front: Front) -> None:
    steps = [{"id": "s1", "tool": "north.give", "state": "done"}]
    answer = {"content": [], "structuredContent": {"items": ["x" * 60] * 200}}
    called = {"call": "c", "trust": "", "rule": "", "cause": "", "failure": None}
    result = {"state": "called", **called, "result": answer, "steps": steps}
    for session in ("run", ""):
        job = front.app.jobs.create_job("do", {"task": "x", "session": session})
        claimed = front.app.store.jobs.claim(job.id, front.app.process, job.created)
        assert claimed is not None
        front.app.store.jobs.finish(job.id, claimed.attempt, "done", result, job.created)
        told = [front.ask("status", job=job.id)["structuredContent"] for _ in range(2)]
        # Asked twice, it is the same result.
        assert told[0] == told[1]
        assert told[0]["result"] == "r1"
        assert "items" not in told[0]
        # A run without a session keeps it under its own id.
        assert told[0].get("session") == (None if session else job.id)
        other = front.ask("status", session="other", result="r1")
        assert other["isError"]


def test_a_client_that_connects_is_told_what_is_registered_at_that_moment(front: Front) -> None:
    server = build_front_server(front.app)
    before = server.create_initialization_options().instructions or ""
    assert "harbour (127.0.0.1:" in before
    assert "plain" in before
    assert "north" not in before
    front.publish(giving("later"))
    after = server.create_initialization_options().instructions or ""
    assert "later" in after
    assert "later" not in before


@pytest.mark.parametrize("where", [{"path": "$.items"}, {"offset": 2}])
def test_a_part_of_no_result_is_refused_and_says_what_is_missing(
    front: Front, where: dict[str, Any]
) -> None:
    for about in ({}, {"session": "parts"}, {"job": "0" * 16}):
        refused = front.ask("status", **about, **where)
        assert refused["isError"]
        assert "`result`" in text_of(refused)


def test_a_call_that_is_none_is_told_as_one_with_what_lists_calls(front: Front) -> None:
    told = text_of(front.ask("status", call="nosuch"))
    assert "there is no call 'nosuch'" in told
    assert "toolwright logs" in told


def test_a_search_offers_no_tool_that_is_nothing_like_the_task(front: Front) -> None:
    found = front.ask("find", task="qwertz uiop zxcvb")
    assert found["structuredContent"]["candidates"] == []
    assert "`forge` one" in text_of(found)
    alike = front.ask("find", task="list the berths")["structuredContent"]["candidates"]
    assert alike[0]["tool"] == "harbour.list_berths"
