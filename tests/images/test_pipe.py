"""The pipe: concurrency, cancellation, odd and hostile input, a real process each time."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.images.conftest import Start
from tests.images.host import Host, answer, definition

SOURCE = """
import sys, os, threading
from toolwright import http, tool

@tool
def echo(value=None):
    return {"value": value}

@tool
def fetch(key):
    return http.request("GET", "/items/{key}", path={"key": key})

@tool
def noisy():
    print("to stdout")
    sys.stdout.write('{"jsonrpc":"2.0","id":1,"result":{}}\\n')
    os.write(1, b"raw\\n")
    os.system("echo from a child")
    try:
        asked = input()
    except EOFError:
        asked = "nothing"
    return {"asked": asked}

@tool
def stubborn(key):
    try:
        http.request("GET", "/items/{key}", path={"key": key})
    except Exception:
        return {"caught": True}

@tool
def background():
    threading.Thread(target=threading.Event().wait).start()
    return {}
"""
NAMES = ("echo", "fetch", "noisy", "stubborn", "background")


@pytest.fixture
def host(start: Start) -> Host:
    host = start()
    host.serve_bundle(SOURCE, *map(definition, NAMES))
    return host


def begin(host: Host, identity: Any, key: str, tool: str = "fetch") -> None:
    host.send("tools/call", {"name": tool, "arguments": {"key": key}}, identity)


def reply(host: Host, asked: dict[str, Any], body: Any) -> None:
    told = {"jsonrpc": "2.0", "id": asked["id"], **answer(200, body)}
    host.send_line(json.dumps(told).encode())


def test_eight_calls_wait_for_the_host_at_once_and_a_ninth_for_them(host: Host) -> None:
    for number in range(9):
        begin(host, f"c{number}", str(number))
    asked = [host.receive() for _ in range(8)]
    assert len({message["id"] for message in asked}) == 8
    assert {message["params"]["call"] for message in asked} == {f"c{n}" for n in range(8)}
    assert "result" in host.wait(host.send("ping"))
    reply(host, asked[5], {"n": 5})
    first, second = sorted((host.receive(), host.receive()), key=lambda m: "method" in m)
    assert first["id"] == asked[5]["params"]["call"]
    assert first["result"]["structuredContent"]["body"] == {"n": 5}
    assert second["params"]["call"] == "c8"


def test_a_cancelled_call_stops_waiting_and_is_not_answered(host: Host) -> None:
    begin(host, "gone", "a", "stubborn")
    host.receive()
    host.notify("notifications/cancelled", requestId="gone", reason="too late")
    begin(host, "next", "b")
    asked = host.receive()
    assert asked["params"]["call"] == "next"
    reply(host, asked, {})
    assert host.receive()["id"] == "next"


def test_a_late_answer_to_a_cancelled_request_is_dropped(host: Host) -> None:
    begin(host, "gone", "a")
    asked = host.receive()
    host.notify("notifications/cancelled", requestId="gone")
    reply(host, asked, {"secret": 1})
    assert host.call("echo", value=1)["structuredContent"] == {"value": 1}


@pytest.mark.parametrize("identity", [None, True, 1.5, "unknown", {"a": 1}, [1]])
def test_a_cancellation_of_nothing_is_ignored(host: Host, identity: Any) -> None:
    host.notify("notifications/cancelled", requestId=identity)
    assert host.request("ping")["result"] == {}


def test_two_running_calls_never_share_an_id(host: Host) -> None:
    begin(host, "same", "a")
    asked = host.receive()
    begin(host, "same", "b")
    assert host.receive()["error"]["code"] == -32600
    reply(host, asked, {"first": True})
    assert host.receive()["result"]["structuredContent"]["body"] == {"first": True}
    begin(host, "same", "c")
    assert host.receive()["params"]["url"].endswith("/items/c")


def test_an_id_may_be_a_number_or_a_text_and_they_differ(host: Host) -> None:
    begin(host, 1, "a")
    begin(host, "1", "b")
    asked = [host.receive(), host.receive()]
    assert [message["params"]["call"] for message in asked] in ([1, "1"], ["1", 1])


def test_nothing_the_code_prints_reaches_the_wire(host: Host) -> None:
    assert host.call("noisy")["structuredContent"] == {"asked": "nothing"}
    assert host.request("ping")["result"] == {}
    status, said = host.finish()
    assert status == 0
    for text in (b"to stdout", b"raw", b"from a child"):
        assert text in said


@pytest.mark.parametrize(
    "line",
    [
        b"garbage",
        b"\xff\xfe\x00",
        b"{",
        b'{"jsonrpc":"2.0","id":1,"method":"ping"',
        b'{"a":NaN,}',
        b"[" * 200_000,
        b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
        b'{"id": ' + b"9" * 10_000 + b"}",
    ],
    ids=["text", "bytes", "brace", "cut", "comma", "arrays", "objects", "digits"],
)
def test_a_line_that_is_not_json_is_a_parse_error(host: Host, line: bytes) -> None:
    host.send_line(line)
    message = host.receive()
    assert (message["id"], message["error"]["code"]) == (None, -32700)
    assert host.request("ping")["result"] == {}


@pytest.mark.parametrize(
    "line",
    [
        b"[]",
        b"1",
        b"null",
        b'"x"',
        b"{}",
        b'{"jsonrpc":"2.0","id":null,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":true,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":[1],"method":"ping"}',
        b'{"jsonrpc":"1.0","id":7,"method":"ping"}',
        b'{"id":7,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":7,"method":5}',
    ],
)
def test_a_message_that_is_no_request_is_an_invalid_request(host: Host, line: bytes) -> None:
    host.send_line(line)
    assert host.receive()["error"]["code"] == -32600
    assert host.request("ping")["result"] == {}


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"   \r",
        b'{"jsonrpc":"2.0","id":"r1","result":{}}',
        b'{"jsonrpc":"2.0","id":["r1"],"result":{}}',
        b'{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}',
        b'{"jsonrpc":"2.0","method":"notifications/unknown","params":[]}',
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":[]}',
        b'{"jsonrpc":"2.0","method":"notifications/cancelled"}',
    ],
)
def test_what_needs_no_answer_gets_none(host: Host, line: bytes) -> None:
    host.send_line(line)
    assert host.request("ping")["result"] == {}


@pytest.mark.parametrize("result", [None, [], {}, {"status": "x"}, {"status": 200, "headers": 1}])
def test_a_host_answer_that_is_none_fails_the_call_only(host: Host, result: Any) -> None:
    host.broker = lambda params: {"result": result}
    told = host.call("fetch", key="a")
    assert told["_meta"]["toolwright/error"]["kind"] == "unreachable"
    assert host.request("ping")["result"] == {}


def test_a_line_past_the_cap_is_passed_over(host: Host) -> None:
    host.send_line(b'{"x":"' + b"x" * (48 * 1024 * 1024) + b'"}')
    assert host.receive()["error"]["code"] == -32600
    assert host.request("ping")["result"] == {}


def test_a_result_past_the_cap_is_a_failure(host: Host) -> None:
    host.broker = lambda params: answer(200, "x" * (21 * 1024 * 1024), content_type="text/plain")
    told = host.call("fetch", key="a")
    assert told["isError"]
    assert told["_meta"]["toolwright/error"]["kind"] == "too_large"


def test_the_end_of_input_ends_the_process_while_calls_wait(host: Host) -> None:
    begin(host, "waits", "a")
    host.receive()
    assert host.finish()[0] == 0


def test_the_end_of_input_ends_the_process_whatever_threads_the_code_left(host: Host) -> None:
    assert host.call("background")["structuredContent"] == {}
    assert host.finish()[0] == 0


def test_a_call_that_came_just_before_the_end_of_input_is_still_answered(host: Host) -> None:
    host.send("tools/call", {"name": "echo", "arguments": {"value": 4}}, "last")
    assert host.process.stdin is not None
    host.process.stdin.close()
    assert host.receive()["result"]["structuredContent"] == {"value": 4}


def test_half_of_a_surrogate_pair_does_not_break_the_line(host: Host) -> None:
    host.send_line(
        b'{"jsonrpc":"2.0","id":9,"method":"tools/call",'
        b'"params":{"name":"echo","arguments":{"value":"\\ud83d"}}}'
    )
    assert host.receive()["result"]["structuredContent"] == {"value": "?"}
