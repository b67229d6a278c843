"""An API that only a page for people describes becomes a server, of what is written there."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.app import App
from orchestrator.approvals.granting import allow_host
from orchestrator.calls import Call, Done
from orchestrator.settings import Settings, load_settings
from registry.errors import DraftRefused
from registry.models import DraftRow
from registry.needs import HostNeed
from tests.forge.documentation.readings import BERTHS, operation
from tests.functional.home import Home, until
from tests.functional.peer import Peer
from tests.functional.test_authors import authored, carried
from tests.granted import person
from tests.world.model import Model, Said, model, said
from tests.world.quay import DOCUMENTED_AT, Quay, quay


def claims(here: Quay) -> dict[str, Any]:
    """What a model says of the quay's page, with one operation that it invented."""
    told: dict[str, Any] = json.loads(json.dumps(BERTHS).replace(DOCUMENTED_AT, here.url))
    told["auth"] = {"kind": "none", "quote": "No key is needed."}
    told["operations"].append(operation("DELETE", "/berths", "DELETE /berths removes all"))
    return told


@pytest.fixture(scope="module")
def forged(toolwright_home: Home) -> Iterator[tuple[Quay, Model]]:
    with quay() as here, model(lambda request: said(claims(here))) as author:
        endpoint = {"OPENAI_BASE_URL": author.url, "OPENAI_MODEL": "m-1", "OPENAI_API_KEY": "k"}
        home = replace(toolwright_home, environment={**toolwright_home.environment, **endpoint})
        home.person(
            "forge", "book berths", "--source", here.docs, "--allow", here.host, "--name", "quay"
        )
        yield here, author


def test_a_prose_documented_api_is_called_and_a_write_waits_for_a_person(
    forged: tuple[Quay, Model], served: Peer, toolwright_home: Home
) -> None:
    here, author = forged
    assert author.purposes() == ["api"]
    found = served.value("call_read", tool="quay.get_berths", arguments={"free": True})
    assert found["body"] == {"berths": [{"id": 4, "length": 12.5, "free": True}]}

    body = {"berth": 4, "boat": "Ann"}
    pending = served.value("call_write", tool="quay.post_bookings", arguments={"body": body})
    assert pending["state"] == "pending"
    assert here.bookings == []
    toolwright_home.person("approve", pending["approval"])
    until(lambda: here.bookings == [body], "the berth is booked")

    shown = toolwright_home.read("show", "quay")
    assert shown["created_by"] == "compiler openai m-1"
    assert "60 requests in 60 s" in json.dumps(shown)
    assert "delete" not in json.dumps(shown["tools"]).replace("delete_bookings", "")


@pytest.fixture
def settings(tmp_path: Path, any_engine: str) -> Settings:
    return load_settings({}, home=tmp_path / "home", engine=any_engine)


def story(settings: Settings, here: Quay, told: Any, **more: str) -> None:
    async def within() -> None:
        with model(lambda request: said(claims(here))) as author:
            async with authored(settings, author, **more) as app:
                allow_host(app.store.grants, here.host, "test", person(app.settings.pin))
                await told(app, author)

    asyncio.run(within())


async def order(app: App, here: Quay, **more: str) -> Any:
    request = {"task": "book berths", "source": here.docs, "name": "quay", **more}
    request["files"] = "typed"
    return await carried(app, app.jobs.create_job("forge", request))


def test_a_failed_answer_parks_the_job_and_what_was_read_is_not_asked_for_again(
    settings: Settings,
) -> None:
    async def told(app: App, author: Model) -> None:
        good, author.answer = author.answer, lambda request: Said("I would rather not.")
        job = await order(app, here)
        assert (job.state, job.result["waits_for"]) == ("waiting", "document")
        assert f"toolwright jobs {job.id} --resume" in job.message
        assert len(author.asked) == 2
        author.answer = good
        app.store.jobs.resume(job.id, "test", time.time())
        done = await carried(app, app.store.jobs.get(job.id))
        assert done.state == "done", done.message
        assert len(author.asked) == 3
        assert [problem for problem in done.result["problems"] if "DELETE /berths" in problem]

    with quay() as here:
        story(settings, here, told)


def test_a_part_that_no_model_can_read_is_told_and_the_rest_is_registered(
    settings: Settings, tmp_path: Path
) -> None:
    async def told(app: App, author: Model) -> None:
        good = author.answer
        author.answer = lambda request: (
            Said("no") if "part 2 of 2" in json.dumps(request) else good(request)
        )
        guide = tmp_path / "guide.md"
        more = "\n".join(f"GET /berths/extra/{n} gives one more." for n in range(500))
        guide.write_text(f"{here.page}\n\n## More\n\n{more}\n")
        job = await order(app, here, source=str(guide))
        assert job.state == "done", job.message
        assert any("part/2" in problem for problem in job.result["problems"])
        assert len(app.store.servers.get("quay").tools) == 4

    with quay() as here:
        story(settings, here, told)


def test_a_base_url_elsewhere_waits_for_a_person_and_nothing_is_asked_twice(
    settings: Settings,
) -> None:
    other = "http://127.0.0.1:9"

    async def told(app: App, author: Model) -> None:
        elsewhere = json.loads(json.dumps(claims(here)).replace(f"{here.url}/v1", f"{other}/v1"))
        author.answer = lambda request: said(elsewhere)
        job = await order(app, here)
        assert (job.state, job.needs) == ("waiting", HostNeed("127.0.0.1:9"))
        assert [summary.name for summary in app.store.servers.find_summaries()] == []
        app.store.jobs.resume(job.id, "test", time.time())
        again = await carried(app, app.store.jobs.get(job.id))
        assert again.state == "waiting"
        assert len(author.asked) == 1

    with quay() as here:
        page = here.page
        lying = type("Lying", (Quay,), {"page": page.replace(f"{here.url}/v1", f"{other}/v1")})
        here.__class__ = lying
        story(settings, here, told)


def test_a_client_reads_the_brief_and_hands_in_what_it_read(settings: Settings) -> None:
    async def told(app: App, author: Model) -> None:
        job = await order(app, here)
        assert job.state == "waiting", job.message
        brief = job.result["brief"]
        assert "<<<documentation" in brief
        assert "GET /berths" in brief
        assert len(brief.encode()) <= 32_000
        assert author.asked == []
        with pytest.raises(DraftRefused):
            app.submissions.submit_draft(job.id, {"code": "x = 1"})
        made = app.submissions.resubmit_order(job.id, json.dumps(claims(here)))
        done = await carried(app, made)
        assert done.state == "done", done.message
        assert len(app.store.servers.get("quay").tools) == 4
        assert app.store.servers.get("quay").created_by == "compiler client"

    with quay() as here:
        story(settings, here, told, OPENAI_BASE_URL="", OPENAI_MODEL="")


LONGEST = """from toolwright import ToolError, http, tool


@tool
def find_longest():
    answer = http.request("GET", "/berths", query={"free": True})
    listed = answer.body.get("berths") if isinstance(answer.body, dict) else None
    if not isinstance(listed, list) or not listed:
        raise ToolError("no berth is free")
    longest = max(listed, key=lambda berth: berth["length"])
    return {"id": longest["id"], "length": longest["length"]}
"""
LONGEST_TESTS = """import pytest
from server import find_longest
from toolwright import ToolError
from toolwright.testing import answers


def test_the_longest():
    listed = [{"id": 1, "length": 8}, {"id": 2, "length": 9.5}, {"id": 3, "length": 9}]
    with answers((200, {"berths": listed})) as asked:
        assert find_longest() == {"id": 2, "length": 9.5}
    assert asked[0].url.endswith("?free=true")


@pytest.mark.parametrize("body", [{"berths": []}, {"berths": 1}, [], "<html>"])
def test_error_no_list(body):
    with answers((200, body)), pytest.raises(ToolError, match="no berth is free"):
        find_longest()
"""


def longest(listed: list[dict[str, Any]], **expected: Any) -> dict[str, Any]:
    answer = {"request": "GET /berths?free=true", "status": 200, "body": {"berths": listed}}
    return {"tool": "find_longest", "arguments": {}, "answers": [answer], **expected}


def draft() -> dict[str, Any]:
    """Code around a request of the quay, without the API that it is of."""
    number = {"type": "number"}
    fields = {"properties": {"id": number, "length": number}, "required": ["id", "length"]}
    made = {
        "name": "find_longest",
        "description": "Find the longest berth that is free.",
        "calls": ["GET /berths"],
        "input_schema": {"type": "object", "properties": {}, "additionalProperties": False},
        "output_schema": {"type": "object", **fields},
    }
    four, five = {"id": 4, "length": 12, "free": True}, {"id": 5, "length": 14, "free": True}
    cases = [
        longest([four, five], result={"id": 5, "length": 14}),
        longest([four], result={"id": 4, "length": 12}),
        longest([], failure="tool"),
    ]
    return {"tools": [made], "cases": cases, "tests": LONGEST_TESTS, "code": LONGEST, "why": "1"}


def test_code_around_requests_is_proved_against_what_the_documentation_says(
    settings: Settings,
) -> None:
    async def told(app: App, author: Model) -> None:
        job = await order(app, here, author="client")
        api = json.loads(json.dumps(BERTHS).replace(DOCUMENTED_AT, here.url))
        del api["auth"]
        undocumented = draft()
        undocumented["code"] = LONGEST.replace('"free": True', '"size": 3')
        for given in (undocumented, draft()):
            taken = app.submissions.submit_draft(job.id, {**given, "api": api})
            assert isinstance(taken, DraftRow), taken
            job = await carried(app, app.store.jobs.get(job.id))
        first = app.store.drafts.get(job.id, 1)
        assert first.verdict == "failed"
        assert job.state == "done", job.message
        entry = app.store.servers.get("quay")
        assert (entry.created_by, [tool.name for tool in entry.tools]) == (
            "client",
            ["find_longest"],
        )
        reply = await app.dispatch.call_tool(Call("quay", "find_longest", {}))
        assert isinstance(reply, Done)
        assert reply.outcome.structured == {"id": 4, "length": 12.5}
        assert here.asked[-1] == "GET /v1/berths"
        assert here.bookings == []

    with quay() as here:
        story(settings, here, told, OPENAI_BASE_URL="", OPENAI_MODEL="")


def test_a_task_that_names_a_tool_which_is_no_operation_goes_on_to_it(settings: Settings) -> None:
    async def told(app: App, author: Model) -> None:
        task = "the quay's berths, with the tools get_berths and find_longest"
        job = await order(app, here, task=task, author="client")
        claimed = json.dumps(claims(here))
        job = await carried(app, app.submissions.resubmit_order(job.id, claimed))
        assert job.state == "waiting"
        assert "find_longest" in job.message
        assert app.store.servers.get("quay").version == 1
        kept = [{"name": tool.name} for tool in app.store.servers.get("quay").tools]
        made = draft()
        made["tools"] = [*kept, *made["tools"]]
        taken = app.submissions.submit_draft(job.id, made)
        assert isinstance(taken, DraftRow), taken
        done = await carried(app, app.store.jobs.get(job.id))
        assert done.state == "done", done.message
        assert done.id == job.id
        names = {tool.name for tool in app.store.servers.get("quay").tools}
        assert names == {"find_longest", *(tool["name"] for tool in kept)}

    with quay() as here:
        story(settings, here, told, OPENAI_BASE_URL="", OPENAI_MODEL="")


def test_a_file_of_curl_commands_and_prose_needs_nobody(settings: Settings, tmp_path: Path) -> None:
    async def told(app: App, author: Model) -> None:
        text = (
            f"# Quay\n\nLists berths, whatever: that is prose.\n\n    curl {here.url}/v1/berths\n"
        )
        guide = tmp_path / "guide.md"
        guide.write_text(text)
        job = await order(app, here, source=str(guide), author="none")
        assert job.state == "done", job.message
        assert [tool.name for tool in app.store.servers.get("quay").tools] == ["get_berths"]
        assert author.asked == []

    with quay() as here:
        story(settings, here, told)


def test_what_is_no_api_is_not_read_by_anybody(settings: Settings, tmp_path: Path) -> None:
    async def told(app: App, author: Model) -> None:
        recipe = tmp_path / "recipe.md"
        recipe.write_text("# Pancakes\n\nWhisk 2 eggs with milk/cream.\n")
        job = await order(app, here, source=str(recipe))
        assert job.state == "failed"
        assert author.asked == []

    with quay() as here:
        story(settings, here, told)
