"""One forged server by itself: its tools listed flat, caged and gated as behind `serve`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from orchestrator import answers
from orchestrator.answers import Result
from orchestrator.app import App
from orchestrator.calls import Call, Done
from orchestrator.server import TOLD, serve_stdio
from sandbox.bundle import Bundle


async def serve_one(app: App, name: str) -> None:
    """Serve the registered server of that name until end of file. Raises Unknown."""
    bundle = app.forge.shelf.bundle(app.store.entry(name))

    async def call(tool: str, arguments: Mapping[str, Any], progress: object) -> Result:
        return await _called(app, Call(name, tool, arguments, session="run"))

    listed = [tool.listed(bundle.base_url) for tool in bundle.tools]
    await serve_stdio(listed, call, name, _instructions(bundle))


async def _called(app: App, call: Call) -> Result:
    """The tool's own result; what was not carried out is an error result that says why."""
    _, task = app.dispatch.start(call)
    try:
        reply = await asyncio.shield(task)
    except asyncio.CancelledError:
        task.cancel()
        raise
    except TOLD as error:
        return answers.refusal(str(error))
    result = answers.reply_result(reply)
    if isinstance(reply, Done):
        return result
    return {"isError": True, "content": result["content"]}


def _instructions(bundle: Bundle) -> str:
    return (
        f"{bundle.title}. Forged by Toolwright and run in its sandbox. A writing tool answers that "
        "a person has to approve the exact request; it is carried out after that."
    )
