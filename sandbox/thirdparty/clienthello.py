"""The server name that a TLS client asks for (RFC 8446, section 4.1.2; RFC 6066, section 3)."""

from __future__ import annotations

from dataclasses import dataclass

HANDSHAKE, CLIENT_HELLO = 22, 1
SERVER_NAME, ENCRYPTED_CLIENT_HELLO = 0, 0xFE0D
HOST_NAME = 0
MAX_BYTES = 64 * 1024
MAX_RECORD = 2**14


class NotTls(Exception):
    """These bytes do not begin a TLS connection that can be judged. The message says why."""


@dataclass(frozen=True)
class ClientHello:
    """What is in the clear of a first message. `name` is None where the client sends none."""

    name: str | None
    encrypted: bool


def read_client_hello(data: bytes) -> ClientHello | None:
    """The message at the beginning of a connection, None where more bytes are needed.

    Raises NotTls.
    """
    message = _handshake(data)
    if message is None:
        return None
    try:
        return _parsed(_Cursor(message))
    except (IndexError, UnicodeDecodeError) as error:
        raise NotTls("the TLS client hello is malformed") from error


def _handshake(data: bytes) -> bytes | None:
    """The body of the first handshake message, joined from its records."""
    message, at = b"", 0
    while True:
        head = data[at : at + 5]
        if head[:1] not in (b"", bytes([HANDSHAKE])) or head[1:2] not in (b"", b"\x03"):
            raise NotTls("this is not TLS")
        if len(head) < 5:
            break
        size = int.from_bytes(head[3:5], "big")
        if not 0 < size <= MAX_RECORD:
            raise NotTls("a TLS record has a length that it may not have")
        message += data[at + 5 : at + 5 + size]
        at += 5 + size
        if message and message[0] != CLIENT_HELLO:
            raise NotTls("the TLS handshake does not begin with a client hello")
        wanted = 4 + int.from_bytes(message[1:4], "big") if len(message) >= 4 else None
        if wanted is not None and wanted > MAX_BYTES:
            raise NotTls("the TLS client hello is too long")
        if wanted is not None and len(message) >= wanted:
            return message[4:wanted]
        if at > len(data):
            break
    if len(data) > MAX_BYTES:
        raise NotTls("the TLS client hello is too long")
    return None


class _Cursor:
    """Takes fields off the front of bytes. Raises IndexError where there are too few."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def take(self, size: int) -> bytes:
        end = self._at + size
        if end > len(self._data):
            raise IndexError(end)
        self._at, taken = end, self._data[self._at : end]
        return taken

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def vector(self, size: int) -> _Cursor:
        """What a length of so many bytes stands before."""
        return _Cursor(self.take(self.number(size)))

    def rest(self) -> bytes:
        return self.take(len(self._data) - self._at)

    def __bool__(self) -> bool:
        return self._at < len(self._data)


def _parsed(hello: _Cursor) -> ClientHello:
    hello.take(2 + 32)
    hello.vector(1)
    hello.vector(2)
    hello.vector(1)
    names: list[str] = []
    encrypted = False
    extensions = hello.vector(2) if hello else _Cursor(b"")
    while extensions:
        kind, content = extensions.number(2), extensions.vector(2)
        encrypted |= kind == ENCRYPTED_CLIENT_HELLO
        if kind == SERVER_NAME:
            entries = content.vector(2)
            while entries:
                if entries.number(1) != HOST_NAME:
                    raise NotTls("the TLS client hello names something that is no host")
                names.append(entries.vector(2).rest().decode("ascii"))
    if len(names) > 1:
        raise NotTls("the TLS client hello names two hosts")
    return ClientHello(names[0] if names else None, encrypted)
