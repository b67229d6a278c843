"""The tasks extension on the SDK's server (`orchestrator.tasks`)."""

from __future__ import annotations

from functools import partial
from typing import Any

import mcp.types as types
from mcp import MCPError
from mcp.server.lowlevel import Server

from orchestrator.answers import Result
from orchestrator.tasks import CANCEL, EXTENSION, GET, REQUIRED, UNDECLARED, UPDATE, Tasks
from registry.errors import Unknown

MODERN = "2026-07-28"


class TaskParams(types.RequestParams):
    task_id: str


def offer(server: Server[Any], tasks: Tasks) -> None:
    """Let the server declare the extension and answer its methods."""
    server.extensions[EXTENSION] = {}
    for method in (GET, UPDATE, CANCEL):
        server.add_request_handler(method, TaskParams, partial(_answered, tasks, method))


def declares(context: Any) -> bool:
    """Whether the client of a request declared the extension with it."""
    if context.protocol_version != MODERN:
        return False
    declared = context.session.client_capabilities
    return declared is not None and EXTENSION in (declared.extensions or {})


async def _answered(tasks: Tasks, method: str, context: Any, params: TaskParams) -> Result:
    """Raises MCPError."""
    if context.protocol_version != MODERN:
        raise MCPError(types.METHOD_NOT_FOUND, "Method not found")
    if not declares(context):
        raise MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, UNDECLARED, dict(REQUIRED))
    try:
        return await tasks.answer(method, params.task_id)
    except Unknown as error:
        unknown = f"Unknown task: {params.task_id[:100]}"
        raise MCPError(types.INVALID_PARAMS, unknown) from error
