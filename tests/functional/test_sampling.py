"""A client that lets its own model be asked has servers written by it; one that is gone is told."""

from __future__ import annotations

import asyncio
import json
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import mcp.types as types
import pytest
from mcp import Client, MCPDeprecationWarning

from forge.drafts.brief import EXAMPLE
from orchestrator.app import App, open_app
from orchestrator.frontends.server import build_front_server
from orchestrator.settings import Settings, load_settings

SPECIFICATION = {key: EXAMPLE[key] for key in ("tools", "cases", "tests", "why")}
CODE = {key: EXAMPLE[key] for key in ("code", "why")}
Sampled = types.CreateMessageResult | types.ErrorData


class Sampler:
    """A client's model: writes well, or says what a test tells it."""

    def __init__(self, answer: Callable[[str], Sampled | None]) -> None:
        self.answer, self.prompts = answer, []  # type: ignore[var-annotated]

    async def __call__(self, context: Any, params: types.CreateMessageRequestParams) -> Any:
        content = params.messages[0].content
        assert isinstance(content, types.TextContent)
        self.prompts.append(content.text)
        told = self.answer(content.text)
        if told is None:
            await asyncio.Event().wait()
        return told


def message(value: Any) -> types.CreateMessageResult:
    content = types.TextContent(type="text", text=json.dumps(value))
    return types.CreateMessageResult(role="assistant", content=content, model="client-model")


def well(prompt: str) -> types.CreateMessageResult:
    if prompt.startswith("# Read a task"):
        return message({"claims": []})
    return message(SPECIFICATION if "no code yet" in prompt else CODE)


@pytest.fixture
def settings(tmp_path: Path, any_engine: str) -> Settings:
    given = {"TOOLWRIGHT_MODEL_SECONDS": "120"}
    return load_settings(given, home=tmp_path, engine=any_engine)


@asynccontextmanager
async def connected(
    settings: Settings, sampler: Sampler, mode: str
) -> AsyncIterator[tuple[App, Client]]:
    async with open_app(settings, "serve", patient=True) as app:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MCPDeprecationWarning)
            client = Client(build_front_server(app), mode=mode, sampling_callback=sampler)
            async with client:
                yield app, client


async def value(client: Client, called: str, /, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(called, arguments)
    told: dict[str, Any] = result.structured_content or {}
    return told


async def ignore(done: float, total: float | None, message: str | None) -> None:
    return None


async def forged(client: Client, **more: Any) -> dict[str, Any]:
    job = (await value(client, "forge", task="Roman numerals", source="none", **more))["job"]
    while True:
        told = await value(client, "status", job=job, wait=5)
        if told["state"] in ("done", "failed", "waiting"):
            return told


def story(
    settings: Settings,
    sampler: Sampler,
    told: Callable[[App, Client], Awaitable[None]],
    mode: str = "legacy",
) -> None:
    async def within() -> None:
        async with connected(settings, sampler, mode) as (app, client):
            await told(app, client)

    asyncio.run(within())


def test_a_client_that_declares_sampling_is_asked_and_its_server_registered(
    settings: Settings,
) -> None:
    sampler = Sampler(well)

    async def told(app: App, client: Client) -> None:
        job = await forged(client, name="roman")
        assert job["state"] == "done", job["message"]
        assert app.store.servers.get("roman").created_by == "sampling client-model"
        spent = app.store.model_usage.sum_for_server("roman")
        assert (spent.calls, spent.cost) == (3, 0.0)
        assert len(sampler.prompts) == 3
        assert "JSON Schema" in sampler.prompts[0]

    story(settings, sampler, told)


@pytest.mark.parametrize("mode", ["2026-07-28", "legacy"])
def test_a_client_of_the_present_era_or_that_writes_itself_is_not_asked(
    settings: Settings, mode: str
) -> None:
    sampler = Sampler(well)

    async def told(app: App, client: Client) -> None:
        by_hand = {} if mode != "legacy" else {"author": "client"}
        job = await forged(client, **by_hand)
        assert job["state"] == "waiting"
        assert sampler.prompts == []

    story(settings, sampler, told, mode)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (types.ErrorData(code=-1, message="User rejected sampling request"), "said no"),
        (message(["not", "an", "object"]), "no usable answer"),
    ],
)
def test_a_client_that_says_no_or_nothing_of_use_leaves_the_brief(
    settings: Settings, answer: Sampled, said: str
) -> None:
    async def told(app: App, client: Client) -> None:
        job = await forged(client)
        assert job["state"] == "waiting"
        assert said in job["message"]
        assert "# Done when" in job["result"]["brief"]

    story(settings, Sampler(lambda prompt: answer), told)


def test_a_client_that_goes_away_leaves_a_job_that_waits_with_its_brief(
    settings: Settings,
) -> None:
    async def told() -> None:
        asked = asyncio.Event()

        def silent(prompt: str) -> None:
            asked.set()

        async with connected(settings, Sampler(silent), "legacy") as (app, client):
            order = {"task": "Roman numerals", "source": "none"}
            # Who asks for progress is not kept waiting for the end.
            result = await client.call_tool("forge", order, progress_callback=ignore)
            begun = result.structured_content or {}
            await asked.wait()
        async with connected(settings, Sampler(silent), "2026-07-28") as (app, client):
            while (job := app.store.jobs.get(begun["job"])).state != "waiting":
                await app.pulse.wait_for_change()
            assert "# Done when" in job.result["brief"]
            assert app.store.model_usage.find(job.id)[0].state == "failed"

    asyncio.run(told())
