"""What a draft's tests have other servers' tools answer is held against those tools."""

from __future__ import annotations

import pytest

from orchestrator.errors import UnknownTool
from orchestrator.forging.drafts.proving import find_tested_problems
from sandbox.bundle.model import ToolDefinition

RATE = ToolDefinition(
    "get_rate",
    "The rate of a currency.",
    {
        "type": "object",
        "properties": {"currency": {"type": "string"}},
        "required": ["currency"],
        "additionalProperties": False,
    },
    {"type": "object", "properties": {"rate": {"type": "number"}}, "required": ["rate"]},
    "read",
)


def find(server: str, tool: str) -> ToolDefinition:
    if (server, tool) != ("bank", "get_rate"):
        raise UnknownTool(f"{server}.{tool}")
    return RATE


def suite(arguments: str, result: str, body: str = "assert convert(2) == 3") -> str:
    told = f'{{"tool": "bank.get_rate", "arguments": {arguments}, "result": {result}}}'
    return (
        "import pytest\nfrom server import convert\nfrom toolwright.testing import tools\n\n\n"
        f"def test_it():\n    with tools({told}):\n        {body}\n"
    )


FAILS = "pytest.raises(Exception, convert, 2)"


@pytest.mark.parametrize(
    ("tests", "told"),
    [
        (suite('{"code": "EUR"}', '{"rate": 1.5}'), "does not take these arguments"),
        (suite('{"currency": "EUR"}', '{"price": 1.5}'), "does not give this"),
        (suite('{"code": "EUR"}', '{"price": 1.5}', FAILS), "does not take these arguments"),
    ],
)
def test_a_test_that_answers_as_the_tool_never_does_is_found_with_its_line(
    tests: str, told: str
) -> None:
    (finding,) = find_tested_problems(tests, find)
    assert told in finding.reason
    assert (finding.file, finding.line) == ("tests/test_server.py", 7)


@pytest.mark.parametrize(
    "tests",
    [
        suite('{"currency": "EUR"}', '{"rate": 1.5}'),
        # What the tool gives against its schema is what this test is about.
        suite('{"currency": "EUR"}', '{"price": 1.5}', FAILS),
        suite('{"currency": "EUR"}', "{}").replace("bank.get_rate", "network.dns"),
        suite("KNOWN", '{"rate": 1.5}'),
        "def test_it(:",
    ],
)
def test_a_test_that_answers_as_the_tool_may_is_let_be(tests: str) -> None:
    assert find_tested_problems(tests, find) == ()
