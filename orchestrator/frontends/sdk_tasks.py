"""MCP's tasks extension on the SDK's server."""

from __future__ import annotations

from functools import partial
from typing import Any

import mcp.types as types
from mcp import MCPError
from mcp.server.lowlevel import Server

from orchestrator.frontends.greeting import EXTENSION, MODERN
from orchestrator.frontends.tasks import CANCEL, GET, REQUIRED, UNDECLARED, UPDATE, ClientTasks
from orchestrator.views.results import Result
from registry.errors import RowNotFound


class TaskParams(types.RequestParams):
    task_id: str


def register_tasks(server: Server[Any], tasks: ClientTasks) -> None:
    """Let the server declare the extension and answer its methods."""
    server.extensions[EXTENSION] = {}
    for method in (GET, UPDATE, CANCEL):
        server.add_request_handler(method, TaskParams, partial(_answer_task_request, tasks, method))


def has_declared_tasks(context: Any) -> bool:
    """Whether the client of a request declared the extension with it."""
    if context.protocol_version != MODERN:
        return False
    declared = context.session.client_capabilities
    return declared is not None and EXTENSION in (declared.extensions or {})


async def _answer_task_request(
    tasks: ClientTasks, method: str, context: Any, params: TaskParams
) -> Result:
    """Raises MCPError."""
    if context.protocol_version != MODERN:
        raise MCPError(types.METHOD_NOT_FOUND, "Method not found")
    if not has_declared_tasks(context):
        raise MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, UNDECLARED, dict(REQUIRED))
    try:
        return await tasks.answer_request(method, params.task_id)
    except RowNotFound as error:
        unknown = f"Unknown task: {params.task_id[:100]}"
        raise MCPError(types.INVALID_PARAMS, unknown) from error
