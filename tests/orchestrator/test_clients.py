"""A client's configuration is merged, backed up, and never clobbered."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.clients import merged, server_entry, write_config
from orchestrator.errors import OrchestratorError

ENTRY: dict[str, Any] = {"type": "stdio", "command": "toolwright", "args": ["serve"], "env": {}}
OTHERS = {"theme": "dark", "mcpServers": {"other": {"command": "x"}}, "projects": {"/a": [1]}}


def test_a_client_without_a_configuration_gets_one(tmp_path: Path) -> None:
    path = tmp_path / "client.json"
    assert write_config(path, merged(path, ENTRY)) is None
    assert json.loads(path.read_text()) == {"mcpServers": {"toolwright": ENTRY}}
    assert path.stat().st_mode & 0o777 == 0o600


def test_what_else_is_configured_stays_and_is_kept_beside(tmp_path: Path) -> None:
    path = tmp_path / "client.json"
    path.write_text(json.dumps(OTHERS))
    path.chmod(0o644)
    backup = write_config(path, merged(path, ENTRY))
    written = json.loads(path.read_text())
    assert written["mcpServers"].pop("toolwright") == ENTRY
    assert written == OTHERS
    assert backup is not None
    assert json.loads(backup.read_text()) == OTHERS
    assert path.stat().st_mode & 0o777 == 0o644


def test_adding_twice_is_adding_once_and_removing_takes_out_only_ours(tmp_path: Path) -> None:
    path = tmp_path / "client.json"
    path.write_text(json.dumps(OTHERS))
    for _ in range(2):
        write_config(path, merged(path, ENTRY))
    assert list(merged(path, ENTRY)["mcpServers"]) == ["other", "toolwright"]
    write_config(path, merged(path, None))
    assert json.loads(path.read_text()) == OTHERS
    assert merged(path, None) == OTHERS


@pytest.mark.parametrize(
    "content", ["{", "[]", "7", '"x"', '{"mcpServers": []}', '{"mcpServers": 1}', "// comment\n{}"]
)
def test_a_file_that_is_not_understood_is_not_touched(tmp_path: Path, content: str) -> None:
    path = tmp_path / "client.json"
    path.write_text(content)
    with pytest.raises(OrchestratorError, match="nothing was changed"):
        merged(path, ENTRY)
    assert path.read_text() == content


def test_a_linked_configuration_is_written_where_it_really_is(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.json"
    real.write_text(json.dumps(OTHERS))
    link = tmp_path / "client.json"
    link.symlink_to(real)
    write_config(link, merged(link, ENTRY))
    assert link.is_symlink()
    assert "toolwright" in json.loads(real.read_text())["mcpServers"]


def test_a_client_starts_us_by_absolute_path_in_the_same_home(tmp_path: Path) -> None:
    entry = server_entry(tmp_path)
    assert Path(entry["command"]).is_absolute()
    assert entry["args"][-1] == "serve"
    assert entry["env"]["TOOLWRIGHT_HOME"] == str(tmp_path)
