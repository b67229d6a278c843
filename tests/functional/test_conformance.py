"""The official conformance suite: what passes, and why the rest does not (conformance.toml)."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.functional.commands import command_server
from tests.functional.home import ROOT
from tests.world.bridge import bridged
from tests.world.conformance import conform

FIXTURE = ROOT / "tests/fixtures/conformance"
EXPECTED = tomllib.loads(Path(__file__).with_name("conformance.toml").read_text())


@pytest.mark.parametrize("revision", EXPECTED)
def test_a_forged_server_passes_the_listed_scenarios_and_each_other_has_its_reason(
    revision: str, node_modules: Path, tmp_path: Path
) -> None:
    # Without a cage: what is judged is the front, and a process starts fastest.
    command = command_server().launch("run", str(FIXTURE), "--engine", "none")
    with bridged(command, {"PYTHONPATH": str(ROOT)}) as url:
        failed = conform(url, tmp_path, "--requirements", revision)
    passed = {scenario for scenario, checks in failed.items() if not checks}
    assert passed == set(EXPECTED[revision]["passes"])
    assert explained(EXPECTED[revision], failed) == failing(failed)


def explained(expected: Mapping[str, Any], failed: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """The failing checks by scenario that have a reason: single ones, or all of a scenario."""
    listed: dict[str, set[str]] = {}
    for group in expected["fails"]:
        assert group["reason"]
        for entry in group["scenarios"]:
            scenario, _, check = entry.partition(" ")
            assert scenario in failed, f"{scenario} was not run"
            listed.setdefault(scenario, set()).update({check} if check else failed[scenario])
    return listed


def failing(failed: Mapping[str, set[str]]) -> dict[str, set[str]]:
    return {scenario: checks for scenario, checks in failed.items() if checks}
