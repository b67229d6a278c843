"""Lines of a client: read one by one, and one that is too long is refused and passed over."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from orchestrator.frontends.pipes import read_line

LIMIT = 2_000


class Told:
    """A writer that keeps what it is given."""

    def __init__(self) -> None:
        self.messages: list[Any] = []

    def write(self, line: bytes) -> None:
        self.messages.append(json.loads(line))


def read_all(content: bytes, piece: int = 700) -> tuple[list[bytes], list[Any]]:
    """The lines that are read of what comes in pieces, and what the client is told."""

    async def run() -> tuple[list[bytes], list[Any]]:
        reader, told = asyncio.StreamReader(limit=LIMIT), Told()

        async def feed() -> None:
            for at in range(0, len(content), piece):
                reader.feed_data(content[at : at + piece])
                await asyncio.sleep(0)
            reader.feed_eof()

        feeding = asyncio.create_task(feed())
        lines = []
        while line := await read_line(reader, told):  # type: ignore[arg-type]
            lines.append(line)
        await feeding
        return lines, told.messages

    return asyncio.run(run())


def test_lines_come_as_they_are_and_the_last_without_its_end() -> None:
    assert read_all(b'{"a":1}\n\n{"b":2}') == ([b'{"a":1}\n', b"\n", b'{"b":2}'], [])


TEXT = json.dumps("x" * 3 * LIMIT + '","id":8}')
PARAMS = f'"params":{{"name":"echo","id":9,"arguments":{{"text":{TEXT},"id":7}}}}'


@pytest.mark.parametrize(
    ("message", "identity"),
    [
        (f'{{"jsonrpc":"2.0","id":5,"method":"tools/call",{PARAMS}}}', 5),
        (f'{{"method":"tools/call",{PARAMS},"jsonrpc":"2.0","id":"a-5"}}', "a-5"),
        (f'{{"method": "tools/call", {PARAMS}, "id": 5, "jsonrpc": "2.0"}} ', 5),
        (f'{{"method":"tools/call",{PARAMS}}}', None),
    ],
)
@pytest.mark.parametrize("piece", [64, 700, 100_000])
def test_a_line_that_is_too_long_is_refused_and_the_next_is_read(
    message: str, identity: Any, piece: int
) -> None:
    lines, told = read_all(message.encode() + b'\n{"next":1}\n', piece)
    assert lines == [b'{"next":1}\n']
    (refused,) = told
    assert refused["id"] == identity
    assert "longer than" in refused["error"]["message"]


def test_the_end_of_the_stream_in_a_line_that_is_too_long_is_the_end() -> None:
    lines, told = read_all(b'{"id":5,"params":"' + b"x" * 3 * LIMIT)
    assert lines == []
    assert [each["id"] for each in told] == [5]
