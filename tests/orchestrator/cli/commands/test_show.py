"""`toolwright show SERVER.TOOL`: what a tool takes, a call that it takes, and its trust."""

from __future__ import annotations

import json
import shlex
import time
from dataclasses import replace

import pytest
from click.testing import CliRunner, Result

from orchestrator.approvals.granting import allow_host
from orchestrator.approvals.signing_key import open_key
from orchestrator.cli.main import toolwright
from orchestrator.cli.tools.argument_hint import MAX_FIELDS, list_arguments, list_fields
from orchestrator.cli.tools.argument_words import read_words
from orchestrator.settings import Settings
from registry.models import RegisteredTool
from registry.store import Store
from sandbox.bundle.launch import AUTHOR
from sandbox.schemas.validator import get_checker
from tests.orchestrator.conftest import PIN
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
            "properties": {
                "id": {"type": "integer", "readOnly": True},
                "made": {"type": "string"},
                "ttl": {"type": "integer", "minimum": 60, "description": "How long."},
            },
            # As the compiler writes what the API may take all the same.
            "anyOf": [{"required": ["ttl"]}, {}],
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


def show(settings: Settings, name: str, *words: str, command: str = "show") -> Result:
    given = {"TOOLWRIGHT_HOME": str(settings.home), "COLUMNS": "160"}
    typed = [command, name, *words]
    return CliRunner().invoke(toolwright, typed, env=given, catch_exceptions=False)


def test_a_tool_is_shown_with_its_arguments_an_example_and_the_way_to_more_trust(
    home: Settings,
) -> None:
    told = show(home, "dns.add_record")
    assert told.exit_code == 0
    for part in (
        "dns.add_record (version 1, active): write",
        "For example: toolwright call dns.add_record zone=a.org record.ttl=60",
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
    rows = [line.split() for line in lines if line.startswith("record")]
    assert rows == [
        ["record", "object", "yes"],
        ["record.ttl", "integer", "yes", "60", "How", "long."],
        ["record.made", "string", "text"],
    ]
    assert "\x1b" not in told.output


def test_an_example_of_an_argument_is_shown_as_a_call_takes_it(
    settings: Settings, store: Store
) -> None:
    properties = {
        "deep": {"type": "boolean"},
        "note": {"type": ["string", "null"], "default": None},
        "index": {"type": "object", "default": {"on": True, "space": "l2"}},
        "tags": {"type": "array", "items": {"type": "string"}},
        "name": {"type": "string", "default": "Äpfel"},
    }
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    listed = {"name": "set_up", "description": "Set it up.", "inputSchema": schema}
    tool = RegisteredTool("set_up", "write", False, json.dumps(listed))
    store.servers.publish(entry("dns", 1, tool), REPORTS, now=time.time())
    rows = [line.split() for line in show(settings, "dns.set_up").stdout.splitlines()]
    shown = {row[0]: row[-1] for row in rows if row and row[0] in properties}
    assert shown == {
        "deep": "true",
        "note": "null",
        "index": '{"on":true,"space":"l2"}',
        "tags": '["text"]',
        "name": "Äpfel",
    }
    # What has one reading only is taken in a call as it is shown.
    words = [f"{name}={text}" for name, text in shown.items() if name != "note"]
    assert read_words(words, schema, "") == {
        "deep": True,
        "index": {"on": True, "space": "l2"},
        "tags": ["text"],
        "name": "Äpfel",
    }


def test_the_values_that_an_argument_may_have_are_shown(settings: Settings, store: Store) -> None:
    kinds = [{"properties": {"kind": {"const": kind}}} for kind in ("tree", "herb")]
    properties = {
        "sort": {"type": "string", "anyOf": [{"enum": ["up", "down", None]}, {}]},
        "states": {"type": ["array", "null"], "items": {"enum": ["on", "off"]}},
        "plant": {"type": "object", "oneOf": [*kinds, {"properties": {"kind": {"enum": [3]}}}]},
        "long": {"enum": [f"value-{n}" for n in range(5_000)], "description": "One of many."},
        "odd": {"enum": "x"},
    }
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    listed = {"name": "set_up", "description": "Set it up.", "inputSchema": schema}
    tool = RegisteredTool("set_up", "write", False, json.dumps(listed))
    store.servers.publish(entry("dns", 1, tool), REPORTS, now=time.time())
    told = show(settings, "dns.set_up").stdout
    rows = {line.split()[0]: line for line in told.splitlines() if line.strip()}
    assert rows["sort"].endswith("Values: up, down")
    assert rows["states"].endswith("Values: on, off")
    assert rows["plant.kind"].endswith("Values: tree, herb, 3")
    assert "One of many. Values: value-0, value-1, " in rows["long"]
    assert len(told) < 5_000
    arguments = json.loads(show(settings, "dns.set_up", "--json").stdout)["arguments"]
    assert {each["name"]: each["values"] for each in arguments}["sort"] == ["up", "down"]


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
    fields = told["arguments"][1]["fields"]
    assert [each["name"] for each in fields] == ["record.ttl", "record.made"]


def test_the_fields_of_a_schema_that_holds_itself_end() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/N"}, "x": {}}}
    root = {"properties": {"body": {"$ref": "#/$defs/N"}}, "$defs": {"N": node}}
    (body,) = list_arguments(root)
    assert [each.name for each in list_fields(body, root)] == ["body.next", "body.x"]
    wide = {"properties": {f"f{n}": {"type": "object"} for n in range(1000)}}
    (body,) = list_arguments({"properties": {"body": wide}})
    assert len(list_fields(body, {})) == MAX_FIELDS


@pytest.mark.parametrize(("author", "word"), [("compiler", "yes"), (AUTHOR, "no")])
def test_an_allowed_host_is_granted_to_each_server_but_those_of_others(
    settings: Settings, store: Store, author: str, word: str
) -> None:
    signer = open_key(settings, PIN, 0.0).signer
    assert signer is not None
    made = replace(entry("dns", 1), created_by=author, permissions=("network:a.example:443",))
    store.servers.publish(made, REPORTS, now=time.time())
    assert show(settings, "dns", command="grant").stdout.split()[3:] == [
        "network:a.example:443", "yes", "no"
    ]  # fmt: skip
    allow_host(store.grants, "a.example:443", "test", signer)
    assert show(settings, "dns", command="grant").stdout.split()[-1] == word
    told = json.loads(show(settings, "dns", "--json").stdout)
    assert told["granted"] == (["network:a.example:443"] if word == "yes" else [])


def test_a_tool_that_is_nearly_one_is_told(home: Settings) -> None:
    told = show(home, "dns.add_rekord")
    assert told.exit_code == 1
    assert "there is no tool 'dns.add_rekord'. Did you mean dns.add_record?" in told.stderr
