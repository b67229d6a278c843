"""The task run: an exact name acts, words propose, what fails is retried, repaired or escalated."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from forge.drafts.brief import EXAMPLE
from orchestrator.app import App, open_app
from orchestrator.approvals.rules import classify_operation
from orchestrator.calls import Call, Pending
from orchestrator.cli.terminal import WAITING
from orchestrator.forging.order import ForgeOrder
from orchestrator.frontends.overview import build_overview
from orchestrator.processes.control_client import spawn_command
from orchestrator.settings import Settings, load_settings
from orchestrator.views.jobs import build_job_result
from registry.jobs.drafts import awaits_draft
from registry.models import DraftRow, Job, Process
from tests.crash.documents import OBJECT, described, reading
from tests.functional.home import new_home
from tests.granted import allow
from tests.world.site import Page, Site, site

JSON = (("Content-Type", "application/json"),)
NUMBERS = {"type": "object", "properties": {"name": {"type": "integer"}}}


def pages(schema: Mapping[str, Any], answer: Page) -> dict[str, Any]:
    operation = reading(schema, operationId="getThing", summary="Get the thing")
    return {"/openapi.json": Page(described({"/thing": operation})), "/thing": answer}


@pytest.fixture
def api() -> Iterator[Site]:
    with site(pages(OBJECT, Page(b'{"name": "oar"}', headers=JSON))) as here:
        yield here


@pytest.fixture
def settings(tmp_path: Path, engine_name: str) -> Settings:
    return load_settings(home=tmp_path, engine=engine_name)


@asynccontextmanager
async def forged(settings: Settings, api: Site) -> AsyncIterator[App]:
    """A process with the API's server registered as `things`."""
    async with open_app(settings, "do") as app:
        allow(settings, app.store, api.url)
        await app.forge.forge_server(ForgeOrder(source=api.url, name="things"), lambda step: None)
        api.asked.clear()
        yield app


async def done(app: App, **request: Any) -> dict[str, Any]:
    """The result that a task run ends with."""
    job = app.jobs.create_job("do", {"task": "get the thing", **request})
    return build_job_result(await app.jobs.complete(job))


def within(settings: Settings, api: Site, story: Callable[[App], Awaitable[None]]) -> None:
    async def told() -> None:
        async with forged(settings, api) as app:
            await story(app)

    asyncio.run(told())


def test_words_that_say_more_than_a_tools_name_ask_and_its_name_acts(
    settings: Settings, api: Site
) -> None:
    async def story(app: App) -> None:
        asked = await done(app, task="get the old thing")
        assert asked["structuredContent"]["state"] == "asking"
        assert asked["structuredContent"]["question"]["shown"]["tool"] == "things.get_thing"
        assert api.asked == []
        acted = await done(app)
        assert acted["structuredContent"]["body"] == {"name": "oar"}
        named = await done(app, task="things.get_thing")
        assert named["structuredContent"] == acted["structuredContent"]
        chosen = await done(app, tool="things.get_thing")
        assert chosen["structuredContent"] == acted["structuredContent"]

    within(settings, api, story)


def test_nobody_else_reads_what_a_run_and_commands_leave_in_a_home_that_others_may_enter(
    settings: Settings, api: Site
) -> None:
    settings.home.chmod(0o755)

    async def story(app: App) -> None:
        acted = await done(app, task="things.get_thing")
        assert acted["structuredContent"]["body"] == {"name": "oar"}
        with spawn_command(settings, "doctor") as command:
            command.wait()
        names = [path.name for path in settings.home.iterdir() if path.stat().st_mode & 0o077]
        # What these hold is told to every client.
        assert {*names} <= {"instructions.json", "reserve"}
        assert {"checkpoints.db", "doctor.log"} <= {*map(str, os.listdir(settings.home))}

    within(settings, api, story)


def test_what_a_person_says_writes_is_asked_about_under_every_name(
    settings: Settings, api: Site
) -> None:
    async def story(app: App) -> None:
        bundle = app.forge.shelf.load_bundle(app.store.servers.get("things"))
        said = app.store.classifications
        assert classify_operation(said, bundle, "get_thing", "write", None, time.time())
        order = ForgeOrder(source=api.url, name="others", no_probe=True)
        await app.forge.forge_server(order, lambda step: None)
        api.asked.clear()
        reply = await app.dispatch.call_tool(Call("others", "get_thing"))
        assert isinstance(reply, Pending)
        assert api.asked == []
        bundle = app.forge.shelf.load_bundle(app.store.servers.get("others"))
        assert not classify_operation(said, bundle, "get_thing", "read", None, time.time())

    within(settings, api, story)


def test_what_no_server_can_do_is_forged_when_the_client_says_none_and_done(
    settings: Settings, api: Site
) -> None:
    async def story() -> None:
        async with open_app(settings, "do") as app:
            allow(settings, app.store, api.url)
            asked = await done(app)
            assert "source" in asked["structuredContent"]["question"]["schema"]["properties"]
            assert api.asked == []
            made = await done(app, tool="none", source=api.url)
            assert made["structuredContent"]["body"] == {"name": "oar"}

    asyncio.run(story())


def test_a_task_that_only_computes_waits_as_a_forge_does_and_goes_on_with_its_draft(
    settings: Settings,
) -> None:
    words = {"task": "Convert Roman numerals"}

    async def story() -> None:
        async with open_app(settings, "do") as app:
            waiting = await app.jobs.complete(app.jobs.create_job("do", {**words, "tool": "none"}))
            assert awaits_draft(waiting), waiting.message
            forging = await app.jobs.complete(app.jobs.create_job("forge", words))
            assert waiting.message == forging.message
            brief = waiting.result["brief"]
            assert brief.replace(waiting.id, forging.id) == forging.result["brief"]
            assert waiting.id in json.dumps(build_overview(app)["jobs"])
            assert brief in build_job_result(waiting)["content"][0]["text"]
        async with open_app(settings, "submit") as app:
            assert isinstance(app.submissions.submit_draft(waiting.id, EXAMPLE), DraftRow)
            asked = await app.jobs.complete(waiting)
            assert (asked.kind, asked.state) == ("do", "waiting"), asked.message
            question = asked.result["question"]
            (server,) = app.store.servers.find_summaries()
            assert question["shown"]["tool"] == f"{server.name}.from_roman"
            answer = {"question": question["id"], "arguments": {"numeral": "XIV"}}
            assert isinstance(app.answering.take_answer(asked.id, answer, "test"), Job)
            read = build_job_result(await app.jobs.complete(asked))
            assert read["structuredContent"] == {"number": 14}

    asyncio.run(story())


def test_who_was_to_write_it_may_decline_a_task_run(settings: Settings) -> None:
    async def story() -> None:
        async with open_app(settings, "do") as app:
            job = app.jobs.create_job("do", {"task": "Convert Roman numerals", "tool": "none"})
            await app.jobs.complete(job)
            ended = app.submissions.decline_job(job.id, {"decline": "not worth it"})
            assert isinstance(ended, Job)
            assert ended.state == "failed"
            assert "not worth it" in ended.message

    asyncio.run(story())


def test_a_task_run_waits_on_the_terminal_with_the_ways_to_go_on(
    tmp_path: Path, engine_name: str
) -> None:
    with new_home(tmp_path, engine_name) as home:
        waits = home.run("do", "Convert Roman numerals", "--tool", "none")
        assert waits.returncode == WAITING, waits.stderr
        (job,) = home.read("jobs")
        assert (job["kind"], job["state"], job["stage"]) == ("do", "waiting", "draft")
        assert f"toolwright jobs {job['job']} --brief" in waits.stdout
        draft = tmp_path / "draft.json"
        draft.write_text(json.dumps(EXAMPLE))
        goes_on = home.run("submit", job["job"], str(draft))
        assert goes_on.returncode == WAITING, goes_on.stderr
        assert "needs its numeral" in goes_on.stdout
        command = f"toolwright do --run {job['job']} --answer"
        assert command in goes_on.stdout
        (waits,) = home.read("jobs")
        answer = {"question": waits["needs"]["question"], "arguments": {"numeral": "XIV"}}
        ended = home.run("do", "--run", job["job"], "--answer", json.dumps(answer))
        assert ended.returncode == 0, ended.stderr
        assert "14" in ended.stdout


def test_an_answer_that_broke_off_is_tried_three_times_and_then_escalated(
    settings: Settings, api: Site
) -> None:
    async def story(app: App) -> None:
        endless = (("Content-Type", "application/json"), ("Content-Length", "50"))
        api.pages["/thing"] = Page(headers=endless, chunks=lambda: iter([b'{"name":']))
        failed = await done(app, tool="things.get_thing")
        assert failed["isError"]
        assert api.paths.count("/thing") == 3
        assert "after 3 attempts" in failed["content"][-1]["text"]

    within(settings, api, story)


def test_an_api_that_moved_with_its_description_is_repaired_by_forging_it_again(
    settings: Settings, api: Site
) -> None:
    async def story(app: App) -> None:
        moved = reading(OBJECT, operationId="getThing", summary="Get the thing")
        gone = Page(b'{"error": "gone"}', status=410, headers=JSON)
        answer = Page(b'{"name": "oar"}', headers=JSON)
        described_anew = Page(described({"/things/one": moved}))
        api.pages.update({"/openapi.json": described_anew, "/thing": gone, "/things/one": answer})
        mended = await done(app, tool="things.get_thing")
        assert mended["structuredContent"]["body"] == {"name": "oar"}
        assert app.store.servers.get("things").version == 2
        (repair,) = [job for job in app.store.jobs.find() if job.kind == "repair"]
        assert (repair.state, repair.request["server"]) == ("done", "things")

    within(settings, api, story)


def test_an_api_that_moved_without_a_word_is_escalated(settings: Settings, api: Site) -> None:
    async def story(app: App) -> None:
        api.pages["/thing"] = Page(b'{"error": "gone"}', status=410, headers=JSON)
        failed = await done(app, tool="things.get_thing")
        assert failed["isError"]
        assert "a person should look at it" in failed["content"][-1]["text"]
        assert app.store.servers.get("things").version == 1
        assert [job.kind for job in app.store.jobs.find()] == ["do"]

    within(settings, api, story)


def test_an_answer_that_differs_from_its_description_is_the_answer(
    settings: Settings, api: Site
) -> None:
    async def story(app: App) -> None:
        api.pages["/thing"] = Page(b'{"name": 7}', headers=JSON)
        given = await done(app, tool="things.get_thing")
        assert not given.get("isError")
        assert json.loads(given["content"][0]["text"]) == {"name": 7}
        assert app.store.servers.get("things").version == 1

    within(settings, api, story)


def test_the_run_of_a_dead_process_is_carried_on_by_the_next(settings: Settings, api: Site) -> None:
    async def begin(app: App) -> None:
        job = app.jobs.create_job("do", {"task": "get the thing", "tool": "things.get_thing"})
        app.store.processes.register(Process("dead", os.getpid(), 1.0, "serve", 1.0, 1.0))
        assert app.store.jobs.claim(job.id, "dead", time.time()) is not None

    within(settings, api, begin)

    async def carry_on() -> None:
        async with open_app(settings, "serve", patient=True) as app:
            async for _ in app.watch_changes(120):
                (job,) = app.store.jobs.find()
                if job.state == "done":
                    break
            assert job.attempt == 2
            assert build_job_result(job)["structuredContent"]["body"] == {"name": "oar"}

    asyncio.run(carry_on())
