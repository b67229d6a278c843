"""What one server by itself answers beside its tools: its prompts and resources, and tasks."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from orchestrator.asker import (
    INVALID_PARAMS,
    MODERN,
    UNDECLARED,
    Answer,
    Asker,
    Refusal,
    Result,
)
from orchestrator.readings import Readings
from orchestrator.tasks import CANCEL, EXTENSION, GET, REQUIRED, UPDATE, Tasks
from orchestrator.tasks import UNDECLARED as REASON
from registry.errors import Unknown


class Alone:
    """The `More` of `toolwright run`."""

    def __init__(self, readings: Readings, tasks: Tasks) -> None:
        self._readings, self._tasks = readings, tasks

    def capabilities(self, version: str) -> Mapping[str, Any]:
        offered: dict[str, Any] = {"extensions": {EXTENSION: {}}} if version == MODERN else {}
        return {**self._readings.capabilities(version), **offered}

    def answer(self, method: str, modern: bool) -> Answer | None:
        if modern and method in (GET, UPDATE, CANCEL):
            return partial(self._task, method)
        return self._readings.answer(method, modern)

    async def _task(self, method: str, params: Mapping[str, Any], asker: Asker) -> Result:
        if not declares(asker):
            raise Refusal(UNDECLARED, REASON, REQUIRED)
        try:
            return await self._tasks.answer(method, params.get("taskId"))
        except Unknown as error:
            unknown = f"Unknown task: {str(params.get('taskId'))[:100]}"
            raise Refusal(INVALID_PARAMS, unknown) from error


def declares(asker: Asker) -> bool:
    """Whether the client declared the tasks extension with its request."""
    extensions = asker.declared.get("extensions")
    return asker.modern and isinstance(extensions, Mapping) and EXTENSION in extensions
