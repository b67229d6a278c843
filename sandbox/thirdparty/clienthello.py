"""Parser of the TLS client hello (RFC 8446, section 4.1.2) and its server name (RFC 6066)."""

from __future__ import annotations

from dataclasses import dataclass

HANDSHAKE, CLIENT_HELLO = 22, 1
SERVER_NAME, ENCRYPTED_CLIENT_HELLO = 0, 0xFE0D
HOST_NAME = 0
MAX_BYTES = 64 * 1024
MAX_RECORD = 2**14


class NotTls(Exception):
    """The bytes are no acceptable TLS client hello. The message gives the reason."""


@dataclass(frozen=True)
class ClientHello:
    """The server name of a client hello, None if it has none, and whether it is `encrypted`."""

    name: str | None
    encrypted: bool


class HelloReader:
    """Parses the client hello of a connection whose bytes come piece by piece. Each is looked at
    once: a hello may come in thousands of records, and its bytes one by one.
    """

    def __init__(self) -> None:
        self._rest, self._message = bytearray(), bytearray()
        self._size = 0

    def read(self, more: bytes) -> ClientHello | None:
        """The hello, once it is whole; None if more bytes are needed. Raises NotTls."""
        self._rest += more
        self._size += len(more)
        message = self._join_records()
        if message is not None:
            try:
                return _parse_hello(_Cursor(message))
            except (IndexError, UnicodeDecodeError) as error:
                raise NotTls("the TLS client hello is malformed") from error
        if self._size > MAX_BYTES:
            raise NotTls("the TLS client hello is too long")
        return None

    def _join_records(self) -> bytes | None:
        """The body of the first handshake message, joined from its records; None where it is not
        whole.
        """
        while True:
            head = bytes(self._rest[:5])
            if head[:1] not in (b"", bytes([HANDSHAKE])) or head[1:2] not in (b"", b"\x03"):
                raise NotTls("this is not TLS")
            size = int.from_bytes(head[3:5], "big")
            if len(head) == 5 and not 0 < size <= MAX_RECORD:
                raise NotTls("a TLS record has a length that it may not have")
            if len(head) < 5 or len(self._rest) < 5 + size:
                return None
            self._message += self._rest[5 : 5 + size]
            del self._rest[: 5 + size]
            message = self._message
            if message[0] != CLIENT_HELLO:
                raise NotTls("the TLS handshake does not begin with a client hello")
            wanted = 4 + int.from_bytes(message[1:4], "big") if len(message) >= 4 else MAX_BYTES
            if wanted > MAX_BYTES:
                raise NotTls("the TLS client hello is too long")
            if len(message) >= wanted:
                return bytes(message[4:wanted])


class _Cursor:
    """Reads fields from the front of bytes. Raises IndexError if there are too few."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def read_bytes(self, size: int) -> bytes:
        end = self._at + size
        if end > len(self._data):
            raise IndexError(end)
        self._at, taken = end, self._data[self._at : end]
        return taken

    def read_number(self, size: int) -> int:
        return int.from_bytes(self.read_bytes(size), "big")

    def read_vector(self, size: int) -> _Cursor:
        """Read a vector whose length field has `size` bytes (RFC 8446, section 3.4)."""
        return _Cursor(self.read_bytes(self.read_number(size)))

    def read_rest(self) -> bytes:
        return self.read_bytes(len(self._data) - self._at)

    def __bool__(self) -> bool:
        return self._at < len(self._data)


def _parse_hello(hello: _Cursor) -> ClientHello:
    # Version and random, session id, cipher suites, compression methods (RFC 8446, 4.1.2).
    hello.read_bytes(2 + 32)
    hello.read_vector(1)
    hello.read_vector(2)
    hello.read_vector(1)
    names: list[str] = []
    encrypted = False
    extensions = hello.read_vector(2) if hello else _Cursor(b"")
    while extensions:
        kind, content = extensions.read_number(2), extensions.read_vector(2)
        encrypted |= kind == ENCRYPTED_CLIENT_HELLO
        if kind == SERVER_NAME:
            entries = content.read_vector(2)
            while entries:
                if entries.read_number(1) != HOST_NAME:
                    raise NotTls("the TLS client hello names something that is no host")
                names.append(entries.read_vector(2).read_rest().decode("ascii"))
    if len(names) > 1:
        raise NotTls("the TLS client hello names two hosts")
    return ClientHello(names[0] if names else None, encrypted)
