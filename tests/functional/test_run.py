"""`toolwright run`: one server by itself, on the engine that is there or that was asked for."""

from __future__ import annotations

import json
from contextlib import suppress
from itertools import islice
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest

from orchestrator.frontends.flat_greeting import FOLDER
from tests.functional.commands import command_server
from tests.functional.home import ROOT, SECONDS, Home
from tests.functional.peer import Peer, text
from tests.world.harbour import EXAMPLE, HarbourApi

HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}
STANDS_IN = "servers run on the embedded WASM engine"


@pytest.fixture(scope="module")
def directory(
    toolwright_home: Home, harbour: HarbourApi, tmp_path_factory: pytest.TempPathFactory
) -> str:
    """The bundle of the example API."""
    out = tmp_path_factory.mktemp("bundle") / "quay"
    document = str(EXAMPLE / "openapi.json")
    done = toolwright_home.run("compile", document, "--base-url", harbour.url, "--out", str(out))
    assert done.returncode == 0, done.stderr
    return str(out)


def called(
    home: Home, server: str, *options: str, tool: str = "list_berths", **environment: str
) -> tuple[dict[str, Any], str]:
    """The result of one call by `toolwright run`, and what it said beside."""
    call = {"name": tool, "arguments": {}}
    asked = [("initialize", HELLO), ("tools/call", call)]
    lines = [
        json.dumps({"jsonrpc": "2.0", "id": at, "method": method, "params": params})
        for at, (method, params) in enumerate(asked)
    ]
    environment = {**home.environment, **environment}
    words = "run", server, *options
    with command_server().start(words, environment, PIPE, PIPE, PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(BrokenPipeError):
            process.stdin.write("".join(f"{line}\n" for line in lines).encode())
            process.stdin.flush()
        # Who closes its input goes away: a call is given two seconds then.
        answers = [json.loads(line) for line in islice(process.stdout, len(lines))]
        with suppress(BrokenPipeError):
            process.stdin.close()
        _, told = process.read_to_end(SECONDS)
    return answers[-1]["result"] if answers else {}, told.decode()


def test_a_directory_is_served_on_each_engine(
    directory: str, toolwright_home: Home, engine_name: str
) -> None:
    result, told = called(toolwright_home, directory, "--allow-private", "--engine", engine_name)
    assert result["structuredContent"]["status"] == 200
    assert told == ""


def test_a_write_of_a_directory_is_refused_unless_it_was_allowed(
    directory: str, toolwright_home: Home, harbour: HarbourApi
) -> None:
    before = len(harbour.received("POST"))
    result, _ = called(toolwright_home, directory, "--allow-private", tool="book_berth")
    assert result["isError"]
    assert "--allow-writes" in result["content"][0]["text"]
    assert len(harbour.received("POST")) == before


def test_a_registered_server_is_served_on_each_engine(
    harbour: HarbourApi, toolwright_home: Home, engine_name: str
) -> None:
    result, _ = called(
        toolwright_home,
        "harbour",
        "--no-control",
        *("--engine", engine_name),
        TOOLWRIGHT_ENGINE="auto",
    )
    assert result["structuredContent"]["status"] == 200


def test_a_start_is_answered_by_what_the_one_before_said_while_the_server_is_loaded(
    harbour: HarbourApi, toolwright_home: Home
) -> None:
    with Peer(toolwright_home, "run", "harbour", "--no-control") as first:
        listed = first.request("tools/list")["result"]
    place = toolwright_home.path / FOLDER / "harbour.json"
    kept = place.read_text()
    marked = json.loads(kept)
    marked["card"]["instructions"] = "as it was kept"
    place.write_text(json.dumps(marked))
    with Peer(toolwright_home, "run", "harbour", "--no-control", greet=False) as second:
        hello = second.request("initialize", HELLO)["result"]
        assert hello["instructions"] == "as it was kept"
        second.notify("notifications/initialized")
        assert second.request("tools/list")["result"] == listed
        done = second.request("tools/call", {"name": "list_berths", "arguments": {}})["result"]
        assert done["structuredContent"]["status"] == 200
        assert second.unasked == []
    assert place.read_text() == kept, "what it says now is kept for the next start"


def test_a_write_that_waits_names_no_tool_that_the_server_does_not_have(
    harbour: HarbourApi, toolwright_home: Home
) -> None:
    before = len(harbour.received("POST"))
    result, _ = called(toolwright_home, "harbour", "--no-control", tool="book_berth")
    told = result["content"][0]["text"]
    assert "`toolwright approve " in told
    assert "do not call for it again" in told
    assert "`status`" not in told
    assert len(harbour.received("POST")) == before


@pytest.mark.parametrize(
    ("address", "lines"), [("unix:///nonexistent", 0), ("tcp://127.0.0.1:1", 1)]
)
def test_the_wasm_engine_stands_in_and_only_a_docker_that_fails_is_told_in_one_short_line(
    directory: str, toolwright_home: Home, component: object, address: str, lines: int
) -> None:
    result, told = called(
        toolwright_home,
        directory,
        "--allow-private",
        DOCKER_HOST=address,
        TOOLWRIGHT_ENGINE="",
    )
    assert result["structuredContent"]["status"] == 200
    assert told.count(STANDS_IN) == lines
    assert told.count("\n") == lines
    assert len(told) < 120


def test_an_engine_that_is_not_there_is_an_error_in_a_line(
    directory: str, toolwright_home: Home, tmp_path: Path
) -> None:
    nothing = {"DOCKER_HOST": "unix:///nonexistent", "TOOLWRIGHT_CACHE": str(tmp_path)}
    for engine, words in (
        ("docker", "no container engine answers"),
        ("wasm", "toolwright setup"),
        ("auto", "toolwright setup"),
    ):
        result, told = called(toolwright_home, directory, "--engine", engine, **nothing)
        assert result == {}
        assert words in told
        assert "Traceback" not in told


def test_pictures_documents_and_progress_come_out_of_each_cage(
    toolwright_home: Home, engine_name: str
) -> None:
    conformance = str(ROOT / "tests/fixtures/conformance")
    result, _ = called(
        toolwright_home, conformance, "--engine", engine_name, tool="test_multiple_content_types"
    )
    assert [block["type"] for block in result["content"]] == ["text", "image", "resource"]
    assert result["content"][1]["mimeType"] == "image/png"
    assert result["structuredContent"] == {"parts": 3}
    with Peer(
        toolwright_home, "run", conformance, "--engine", engine_name, with_progress=True
    ) as peer:
        asked = peer.begin_call("test_tool_with_progress")
        assert text(peer.end(asked)["result"]) == "All of it is done."
        assert peer.heard(asked) == [0, 50, 100]
