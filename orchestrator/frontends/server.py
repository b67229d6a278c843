"""Toolwright as an MCP server: the low-level SDK server in front of the seven tools.

Loading the SDK costs 0.8 s of CPU and 65 MB. Over stdio it is loaded by name, and only for a client
that says something which `shortcut.py` does not answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import mcp.types as types
from mcp import MCPError
from mcp.server.lowlevel import Server

from orchestrator.app import App
from orchestrator.forging.order import FileAccess
from orchestrator.frontends.elicitation import Elicitation
from orchestrator.frontends.greeting import MODERN, NAME, VERSION
from orchestrator.frontends.instructions import load_instructions
from orchestrator.frontends.sampling import SamplingClients
from orchestrator.frontends.sdk_tasks import has_declared_tasks, register_tasks
from orchestrator.frontends.tasks import ClientTasks
from orchestrator.frontends.tool_front import ToolFront
from orchestrator.frontends.tools import TOOLS


class FrontServer(Server[Any]):
    """A server whose instructions are made when they are asked for."""

    def __init__(self, build_instructions: Callable[[], str], *given: Any, **named: Any) -> None:
        self._build_instructions = build_instructions
        super().__init__(*given, **named)

    @property
    def instructions(self) -> str | None:
        return self._build_instructions()

    @instructions.setter
    def instructions(self, instructions: str | None) -> None:
        """The base class sets those that it is given: none."""


def build_front_server(app: App, files: FileAccess = "") -> Server[Any]:
    """The seven tools; writes that wait are shown through clients that can ask their users. `files`
    are those of this machine that a client may name as sources: none where it may be on another.
    """
    elicitation = Elicitation(app.store.approvals, app.settings.answer_seconds)
    sampling = SamplingClients(app.authors.samplers, app.settings.of_model.seconds)
    front, tasks = ToolFront(app, files), ClientTasks(app)
    instructions = partial(load_instructions, app.settings, app.store, app.consents)
    return build_low_level_server(TOOLS, front, NAME, instructions, elicitation, tasks, sampling)


def _asks_for_progress(context: Any) -> bool:
    return (context.meta or {}).get("progress_token") is not None


def build_low_level_server(
    tools: Iterable[Mapping[str, Any]],
    front: ToolFront,
    name: str,
    instructions: Callable[[], str],
    elicitation: Elicitation | None = None,
    tasks: ClientTasks | None = None,
    sampling: SamplingClients | None = None,
) -> Server[Any]:
    """An MCP server of those tools in both protocol eras, for whatever carries it. Each client that
    connects is given the instructions as they are then. A forge is waited for, unless its client
    declared tasks or asked for progress: those follow the job.
    """
    listed = types.ListToolsResult(tools=[types.Tool.model_validate(tool) for tool in tools])
    names = {tool.name for tool in listed.tools}

    async def on_list_tools(context: Any, params: Any) -> Any:
        return listed

    async def on_call_tool(context: Any, params: types.CallToolRequestParams) -> Any:
        if params.name not in names:
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name}")
        asks = elicitation if params.name == "call_write" else None
        modern = context.protocol_version == MODERN
        progress = context.session.report_progress
        result = asks.read_answer(params) if asks and modern else None
        if result is None:
            result = await front.call_tool(params.name, params.arguments or {}, progress)
            result = await asks.show_request(context, result, modern) if asks else result
            if sampling and params.name == "forge":
                sampling.attach_client(context, result)
            if tasks and modern and has_declared_tasks(context):
                result = tasks.replace_handle(result)
            elif params.name == "forge" and not _asks_for_progress(context):
                result = await front.wait_for_forge(result)
        # A dict spares the SDK's models a round trip (0.1 ms); what they would add, it lacks.
        return {"resultType": "complete", **result} if modern else result

    server = FrontServer(
        instructions,
        name,
        version=VERSION,
        on_list_tools=on_list_tools,
        on_call_tool=on_call_tool,
    )
    # The SDK's tracing middleware costs 0.05 ms a call; the audit log holds what it would say.
    server.middleware.clear()
    if tasks is not None:
        register_tasks(server, tasks)
    return server
