"""The examples of the brief go through the real loop as they stand, each in one hand-in."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from forge.drafts.examples import (
    COMPOSITE_EXAMPLE,
    COMPOSITE_TASK,
    EXAMPLE,
    EXAMPLE_TASK,
    HTTP_EXAMPLE,
    HTTP_TASK,
)
from orchestrator.app import App, open_app
from orchestrator.approvals.granting import add_grant, allow_host
from orchestrator.settings import load_settings
from registry.models import DraftRow, Job
from tests.functional.test_authors import carried
from tests.granted import person

Draft = Mapping[str, Any]
SHOWN_KEY = "9f8a7c6b5d4e"
SHOWN_CALL = f"curl https://api.harbour.example/z -H 'Authorization: Bearer {SHOWN_KEY}'"


async def hand_in(app: App, task: str, name: str, *drafts: Draft, source: str = "none") -> Job:
    """The job when the last of the drafts is judged."""
    request = {"task": task, "name": name, "source": source, "files": "typed", "author": "client"}
    job = await carried(app, app.jobs.create_job("forge", request))
    assert job.state == "waiting", job.message
    for draft in drafts:
        taken = app.submissions.submit_draft(job.id, draft)
        assert isinstance(taken, DraftRow), taken
        job = await carried(app, app.store.jobs.get(job.id))
    return job


def changed(example: Mapping[str, Any], old: str, new: str) -> dict[str, Any]:
    """The example with another text wherever the old one stands."""
    return dict(json.loads(json.dumps(example).replace(old, new)))


@dataclass
class Story:
    """The jobs by kind, and what their first drafts were told."""

    jobs: dict[str, Job] = field(default_factory=dict)
    told: dict[str, str] = field(default_factory=dict)

    async def follow(self, app: App, kind: str, task: str, name: str, *drafts: Draft) -> None:
        self.jobs[kind] = await hand_in(app, task, name, *drafts)
        first = app.store.drafts.find(self.jobs[kind].id)[0]
        self.told[kind] = json.dumps(first.diagnosis)


@pytest.fixture(scope="module")
def story(any_engine: str, tmp_path_factory: pytest.TempPathFactory) -> Story:
    home: Path = tmp_path_factory.mktemp("examples")
    seen = Story()

    async def run() -> None:
        key = {"TOOLWRIGHT_VAULT_KEY_FILE": str(home / "vault.key")}
        settings = load_settings(key, home=home / "h", engine=any_engine)
        signer = person(settings.pin)
        async with open_app(settings, "forge") as app:
            grants = app.store.grants
            allow_host(grants, "api.harbour.example:443", "test", signer)
            add_grant(grants, "sums call:roman.from_roman", "permission", "test", signer)
            await seen.follow(app, "compute", EXAMPLE_TASK, "roman", EXAMPLE)
            misnamed = changed(COMPOSITE_EXAMPLE, '{"numeral": "II"}', '{"roman": "II"}')
            drafts = (misnamed, COMPOSITE_EXAMPLE)
            await seen.follow(app, "composite", COMPOSITE_TASK, "sums", *drafts)
            lying = changed(HTTP_EXAMPLE, "409 when the berth is taken", "423 when it is locked")
            await seen.follow(app, "http", HTTP_TASK, "harbour", lying, HTTP_EXAMPLE)
            page = home / "api.md"
            page.write_text(f"{HTTP_TASK}\n\n    {SHOWN_CALL}\n")
            keyed = {**HTTP_EXAMPLE, "code": f'KEY = "{SHOWN_KEY}"\n{HTTP_EXAMPLE["code"]}'}
            job = await hand_in(app, "Book a berth", "keyed", keyed, source=str(page))
            seen.jobs["keyed"] = job
            seen.told["keyed"] = json.dumps(app.store.drafts.find(job.id)[0].diagnosis)

    asyncio.run(run())
    return seen


@pytest.mark.parametrize("kind", ["compute", "http", "composite"])
def test_each_example_is_registered_as_it_stands(story: Story, kind: str) -> None:
    assert story.jobs[kind].state == "done", story.jobs[kind].message


def test_an_answer_that_the_called_tool_would_not_take_is_told_with_its_place(
    story: Story,
) -> None:
    assert "/cases/0/answers/1" in story.told["composite"]
    assert "roman.from_roman does not take these arguments" in story.told["composite"]


def test_a_claim_about_the_api_that_its_text_does_not_say_fails_the_draft(story: Story) -> None:
    assert "/api/operations/1" in story.told["http"]
    assert "has no quotation from the text" in story.told["http"]


def test_a_credential_that_the_documentation_shows_stands_in_no_code(story: Story) -> None:
    assert story.jobs["keyed"].state == "waiting"
    assert "a credential that the task or its documentation shows" in story.told["keyed"]
    assert '"/code"' in story.told["keyed"]
    assert SHOWN_KEY not in story.told["keyed"]
