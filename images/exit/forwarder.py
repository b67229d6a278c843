"""The inside of a third-party server's exit: connections to this loopback, carried over a pipe.

Runs alone in a container without a network, whose loopback the server's container shares. Its
argument is a JSON list of [address, port]; the first is the proxy's, the others stand for declared
hosts. What is said on a connection is neither looked at nor decided here, but on the host.

A frame is a type (1 byte), a stream (4), a length (2) and as many bytes, in network order. Types: 0
ready, 1 open (which listener, 2 bytes), 2 data, 3 end of data, 4 reset, 5 credit (bytes, 4 bytes).
A side sends as much data on a stream as it was given credit for.
"""

from __future__ import annotations

import asyncio
import json
import os
import struct
import sys

READY, OPEN, DATA, END, RESET, CREDIT = range(6)
HEADER = struct.Struct("!BIH")
WINDOW = 256 * 1024
CHUNK = 32 * 1024
MAX_STREAMS = 64


class Stream:
    def __init__(self, number: int, writer: asyncio.StreamWriter) -> None:
        self.number, self.writer = number, writer
        self.credit = WINDOW
        self.granted = asyncio.Event()
        self.granted.set()
        self.ended = False
        self.inbound: asyncio.Queue[tuple[int, bytes]] = asyncio.Queue()
        """What the host sent: frames as (type, payload), at most a window of data."""


class Forwarder:
    def __init__(self) -> None:
        self.streams: dict[int, Stream] = {}
        self.count = 0

    def send(self, kind: int, number: int, payload: bytes = b"") -> None:
        data = HEADER.pack(kind, number, len(payload)) + payload
        while data:
            data = data[os.write(1, data) :]

    async def accepted(
        self, listener: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        if len(self.streams) >= MAX_STREAMS:
            writer.transport.abort()
            return
        self.count += 1
        stream = self.streams[self.count] = Stream(self.count, writer)
        self.send(OPEN, stream.number, struct.pack("!H", listener))
        inward = asyncio.create_task(self.inward(stream))
        try:
            await self.outward(stream, reader)
            await inward
        except OSError:
            self.send(RESET, stream.number)
        finally:
            inward.cancel()
            self.streams.pop(stream.number, None)
            writer.close()

    async def outward(self, stream: Stream, reader: asyncio.StreamReader) -> None:
        while data := await reader.read(CHUNK):
            while data:
                await stream.granted.wait()
                part, data = data[: stream.credit], data[stream.credit :]
                stream.credit -= len(part)
                if not stream.credit:
                    stream.granted.clear()
                self.send(DATA, stream.number, part)
        self.send(END, stream.number)

    async def inward(self, stream: Stream) -> None:
        while True:
            kind, payload = await stream.inbound.get()
            if kind == DATA:
                stream.writer.write(payload)
                await stream.writer.drain()
                self.send(CREDIT, stream.number, struct.pack("!I", len(payload)))
            elif kind == END:
                stream.ended = True
                stream.writer.write_eof()
            else:
                # What was sent before an end is delivered; a connection that was cut is cut.
                if stream.ended:
                    stream.writer.close()
                else:
                    stream.writer.transport.abort()
                return

    def received(self, kind: int, number: int, payload: bytes) -> None:
        stream = self.streams.get(number)
        if stream is None:
            return
        if kind == CREDIT:
            stream.credit += struct.unpack("!I", payload)[0]
            stream.granted.set()
        else:
            stream.inbound.put_nowait((kind, payload))


async def main() -> None:
    forwarder = Forwarder()
    for index, (address, port) in enumerate(json.loads(sys.argv[1])):

        async def accepted(
            reader: asyncio.StreamReader, writer: asyncio.StreamWriter, index: int = index
        ) -> None:
            await forwarder.accepted(index, reader, writer)

        await asyncio.start_server(accepted, address, port, limit=CHUNK)
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(0, "rb", buffering=0)
    )
    forwarder.send(READY, 0)
    try:
        while True:
            kind, number, length = HEADER.unpack(await reader.readexactly(HEADER.size))
            payload = await reader.readexactly(length)
            forwarder.received(kind, number, payload)
    except asyncio.IncompleteReadError:
        os._exit(0)


asyncio.run(main())
