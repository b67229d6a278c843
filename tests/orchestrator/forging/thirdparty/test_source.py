"""The command lines that people copy from a server's page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.errors import OrchestratorError
from orchestrator.forging.thirdparty.source import (
    ImageSource,
    NpmSource,
    PypiSource,
    ScriptSource,
    parse_command,
)
from orchestrator.gateway.execute import build_tool_request
from sandbox.bundle.launch import RemoteTool
from sandbox.wire.exchange import digest_request
from tests.engine.foreign import BENIGN, foreign


@pytest.mark.parametrize(
    ("line", "source"),
    [
        ("npx -y @scope/server /data", NpmSource("@scope/server", "", ("/data",))),
        ("npx @scope/server@1.2.3", NpmSource("@scope/server@1.2.3")),
        ("npx -y -p pack tool --flag x", NpmSource("pack", "tool", ("--flag", "x"))),
        ("npx --yes --package=pack -- tool", NpmSource("pack", "tool")),
        ("/usr/bin/npx -y server -- --x", NpmSource("server", "", ("--", "--x"))),
        ("uvx a-server --tz UTC", PypiSource(("a-server",), "a-server", "", ("--tz", "UTC"))),
        ("uvx server@1.2", PypiSource(("server==1.2",), "server")),
        ("uvx server@latest", PypiSource(("server",), "server")),
        ("uvx server[extra]", PypiSource(("server[extra]",), "server")),
        ("uvx --from pack==1 --with other tool", PypiSource(("pack==1", "other"), "tool")),
        ("uv tool run server", PypiSource(("server",), "server")),
        ("python -m a_server -r x", PypiSource(("a-server",), "", "a_server", ("-r", "x"))),
        ("python3.12 -m pack.cli", PypiSource(("pack",), "", "pack.cli")),
        ("docker run -i --rm -e KEY ghcr.io/some/server:1", ImageSource("ghcr.io/some/server:1")),
        (
            "docker run --env=KEY --name x -it server stdio -v",
            ImageSource("server", ("stdio", "-v")),
        ),
    ],
)
def test_a_known_command_is_understood(line: str, source: object) -> None:
    assert parse_command(line.split()) == source


def test_python_takes_packages_and_files(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text("")
    path = str(tmp_path / "server.py")
    assert parse_command(["python", path, "x"]) == ScriptSource(Path(path), ("x",))
    assert parse_command(["python", "-m", "mod"], ["a==1", "b"]) == PypiSource(
        ("a==1", "b"), module="mod"
    )


@pytest.mark.parametrize(
    "line",
    [
        "",
        "npx",
        "npx -y",
        "npx -c sh",
        "npx --registry=http://evil x",
        "uvx",
        "uvx --index-url http://evil x",
        "uvx --from",
        "python",
        "python -c code",
        "python missing.py",
        "node server.js",
        "docker",
        "docker run -i --rm",
        "docker run -v /:/host image",
        "docker run --privileged image",
        "docker run --network=host image",
        "docker exec -i container server",
        "bash -c x",
    ],
)
def test_what_cannot_be_fetched_ahead_is_refused_with_what_can(line: str) -> None:
    with pytest.raises(OrchestratorError, match="--image"):
        parse_command(line.split())


def test_a_variable_s_value_in_a_command_is_not_kept_with_the_server() -> None:
    with pytest.raises(OrchestratorError, match="value of KEY in its command") as refused:
        parse_command(["docker", "run", "-e", "KEY=hunter2", "image"])
    assert "hunter2" not in str(refused.value)


def test_an_approved_call_is_that_tool_with_those_arguments_of_that_version() -> None:
    made = foreign(BENIGN)
    assert made.launch is not None
    tools = (RemoteTool("add_note", "addNote"), RemoteTool("get_echo", "get-echo"))
    pins = {"addNote": "1" * 64, "get-echo": "2" * 64}
    made = replace(made, launch=replace(made.launch, tools=tools, pins=pins))
    same = digest_request(build_tool_request(made, "add_note", {"a": 1, "b": [2]}))
    assert digest_request(build_tool_request(made, "add_note", {"b": [2], "a": 1})) == same
    assert made.launch is not None
    repinned = replace(made.launch, pins={**pins, "addNote": "3" * 64})
    others = [
        build_tool_request(made, "add_note", {"a": 1, "b": [2, 2]}),
        build_tool_request(made, "get_echo", {"a": 1, "b": [2]}),
        build_tool_request(replace(made, version=2), "add_note", {"a": 1, "b": [2]}),
        build_tool_request(replace(made, name="other"), "add_note", {"a": 1, "b": [2]}),
        build_tool_request(replace(made, launch=repinned), "add_note", {"a": 1, "b": [2]}),
    ]
    assert same not in {digest_request(other) for other in others}
