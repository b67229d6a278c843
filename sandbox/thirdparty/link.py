"""Connections that a sandbox makes, carried over the pipe of its exit (`images/exit/`).

The far side shares a loopback with foreign code, so what comes over the pipe is hostile: a frame
that breaks the rules ends the link and all its streams.
"""

from __future__ import annotations

import asyncio
import struct
from collections import deque
from collections.abc import Awaitable, Callable

READY, OPEN, DATA, END, RESET, CREDIT = range(6)
HEADER = struct.Struct("!BIH")
WINDOW = 256 * 1024
CHUNK = 32 * 1024
MAX_STREAMS = 64

Write = Callable[[bytes], None]


class Stream:
    """One connection. `listener` is the number of the address it was made to."""

    def __init__(self, number: int, listener: int, write: Write) -> None:
        self.number, self.listener = number, listener
        self._write = write
        self._parts: deque[bytes] = deque()
        self._held = 0
        self._credit = WINDOW
        self._changed = asyncio.Event()
        self._ended = self._broken = self._closed = False

    async def read(self) -> bytes:
        """The next bytes, or nothing at their end. Raises ConnectionResetError."""
        while not self._parts:
            if self._broken:
                raise ConnectionResetError
            if self._ended:
                return b""
            await self._change()
        part = self._parts.popleft()
        self._held -= len(part)
        self._send(CREDIT, struct.pack("!I", len(part)))
        return part

    def unread(self, data: bytes) -> None:
        """Put back what was read too far."""
        if data:
            self._held += len(data)
            self._parts.appendleft(data)

    async def write(self, data: bytes) -> None:
        """Send, as fast as the far side takes it. Raises ConnectionResetError."""
        while data:
            if self._broken:
                raise ConnectionResetError
            size = min(self._credit, CHUNK)
            if size:
                self._credit -= len(data[:size])
                self._send(DATA, data[:size])
                data = data[size:]
            else:
                await self._change()

    def end(self) -> None:
        """Say that no more data comes."""
        self._send(END)

    def reset(self) -> None:
        """Break the connection off. Idempotent."""
        self._send(RESET)
        self.broken()

    def received(self, kind: int, payload: bytes) -> bool:
        """Take in a frame; whether it was allowed."""
        if kind == DATA:
            self._held += len(payload)
            self._parts.append(payload)
        elif kind == END:
            self._ended = True
        elif kind == RESET:
            self._broken = True
        elif kind == CREDIT and len(payload) == 4:
            self._credit += struct.unpack("!I", payload)[0]
        else:
            return False
        self._changed.set()
        return self._held <= 2 * WINDOW and self._credit <= 2 * WINDOW

    def broken(self) -> None:
        self._broken = self._closed = True
        self._changed.set()

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()

    def _send(self, kind: int, payload: bytes = b"") -> None:
        if not self._closed:
            self._write(HEADER.pack(kind, self.number, len(payload)) + payload)


class Link:
    """The host's end of an exit's pipe. `serve` answers for each stream, in a task of its own.

    Fed by a container; `ready` returns when the far side listens.
    """

    def __init__(self, write: Write, serve: Callable[[Stream], Awaitable[None]]) -> None:
        self._write, self._serve = write, serve
        self._buffer = bytearray()
        self._streams: dict[int, Stream] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._ready: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._over = False

    async def ready(self) -> bool:
        """Whether the far side listens; False where it ended before."""
        return await asyncio.shield(self._ready)

    def feed(self, chunk: bytes) -> None:
        if self._over:
            return
        self._buffer += chunk
        while len(self._buffer) >= HEADER.size:
            kind, number, length = HEADER.unpack_from(self._buffer)
            end = HEADER.size + length
            if len(self._buffer) < end:
                return
            payload = bytes(self._buffer[HEADER.size : end])
            del self._buffer[:end]
            if not self._received(kind, number, payload):
                self.end()
                return

    def feed_stderr(self, chunk: bytes) -> None:
        """What the far side says of itself helps nobody."""

    def end(self, reason: Exception | None = None) -> None:
        """Break off every stream. Idempotent."""
        if self._over:
            return
        self._over = True
        if not self._ready.done():
            self._ready.set_result(False)
        for stream in self._streams.values():
            stream.broken()
        for task in self._tasks:
            task.cancel()

    async def ended(self) -> None:
        """End, and return when nothing of it runs any more."""
        self.end()
        if self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _received(self, kind: int, number: int, payload: bytes) -> bool:
        if kind == READY:
            if not self._ready.done():
                self._ready.set_result(True)
            return True
        if kind == OPEN:
            return self._opened(number, payload)
        stream = self._streams.get(number)
        return stream is None or stream.received(kind, payload)

    def _opened(self, number: int, payload: bytes) -> bool:
        if number in self._streams or len(payload) != 2 or len(self._streams) > 2 * MAX_STREAMS:
            return False
        stream = Stream(number, struct.unpack("!H", payload)[0], self._write)
        self._streams[number] = stream
        task = asyncio.get_running_loop().create_task(self._served(stream))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return True

    async def _served(self, stream: Stream) -> None:
        try:
            await self._serve(stream)
        except (ConnectionError, TimeoutError):
            pass
        finally:
            stream.reset()
            self._streams.pop(stream.number, None)
