"""Storing finished calls in a process of its own, while there are many.

A group of calls takes milliseconds, and a call that is answered meanwhile waits for them: both take
turns at the interpreter, ten times a call (`bench.call`). Beside it they cost that call nothing,
and what was handed over outlives a SIGKILL of the process that answers.

    python -m registry.calls.record_process DATABASE PROCESS RECORDINGS_BYTES

is that process, with one end of a socket pair as its standard input. Both ends are this program,
and nobody else has the pair, so what is said on it is pickled. A frame is its length in four bytes
and that many bytes: to it a `Handover`; back, where that is to be stored, the standings of all that
it holds, or nothing where they could not be stored. What it holds at the end it stores.
"""

from __future__ import annotations

import asyncio
import os
import pickle  # nosec B403 # both ends of the pair are this program
import signal
import socket
import struct
import sys
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from io import BufferedReader

from registry.calls.invocations import CallTable
from registry.database.canonical import BoundedJson
from registry.database.engine import Database
from registry.models import Invocation
from registry.trust import Standing
from sandbox.modulepath import RUN_MODULE, join_module_path

BUSY_CALLS = 200
PER_SECOND = 20
"""A process is started at BUSY_CALLS calls more than PER_SECOND: it takes a second to start and 50
MB, which a client that calls now and then should not pay.
"""
LARGE_CALLS = 20
"""As so many counts one whose result is large, and so came bounded: to store it takes as long."""
REST_SECONDS = 60.0
"""It is ended when no call came for so long."""
START_SECONDS, ANSWER_SECONDS, END_SECONDS = 60.0, 15.0, 5.0
"""How long it may take; a transaction waits up to 10 s for another process's."""

NICENESS = 5

_LENGTH = struct.Struct("!I")
_UNPICKLED = (pickle.PicklingError, TypeError, AttributeError, RecursionError)


@dataclass(frozen=True)
class Handover:
    """Calls that go behind the `held` first of those that the process holds already, in the place
    of any others; with them and `now` and `complete` of `CallTable.record_many` it is to store all
    of them, at the end or, where it is `due`, now.
    """

    held: int
    calls: tuple[Invocation, ...]
    now: float
    complete: int
    due: bool


class CallRate:
    """How many calls have come of late, beyond PER_SECOND."""

    def __init__(self) -> None:
        self._level, self._counted = 0.0, 0.0

    def count_calls(self, calls: int, now: float) -> bool:
        """Count calls that have ended; whether there are many."""
        gone = (now - self._counted) * PER_SECOND
        self._level, self._counted = max(0.0, self._level - gone) + calls, now
        return self._level >= BUSY_CALLS


class RecordOffload:
    """Has groups of calls stored by a process of its own, from when there are many until none came
    for a while. That process has no say: what it cannot store, whoever asked stores itself.
    """

    def __init__(
        self, database: str, process: str, recordings_bytes: int, rest_seconds: float = REST_SECONDS
    ) -> None:
        """`process` is the one whose audit chain the calls are written to."""
        self._words = (database, process, str(recordings_bytes))
        self._rest_seconds = rest_seconds
        self._rate, self._used = CallRate(), 0.0
        self._child: _RecordProcess | None = None
        self._starting: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._ending: set[asyncio.Task[None]] = set()
        self._closed = False
        self._held = 0
        self.held_bytes = 0
        """Of the frames of the calls that the process holds."""

    @property
    def process_id(self) -> int | None:
        """That of the process that stores; None where there is none."""
        return None if self._child is None else self._child.process_id

    async def hold_calls(self, calls: Sequence[Invocation], now: float, complete: int) -> bool:
        """Have calls held by the process, behind those that it holds: it stores them with a later
        group, or when this process has ended. False where nobody holds them.
        """
        child = self._child
        if child is None:
            return False
        frame = self._write_frame(calls, now, complete, due=False)
        if not frame:
            return False
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await child.send(frame)
        except OSError:
            self._end_child()
            return False
        if self._child is not child:
            # It was ended for its rest meanwhile; the next one holds nothing.
            return False
        self._held += len(calls)
        self.held_bytes += len(frame)
        return True

    async def store_group(
        self, calls: Sequence[Invocation], now: float, complete: int
    ) -> tuple[Standing, ...] | None:
        """Store calls, as `CallTable.record_many` does; they begin with those that are held, which
        are not sent again. None where they are not stored, or where it is not known: storing them
        again changes nothing then.
        """
        self._used = asyncio.get_running_loop().time()
        weight = sum(LARGE_CALLS if isinstance(call.result, BoundedJson) else 1 for call in calls)
        if self._rate.count_calls(weight, self._used):
            self._start_child()
        child = self._child
        if child is None:
            return None
        frame = self._write_frame(calls[self._held :], now, complete, due=True)
        self._held = self.held_bytes = 0
        if not frame:
            return None
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return await child.ask(frame)
        except BaseException as error:
            # An answer that still comes would be taken for the next one's.
            self._end_child()
            if isinstance(error, OSError | EOFError | pickle.UnpicklingError):
                return None
            raise

    def _write_frame(
        self, calls: Sequence[Invocation], now: float, complete: int, due: bool
    ) -> bytes:
        """Nothing where the calls cannot be pickled."""
        try:
            handover = Handover(self._held, tuple(calls), now, complete, due)
            return pickle.dumps(handover, pickle.HIGHEST_PROTOCOL)
        except _UNPICKLED:
            return b""

    async def close(self) -> None:
        """End the process, when it has stored what it was given."""
        self._closed = True
        if self._starting is not None:
            await asyncio.wait({self._starting})
        self._end_child()
        while self._ending:
            await asyncio.wait(self._ending)

    def _start_child(self) -> None:
        if self._child is None and self._starting is None and not self._closed:
            self._starting = asyncio.get_running_loop().create_task(self._open_child())

    async def _open_child(self) -> None:
        try:
            self._child = await _RecordProcess.start(self._words)
            self._timer = asyncio.get_running_loop().call_later(self._rest_seconds, self._rest)
        except (OSError, EOFError):
            # This process stores, as without it. It is tried again when calls are many again.
            self._rate = CallRate()
        finally:
            self._starting = None

    def _rest(self) -> None:
        loop = asyncio.get_running_loop()
        left = self._used + self._rest_seconds - loop.time()
        if left <= 0:
            self._end_child()
        else:
            self._timer = loop.call_later(left, self._rest)

    def _end_child(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._child is not None:
            task = asyncio.get_running_loop().create_task(self._child.end())
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)
            self._child = None
        self._held = self.held_bytes = 0


class _RecordProcess:
    """The process, as the one that started it sees it."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self._process, self._reader, self._writer = process, reader, writer

    @property
    def process_id(self) -> int:
        return self._process.pid

    @classmethod
    async def start(cls, words: Sequence[str]) -> _RecordProcess:
        """It has opened the database when this returns. Raises OSError, EOFError."""
        ours, theirs = socket.socketpair()
        with theirs, ExitStack() as stack:
            stack.callback(ours.close)
            process = await asyncio.create_subprocess_exec(
                *RUN_MODULE,
                __name__,
                *words,
                stdin=theirs.fileno(),
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
                process_group=0,
                cwd="/",
                env={**os.environ, "PYTHONPATH": join_module_path()},
            )
            # It is the stream's from here on.
            stack.pop_all()
        child = cls(process, *await asyncio.open_connection(sock=ours))
        try:
            async with asyncio.timeout(START_SECONDS):
                await child._read_frame()
        except BaseException:
            await child.end()
            raise
        return child

    async def send(self, frame: bytes) -> None:
        self._writer.write(_LENGTH.pack(len(frame)) + frame)
        await self._writer.drain()

    async def ask(self, frame: bytes) -> tuple[Standing, ...] | None:
        await self.send(frame)
        answer = await self._read_frame()
        if not answer:
            return None
        standings: tuple[Standing, ...] = pickle.loads(answer)  # nosec B301
        return standings

    async def end(self) -> None:
        self._writer.close()
        with suppress(OSError):
            await self._writer.wait_closed()
        try:
            async with asyncio.timeout(END_SECONDS):
                await self._process.wait()
        except TimeoutError:
            with suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()

    async def _read_frame(self) -> bytes:
        (length,) = _LENGTH.unpack(await self._reader.readexactly(_LENGTH.size))
        return await self._reader.readexactly(length)


def store_frames(calls: CallTable, pair: socket.socket) -> None:
    """Store what comes on a socket until its end, also where nobody reads the answers any more."""
    held: list[Invocation] = []
    with pair.makefile("rb") as stream:
        _send_frame(pair, b"")
        while frame := _read_frame(stream):
            given: Handover = pickle.loads(frame)  # nosec B301
            held[given.held :] = given.calls
            if given.due:
                _send_frame(pair, _store_held(calls, held, given))
                held.clear()
        if held and not _store_held(calls, held, given):
            # Nobody else has them any more: one that cannot be stored takes no other with it.
            for call in held:
                _store_held(calls, [call], given)


def _store_held(calls: CallTable, held: Sequence[Invocation], given: Handover) -> bytes:
    """What is told of calls that are to be stored; nothing where they could not be."""
    try:
        return pickle.dumps(calls.record_many(held, given.now, given.complete))
    except Exception:
        # Whoever asked tries it again by itself, and says why not.
        return b""


def _read_frame(stream: BufferedReader) -> bytes:
    """The next frame; nothing at the end, or where the last one is not whole."""
    try:
        head = stream.read(_LENGTH.size)
        if len(head) < _LENGTH.size:
            return b""
        (length,) = _LENGTH.unpack(head)
        frame = stream.read(length)
    except ConnectionError:
        return b""
    return frame if len(frame) == length else b""


def _send_frame(pair: socket.socket, frame: bytes) -> None:
    with suppress(ConnectionError):
        pair.sendall(_LENGTH.pack(len(frame)) + frame)


def main() -> None:
    # Whoever started it ends it, by closing the pair; a terminal or a service manager does not.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    # What it does is in no hurry: the sandboxes and who asks them come first.
    os.nice(NICENESS)
    location, process, recordings_bytes = sys.argv[1:]
    database = Database(location)
    try:
        with socket.socket(fileno=os.dup(0)) as pair:
            store_frames(CallTable(database, process, int(recordings_bytes)), pair)
    finally:
        database.close()


if __name__ == "__main__":
    main()
