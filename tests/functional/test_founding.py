"""The tools that the founding description names, each from one sentence: made, called, answered."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from orchestrator.app import App, open_app
from orchestrator.settings import load_settings
from orchestrator.views.jobs import build_job_result
from registry.models import Job
from tests.granted import allow, person
from tests.world.site import Page, site

EXAMPLES = Path(__file__).parents[2] / "examples"
JSON = (("Content-Type", "application/json"),)
FOUNDING = json.loads((EXAMPLES / "founding.json").read_text())
APIS = [each for each in FOUNDING if "requests" in each]


def load_pages(example: str) -> dict[str, Any]:
    """The stand-in of an API: its description, and what it answers to each request."""
    folder = EXAMPLES / example
    answers = json.loads((folder / "answers.json").read_text())
    pages: dict[str, Any] = {
        path: Page(json.dumps(answer).encode(), headers=JSON) for path, answer in answers.items()
    }
    return {"/openapi.json": Page((folder / "openapi.json").read_bytes(), headers=JSON), **pages}


async def answer_questions(app: App, job: Job) -> tuple[Job, int]:
    """A run to its end: a person says yes to a filled call, and takes the first candidate."""
    asked = 0
    while job.state == "waiting" and asked < 3:
        taken = app.answering.take_answer(job.id, job.result["answer_with"]["answer"], "test")
        assert isinstance(taken, Job), taken
        job, asked = await app.jobs.complete(taken), asked + 1
    return job, asked


@pytest.mark.parametrize("told", APIS, ids=[each["example"] for each in APIS])
def test_a_sentence_makes_the_tool_and_is_answered(
    tmp_path: Path, any_engine: str, told: Mapping[str, Any]
) -> None:
    async def story() -> None:
        settings = load_settings(home=tmp_path, engine=any_engine)
        person(settings.pin)
        with site(load_pages(told["example"])) as api:
            async with open_app(settings, "do") as app:
                allow(settings, app.store, api.url)
                request = {"task": told["task"], "source": api.url}
                job = await app.jobs.complete(app.jobs.create_job("do", request))
                ended, asked = await answer_questions(app, job)
                assert ended.state == "done", ended.message
                text = json.dumps(build_job_result(ended))
                assert [word for word in told["holds"] if word not in text] == []
                assert set(told["requests"]) <= set(api.paths)
                assert asked <= 1
                assert len(app.store.servers.find()) == 1

    asyncio.run(story())


def test_the_examples_of_all_eight_are_there() -> None:
    folders = [EXAMPLES / each["example"] for each in FOUNDING]
    made = [(f / "openapi.json").exists() or (f / "draft.json").exists() for f in folders]
    assert (len(made), all(made)) == (8, True)
