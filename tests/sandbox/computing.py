"""Servers that compute, in a few lines."""

from __future__ import annotations

from typing import Any

from sandbox.bundle.example import Example
from sandbox.bundle.model import Bundle, Provenance, ToolDefinition

NUMBER = {"type": "number", "minimum": -1e300, "maximum": 1e300}
HALVE = """
from toolwright import ToolError, tool

@tool
def halve(number):
    return {"half": number / 2}
"""


def takes(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def computing(
    code: str = HALVE,
    *tools: ToolDefinition,
    permissions: tuple[str, ...] = (),
    **properties: Any,
) -> Bundle:
    """A bundle with one tool `halve` with these properties, or with those tools."""
    schema = takes(**(properties or {"number": NUMBER}))
    halve = ToolDefinition("halve", "Halve it.", schema, {"type": "object"}, "read")
    made = Provenance("halve numbers", "0" * 64, author="client")
    return Bundle("halves", 1, "Halves", "", code, tools or (halve,), made, permissions)


def case(result: Any = None, /, failure: Any = None, **arguments: Any) -> Example:
    return Example("halve", arguments, result, failure)


CASES = (case({"half": 2}, number=4), case({"half": 0.05}, number=0.1))
