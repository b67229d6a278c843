"""One registered server by itself: its tools listed flat, caged and gated as behind `serve`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from orchestrator import answers
from orchestrator.alone import Alone, declares
from orchestrator.app import App, open_app
from orchestrator.asker import Asker, Result
from orchestrator.calls import Call, Done, Reply
from orchestrator.control_process import ensure_control
from orchestrator.delivery import delivered
from orchestrator.errors import OrchestratorError
from orchestrator.flat import Card, serve_flat
from orchestrator.listing import flat
from orchestrator.readings import Readings
from orchestrator.settings import load_settings
from orchestrator.tasks import Tasks
from registry.errors import RegistryError
from sandbox.bundle import Bundle
from sandbox.errors import SandboxError

TOLD = (OrchestratorError, RegistryError, SandboxError)


async def serve_registered(name: str, engine: str | None, with_control: bool) -> None:
    """Serve the registered server of that name until end of file. Raises Unknown."""
    settings = load_settings(engine=engine)
    async with open_app(settings, "run", patient=True) as app:
        app.store.entry(name)
        if with_control:
            ensure_control(settings)
        await serve_one(app, name)


async def serve_one(app: App, name: str) -> None:
    """Serve the registered server of that name until end of file. Raises Unknown."""
    bundle = app.clearance.classified(app.forge.shelf.bundle(app.store.entry(name)))

    tasks = Tasks(app, shown, name)

    async def call(tool: str, arguments: Mapping[str, Any], asker: Asker) -> Result:
        asked = Call(name, tool, arguments, session="run", heard=asker.heard, logged=asker.logged)
        return await _called(app, asked, tasks if declares(asker) else None)

    listed = [flat(tool, bundle.base_url) for tool in bundle.tools]
    card = Card(bundle.name, str(bundle.version), bundle.title, _instructions(bundle))
    readings = Readings(app.dispatch, name)
    try:
        await serve_flat(card, listed, call, Alone(readings, tasks))
    finally:
        readings.leave()


async def _called(app: App, call: Call, tasks: Tasks | None) -> Result:
    """The result of a call, or, for a client that polls, a task where it takes longer than clients
    wait.
    """
    identity, task = app.dispatch.start(call)
    patience = app.settings.answer_seconds if tasks else None
    try:
        async with asyncio.timeout(patience):
            return shown(await asyncio.shield(task))
    except TimeoutError:
        begun = tasks.of_call(identity) if tasks else None
        return begun or shown(await task)
    except asyncio.CancelledError:
        task.cancel()
        raise
    except TOLD as error:
        return answers.refusal(str(error))


def shown(reply: Reply) -> Result:
    """The tool's own result; what was not carried out is an error result that says why."""
    if isinstance(reply, Done):
        meta = answers.reply_result(reply)["_meta"]
        return {**delivered(reply.outcome.result, reply.outcome.failure), "_meta": meta}
    return {"isError": True, "content": answers.reply_result(reply)["content"]}


def _origin(bundle: Bundle) -> str:
    if bundle.launch is None:
        return "Forged and run in its sandbox"
    return "Written by others, run without a cage" if bundle.launch.way == "process" else "Caged"


def _instructions(bundle: Bundle) -> str:
    return (
        f"{bundle.title}. {_origin(bundle)} by Toolwright. A writing tool answers that "
        "a person has to approve the exact request; it is carried out after that."
    )
