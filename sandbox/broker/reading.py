"""Reading of answers: in turns with all else that runs, and out of their content codings."""

from __future__ import annotations

import asyncio
import ssl
import time
import zlib
from collections.abc import Iterable

import httpcore

from sandbox.errors import UpstreamUnreachable
from sandbox.offload import INLINE_SECONDS

MOST_READ, FIRST_READ, LEAST_READ = 64 * 1024, 8 * 1024, 512
"""Bytes that are read at once."""
_GZIP_OR_ZLIB = zlib.MAX_WBITS | 32
_GZIP_MAGIC, _ZLIB_HEAD = 0x1F, 2


class FairPace:
    """Who takes long over what was read last lets others have their turn, and is given less the
    next time: `room` bytes.
    """

    def __init__(self) -> None:
        self.room = FIRST_READ
        self.given: float | None = None
        """When what was read last was given (`time.thread_time`); None where what is done from then
        on has nothing to do with it."""
        self._spent = 0.0
        """Seconds of work since others had their turn."""

    async def take_turns(self) -> None:
        """Let others have their turn where what was given was much work. To be called before more
        is given.
        """
        if self.given is None:
            return
        spent = time.thread_time() - self.given
        if spent > INLINE_SECONDS:
            self.room = max(LEAST_READ, self.room // 4)
        elif spent < INLINE_SECONDS / 8:
            self.room = min(MOST_READ, self.room * 2)
        self._spent += spent
        if self._spent > INLINE_SECONDS:
            self._spent = 0.0
            await asyncio.sleep(0)


class FairStream(httpcore.AsyncNetworkStream):
    """A connection whose far side cannot hold up the event loop.

    The HTTP library takes apart all that it read without a pause. Where a host sends chunks of one
    byte, interim answers or empty frames, that is half a second for 64 kB.
    """

    def __init__(self, inner: httpcore.AsyncNetworkStream) -> None:
        self._inner = inner
        # Without a step between: the pool asks for it before every request.
        self.get_extra_info = inner.get_extra_info  # type: ignore[method-assign]
        self._pace = FairPace()

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        if self._pace.given is not None:
            await self._pace.take_turns()
        content = await self._inner.read(min(max_bytes, self._pace.room), timeout)
        self._pace.given = time.thread_time()
        return content

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._pace.given = None
        await self._inner.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.AsyncNetworkStream:
        return FairStream(await self._inner.start_tls(ssl_context, server_hostname, timeout))


def create_decoder(headers: Iterable[tuple[str, str]]) -> ContentDecoder | None:
    """What decodes a body by its content coding (RFC 9110 section 8.4); None where it stays as it
    is.
    """
    coding = next((value.lower() for key, value in headers if key == "content-encoding"), "")
    coding = "gzip" if coding == "x-gzip" else coding
    return ContentDecoder(coding) if coding in ("gzip", "deflate") else None


class ContentDecoder:
    """Decodes `gzip`, also of several members (RFC 1952 section 2.2), or `deflate`, also without
    the head of RFC 1950, as some servers send it.
    """

    def __init__(self, coding: str) -> None:
        self._coding = coding
        self._inflater = zlib.decompressobj(_GZIP_OR_ZLIB) if coding == "gzip" else None
        self._head = b""
        self._begun = False

    def decode(self, chunk: bytes, room: int) -> bytes:
        """The content of a chunk, `room` bytes of it at most. Raises UpstreamUnreachable."""
        if self._inflater is None:
            self._head = chunk = self._head + chunk
            if len(chunk) < _ZLIB_HEAD:
                return b""
            self._inflater = zlib.decompressobj(_choose_window(chunk))
        content = bytearray()
        self._begun = self._begun or bool(chunk)
        try:
            while chunk and len(content) < room:
                if self._inflater.eof:
                    if self._coding != "gzip" or chunk[0] != _GZIP_MAGIC:
                        break  # Padding, or what nobody asked for.
                    self._inflater = zlib.decompressobj(_GZIP_OR_ZLIB)
                content += self._inflater.decompress(chunk, room - len(content))
                chunk = self._inflater.unused_data
        except zlib.error as error:
            raise UpstreamUnreachable(
                f"the answer's {self._coding} coding is broken: {error}"
            ) from error
        return bytes(content)

    def check_end(self) -> None:
        """Raise UpstreamUnreachable where what was decoded ends before its coding does: what is
        missing is not told by a body's length, which is that of the coded bytes.
        """
        if self._head if self._inflater is None else self._begun and not self._inflater.eof:
            raise UpstreamUnreachable(
                f"the answer's {self._coding} coding breaks off, so that a part is missing"
            )


def _choose_window(begin: bytes) -> int:
    """The `wbits` of a deflate coding, with the head of RFC 1950 section 2.2 or without it."""
    has_head = begin[0] & 0x0F == 8 and int.from_bytes(begin[:_ZLIB_HEAD], "big") % 31 == 0
    return _GZIP_OR_ZLIB if has_head or begin[0] == _GZIP_MAGIC else -zlib.MAX_WBITS
