"""A command's end: ask the resident process, and print what it answers.

Every command that may be answered loads this module before anything else, so it loads little.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TextIO

from orchestrator.cli.progress.working import WorkingLine
from orchestrator.cli.resident.protocol import (
    GREETING,
    MAX_FRAME,
    SENDING,
    TERMINAL,
    FrameInvalid,
    Request,
    Terminal,
    check_peer,
    describe_caller,
    find_home,
    open_place,
    read_length,
    read_object,
    read_patience,
    write_request,
)

FAILED, INTERRUPTED = 1, 130
ANSWER_SECONDS = 20.0
"""For what only looks; it is done anew where no answer came."""
CALL_SECONDS = 3600.0
MAX_LETTERS = 256 << 20
COLUMNS = 80
"""The width of what is no terminal."""
ENDED = (
    "The resident process ended while this call was under way. It may have reached the API, so it "
    "is not made again; `toolwright logs` shows what came of it."
)


class Answer(NamedTuple):
    """What a command prints, as texts for `out` and `err` in their order, and its exit status."""

    parts: tuple[tuple[str, str], ...]
    status: int


def ask_resident(words: Sequence[str], environment: Mapping[str, str], owner: int) -> int | None:
    """The exit status of a command that the resident process answered, printed already. None where
    it was not: then nothing was done and nothing printed. `owner` is the user whose process it has
    to be.
    """
    name = words[0] if words else ""
    if sys.stdout is None or sys.stderr is None:
        # Closed when this process was started; the command itself knows what to do about it.
        return None
    try:
        with (
            WorkingLine(name or "loading", "--json" in words),
            _open_connection(environment, owner) as connection,
        ):
            answer = _ask(connection, name, words, environment)
    except KeyboardInterrupt:
        return INTERRUPTED
    except (OSError, FrameInvalid):
        return None
    return None if answer is None else _print_answer(answer)


@contextmanager
def _open_connection(environment: Mapping[str, str], owner: int) -> Iterator[socket.socket]:
    """A connection that was greeted. Raises OSError, FrameInvalid."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(read_patience(environment))
        with open_place(find_home(environment), owner) as (_, path):
            connection.connect(path)
        check_peer(connection, owner)
        if _read_frame(connection) != GREETING:
            raise FrameInvalid("another protocol")
        yield connection


def _ask(
    connection: socket.socket, name: str, words: Sequence[str], environment: Mapping[str, str]
) -> Answer | None:
    """The answer to a request; None where it was declined, or only looks and was not answered."""
    terminal = _describe_terminal(environment)
    request = write_request(Request(tuple(words), describe_caller(environment), terminal))
    sending = name in SENDING
    # Of a request that did not get through as a whole nothing is done.
    connection.sendall(request)
    connection.settimeout(CALL_SECONDS if sending else ANSWER_SECONDS)
    try:
        return _read_answer(connection)
    except (OSError, FrameInvalid):
        return Answer((("err", f"{ENDED}\n"),), FAILED) if sending else None


def _read_answer(connection: socket.socket) -> Answer | None:
    parts: list[tuple[str, str]] = []
    letters = 0
    while True:
        frame = _read_frame(connection)
        if "declined" in frame:
            return None
        if "status" in frame:
            return Answer(tuple(parts), int(frame["status"]))
        text = str(frame.get("text", ""))
        letters += len(text)
        if letters > MAX_LETTERS:
            raise FrameInvalid("too long an answer")
        parts.append((str(frame.get("to")), text))


def _read_frame(connection: socket.socket) -> dict[str, Any]:
    length = read_length(_read_exactly(connection, 4), MAX_FRAME)
    return read_object(_read_exactly(connection, length))


def _read_exactly(connection: socket.socket, length: int) -> bytes:
    end = time.monotonic() + (connection.gettimeout() or 0)
    content = bytearray()
    while len(content) < length:
        if time.monotonic() > end:
            raise TimeoutError
        came = connection.recv(min(length - len(content), 1 << 20))
        if not came:
            raise ConnectionResetError("the resident process ended")
        content += came
    return bytes(content)


def _describe_terminal(environment: Mapping[str, str]) -> Terminal:
    return Terminal(
        _find_columns(environment),
        sys.stdout.isatty(),
        sys.stderr.isatty(),
        sys.stdout.encoding,
        sys.stderr.encoding,
        {name: environment[name] for name in TERMINAL if name in environment},
    )


def _find_columns(environment: Mapping[str, str]) -> int:
    """The width that rich would find."""
    given = environment.get("COLUMNS", "")
    if given.isdigit():
        return int(given)
    if environment.get("TERM", "").lower() in ("dumb", "unknown"):
        return COLUMNS
    for descriptor in (0, 1, 2):
        try:
            return os.get_terminal_size(descriptor).columns or COLUMNS
        except OSError:
            continue
    return COLUMNS


def _print_answer(answer: Answer) -> int:
    streams: dict[str, TextIO] = {"out": sys.stdout, "err": sys.stderr}
    try:
        for to, text in answer.parts:
            streams[to].write(text)
        for stream in streams.values():
            stream.flush()
    except BrokenPipeError:
        # Whoever read it has gone; the interpreter flushes once more at its end.
        _write_no_more()
        return FAILED
    except OSError as error:
        _write_no_more()
        sys.stderr.write(f"The answer cannot be written: {error.strerror}.\n")
        return FAILED
    return answer.status


def _write_no_more() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
