"""Whoever is to write a server may decline: the job ends, says why, and registers nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from forge.drafts.brief import EXAMPLE_CODE
from orchestrator.app import App
from orchestrator.settings import Settings, load_settings
from registry.errors import DraftRefused
from registry.models import Job
from tests.functional.test_authors import carried, forged, registered, story, writing
from tests.world.model import Model, purpose, said

REASON = "it would forge invoices\u202e"


@pytest.fixture
def settings(tmp_path: Path, component: object) -> Settings:
    return load_settings({}, home=tmp_path / "home", engine="wasm")


@pytest.mark.parametrize("at", ["specification", "code"])
def test_a_model_that_declines_ends_the_job_and_says_why(settings: Settings, at: str) -> None:
    async def told(app: App, here: Model) -> None:
        job = await forged(app)
        assert job.state == "failed"
        assert "openai m-1 declined: it would forge invoices\n" in job.message
        assert here.purposes()[-1] == at
        assert registered(app) == []
        assert app.store.jobs.get(job.id).needs is None

    good = writing(EXAMPLE_CODE)
    story(
        settings,
        lambda request: said({"decline": REASON}) if purpose(request) == at else good(request),
        told,
    )


async def _awaiting(app: App) -> Job:
    job = await carried(app, app.jobs.create_job("forge", {"task": "x", "author": "client"}))
    assert job.state == "waiting"
    return job


def test_a_client_declines_alone_and_once(settings: Settings) -> None:
    async def told(app: App, here: Model) -> None:
        job = await _awaiting(app)
        for given in ({"decline": ""}, {"decline": REASON, "code": "x = 1"}):
            problems = app.submissions.decline_job(job.id, given)
            assert isinstance(problems, tuple)
            assert [problem.where for problem in problems] == ["/decline"]
        assert app.store.jobs.get(job.id).state == "waiting"
        ended = app.submissions.decline_job(job.id, {"decline": REASON, "why": "so"})
        assert isinstance(ended, Job)
        assert (ended.state, ended.owner) == ("failed", app.process)
        assert "the client declined: it would forge invoices\n" in ended.message
        with pytest.raises(DraftRefused):
            app.submissions.decline_job(job.id, {"decline": REASON})
        with pytest.raises(DraftRefused):
            app.submissions.submit_draft(job.id, {"code": "x = 1"})
        assert here.asked == []

    story(settings, lambda request: said({}), told)
