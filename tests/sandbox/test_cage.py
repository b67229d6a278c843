"""The gate, as an outside suite asks it."""

from __future__ import annotations

from sandbox.bundle.model import ToolDefinition
from sandbox.cage import admit

ADD = ToolDefinition(
    "add",
    "Adds.",
    {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}},
    {"type": "object"},
    "read",
)
PLAIN = """
from toolwright import tool

@tool
def add(a=0, b=0):
    return {"sum": a + b}
"""


def test_plain_code_that_matches_its_definitions_is_admitted() -> None:
    assert admit(PLAIN, (), (ADD,)) == ()


def test_code_that_reaches_further_is_not() -> None:
    for line in ("import os", "import socket", "eval('1')", "().__class__.__bases__"):
        assert admit(f"{line}\n{PLAIN}", (), (ADD,))


def test_code_that_does_not_match_its_definitions_is_not() -> None:
    assert admit(PLAIN, (), ())
    assert admit("from toolwright import tool", (), (ADD,))
    assert admit("not python", (), (ADD,))


def test_without_definitions_code_is_judged_by_itself() -> None:
    assert admit(PLAIN) == ()
    assert admit(f"import os\n{PLAIN}")
    assert admit("not python")
