"""Runs of tasks in words: what they ask, and how they go on with the answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from orchestrator.app import App, open_app
from orchestrator.forging.order import ForgeOrder
from orchestrator.settings import Settings, load_settings
from orchestrator.views import build_job_result
from registry.models import Job
from tests.crash.documents import OBJECT, described, reading
from tests.granted import allow
from tests.world.site import Page, Site, site

JSON = (("Content-Type", "application/json"),)


def pages(schema: Mapping[str, Any], answer: Page) -> dict[str, Any]:
    operation = reading(schema, operationId="getThing", summary="Get the thing")
    return {"/openapi.json": Page(described({"/thing": operation})), "/thing": answer}


@pytest.fixture
def api() -> Iterator[Site]:
    with site(pages(OBJECT, Page(b'{"name": "oar"}', headers=JSON))) as here:
        yield here


@pytest.fixture
def settings(tmp_path: Path, any_engine: str) -> Settings:
    return load_settings(home=tmp_path, engine=any_engine)


@asynccontextmanager
async def forged(settings: Settings, api: Site) -> AsyncIterator[App]:
    async with open_app(settings, "do") as app:
        allow(settings, app.store, api.url)
        await app.forge.forge_server(ForgeOrder(source=api.url, name="things"), lambda step: None)
        api.asked.clear()
        yield app


def within(settings: Settings, api: Site, story: Callable[[App], Awaitable[None]]) -> None:
    async def told() -> None:
        async with forged(settings, api) as app:
            await story(app)

    asyncio.run(told())


async def run(app: App, **request: Any) -> Job:
    job = app.jobs.create_job("do", {"task": "get the thing", **request})
    return await app.jobs.complete(job)


async def answer(app: App, job: Job, **given: Any) -> Job:
    answer = {**job.result["answer_with"]["answer"], **given}
    taken = app.answering.take_answer(job.id, answer, "test")
    assert isinstance(taken, Job), taken
    return await app.jobs.complete(taken)


def test_words_that_fit_are_confirmed_with_the_filled_call(settings: Settings, api: Site) -> None:
    async def story(app: App) -> None:
        asked = await run(app)
        assert asked.state == "waiting", asked.message
        print(json.dumps(build_job_result(asked), indent=1))
        assert api.asked == []
        ended = await answer(app, asked)
        assert ended.state == "done", ended.message
        print(json.dumps(ended.result, indent=1))
        assert build_job_result(ended)["structuredContent"]["body"] == {"name": "oar"}

    within(settings, api, story)
