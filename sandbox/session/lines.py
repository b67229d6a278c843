"""The lines that a sandbox writes: cut, bounded, parsed in order, large ones beside the loop."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from sandbox.budget import SMALL_BYTES, ByteBudget
from sandbox.errors import BytesExhausted, SessionBroken
from sandbox.offload import INLINE_BYTES, INLINE_SECONDS, Workbench
from sandbox.session.interface import Limits
from sandbox.wire.framing import LineGuard, Message, find_answered, is_id, parse_message

UNREAD = (
    "the server leaves unread what it is sent, or sends more at once than is taken. Change it so "
    "that it reads each answer before it asks on."
)
NO_ANSWER = (
    "what the server sent in place of an answer cannot be read as one: it is no JSON-RPC answer to "
    "this call, is nested too deep or holds too many values. Change the tool so that it returns "
    "less at once."
)


@dataclass(frozen=True)
class LineEnds:
    """What lines come from and go to. `count_unread` is the bytes that were written to the sandbox
    and not read by it, `receive` takes a message and may raise SessionBroken, `end` ends the
    session.
    """

    count_unread: Callable[[], int]
    receive: Callable[[Message], None]
    end: Callable[[Exception | None], None]


class LineIntake:
    """Takes up what a sandbox writes. A large line, and all that come while one is read, wait for
    those before them.

    What was written and not read, and the lines that are coming in or wait to be parsed, are held
    within a budget of the session.
    """

    def __init__(
        self, limits: Limits, memory: ByteBudget | None, workbench: Workbench, ends: LineEnds
    ) -> None:
        self._limits, self._workbench, self._ends = limits, workbench, ends
        self._guard = LineGuard(limits.line_bytes, limits.answer_bytes)
        self.note_answer = self._guard.note_answer
        room = limits.call_bytes + limits.line_bytes
        self._buffers = ByteBudget(room, UNREAD, memory, SMALL_BYTES)
        self._backlog: deque[tuple[bytes, str | None]] = deque()
        """Lines that wait for a large one before them to be parsed, with the request that each is
        known to answer."""
        self._unparsed = 0
        """Bytes of those lines, and of the one that is being parsed."""
        self._parsing: asyncio.Task[None] | None = None
        self._stopped = False
        self._ended_meanwhile = False

    def feed(self, chunk: bytes) -> None:
        """Bytes from the sandbox's stdout."""
        try:
            for line in self._guard.split_lines(chunk):
                self._receive_line(line)
            self.count(0)
        except SessionBroken as error:
            self._ends.end(error)
        except BytesExhausted as error:
            self._ends.end(SessionBroken(str(error)))

    def feed_answer(self, identity: str, line: bytes) -> None:
        """The answer to a request, from an engine that knows which one a sandbox is at. Anything
        but an answer to it fails that request.
        """
        try:
            self._guard.admit_line(line)
            self._receive_line(line, identity)
            self.count(0)
        except SessionBroken as error:
            self._ends.end(error)

    def count(self, more: int) -> None:
        """Hold what is unread and waits, and that many bytes more. Raises BytesExhausted."""
        if not self._stopped:
            waiting = self._guard.pending + self._unparsed
            self._buffers.hold(self._ends.count_unread() + waiting + more)

    def postpone_end(self) -> bool:
        """Whether the sandbox's last words are being parsed, so that who waits for them may have
        them; the session is then ended after them.
        """
        self._ended_meanwhile = self._ended_meanwhile or self._parsing is not None
        return self._parsing is not None

    def forget(self) -> None:
        """Drop what waits, so that nothing postpones the end any more."""
        self._backlog.clear()
        self._parsing = None

    def stop(self) -> None:
        """Drop what waits, and hold nothing any more."""
        self._backlog.clear()
        self._stopped = True
        self._buffers.hold(0)

    def _receive_line(self, line: bytes, asked: str | None = None) -> None:
        """Take a line up: a large one, and all that come while one is read, after those that wait.
        Raises SessionBroken.
        """
        if self._parsing is None and len(line) <= INLINE_BYTES:
            self._ends.receive(_read_line(line, self._limits.nesting, asked))
            return
        if self._stopped:
            return
        self._backlog.append((line, asked))
        self._unparsed += len(line)
        if self._parsing is None:
            self._parsing = asyncio.get_running_loop().create_task(self._parse_backlog())

    async def _parse_backlog(self) -> None:
        """Parse the waiting lines in their order, large ones beside the event loop, small ones in
        turns with all else that runs.
        """
        try:
            begun = time.thread_time()
            while self._backlog and not self._stopped:
                if time.thread_time() - begun > INLINE_SECONDS:
                    await asyncio.sleep(0)
                    begun = time.thread_time()
                    continue
                line, asked = self._backlog.popleft()
                read = partial(_read_line, line, self._limits.nesting, asked)
                message = await self._workbench.run_sized(len(line), read)
                self._unparsed -= len(line)
                if not self._stopped:
                    self.count(0)
                    self._ends.receive(message)
        except SessionBroken as error:
            self._ends.end(error)
        except BytesExhausted as error:
            self._ends.end(SessionBroken(str(error)))
        finally:
            self._parsing = None
            if self._ended_meanwhile:
                self._ends.end(None)


def is_answer(message: Mapping[str, Any]) -> bool:
    """Whether a message is a JSON-RPC answer: a result or an error, and no request."""
    return "method" not in message and ("result" in message) != ("error" in message)


def _read_line(line: bytes, nesting: int, asked: str | None = None) -> Message:
    """The message of a line. What cannot be read as one is an error in answer to the request whose
    id it carries; with `asked`, to that one, as is all that does not answer it.
    """
    message = parse_message(line, nesting)
    if asked is None:
        return message if message is not None else build_unreadable(find_answered(line))
    if message is None or not is_answer(message):
        return build_unreadable(asked)
    identity = message.get("id")
    return message if is_id(identity) and str(identity) == asked else build_unreadable(asked)


def build_unreadable(identity: str) -> Message:
    return Message(id=identity, error={"code": -32700, "message": NO_ANSWER})
