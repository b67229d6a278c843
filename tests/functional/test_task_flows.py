"""Values of earlier answers in tasks: by handle, by what words mean, and where they may flow."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.approvals.flows import FLOW, allow_flow
from orchestrator.approvals.granting import revoke_permissions
from orchestrator.frontends.tool_front import ToolFront
from orchestrator.results.shape import count_tokens, write_json
from orchestrator.settings import Settings, load_settings
from registry.models import Job
from tests.functional.asking import Asking, asking
from tests.functional.test_task_questions import CARRIED, get_answer, get_question
from tests.granted import person
from tests.world.site import Site
from tests.world.zones import ZONES, build_page

RECORDS = [{"name": "www", "content": "192.0.2.1"}]
TOLD = {"reason": "r", "session": "mine"}


@pytest.fixture
def settings(tmp_path: Path, component: object) -> Settings:
    return replace(load_settings(home=tmp_path, engine="wasm"), result_bytes=80)


async def ignore(done: float, total: float | None, message: str) -> None:
    return None


async def ask_front(here: Asking, name: str, **arguments: Any) -> dict[str, Any]:
    result = await ToolFront(here.app).call_tool(name, {**TOLD, **arguments}, ignore)
    return dict(result["structuredContent"])


async def keep_zones(here: Asking) -> None:
    """The session `mine` has the zones as r1."""
    kept = await ask_front(here, "call_read", tool="zones.list_zones", arguments={})
    assert kept["result"] == "r1"


def test_a_handle_stands_for_a_value_in_a_tasks_arguments_and_in_answers(
    settings: Settings, zones: Site, owners: Site
) -> None:
    first = {"zone_id": {"$ref": "r1", "path": "$.body[0].id"}}

    async def story(here: Asking) -> None:
        await keep_zones(here)
        given = await here.do("x", tool="zones.list_records", arguments=first, session="mine")
        assert get_value(given) == RECORDS
        theirs = await here.do("x", tool="zones.list_records", arguments=first, session="theirs")
        assert (theirs.state, "r1" in theirs.message) == ("failed", True)
        words = {"tool": "zones.list_records", "session": "mine"}
        asked = await here.do("list the records of a zone", **words)
        wrong = here.take(asked, arguments={"zone_id": {"$ref": "r7"}})
        assert isinstance(wrong, tuple)
        assert wrong[0].where == "/answer/arguments/zone_id"
        second = {"zone_id": {"$ref": "r1", "path": "$.body[1].id"}}
        assert get_value(await here.answer(asked, arguments=second)) == RECORDS
        assert zones.paths[1:] == ["/zones/z-4711/records", "/zones/z-0815/records"]

    asking(settings, zones, owners, story)


def test_an_answer_to_do_is_small_however_much_an_api_or_a_call_has(
    tmp_path: Path, component: object, zones: Site, owners: Site
) -> None:
    many = [{"id": f"z-{number}", "name": "x" * 40} for number in range(2_000)]
    record = {"zone_id": "z-1", "body": {"name": "n", "content": "c" * 30_000}}
    calls: dict[str, dict[str, Any]] = {
        "large": {"task": "x", "tool": "zones.list_zones"},
        "pending": {"task": "x", "tool": "zones.create_record", "arguments": record},
        "asking": {"task": "list the zones of " + "long words " * 300},
    }

    async def story(here: Asking) -> None:
        zones.pages["/zones"] = build_page(many)
        front, told = ToolFront(here.app), {}
        for name, order in calls.items():
            answer = await front.call_tool("do", order, ignore)
            told[name] = answer["structuredContent"]
            texts = "".join(block["text"] for block in answer["content"])
            assert count_tokens(write_json(told[name])) <= 1_500, name
            assert count_tokens(texts) <= 1_500, name
        assert told["asking"]["answer_with"]["run"]
        assert here.app.store.approvals.get(told["pending"]["approval"]).state == "pending"
        # What is not shown is kept under the run's own id, for whoever was told that.
        large = told["large"]
        part = {"session": large["session"], "result": large["result"], "path": "$.body[1999].id"}
        shown = await front.call_tool("status", part, ignore)
        assert shown["structuredContent"]["value"] == "z-1999"
        other = await front.call_tool("status", {**part, "session": "mine"}, ignore)
        assert other["isError"]

    asking(load_settings(home=tmp_path, engine="wasm"), zones, owners, story)


@pytest.mark.parametrize(("count", "whole"), [(4_000, True), (20_000, False)])
def test_a_run_whose_answer_is_large_ends_with_it_or_with_its_beginning(
    tmp_path: Path, component: object, zones: Site, owners: Site, count: int, whole: bool
) -> None:
    many = [{"id": f"z-{number}", "name": "x" * 40} for number in range(count)]

    async def story(here: Asking) -> None:
        zones.pages["/zones"] = build_page(many)
        job = await here.do("x", tool="zones.list_zones")
        assert (job.state, job.result["state"]) == ("done", "called")
        told = job.result["result"]
        if whole:
            assert told["structuredContent"]["body"] == many
        else:
            assert told["structuredContent"]["sample"]["body"][0] == many[0]
            assert "too large to be kept with a task" in told["content"][0]["text"]

    asking(load_settings(home=tmp_path, engine="wasm"), zones, owners, story)


def get_value(job: Job) -> Any:
    assert job.state == "done", job.message
    return job.result["answer"]["structuredContent"]["body"]


def test_what_an_api_answered_is_no_reference_though_it_looks_like_one(
    settings: Settings, zones: Site, owners: Site
) -> None:
    async def story(here: Asking) -> None:
        zones.pages["/zones"] = build_page([{"id": {"$ref": "r1", "path": "$.body[1].id"}}, *ZONES])
        await keep_zones(here)
        planted = {"zone_id": {"$ref": "r1", "path": "$[0].id"}}
        ended = await here.do("x", tool="zones.list_records", arguments=planted, session="mine")
        assert ended.state == "failed"
        assert "holds a `$ref` itself" in ended.message
        assert zones.paths == ["/zones"]

    asking(settings, zones, owners, story)


def test_words_that_mean_an_earlier_answer_fill_in_a_call_that_is_shown_before_it_is_made(
    settings: Settings, zones: Site, owners: Site
) -> None:
    async def story(here: Asking) -> None:
        await keep_zones(here)
        await here.app.dispatch.ledger.wait_written()
        # Words that say nothing else mean the tool that takes what they mention.
        pointed = get_question(await here.do("show the first one", session="mine"))
        assert (pointed["kind"], pointed["shown"]["tool"]) == ("confirm", "zones.list_records")
        assert pointed["shown"]["arguments"] == {"zone_id": "z-4711"}
        counted = await here.do("the second one: how many records?", session="mine")
        assert get_question(counted)["shown"]["tool"] == "zones.list_records"
        for words in ("show me that data again", "show those results"):
            again = get_question(await here.do(words, session="mine"))
            assert (again["kind"], again["shown"]["tool"]) == ("confirm", "zones.list_zones")
        # Which one of a list, nobody can tell: no server is to be made for that.
        nowhere = await here.do("show that one", session="mine")
        assert get_question(nowhere)["kind"] == "choose"
        assert zones.paths == ["/zones"]
        other = await here.do("show the invoices of the first one", session="mine")
        assert get_question(other)["kind"] != "confirm"
        asked = await here.do("list the records of the second one", session="mine")
        question = get_question(asked)
        assert (question["kind"], question["shown"]["tool"]) == ("confirm", "zones.list_records")
        assert question["shown"]["arguments"] == {"zone_id": "z-0815"}
        assert "the second one" in question["shown"]["why"][0]
        assert zones.paths == ["/zones"]
        assert get_answer(await here.answer(asked, confirm=True)) == RECORDS
        stranger = await here.do("list the records of the second one", session="theirs")
        assert "z-0815" not in str(stranger.result)

    asking(settings, zones, owners, story)


def test_a_signed_rule_lets_values_flow_and_its_end_shows_them_again(
    settings: Settings, zones: Site, owners: Site
) -> None:
    words, by_handle = (
        "list the zones, then find the owner of the first one",
        {"name": {"$ref": "r1", "path": "$.body[0].name"}},
    )
    named = {"tool": "owners.find_owner", "arguments": by_handle, "session": "mine"}

    async def story(here: Asking) -> None:
        store, consents = here.app.store, here.app.consents
        await keep_zones(here)
        shown = await here.do("x", **named)
        assert get_question(shown)["shown"]["arguments"] == {"name": "example.org"}
        assert owners.asked == []
        ends = store.servers.get("zones"), store.servers.get("owners")
        allow_flow(consents, *ends, "test", person(here.settings.pin))
        assert get_value(await here.do("x", **named))["name"] == "Ada"
        ended = await here.answer(await here.do(words), steps=CARRIED)
        assert get_answer(ended)["name"] == "Ada"
        read = await ask_front(here, "call_read", tool="owners.find_owner", arguments=by_handle)
        assert read["body"]["name"] == "Ada"
        revoke_permissions(store.grants, "owners", (f"{FLOW}zones",), "test", 1.0)
        again = await here.answer(await here.do(words), steps=CARRIED)
        assert get_question(again)["kind"] == "confirm"
        assert len(owners.asked) == 3

    asking(settings, zones, owners, story)


def test_a_rule_for_one_way_is_none_for_the_other(
    settings: Settings, zones: Site, owners: Site
) -> None:
    async def story(here: Asking) -> None:
        servers, allowed = here.app.store.servers, here.app.results.is_flow_allowed
        ends = servers.get("zones"), servers.get("owners")
        allow_flow(here.app.consents, *ends, "test", person(here.settings.pin))
        assert (allowed("zones", "owners"), allowed("owners", "zones")) == (True, False)
        moved = replace(
            ends[1], version=2, digest="0" * 64, permissions=("network:elsewhere.example:443",)
        )
        servers.publish(moved, now=2.0)
        assert not allowed("zones", "owners")

    asking(settings, zones, owners, story)
