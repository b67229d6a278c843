"""`--json`: what a command prints is one JSON value, as docs/json says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator, ValidationError

from orchestrator.cli.main import COMMANDS, toolwright
from orchestrator.settings import Settings
from registry.models import Approval
from scripts import json_schemas
from tests.json_output import check_output, close_schema
from tests.orchestrator.conftest import PIN

WITHOUT = {"serve", "run", "completion", "demo"}
"""They speak MCP, print a script or show a story."""
PRINTED: list[tuple[str, str]] = [
    # what is typed, where its PIN is wanted `+`
    ("", ""),
    ("source add https://x.test/api.json", "+"),
    ("source allow x.test:443 y.test:443", "+"),
    ("source remove nothere.test:443", "+"),
    ("source list", ""),
    ("secret remove nothere", "+"),
    ("secret list", ""),
    ("control --stop", ""),
    ("audit show a1", ""),
    ("audit verify", ""),
    ("audit search", ""),
    ("audit archive --before 30d", ""),
    ("logs", ""),
    ("logs --audit", ""),
    ("jobs", ""),
    ("jobs --cost", ""),
    ("list", ""),
    ("find zones", ""),
    ("grant", ""),
    ("grant --confirm", "+"),
    ("rules", ""),
    ("rules list", ""),
    ("approvals", ""),
    ("reject a1", "+"),
    ("push list", ""),
    ("push lock", ""),
    ("doctor", ""),
    ("unfreeze", "+"),
    ("import-clients", ""),
    ("import-clients --undo", ""),
    ("setup --client claude-code --print", ""),
    ("setup --client claude-code", ""),
    ("setup --client claude-code --remove", ""),
    ("setup --key", "+"),
]


def list_commands(command: click.Command, path: str = "") -> Iterator[tuple[str, click.Command]]:
    """Each command that can be run, by its words."""
    context = click.Context(command)
    if not isinstance(command, click.Group):
        yield path, command
        return
    if command.invoke_without_command and path:
        yield path, command
    for name in command.list_commands(context):
        below = command.get_command(context, name)
        assert below is not None
        yield from list_commands(below, f"{path} {name}".strip())


@pytest.fixture
def given(settings: Settings, tmp_path: Path) -> dict[str, str]:
    """The environment of a user without any client's files."""
    return {
        "TOOLWRIGHT_HOME": str(settings.home),
        "TOOLWRIGHT_VAULT_KEY_FILE": str(settings.home.parent / "vault.key"),
        "HOME": str(tmp_path / "person"),
    }


def test_every_command_has_json_and_a_schema_or_speaks_something_else() -> None:
    taken = {
        path for path, command in list_commands(toolwright) if "as_json" in _list_names(command)
    }
    assert {path for path, _ in list_commands(toolwright)} - taken == WITHOUT | {"audit show"}
    assert taken | {"toolwright", "audit show"} == json_schemas.COMMANDS.keys()
    assert COMMANDS.keys() >= WITHOUT


def _list_names(command: click.Command) -> set[str]:
    return {str(each.name) for each in command.params}


@pytest.mark.parametrize("command", json_schemas.COMMANDS)
def test_a_schema_is_one_and_refuses_what_is_no_output(command: str) -> None:
    schema = json_schemas.build_schema(command)
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema)
    for wrong in ("text", 7, None, [7]):
        with pytest.raises(ValidationError):
            validator.validate(wrong)
    assert find_bare(schema) == []


def find_bare(schema: Any, at: str = "$") -> list[str]:
    """Objects that require a property which they do not describe."""
    if isinstance(schema, list):
        return [one for n, each in enumerate(schema) for one in find_bare(each, f"{at}[{n}]")]
    if not isinstance(schema, dict):
        return []
    described = schema.get("properties", schema.get("required", ()))
    bare = [f"{at}.{name}" for name in schema.get("required", ()) if name not in described]
    return bare + [one for k, each in schema.items() for one in find_bare(each, f"{at}.{k}")]


@pytest.mark.parametrize(("typed", "pin"), PRINTED)
def test_a_command_prints_one_value_that_its_schema_describes_wholly(
    settings: Settings, waiting: Approval, given: dict[str, str], typed: str, pin: str
) -> None:
    words = [*typed.split(), *(("--pin-file", "-") if pin else ()), "--json"]
    ran = CliRunner().invoke(toolwright, words, env=given, input=f"{PIN}\n", catch_exceptions=False)
    # The home of this test has rows without their files, which `doctor` finds.
    assert ran.exit_code == (typed == "doctor"), ran.stderr
    assert ran.stdout
    check_output(words, ran.stdout, closed=True)


def test_what_is_told_beside_json_is_on_standard_error(
    settings: Settings, given: dict[str, str], tmp_path: Path
) -> None:
    pin = tmp_path / "pin"
    pin.write_text(PIN)
    words = ["secret", "set", "dns.key", "--value-file", "-", "--pin-file", str(pin), "--json"]
    ran = CliRunner().invoke(toolwright, words, env=given, input="s3cr3t", catch_exceptions=False)
    assert json.loads(ran.stdout)["name"] == "dns.key"
    assert "is set" in ran.stderr
    assert "s3cr3t" not in ran.output
    check_output(words, ran.stdout, closed=True)


def test_a_command_that_fails_prints_no_json(settings: Settings, given: dict[str, str]) -> None:
    ran = CliRunner().invoke(toolwright, ["show", "nothere", "--json"], env=given)
    assert (ran.exit_code, ran.stdout) == (1, "")


def test_output_that_is_not_as_described_is_found() -> None:
    words = ["rules", "revoke", "r1", "--json"]
    with pytest.raises(AssertionError, match="'revoked' is a required property"):
        check_output(words, '{"rule": "r1"}')
    more = '{"rule": "r1", "revoked": true, "more": 1}'
    check_output(words, more)
    with pytest.raises(AssertionError, match="more"):
        check_output(words, more, closed=True)
    assert close_schema({"type": "object"}) == {"type": "object"}


def test_json_before_a_command_is_not_taken_for_nothing(settings: Settings) -> None:
    ran = CliRunner().invoke(toolwright, ["--json", "list"])
    assert (ran.exit_code, "behind list" in ran.stderr) == (2, True)
