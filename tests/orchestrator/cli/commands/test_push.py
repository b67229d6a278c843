"""`toolwright push`: what a target gets, and when."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from orchestrator.cli.main import toolwright
from orchestrator.settings import Settings
from tests.orchestrator.conftest import PIN


def test_a_target_with_links_is_said_to_get_nothing_while_locked(
    settings: Settings, tmp_path: Path
) -> None:
    pin = tmp_path / "pin"
    pin.write_text(PIN)

    def run(*words: str) -> str:
        environment = {"TOOLWRIGHT_HOME": str(settings.home)}
        return CliRunner().invoke(toolwright, ["push", *words], env=environment).output

    told = run("add", "json://127.0.0.1:9/x", "--name", "phone", "--pin-file", str(pin))
    assert "Nothing is sent to it before `toolwright push unlock`" in told
    assert "json, with links, while unlocked" in run("list")
