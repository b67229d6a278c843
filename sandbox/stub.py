"""What tools that do nothing would give: a case or a test that they satisfy proves nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sandbox.bundle import ToolDefinition
from sandbox.example import Example, same

MAX_DEPTH = 8
_EMPTY: tuple[Any, ...] = (None, "", 0, False, [], {})
_OF_TYPE: Mapping[str, Any] = {
    "string": "",
    "number": 0,
    "integer": 0,
    "boolean": False,
    "array": [],
    "null": None,
}


@dataclass(frozen=True)
class Stub:
    """A server that does nothing: what each of its functions does, in words and as the runtime's
    `toolwright.suite` takes it.
    """

    does: str
    made: Mapping[str, Any]


REFUSING = Stub("always raises ToolError", {"kind": "raises"})


def stubs(tools: Iterable[ToolDefinition]) -> tuple[Stub, ...]:
    """The stubs of a server that give something, whatever they are asked."""
    values = {tool.name: _empty(tool.output_schema, 0) for tool in tools}
    constants = (Stub(f"always gives {v!r}", {"kind": "value", "default": v}) for v in _EMPTY)
    return (
        *constants,
        Stub("always gives an empty result", {"kind": "value", "values": values}),
        Stub("gives its first argument back", {"kind": "argument"}),
    )


def satisfies(example: Example, tool: ToolDefinition) -> bool:
    """Whether a tool that gives the same empty result to everything would satisfy the example."""
    if example.failure:
        return False
    constants = [{}, *({"result": value} for value in _EMPTY), _empty(tool.output_schema, 0)]
    return any(same(example.structured, constant) for constant in constants)


def _empty(schema: Any, depth: int) -> Any:
    """The emptiest value that a schema describes, by types alone."""
    flat = schema if isinstance(schema, Mapping) else {}
    kind = flat.get("type")
    if isinstance(kind, list):
        kind = kind[0] if kind else None
    if kind == "object" and depth < MAX_DEPTH:
        inner = flat.get("properties") or {}
        return {name: _empty(value, depth + 1) for name, value in inner.items()}
    return {} if kind == "object" else _OF_TYPE.get(str(kind))
