"""Runs of tasks in words over two APIs: one question at a time, then the call and its answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.frontends.tool_front import ToolFront
from orchestrator.settings import Settings, load_settings
from orchestrator.views.jobs import build_job_result
from registry.errors import AnswerRefused
from registry.models import Job
from tests.functional.asking import UNSURE, Asking, asking
from tests.world.site import Site
from tests.world.zones import ZONES, build_page


@pytest.fixture
def settings(tmp_path: Path, any_engine: str) -> Settings:
    return load_settings(home=tmp_path, engine=any_engine)


async def ignore(done: float, total: float | None, message: str) -> None:
    return None


def get_question(job: Job) -> dict[str, Any]:
    """What a run asks; it has to ask something."""
    assert job.state == "waiting", (job.state, job.message, job.result)
    assert job.result["state"] == "asking"
    question: dict[str, Any] = job.result["question"]
    return question


def get_answer(job: Job) -> Any:
    """What the last step's API answered; the run has to be done."""
    assert job.state == "done", (job.state, job.message)
    assert job.result["state"] == "answered", job.result
    return job.result["answer"]["structuredContent"]["body"]


def test_words_that_fit_one_tool_are_confirmed_with_the_filled_call_and_then_done(
    settings: Settings, zones: Site, owners: Site
) -> None:
    async def story(here: Asking) -> None:
        asked = await here.do(UNSURE)
        question = get_question(asked)
        assert (question["kind"], question["shown"]["tool"]) == ("confirm", "zones.list_zones")
        assert zones.asked == []
        told = build_job_result(asked)
        assert told["structuredContent"]["answer_with"]["run"] == asked.id
        assert asked.id in told["content"][0]["text"]
        ended = await here.answer(asked, confirm=True)
        assert get_answer(ended) == ZONES
        assert zones.paths == ["/zones"]
        (step,) = ended.result["steps"]
        assert (step["state"], step["tool"]) == ("done", "zones.list_zones")

    asking(settings, zones, owners, story)


def test_a_missing_argument_is_asked_for_by_its_name(
    settings: Settings, zones: Site, owners: Site
) -> None:
    async def story(here: Asking) -> None:
        asked = await here.do("list the records of a zone", tool="zones.list_records")
        question = get_question(asked)
        assert question["kind"] == "arguments"
        assert [*question["shown"]["missing"]] == ["zone_id"]
        assert "zone_id" in question["text"]
        ended = await here.answer(asked, arguments={"zone_id": "z-4711"})
        assert get_answer_of_tool(ended) == [{"name": "www", "content": "192.0.2.1"}]
        assert zones.paths == ["/zones/z-4711/records"]

    asking(settings, zones, owners, story)


def get_answer_of_tool(job: Job) -> Any:
    assert job.state == "done", (job.state, job.message)
    return job.result["answer"]["structuredContent"]["body"]


def test_a_plan_passes_a_value_of_one_answer_to_the_next_call(
    settings: Settings, zones: Site, owners: Site
) -> None:
    async def story(here: Asking) -> None:
        asked = await here.do("list the zones, then list the records of the first one")
        assert get_question(asked)["kind"] == "plan"
        ended = await here.answer(asked, steps=PLAN)
        assert get_answer(ended) == [{"name": "www", "content": "192.0.2.1"}]
        assert zones.paths == ["/zones", "/zones/z-4711/records"]
        assert ended.result["strategy"] == "composed"

    asking(settings, zones, owners, story)


PLAN = [
    {"id": "s1", "task": "list the zones", "tool": "zones.list_zones"},
    {
        "id": "s2",
        "task": "list its records",
        "tool": "zones.list_records",
        "arguments": {"zone_id": {"$ref": "s1", "path": "$[0].id"}},
    },
]
CARRIED = [
    PLAN[0],
    {
        "id": "s2",
        "task": "find its owner",
        "tool": "owners.find_owner",
        "arguments": {"name": {"$ref": "s1", "path": "$[0].name"}},
    },
]
WRITTEN = [
    PLAN[0],
    {
        "id": "s2",
        "task": "create a record in it",
        "tool": "zones.create_record",
        "arguments": {
            "zone_id": {"$ref": "s1", "path": "$[0].id"},
            "body": {"name": "ftp", "content": "192.0.2.7"},
        },
    },
    {
        "id": "s3",
        "task": "list its records",
        "tool": "zones.list_records",
        "arguments": {"zone_id": {"$ref": "s1", "path": "$[0].id"}},
        "after": ["s2"],
    },
]
THREE = "list the zones, then create a record in the first one, then list its records"


def test_a_value_of_one_apis_answer_goes_to_another_only_after_it_was_shown(
    settings: Settings, zones: Site, owners: Site
) -> None:
    async def story(here: Asking) -> None:
        asked = await here.do("list the zones, then find the owner of the first one")
        shown = await here.answer(asked, steps=CARRIED)
        question = get_question(shown)
        assert question["kind"] == "confirm"
        assert question["shown"]["arguments"] == {"name": "example.org"}
        assert "zones" in question["shown"]["why"][0]
        assert owners.asked == []
        ended = await here.answer(shown, confirm=True)
        assert get_answer(ended)["name"] == "Ada"
        assert owners.paths == ["/owners?name=example.org"]

    asking(settings, zones, owners, story)


def test_a_flow_that_is_not_confirmed_sends_nothing(
    settings: Settings, zones: Site, owners: Site
) -> None:
    async def story(here: Asking) -> None:
        asked = await here.do("list the zones, then find the owner of the first one")
        shown = await here.answer(asked, steps=CARRIED)
        ended = await here.answer(shown, confirm=False)
        assert ended.result["state"] == "refused"
        assert owners.asked == []

    asking(settings, zones, owners, story)


def test_a_write_ends_the_run_and_its_approval_starts_the_rest(
    settings: Settings, zones: Site, owners: Site
) -> None:
    async def story(here: Asking) -> None:
        asked = await here.do(THREE)
        ended = await here.answer(asked, steps=WRITTEN)
        assert (ended.state, ended.result["state"]) == ("done", "pending"), ended.message
        assert zones.paths == ["/zones"]
        following = here.app.store.jobs.get(ended.result["next"])
        assert following.state == "waiting"
        written = await here.approve(ended.result["approval"])
        assert written.state == "done"
        # Whoever asks right after the decision is not told that it is waited for.
        told = await ToolFront(here.app).call_tool("status", {"job": following.id}, ignore)
        assert "waits for the decision" not in told["content"][0]["text"]
        rest = await here.app.jobs.complete(here.app.store.jobs.get(following.id))
        assert get_answer(rest) == [{"name": "www", "content": "192.0.2.1"}]
        methods = [(asked.method, asked.path) for asked in zones.asked]
        assert methods.count(("POST", "/zones/z-4711/records")) == 1
        assert methods.count(("GET", "/zones")) == 1
        assert [step["state"] for step in rest.result["steps"]] == ["done"] * 3

    asking(settings, zones, owners, story)


def test_what_was_to_follow_a_rejected_write_is_not_done(
    settings: Settings, zones: Site, owners: Site
) -> None:
    async def story(here: Asking) -> None:
        asked = await here.do(THREE)
        ended = await here.answer(asked, steps=WRITTEN)
        await here.approve(ended.result["approval"], approved=False)
        here.app.jobs.start_queued()
        rest = await here.app.jobs.complete(here.app.store.jobs.get(ended.result["next"]))
        assert rest.result["state"] == "refused"
        assert zones.paths == ["/zones"]

    asking(settings, zones, owners, story)


def test_independent_reads_are_made_and_answered_together(
    settings: Settings, zones: Site, owners: Site
) -> None:
    async def story(here: Asking) -> None:
        asked = await here.do(f"{UNSURE}; count the owners")
        steps = [PLAN[0], {"id": "s2", "task": "count the owners", "tool": "owners.count_owners"}]
        ended = await here.answer(asked, steps=steps)
        assert [step["state"] for step in ended.result["steps"]] == ["done", "done"]
        stages = [event.stage for event in ended.log]
        assert stages.count("execute") == 1
        assert (zones.paths, owners.paths) == (["/zones"], ["/count"])

    asking(settings, zones, owners, story)


def test_a_wrong_answer_is_refused_with_what_is_wrong_and_the_question_stays(
    settings: Settings, zones: Site, owners: Site
) -> None:
    async def story(here: Asking) -> None:
        asked = await here.do(UNSURE)
        refused = here.take(asked, confirm="yes")
        assert isinstance(refused, tuple)
        assert refused[0].where == "/answer/confirm"
        wrong = here.take(asked, confirm=True, arguments={"no_such": 1})
        assert isinstance(wrong, tuple)
        kept = here.app.store.jobs.get(asked.id)
        assert (kept.state, kept.result) == ("waiting", asked.result)
        assert get_answer(await here.answer(asked, confirm=True)) == ZONES

    asking(settings, zones, owners, story)


def test_an_answer_is_taken_once(settings: Settings, zones: Site, owners: Site) -> None:
    async def story(here: Asking) -> None:
        asked = await here.do(UNSURE)
        await here.answer(asked, confirm=True)
        with pytest.raises(AnswerRefused):
            here.take(asked, confirm=True)
        assert zones.paths == ["/zones"]

    asking(settings, zones, owners, story)


def test_none_of_the_candidates_leads_to_a_source_and_a_server(
    settings: Settings, zones: Site, owners: Site
) -> None:
    async def story(here: Asking) -> None:
        asked = await here.do(UNSURE)
        choice = await here.answer(asked, confirm=False)
        assert get_question(choice)["kind"] == "choose"
        source = await here.answer(choice, tool="none")
        assert "source" in get_question(source)["schema"]["properties"]
        ended = await here.answer(source, source="stop")
        assert ended.result["state"] == "refused"
        assert zones.asked == owners.asked == []
        assert len(here.app.store.servers.find_summaries()) == 2

    asking(settings, zones, owners, story)


def test_what_a_registered_api_has_by_now_becomes_its_servers_next_version(
    settings: Settings, zones: Site, owners: Site
) -> None:
    async def story(here: Asking) -> None:
        document = json.loads(zones.pages["/openapi.json"].body)  # type: ignore[union-attr]
        document["paths"]["/weather"] = {
            "get": {
                "operationId": "showWeather",
                "summary": "Show the weather in the machine room",
                "responses": {"200": {"description": "ok"}},
            }
        }
        zones.pages |= {
            "/openapi.json": build_page(document),
            "/weather": build_page({"celsius": 19}),
        }
        job = await here.do(f"show the weather in the machine room ({zones.url})")
        assert get_question(job)["shown"]["tool"] == "zones.show_weather"
        assert get_answer(await here.answer(job, confirm=True)) == {"celsius": 19}
        servers = {s.name: s.version for s in here.app.store.servers.find_summaries()}
        assert servers == {"zones": 2, "owners": 1}

    asking(settings, zones, owners, story)
