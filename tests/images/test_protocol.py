"""Both eras of MCP, and loading a bundle, against a real process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sandbox.bundle.model import RequestPattern, ToolDefinition
from tests.images.conftest import Start
from tests.images.host import ENVELOPE, definition, load_params

ECHO = """
from toolwright import tool

@tool
def echo(value=None):
    return {"value": value}
"""


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_an_initialize_of_a_known_revision_is_answered_with_it(start: Start, version: str) -> None:
    host = start()
    host.load(ECHO, definition("echo"), description="What it is for.")
    result = host.initialize(version)["result"]
    assert result["protocolVersion"] == version
    assert result["capabilities"] == {"tools": {}}
    assert result["serverInfo"] == {"name": "sample", "title": "Sample", "version": "3"}
    assert result["instructions"] == "What it is for."


@pytest.mark.parametrize("version", ["1999-01-01", "2026-07-28", "2027-01-01", 7, None])
def test_an_initialize_of_any_other_revision_is_answered_with_the_newest_of_its_era(
    start: Start, version: Any
) -> None:
    assert start().initialize(version)["result"]["protocolVersion"] == "2025-11-25"


def test_a_second_initialize_cannot_change_whether_there_is_a_broker(start: Start) -> None:
    host = start()
    host.serve_bundle(ECHO, definition("echo"))
    assert host.initialize(brokered=False)["error"]["code"] == -32600


def test_the_legacy_era_pings_lists_and_calls(start: Start) -> None:
    host = start()
    host.serve_bundle(ECHO, definition("echo"))
    host.notify("notifications/initialized")
    assert host.request("ping")["result"] == {}
    result = host.request("tools/list")["result"]
    assert set(result) == {"tools"}
    assert host.call("echo", value=[1, {"a": None}]) == {
        "content": [{"type": "text", "text": '{"value": [1, {"a": null}]}'}],
        "structuredContent": {"value": [1, {"a": None}]},
    }


def test_a_tool_is_listed_as_its_definition_says_and_where_it_goes(start: Start) -> None:
    tool = ToolDefinition(
        name="echo",
        description="Echo.",
        input_schema={"type": "object", "properties": {"value": {"type": "string"}}},
        output_schema={"type": "object"},
        access="write",
        operation="echoIt",
        destructive=True,
        requests=(RequestPattern("PUT", "https://api.test/v1/echo/{value}"),),
    )
    plain = json.loads(json.dumps({**vars(tool), "requests": [vars(tool.requests[0])]}))
    host = start()
    host.serve_bundle(ECHO, plain)
    (listed,) = host.request("tools/list")["result"]["tools"]
    assert listed == tool.build_listing("https://api.test/v1")
    assert listed["_meta"]["toolwright"]["path"] == "/echo/{value}"


def test_the_list_has_one_page(start: Start) -> None:
    host = start()
    host.serve_bundle(ECHO, definition("echo"))
    assert host.request("tools/list", cursor="x")["error"]["code"] == -32602


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("resources/list", {}, -32601),
        ("server/discover", {}, -32601),
        ("tools/call", {"name": "absent"}, -32602),
        ("tools/call", {}, -32602),
        ("tools/call", {"name": ["echo"]}, -32602),
        ("tools/call", {"name": "echo", "arguments": [1]}, -32602),
    ],
)
def test_what_is_not_offered_is_a_protocol_error(
    start: Start, method: str, params: dict[str, Any], code: int
) -> None:
    host = start()
    host.serve_bundle(ECHO, definition("echo"))
    assert host.request(method, **params)["error"]["code"] == code


def modern(**params: Any) -> dict[str, Any]:
    return {"_meta": ENVELOPE, **params}


def test_the_modern_era_discovers_lists_and_calls(start: Start) -> None:
    host = start()
    host.load(ECHO, definition("echo"))
    found = host.request("server/discover", **modern())["result"]
    assert found["supportedVersions"] == ["2026-07-28"]
    listed = host.request("tools/list", **modern())["result"]
    called = host.request("tools/call", **modern(name="echo", arguments={"value": 1}))["result"]
    for result in (found, listed, called):
        assert result["resultType"] == "complete"
        stamp = result["_meta"]["io.modelcontextprotocol/serverInfo"]
        assert stamp["name"] == "sample"
    for result in (found, listed):
        assert isinstance(result["ttlMs"], int)
        assert result["cacheScope"] == "private"
    assert called["structuredContent"] == {"value": 1}


def test_the_first_request_fixes_the_era(start: Start) -> None:
    host = start()
    host.load(ECHO, definition("echo"))
    assert "result" in host.request("tools/list", **modern())
    refused = host.initialize()["error"]
    assert refused["code"] == -32022
    assert refused["data"] == {"supported": ["2026-07-28"], "requested": "2025-11-25"}
    assert host.request("tools/list")["error"]["code"] == -32602
    assert host.request("ping", **modern())["error"]["code"] == -32601


def test_a_legacy_connection_takes_no_modern_request(start: Start) -> None:
    host = start()
    host.serve_bundle(ECHO, definition("echo"))
    assert host.request("tools/list", **modern())["error"]["code"] == -32600
    assert "result" in host.request("tools/list")


def test_an_unknown_modern_revision_is_refused_and_leaves_the_old_era_open(start: Start) -> None:
    host = start()
    host.load(ECHO, definition("echo"))
    meta = {**ENVELOPE, "io.modelcontextprotocol/protocolVersion": "2031-01-01"}
    refused = host.request("server/discover", _meta=meta)["error"]
    assert refused["code"] == -32022
    assert refused["data"]["supported"] == ["2026-07-28"]
    assert "result" in host.initialize()


def test_a_modern_request_without_capabilities_is_refused(start: Start) -> None:
    host = start()
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
    refused = host.request("server/discover", _meta=meta)["error"]
    assert refused["code"] == -32602
    assert "clientCapabilities" in refused["message"]


def test_a_bundle_is_loaded_once(start: Start) -> None:
    host = start()
    assert host.load(ECHO, definition("echo"))["result"] == {"tools": 1}
    assert host.load(ECHO, definition("echo"))["error"]["code"] == -32600


def test_a_bundle_that_failed_is_not_replaced_by_another(start: Start) -> None:
    host = start()
    assert host.load("oops", definition("echo"))["error"]["code"] == -32001
    assert host.load(ECHO, definition("echo"))["error"]["code"] == -32600


def test_without_a_bundle_nothing_is_listed_or_called(start: Start) -> None:
    host = start()
    assert "result" in host.initialize()
    assert host.request("tools/list")["error"]["code"] == -32001
    assert host.request("tools/call", name="echo")["error"]["code"] == -32001


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("def broken(:\n    pass\n", "server.py line 1: SyntaxError"),
        (ECHO + "\nfoo = 1 /\n", "server.py line 8: SyntaxError"),
        (ECHO + "\n\n1 / 0\n", "server.py line 9: ZeroDivisionError"),
        (ECHO + "\nraise SystemExit(0)\n", "server.py line 8: SystemExit"),
        (ECHO + "\nimport nothing_of_the_kind\n", "server.py line 8: ModuleNotFoundError"),
        ("\0", "server.py line ?: "),
        ("", "server.py has no @tool echo"),
        (ECHO + "\n@tool\ndef other():\n    pass\n", "does not describe the @tool other (line 8)"),
        (ECHO.replace("def echo", "async def echo"), "@tool echo is not a plain function"),
        ("x = " + "(" * 5000, "server.py line 1: "),
        ("raise ValueError('x' * 100_000)", "server.py line 1: ValueError: xxx"),
    ],
)
def test_code_that_does_not_load_is_told_with_its_line(
    start: Start, source: str, told: str
) -> None:
    error = start().load(source, definition("echo"))["error"]
    assert error["code"] == -32001
    assert told in error["message"]
    assert len(error["message"].encode()) <= 2048


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"manifest": {}, "tools": {}, "source": ""},
        {"manifest": [], "tools": [], "source": ""},
        {"manifest": {}, "tools": [{"name": "x"}], "source": ""},
        {"manifest": {}, "tools": [definition("echo", requests=["x"])], "source": ECHO},
        {"manifest": {}, "tools": [definition("echo", input_schema=[])], "source": ECHO},
    ],
)
def test_a_bundle_that_is_none_is_refused(start: Start, params: dict[str, Any]) -> None:
    assert start().request("toolwright/load", **params)["error"]["code"] == -32001


def write_bundle(directory: Path, source: str) -> None:
    params = load_params(source, definition("echo"))
    (directory / "manifest.json").write_text(json.dumps(params["manifest"]))
    (directory / "tools.json").write_text(json.dumps({"tools": params["tools"]}))
    (directory / "server.py").write_text(source)


def test_an_image_with_a_bundle_serves_at_once_and_takes_no_other(
    start: Start, tmp_path: Path
) -> None:
    write_bundle(tmp_path, ECHO)
    host = start(str(tmp_path))
    assert host.load("", definition("echo"))["error"]["code"] == -32600
    host.initialize(brokered=False)
    assert host.call("echo", value=2)["structuredContent"] == {"value": 2}


def test_an_image_with_a_broken_bundle_says_so_and_ends(start: Start, tmp_path: Path) -> None:
    write_bundle(tmp_path, "1 / 0")
    status, said = start(str(tmp_path)).finish()
    assert status == 1
    assert b"server.py line 1: ZeroDivisionError" in said
