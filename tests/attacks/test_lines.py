"""Lines of a server that cost more to read than to write."""

from __future__ import annotations

import json

import pytest

from sandbox.errors import SessionBroken
from sandbox.wire.framing import LineGuard, parse_message

HEAD = b'{"jsonrpc":"2.0","id":1,"result":'


@pytest.mark.parametrize(
    "line",
    [
        HEAD + b"[" + b"[]," * 1_100_000 + b"1]}",
        HEAD + b"[" + b"{}," * 1_100_000 + b"1]}",
        HEAD + b"[" + b"1," * 4_100_000 + b"1]}",
        HEAD + b"[" * 1000 + b"]" * 1000 + b"}",
        HEAD + b'{"a":' * 1000 + b"1" + b"}" * 1001,
        HEAD + b"1" * 100_000 + b"}",
        HEAD + b"1e999999999999}",
        HEAD + b"NaN}",
        b'\xff\xfe{"jsonrpc":"2.0"}',
        b'{"jsonrpc":"2.0","id":1,"result":"\xed\xa0\x80"}',
        b'[{"jsonrpc":"2.0","id":1,"result":1}]',
        b'{"jsonrpc":"1.0","id":1,"result":1}',
        b"null",
        b"",
    ],
    ids=[
        *("lists", "objects", "values", "depth", "objects-in-objects", "digits", "exponent", "nan"),
        *("other-encoding", "half-a-pair", "batch", "other-version", "null", "nothing"),
    ],
)
def test_a_line_that_is_no_message_or_a_bomb_is_dropped(line: bytes) -> None:
    assert parse_message(line, 128) is None


def test_a_large_answer_is_read() -> None:
    items = [{"id": n, "name": f"item {n}", "tags": ["a", "b"]} for n in range(20_000)]
    result = {"content": [{"type": "text", "text": json.dumps(items)}], "structuredContent": items}
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "result": result}).encode()
    read = parse_message(line, 128)
    assert read is not None
    assert read["result"] == result


def test_a_line_and_what_comes_before_an_answer_have_an_end() -> None:
    guard = LineGuard(line_bytes=1000, answer_bytes=5000)
    assert [len(line) for line in guard.split_lines(b"x" * 999 + b"\n")] == [999]
    with pytest.raises(SessionBroken, match="longer"):
        list(guard.split_lines(b"x" * 1001))
    guard = LineGuard(line_bytes=1000, answer_bytes=5000)
    for _ in range(5):
        list(guard.split_lines(b"x" * 999 + b"\n"))
    with pytest.raises(SessionBroken, match="more than it may before it answers"):
        list(guard.split_lines(b"x" * 999 + b"\n"))
