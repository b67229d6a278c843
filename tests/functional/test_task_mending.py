"""What a run does beyond its plan: another tool after a failure, several servers, known steps,
bounds.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.app import open_app
from orchestrator.forging.order import extract_order
from orchestrator.settings import Settings, load_settings
from orchestrator.tasks.run.state import MAX_CALLS, MAX_TOKENS
from registry.models import Job
from tests.functional.asking import UNSURE, Asking, asking
from tests.functional.test_task_questions import PLAN, get_answer, get_question
from tests.granted import allow
from tests.world.model import Said, model, said
from tests.world.site import Page, Site
from tests.world.zones import JSON, ZONES, build_page, zones_api

RECORDS = [{"name": "www", "content": "192.0.2.1"}]
EACH = [
    PLAN[0],
    {
        "id": "s2",
        "task": "list the records of each",
        "tool": "zones.list_records",
        "arguments": {"zone_id": {"$ref": "s1", "path": "$[*].id"}},
        "each": True,
    },
]


@pytest.fixture
def settings(tmp_path: Path, component: object) -> Settings:
    return load_settings(home=tmp_path, engine="wasm")


def test_a_read_whose_server_is_broken_is_asked_of_another_once(
    settings: Settings, zones: Site
) -> None:
    endless = (*JSON, ("Content-Length", "50"))
    broken = Page(headers=endless, chunks=lambda: iter([b'[{"id":']))

    async def story(here: Asking) -> None:
        zones.pages["/zones"] = broken
        asked = await here.do(UNSURE)
        question = get_question(asked)
        if question["kind"] == "confirm":
            asked = await here.answer(asked, confirm=False)
        tried = await here.answer(asked, tool="zones.list_zones")
        question = get_question(tried)
        assert (question["kind"], "zones.list_zones failed" in question["text"]) == ("choose", True)
        offered = question["schema"]["properties"]["tool"]["enum"]
        assert "owners.list_zones" in offered
        assert "zones.list_zones" not in offered
        here.owners.pages["/zones"] = broken
        ended = await here.answer(tried, tool="owners.list_zones")
        assert (ended.state, ended.result["state"]) == ("done", "called")
        assert "given_up" in ended.result
        assert zones.paths.count("/zones") == 3

    with zones_api() as twin:
        asking(settings, zones, twin, story)


def test_steps_that_a_run_did_before_are_proposed_again_with_their_tools(
    settings: Settings, zones: Site, owners: Site
) -> None:
    words = "list the zones, then list the records of the first one"

    async def story(here: Asking) -> None:
        first = await here.do(words)
        assert all("tool" not in step for step in get_question(first)["shown"]["steps"])
        assert get_answer(await here.answer(first, steps=PLAN)) == RECORDS
        again = await here.do(words, session="another")
        shown = get_question(again)["shown"]["steps"]
        assert [step["tool"] for step in shown] == ["zones.list_zones", "zones.list_records"]
        assert shown[1]["arguments"] == PLAN[1]["arguments"]
        other = await here.do("list the zones, then count the owners")
        assert all("tool" not in step for step in get_question(other)["shown"]["steps"])
        ended = await here.answer(again, accept=True)
        assert (get_answer(ended), ended.result["strategy"]) == (RECORDS, "known")

    asking(settings, zones, owners, story)


def test_one_call_is_made_for_each_value_and_no_more_than_a_run_may(
    settings: Settings, zones: Site, owners: Site
) -> None:
    words = "list the zones, then list the records of each"

    async def story(here: Asking) -> None:
        ended = await here.answer(await here.do(words), steps=EACH)
        assert get_answer(ended) == [RECORDS, RECORDS]
        assert sorted(zones.paths[1:]) == [f"/zones/{zone['id']}/records" for zone in ZONES][::-1]
        zones.asked.clear()
        zones.pages["/zones"] = build_page([ZONES[0]] * MAX_CALLS)
        ended = await here.answer(await here.do(words), steps=EACH)
        assert ended.result["state"] == "refused"
        assert str(MAX_CALLS) in ended.result["reason"]
        assert zones.paths == ["/zones"]

    asking(settings, zones, owners, story)


def test_a_run_that_spent_its_tokens_asks_no_model_more_but_whoever_asked(
    tmp_path: Path, component: object, zones: Site, owners: Site
) -> None:
    steps = [{"id": "s1", "task": UNSURE}, {"id": "s2", "task": "count the owners"}]

    def spend(request: Any) -> Said:
        tokens = {"prompt_tokens": MAX_TOKENS, "completion_tokens": 1}
        planned = said({"steps": [{**step, "tool": "", "after": []} for step in steps]})
        return replace(planned, usage=tokens)

    with model(spend) as endpoint:
        told = {"OPENAI_BASE_URL": endpoint.url, "OPENAI_API_KEY": "k", "OPENAI_MODEL": "m-1"}

        async def story(here: Asking) -> None:
            asked = await here.do(f"{UNSURE}; count the owners")
            assert get_question(asked)["step"] == "s1"
            assert endpoint.purposes() == ["plan"]

        asking(load_settings(told, home=tmp_path, engine="wasm"), zones, owners, story)


def test_two_steps_that_nothing_does_have_a_server_made_each(
    settings: Settings, zones: Site, owners: Site
) -> None:
    async def told() -> Job:
        async with open_app(settings, "do") as app:
            for site in (zones, owners):
                allow(settings, app.store, site.url)
            here = Asking(app, settings, zones, owners)
            words = "list the zones; count the owners"
            job = await here.do(words)
            for _ in range(8):
                if job.state != "waiting":
                    break
                job = await here.answer(job, **reply(get_question(job)))
            assert len(app.store.servers.find_summaries()) == 2
            kept = app.store.jobs.get(job.id).request
            # What is written for a step is held to the step's words; the run keeps its own.
            assert (kept["task"], "source" in kept) == (words, False)
            assert extract_order(kept)["task"] == "count the owners"
            return job

    def reply(question: dict[str, Any]) -> dict[str, Any]:
        if question["kind"] == "plan":
            return {"accept": True}
        if "source" in question["schema"]["properties"]:
            about_zones = "zones" in question["shown"]["task"]
            return {"source": zones.url if about_zones else owners.url}
        if question["kind"] == "choose":
            listed = [c["tool"] for c in question["shown"]["candidates"]]
            wanted = "list_zones" if "zones" in question["shown"]["task"] else "count_owners"
            return {"tool": next((t for t in listed if t.endswith(wanted)), "none")}
        return {"confirm": True}

    ended = asyncio.run(told())
    assert ended.state == "done", ended.message
    assert [step["state"] for step in ended.result["steps"]] == ["done", "done"]
    assert len(ended.result["forged"]) == 2
