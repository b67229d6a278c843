"""A forge whose engine is gone waits for it, loses nothing, and goes on when it is back."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from forge.drafts.brief import EXAMPLE_CODE
from orchestrator.app import App, open_app
from orchestrator.approvals.needs import check_allowable
from orchestrator.errors import OrchestratorError
from orchestrator.settings import Settings, load_settings
from registry.jobs.drafts import awaits_draft
from registry.jobs.jobs import awaits_answer
from registry.models import Job, JobKind
from registry.needs import EngineNeed
from sandbox.engines.wasm.component import LoadedComponent
from tests.crash.documents import OBJECT, described, reading
from tests.functional.test_authors import TASK, carried, writing
from tests.granted import allow
from tests.world.model import model

API = "https://api.example.com:443"


@pytest.fixture
def settings(tmp_path: Path, component: LoadedComponent) -> Settings:
    given = {"TOOLWRIGHT_VAULT_KEY_FILE": str(tmp_path / "vault.key")}
    return load_settings(given, home=tmp_path / "home", engine="wasm")


@asynccontextmanager
async def engineless(settings: Settings) -> AsyncIterator[App]:
    """A process that finds no component of the WASM engine."""
    async with open_app(replace(settings, cache=settings.home / "nothing"), "forge") as app:
        yield app


def resumed(app: App, job: Job) -> Job:
    taken = app.store.jobs.claim_waiting(job.id, app.process, time.time())
    assert taken is not None
    return taken


def test_what_a_model_wrote_waits_for_the_engine_and_is_not_asked_for_again(
    settings: Settings,
) -> None:
    async def told() -> None:
        with model(writing(EXAMPLE_CODE)) as here:
            given = {"OPENAI_BASE_URL": here.url, "OPENAI_MODEL": "m-1", "OPENAI_API_KEY": "k"}
            own = replace(settings, of_model=load_settings(given, home=settings.home).of_model)
            async with engineless(own) as app:
                job = await carried(
                    app, app.jobs.create_job("forge", {"task": TASK, "name": "roman"})
                )
                assert (job.state, job.owner) == ("waiting", "")
                assert isinstance(job.needs, EngineNeed)
                assert job.needs.missing == "component"
                assert f"toolwright jobs {job.id} --resume" in job.message
                assert here.purposes() == ["specification"]
                with pytest.raises(OrchestratorError):
                    check_allowable(job)
            async with open_app(own, "forge") as app:
                await app.jobs.run_job(resumed(app, job))
                done = app.store.jobs.get(job.id)
                assert done.state == "done", done.message
                assert [here.purposes().count(each) for each in ("specification", "code")] == [1, 1]

    asyncio.run(told())


@pytest.mark.parametrize(("kind", "choice"), [("forge", {}), ("do", {"tool": "none"})])
def test_a_description_is_compiled_once_the_engine_is_back(
    settings: Settings, kind: JobKind, choice: dict[str, str]
) -> None:
    document = described({"/a": reading(OBJECT)}, API).decode()

    async def told() -> None:
        async with engineless(settings) as app:
            allow(settings, app.store, API)
            order = {"task": "read a", "name": "here", "document": document}
            job = await carried(app, app.jobs.create_job(kind, {**order, **choice}))
            assert (job.state, job.owner, job.needs and job.needs.kind) == ("waiting", "", "engine")
            assert not awaits_draft(job)
            assert app.store.servers.find_summaries() == ()
        async with open_app(settings, "forge") as app:
            await app.jobs.run_job(resumed(app, job))
            ended = app.store.jobs.get(job.id)
            # A run that has its server asks whether the call is meant that fits its words.
            asks = awaits_answer(ended) and ended.result["question"]["kind"] == "confirm"
            assert asks if kind == "do" else ended.state == "done", ended.message
            assert [each.name for each in app.store.servers.find_summaries()] == ["here"]

    asyncio.run(told())
