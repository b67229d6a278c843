"""Multiplexed connections of a sandbox over one pipe to the forwarder (`images/exit/`).

The forwarder shares a loopback with foreign code, so its frames are untrusted: one that breaks the
rules ends the link and all its streams.
"""

from __future__ import annotations

import asyncio
import struct
import time
from collections import deque
from collections.abc import Awaitable, Callable

from sandbox.broker.reading import FairPace

READY, OPEN, DATA, END, RESET, CREDIT = range(6)
HEADER = struct.Struct("!BIH")
WINDOW = 256 * 1024
CHUNK = 32 * 1024
MAX_STREAMS = 64

Write = Callable[[bytes], None]


class LinkStream:
    """One connection. `listener` is the number of the address it was made to.

    What came is given at a fair pace: who takes it apart would not pause for what is there already.
    """

    def __init__(self, number: int, listener: int, write: Write) -> None:
        self.number, self.listener = number, listener
        self._write = write
        self._parts: deque[bytes] = deque()
        self._pace = FairPace()
        self._held = 0
        self._credit = WINDOW
        self._changed = asyncio.Event()
        self._ended = self._broken = self._closed = False

    async def read(self) -> bytes:
        """The next bytes; empty at the end. Raises ConnectionResetError."""
        await self._pace.take_turns()
        while not self._parts:
            if self._broken:
                raise ConnectionResetError
            if self._ended:
                return b""
            await self._wait_change()
        part, room = self._parts.popleft(), self._pace.room
        if len(part) > room:
            self._parts.appendleft(part[room:])
            part = part[:room]
        self._held -= len(part)
        self._send_frame(CREDIT, struct.pack("!I", len(part)))
        self._pace.given = time.thread_time()
        return part

    def unread(self, data: bytes) -> None:
        """Put bytes back at the front."""
        if data:
            self._held += len(data)
            self._parts.appendleft(data)

    async def write(self, data: bytes) -> None:
        """Send data, within the credit of the far side. Raises ConnectionResetError."""
        while data:
            if self._broken:
                raise ConnectionResetError
            size = min(self._credit, CHUNK)
            if size:
                self._credit -= len(data[:size])
                self._send_frame(DATA, data[:size])
                data = data[size:]
            else:
                await self._wait_change()

    def end(self) -> None:
        """Signal the end of our data."""
        self._send_frame(END)

    def reset(self) -> None:
        """Break the connection off. Idempotent."""
        self._send_frame(RESET)
        self.mark_broken()

    def receive_frame(self, kind: int, payload: bytes) -> bool:
        """Process a frame; False if it breaks the rules."""
        if kind == DATA and payload:
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

    def mark_broken(self) -> None:
        self._broken = self._closed = True
        self._changed.set()

    async def _wait_change(self) -> None:
        self._changed.clear()
        await self._changed.wait()

    def _send_frame(self, kind: int, payload: bytes = b"") -> None:
        if not self._closed:
            self._write(HEADER.pack(kind, self.number, len(payload)) + payload)


class Link:
    """The host's end of a forwarder's pipe: a `Listener` of its container. `serve` handles each
    stream in a task of its own.
    """

    def __init__(self, write: Write, serve: Callable[[LinkStream], Awaitable[None]]) -> None:
        self._write, self._serve = write, serve
        self._buffer = bytearray()
        self._streams: dict[int, LinkStream] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._ready: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._over = False

    async def wait_ready(self) -> bool:
        """Wait until the forwarder listens; False if it ended before."""
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
            if not self._receive_frame(kind, number, payload):
                self.end()
                return

    def feed_stderr(self, chunk: bytes) -> None:
        """Ignore the forwarder's stderr."""

    def end(self, reason: Exception | None = None) -> None:
        """Break off every stream. Idempotent."""
        if self._over:
            return
        self._over = True
        if not self._ready.done():
            self._ready.set_result(False)
        for stream in self._streams.values():
            stream.mark_broken()
        for task in self._tasks:
            task.cancel()

    async def end_and_wait(self) -> None:
        """End the link and wait for its tasks."""
        self.end()
        if self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _receive_frame(self, kind: int, number: int, payload: bytes) -> bool:
        if kind == READY:
            if not self._ready.done():
                self._ready.set_result(True)
            return True
        if kind == OPEN:
            return self._open_stream(number, payload)
        stream = self._streams.get(number)
        return stream is None or stream.receive_frame(kind, payload)

    def _open_stream(self, number: int, payload: bytes) -> bool:
        if number in self._streams or len(payload) != 2 or len(self._streams) > 2 * MAX_STREAMS:
            return False
        stream = LinkStream(number, struct.unpack("!H", payload)[0], self._write)
        self._streams[number] = stream
        task = asyncio.get_running_loop().create_task(self._serve_stream(stream))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return True

    async def _serve_stream(self, stream: LinkStream) -> None:
        try:
            await self._serve(stream)
        except (ConnectionError, TimeoutError):
            pass
        finally:
            stream.reset()
            self._streams.pop(stream.number, None)
