"""`do` with an endpoint: a task's words become arguments, and never a write by themselves."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from orchestrator.app import App, open_app
from orchestrator.approvals.rules import RuleRequest, create_rule
from orchestrator.calls import Call, Done, Pending
from orchestrator.forging.order import ForgeOrder
from orchestrator.settings import load_settings
from orchestrator.views.jobs import build_job_result
from tests.crash.documents import OBJECT, described, reading
from tests.granted import allow, person
from tests.world.model import Said, model, said
from tests.world.site import Page, Site, site

JSON = (("Content-Type", "application/json"),)
NAME = {"name": "name", "in": "query", "required": True, "schema": {"type": "string"}}
BODY = {"required": True, "content": {"application/json": {"schema": OBJECT}}}


def pages() -> dict[str, Any]:
    get = reading(OBJECT, operationId="getThing", summary="Get a thing", parameters=[NAME])
    post = reading(OBJECT, operationId="addThing", summary="Add a thing", requestBody=BODY)
    both = {"get": get["get"], "post": post["get"]}
    return {
        "/openapi.json": Page(described({"/thing": both})),
        "/thing?name=oar": Page(b'{"name": "oar"}', headers=JSON),
    }


async def done(app: App, **request: Any) -> dict[str, Any]:
    job = app.jobs.create_job("do", request)
    claimed = app.store.jobs.claim(job.id, app.process, time.time())
    assert claimed is not None
    await app.jobs.run_job(claimed)
    ended = app.store.jobs.get(job.id)
    assert ended.state == "done", ended.message
    return build_job_result(ended)


def answer(request: Mapping[str, Any]) -> Said:
    prompt = request["messages"][-1]["content"]
    if "add_thing" in prompt:
        return said({"arguments": {"body": {"name": "oar"}}})
    if "nameless" in prompt:
        return said({"arguments": {}, "missing": ["name"]})
    return said({"arguments": {"name": "oar"}})


async def story(app: App, api: Site) -> None:
    await app.forge.forge_server(ForgeOrder(source=api.url, name="things"), lambda step: None)
    api.asked.clear()
    read = await done(app, task="the thing called oar", tool="things.get_thing")
    assert read["structuredContent"]["body"] == {"name": "oar"}
    nameless = {"task": "something nameless", "tool": "things.get_thing"}
    asked = await app.jobs.complete(app.jobs.create_job("do", nameless))
    assert [*asked.result["question"]["shown"]["missing"]] == ["name"]
    assert api.paths == ["/thing?name=oar"]
    write = {"task": "add an oar", "tool": "things.add_thing"}
    pending = (await done(app, **write))["structuredContent"]
    assert (pending["state"], pending["request"]["method"]) == ("pending", "POST")
    approval = app.store.approvals.get(pending["approval"])
    assert "read out of the task by m-1" in approval.reason
    signer = person(app.settings.pin)
    app.store.rules.add(create_rule(app.store, approval, RuleRequest(), signer, "ann", time.time()))
    call = Call("things", "add_thing", {"body": {"name": "oar"}})
    assert isinstance(await app.dispatch.call_tool(call), Done)
    again = await app.dispatch.call_tool(
        Call("things", "add_thing", call.arguments, read_by="m-1"), "by-words"
    )
    assert isinstance(again, Pending)


def test_a_read_runs_on_what_a_task_says_and_a_write_waits_whatever_rule_allows_it(
    tmp_path: Path, any_engine: str
) -> None:
    async def told() -> None:
        with site(pages()) as api, model(answer) as here:
            given = {"OPENAI_BASE_URL": here.url, "OPENAI_API_KEY": "k", "OPENAI_MODEL": "m-1"}
            given["TOOLWRIGHT_VAULT_KEY_FILE"] = str(tmp_path / "vault.key")
            settings = load_settings(given, home=tmp_path / "home", engine=any_engine)
            person(settings.pin)
            async with open_app(settings, "do") as app:
                allow(settings, app.store, api.url)
                await story(app, api)

    asyncio.run(told())
