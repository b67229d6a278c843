"""Arguments that a task does not say: from a person's defaults, memory, and the schema itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from orchestrator.tasks.model import ValueOrigin
from orchestrator.tasks.reading.assignment import Assignment
from orchestrator.tasks.reading.parameters import ToolParameter
from sandbox.schemas.validator import get_checker


def fill_in(
    state: Assignment,
    schema: Mapping[str, Any],
    memory: Mapping[str, Any],
    defaults: Mapping[str, Any],
) -> None:
    """Fill in what the task does not say: from defaults of a person, memory, the schema's default,
    and last its example. Only required arguments are, and none that the task says in two ways.
    """
    definitions = schema.get("$defs", {})
    for parameter in state.list_open():
        if not parameter.required:
            continue
        checker = get_checker({**_without_place(parameter.schema), "$defs": definitions})
        for value, origin in _list_others(parameter, memory, defaults):
            if checker.find_problem(value) is None:
                state.assign(parameter, value, "", (), origin)
                break


def _list_others(
    parameter: ToolParameter, memory: Mapping[str, Any], defaults: Mapping[str, Any]
) -> Iterator[tuple[Any, ValueOrigin]]:
    name, schema = parameter.name, parameter.schema
    if name in defaults:
        yield defaults[name], "default"
    if name in memory and not parameter.is_choosing:
        yield memory[name], "memory"
    if "default" in schema:
        yield schema["default"], "default"
    if len(parameter.enum) == 1:
        yield parameter.enum[0], "default"
    if parameter.is_choosing:
        return
    examples = schema.get("examples")
    if isinstance(examples, list) and examples:
        yield examples[0], "example"
    elif "example" in schema:
        yield schema["example"], "example"


def _without_place(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    return {key: value for key, value in schema.items() if not key.startswith("x-")}
