"""A client's configuration is merged, backed up, and never clobbered."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import json5
import pytest
import yaml
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.cli.clients.clients import (
    CLIENTS,
    McpClient,
    StartCommand,
    build_start_command,
    describe_machine,
    find_limit_warnings,
    render_config,
    update_config,
)
from orchestrator.cli.clients.config_files import set_in_json
from orchestrator.cli.commands import run
from orchestrator.cli.main import toolwright
from orchestrator.errors import ConfigNotUnderstood, OrchestratorError
from orchestrator.frontends.tools import TOOLS

START = StartCommand(
    "toolwright", "/opt/bin/toolwright", ("serve",), {"TOOLWRIGHT_HOME": "/home/me/.t"}
)
CODE = CLIENTS["claude-code"]
ENTRY = CODE.entry(START)
OTHERS = {"theme": "dark", "mcpServers": {"other": {"command": "x"}}, "projects": {"/a": [1]}}
READERS: Mapping[str, Callable[[str], Any]] = {
    ".json": json.loads,
    ".toml": tomllib.loads,
    ".yaml": yaml.safe_load,
}
COMMENTED = """\
// Zed settings
{
  "theme": "One", // the dark one
  /* servers */
  "context_servers": {
    "other": {"command": "x", "args": [],}, // mine
  },
}
"""
CODEX = """\
# my settings
model = "gpt"  # the good one

[mcp_servers.other]
command = "x"

[profiles.a]
x = 1
"""
GOOSE = """\
# my settings
GOOSE_MODEL: "gpt"   # quoted
extensions:
  other:   # mine
    enabled: true
    type: stdio
    cmd: x
"""


@pytest.mark.parametrize("name", CLIENTS)
def test_every_client_gets_a_configuration_that_its_format_can_read(
    name: str, tmp_path: Path
) -> None:
    client = CLIENTS[name]
    path = client.path(describe_machine({"HOME": str(tmp_path)}, "linux"))
    assert path.is_relative_to(tmp_path)
    assert update_config(client, path, START) is None
    assert _servers(client, path)["toolwright"] == client.entry(START)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.read_text() == render_config(client, START)
    started = json.dumps(client.entry(START))
    assert START.command in started
    assert "serve" in started
    assert "/home/me/.t" in started


@pytest.mark.parametrize("name", CLIENTS)
def test_adding_twice_is_adding_once_and_removing_takes_out_only_ours(
    name: str, tmp_path: Path
) -> None:
    client = CLIENTS[name]
    path = client.path(describe_machine({"HOME": str(tmp_path)}, "linux"))
    other = StartCommand("other", "/opt/other", (), {})
    update_config(client, path, other)
    before = path.read_text()
    update_config(client, path, START)
    once = path.read_text()
    update_config(client, path, START)
    assert path.read_text() == once
    assert list(_servers(client, path)) == ["other", "toolwright"]
    update_config(client, path, START, remove=True)
    assert path.read_text() == before


@pytest.mark.parametrize("name", CLIENTS)
def test_removing_where_nothing_is_configured_makes_no_file(name: str, tmp_path: Path) -> None:
    client = CLIENTS[name]
    path = client.path(describe_machine({"HOME": str(tmp_path)}, "linux"))
    assert update_config(client, path, START, remove=True) is None
    assert not path.exists()


@pytest.mark.parametrize(
    ("name", "platform", "path"),
    [
        ("claude-desktop", "linux", "h/.config/Claude/claude_desktop_config.json"),
        (
            "claude-desktop",
            "darwin",
            "h/Library/Application Support/Claude/claude_desktop_config.json",
        ),
        ("claude-desktop", "win32", "a/Claude/claude_desktop_config.json"),
        ("vscode", "linux", "h/.config/Code/User/mcp.json"),
        ("vscode", "darwin", "h/Library/Application Support/Code/User/mcp.json"),
        ("vscode", "win32", "a/Code/User/mcp.json"),
        ("goose", "darwin", "h/.config/goose/config.yaml"),
        ("goose", "win32", "a/Block/goose/config/config.yaml"),
        ("zed", "darwin", "h/.config/zed/settings.json"),
        ("zed", "win32", "a/Zed/settings.json"),
        ("codex", "win32", "h/.codex/config.toml"),
        ("cursor", "win32", "h/.cursor/mcp.json"),
        ("windsurf", "darwin", "h/.codeium/windsurf/mcp_config.json"),
    ],
)
def test_a_client_is_configured_where_it_looks_on_each_platform(
    name: str, platform: str, path: str
) -> None:
    where = describe_machine({"HOME": "h", "USERPROFILE": "h", "APPDATA": "a"}, platform)
    assert CLIENTS[name].path(where) == Path(path)


def test_the_user_s_own_directories_are_honoured(tmp_path: Path) -> None:
    given = {"HOME": "h", "XDG_CONFIG_HOME": "x", "CODEX_HOME": "c"}
    assert CLIENTS["codex"].path(describe_machine(given, "linux")) == Path("c/config.toml")
    assert CLIENTS["zed"].path(describe_machine(given, "linux")) == Path("x/zed/settings.json")


def test_cline_s_extension_is_configured_where_only_its_own_file_is(tmp_path: Path) -> None:
    where = describe_machine({"HOME": str(tmp_path)}, "linux")
    shared = CLIENTS["cline"].path(where)
    assert shared.parent == tmp_path / ".cline" / "data" / "settings"
    own = tmp_path / ".config/Code/User/globalStorage/saoudrizwan.claude-dev/settings"
    own.mkdir(parents=True)
    (own / "cline_mcp_settings.json").write_text("{}")
    assert CLIENTS["cline"].path(where).parent == own
    shared.parent.mkdir(parents=True)
    shared.write_text("{}")
    assert CLIENTS["cline"].path(where) == shared


def test_what_else_is_configured_stays_and_is_kept_beside(tmp_path: Path) -> None:
    path = tmp_path / "client.json"
    path.write_text(json.dumps(OTHERS))
    path.chmod(0o644)
    backup = update_config(CODE, path, START)
    written = json.loads(path.read_text())
    assert written["mcpServers"].pop("toolwright") == ENTRY
    assert written == OTHERS
    assert backup is not None
    assert json.loads(backup.read_text()) == OTHERS
    assert path.stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize(
    ("name", "text", "kept"),
    [
        ("zed", COMMENTED, ["// Zed settings", "// the dark one", "/* servers */", "// mine"]),
        ("codex", CODEX, ["# my settings", "# the good one", "[profiles.a]"]),
        ("goose", GOOSE, ["# my settings", '"gpt"   # quoted', "# mine"]),
    ],
)
def test_comments_and_layout_of_a_hand_written_file_stay(
    name: str, text: str, kept: list[str], tmp_path: Path
) -> None:
    client, path = CLIENTS[name], tmp_path / "config"
    path.write_text(text)
    update_config(client, path, START)
    changed = path.read_text()
    assert [part for part in kept if part not in changed] == []
    assert [line for line in text.splitlines() if line not in changed] == []
    update_config(client, path, START, remove=True)
    assert path.read_text() == text


@pytest.mark.parametrize(
    "text",
    [
        "// c\n{}",
        "{\n  // only a comment\n}\n",
        '{"a": 1, /* x */}',
        '{\n  "a": 1 // last\n}',
        '{"context_servers": {/* none */}}',
        '{\n  "context_servers": {\n    "other": {} // mine\n  }\n}',
        '{"context_servers": {\n    "toolwright": {"command": "old"}, // ours\n    "b": {}\n  }\n}',
    ],
)
def test_json_with_comments_keeps_them_and_holds_the_entry(text: str) -> None:
    changed = set_in_json(text, ("context_servers", "toolwright"), {"command": "new"})
    before, after = json5.loads(text), json5.loads(changed)
    assert after["context_servers"].pop("toolwright") == {"command": "new"}
    before.setdefault("context_servers", {}).pop("toolwright", None)
    assert after == before
    assert changed.count("//") + changed.count("/*") == text.count("//") + text.count("/*")
    gone = json5.loads(set_in_json(changed, ("context_servers", "toolwright"), None))
    assert gone == before


_values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=10,
)


@given(st.dictionaries(st.text(max_size=5), _values, max_size=4), st.booleans(), st.booleans())
def test_in_any_commented_settings_only_the_entry_changes(
    settings: dict[str, Any], comma: bool, nested: bool
) -> None:
    settings.pop("mcpServers", None)
    if nested:
        settings["mcpServers"] = {"other": {"command": "x"}}
    text = "// mine\n" + json.dumps(settings, indent=3, ensure_ascii=False)
    if comma and settings:
        text = text.removesuffix("\n}") + ",\n}"
    changed = set_in_json(text, ("mcpServers", "toolwright"), ENTRY)
    read = json5.loads(changed)
    assert read["mcpServers"].pop("toolwright") == ENTRY
    assert read == {"mcpServers": {}, **settings}
    assert changed.startswith("// mine\n")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("claude-code", "{"),
        ("claude-code", "[]"),
        ("claude-code", "7"),
        ("claude-code", '"x"'),
        ("claude-code", '{"mcpServers": []}'),
        ("claude-code", '{"mcpServers": 1}'),
        ("zed", '{"context_servers": [], // x\n}'),
        ("zed", "// x\n[]"),
        ("claude-code", "[" * 100_000),
        ("codex", "= 1"),
        ("codex", "mcp_servers = 1"),
        ("goose", "- a\n- b"),
        ("goose", "a: [1"),
        ("goose", "extensions: 1"),
    ],
)
def test_a_file_that_is_not_understood_is_not_touched(
    name: str, content: str, tmp_path: Path
) -> None:
    path = tmp_path / "client.json"
    path.write_text(content)
    with pytest.raises(OrchestratorError, match=r"(?s)client\.json.*nothing was changed"):
        update_config(CLIENTS[name], path, START)
    assert path.read_text() == content
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("before", [None, json.dumps(OTHERS)])
def test_what_a_client_writes_while_the_entry_is_made_is_not_written_over(
    before: str | None, tmp_path: Path
) -> None:
    path, theirs = tmp_path / "client.json", json.dumps({**OTHERS, "theme": "light"})
    if before is not None:
        path.write_text(before)

    def set_slowly(text: str, keys: tuple[str, ...], entry: Mapping[str, Any] | None) -> str:
        path.write_text(theirs)
        return set_in_json(text, keys, entry)

    with pytest.raises(OrchestratorError, match="just changed"):
        update_config(replace(CODE, write=set_slowly), path, START)
    assert (path.read_text(), list(tmp_path.iterdir())) == (theirs, [path])
    update_config(CODE, path, START)
    assert _servers(CODE, path)["toolwright"] == ENTRY


def test_a_linked_configuration_is_written_where_it_really_is(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.json"
    real.write_text(json.dumps(OTHERS))
    link = tmp_path / "client.json"
    link.symlink_to(real)
    update_config(CODE, link, START)
    assert link.is_symlink()
    assert "toolwright" in json.loads(real.read_text())["mcpServers"]


@pytest.mark.parametrize(
    "value",
    [
        r'"cut here \ud83d"',
        "1e400",
        "1e-400",
        "1e9999999999999999999",
        "12345678901234567890.125",
        '{"a": 1, "a": 2}',
    ],
    ids=["half a pair", "large", "small", "larger", "long", "twice"],
)
def test_values_that_no_reader_would_have_again_stay_as_they_are_written(
    tmp_path: Path, value: str
) -> None:
    path = tmp_path / "client.json"
    path.write_text(f'{{"history": {value}, "mcpServers": {{"other": {{"command": "x"}}}}}}')
    update_config(CODE, path, START)
    assert value in path.read_text()
    assert set(_servers(CODE, path)) == {"other", "toolwright"}
    update_config(CODE, path, START, remove=True)
    assert value in path.read_text()
    assert set(_servers(CODE, path)) == {"other"}


@pytest.mark.parametrize(
    "text",
    [
        '{"mcpServers": {"a": {"command": "x"}}, "mcpServers": {"b": {"command": "y"}}}',
        '{"mcpServers": {"toolwright": {"command": "x"}, "toolwright": {"command": "y"}}}',
    ],
)
def test_a_name_that_is_there_twice_on_the_way_to_the_entry_is_refused(
    tmp_path: Path, text: str
) -> None:
    path = tmp_path / "client.json"
    path.write_text(text)
    with pytest.raises(ConfigNotUnderstood, match="twice"):
        update_config(CODE, path, START)
    assert path.read_text() == text


def test_a_client_starts_us_by_absolute_path_in_the_same_home(tmp_path: Path) -> None:
    start = build_start_command(tmp_path)
    assert Path(start.command).is_absolute()
    assert start.arguments[-1] == "serve"
    assert start.environment["TOOLWRIGHT_HOME"] == str(tmp_path)
    alone = build_start_command(tmp_path, "powerdns")
    assert alone.name == "powerdns"
    assert alone.arguments[-2:] == ("run", "powerdns")


def test_setup_writes_prints_and_removes_a_client_s_configuration(tmp_path: Path) -> None:
    environment = {"HOME": str(tmp_path), "TOOLWRIGHT_HOME": str(tmp_path / "t")}

    def setup(*arguments: str) -> str:
        ran = CliRunner().invoke(toolwright, ["setup", *arguments], env=environment)
        assert ran.exit_code == 0, ran.output
        return ran.stdout

    path = tmp_path / ".cursor" / "mcp.json"
    shown = setup("--client", "cursor", "--print")
    assert not path.exists()
    added = setup("--client", "cursor")
    assert "toolwright is added\nRestart Cursor" in added
    assert path.read_text() == shown
    assert setup("--client", "cursor").endswith("toolwright was there already\n")
    setup("--client", "cursor", "--remove")
    assert json.loads(path.read_text()) == {"mcpServers": {}}


def _servers(client: McpClient, path: Path) -> Any:
    found = READERS[path.suffix](path.read_text())
    for key in client.keys:
        found = found[key]
    return found


def test_run_offers_every_client_that_setup_does() -> None:
    assert run.CLIENTS == tuple(CLIENTS)


@pytest.mark.parametrize("name", CLIENTS)
def test_a_forged_server_s_name_that_the_user_has_already_is_left_alone(
    name: str, tmp_path: Path
) -> None:
    client = CLIENTS[name]
    path = client.path(describe_machine({"HOME": str(tmp_path)}, "linux"))
    ours = StartCommand("github", "/opt/toolwright", ("run", "github"), {})
    update_config(client, path, StartCommand("github", "npx", ("-y", "github-mcp"), {}))
    before = path.read_text()
    for remove in (False, True):
        with pytest.raises(OrchestratorError, match="did not put there"):
            update_config(client, path, ours, remove=remove)
    assert path.read_text() == before
    other = tmp_path / "other"
    update_config(client, other, ours)
    update_config(client, other, replace(ours, command="/elsewhere/toolwright"))
    assert "/elsewhere/toolwright" in other.read_text()
    update_config(client, other, ours, remove=True)
    assert "github" not in other.read_text()


def test_what_a_client_is_known_not_to_take_of_a_server_is_said() -> None:
    many = [f"tool_{n}" for n in range(101)]
    assert find_limit_warnings(CLIENTS["codex"], "harbour", many) == ()
    assert find_limit_warnings(CLIENTS["vscode"], "harbour", many) == ()
    for name in ("cursor", "windsurf"):
        (told,) = find_limit_warnings(CLIENTS[name], "harbour", many)
        assert "has 101" in told
    (told,) = find_limit_warnings(CLIENTS["cursor"], "s" * 30, ["t" * 30, "u" * 31])
    assert "u" * 31 in told
    assert "t" * 30 not in told


def test_every_client_takes_the_seven_tools() -> None:
    for client in CLIENTS.values():
        assert find_limit_warnings(client, "toolwright", [tool["name"] for tool in TOOLS]) == ()
