"""`toolwright show SERVER.TOOL`: what a tool takes, a call that it takes, and its trust."""

from __future__ import annotations

import json
import shlex
import time
from dataclasses import replace

import pytest
from click.testing import CliRunner, Result

from orchestrator.cli.main import toolwright
from orchestrator.cli.tools.argument_words import read_words
from orchestrator.settings import Settings
from registry.models import RegisteredTool
from registry.store import Store
from sandbox.schemas.validator import get_checker
from tests.registry.samples import REPORTS, entry, invocation

SCHEMA = {
    "type": "object",
    "properties": {
        "deep": {"type": "boolean"},
        "zone": {"type": "string", "description": "The zone's\x1b[31m name", "examples": ["a.org"]},
        "record": {"$ref": "#/$defs/Record"},
    },
    "required": ["zone", "record"],
    "$defs": {
        "Record": {
            "type": "object",
            "properties": {"ttl": {"type": "integer", "minimum": 60}, "made": {"type": "string"}},
            "required": ["ttl"],
        }
    },
    "additionalProperties": False,
}


@pytest.fixture
def home(settings: Settings, store: Store) -> Settings:
    listed = {"name": "add_record", "description": "Add a record.", "inputSchema": SCHEMA}
    tool = RegisteredTool("add_record", "write", False, json.dumps(listed))
    store.servers.publish(entry("dns", 1, tool), REPORTS, now=time.time())
    return settings


def show(settings: Settings, *words: str) -> Result:
    given = {"TOOLWRIGHT_HOME": str(settings.home), "COLUMNS": "160"}
    return CliRunner().invoke(toolwright, ["show", *words], env=given, catch_exceptions=False)


def test_a_tool_is_shown_with_its_arguments_an_example_and_the_way_to_more_trust(
    home: Settings,
) -> None:
    told = show(home, "dns.add_record")
    assert told.exit_code == 0
    for part in (
        "dns.add_record (version 1, active): write",
        "For example: toolwright call dns.add_record zone=a.org 'record={\"ttl\":60}'",
        "network:api.example",
        "trust: probationary",
        "standard wants 10 successes (0 so far) and more than 80 %",
        "50 calls of this tool, approved one by one",
        "It was not called yet.",
    ):
        assert part in told.stdout
    lines = told.stdout.splitlines()
    row = next(line for line in lines if line.startswith("zone"))
    assert row.split()[:4] == ["zone", "string", "yes", "a.org"]
    assert "\x1b" not in told.output


def test_the_example_is_a_call_that_the_tool_takes(home: Settings, store: Store) -> None:
    def example() -> dict[str, object]:
        told = json.loads(show(home, "dns.add_record", "--json").stdout)
        return read_words(shlex.split(told["example"])[3:], SCHEMA, "")

    assert get_checker(SCHEMA).find_problem(example()) is None
    arguments = {"zone": "b.org", "record": {"ttl": 300, "made": "7"}, "deep": True}
    done = invocation("c1", tool="add_record", arguments=arguments)
    store.calls.record_many([done], 100.0)
    assert example() == arguments
    store.calls.record_many([replace(done, id="c2", arguments={"zone": "x" * 1000})], 101.0)
    assert example() == arguments


def test_scripts_get_the_same_under_stable_names(home: Settings) -> None:
    told = json.loads(show(home, "dns.add_record", "--json").stdout)
    assert {"tool", "level", "arguments", "example", "to_more_trust", "calls"} <= told.keys()
    assert [each["name"] for each in told["arguments"]] == ["zone", "record", "deep"]
    assert [each["required"] for each in told["arguments"]] == [True, True, False]


def test_a_tool_that_is_nearly_one_is_told(home: Settings) -> None:
    told = show(home, "dns.add_rekord")
    assert told.exit_code == 1
    assert "there is no tool 'dns.add_rekord'. Did you mean dns.add_record?" in told.stderr
