"""`--json`: what a command prints is one JSON object or list, under stable names."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from orchestrator.cli.main import toolwright
from orchestrator.settings import Settings
from registry.models import Approval
from tests.orchestrator.conftest import PIN

STATE = {"has_pin", "frozen_by", "pending", "unsent", "waiting", "servers", "running", "control"}
COMMANDS = [
    ((), STATE | {"next"}),
    (("source", "add", "https://x.test/api.json"), {"source", "header", "secret"}),
    (("source", "allow", "x.test:443", "y.test:443"), {"allowed"}),
    (("source", "remove", "nothere.test:443"), {"what", "removed"}),
    (("secret", "remove", "nothere"), {"name", "removed"}),
    (("control", "--stop"), {"stopped"}),
    (("audit", "show", "a1"), {"approval", "audit"}),
]


@pytest.mark.parametrize(("words", "names"), COMMANDS)
def test_a_command_prints_one_object_with_these_names(
    settings: Settings, waiting: Approval, words: tuple[str, ...], names: set[str]
) -> None:
    given = {
        "TOOLWRIGHT_HOME": str(settings.home),
        "TOOLWRIGHT_VAULT_KEY_FILE": str(settings.home.parent / "vault.key"),
    }
    pin = ("--pin-file", "-") if words and words[0] in ("source", "secret") else ()
    ran = CliRunner().invoke(
        toolwright, [*words, *pin, "--json"], env=given, input=f"{PIN}\n", catch_exceptions=False
    )
    assert ran.exit_code == 0
    assert json.loads(ran.stdout).keys() == names


def test_json_before_a_command_is_not_taken_for_nothing(settings: Settings) -> None:
    ran = CliRunner().invoke(toolwright, ["--json", "list"])
    assert (ran.exit_code, "behind list" in ran.stderr) == (2, True)
