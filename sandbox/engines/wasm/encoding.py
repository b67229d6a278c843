"""Reading and writing of what the binaries of components and modules consist of.

See https://webassembly.github.io/spec/core/binary/ and
https://github.com/WebAssembly/component-model/blob/main/design/mvp/Binary.md
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

HEADER = 8
"""Bytes of the magic number and the version."""
MODULE_HEADER = b"\0asm\x01\0\0\0"


class UnexpectedComponent(Exception):
    """The component is not what componentize-py makes."""


@dataclass(frozen=True)
class Section:
    """A section of a module or component: its number and where its content lies."""

    number: int
    at: int
    start: int
    end: int


class Reader:
    """Reads binary content from a place on."""

    def __init__(self, content: bytes, at: int = 0) -> None:
        self.content, self.at = content, at

    def read_byte(self) -> int:
        self.at += 1
        return self.content[self.at - 1]

    def read_number(self) -> int:
        number, self.at = read_number(self.content, self.at)
        return number

    def read_signed(self) -> int:
        number, self.at = read_signed(self.content, self.at)
        return number

    def read_bytes(self) -> bytes:
        """Bytes after their number."""
        return self.read_exactly(self.read_number())

    def read_name(self) -> str:
        return self.read_bytes().decode()

    def read_numbers(self) -> list[int]:
        return [self.read_number() for _ in range(self.read_number())]

    def read_exactly(self, size: int) -> bytes:
        self.at += size
        return self.content[self.at - size : self.at]


def list_sections(content: bytes) -> Iterator[Section]:
    at = HEADER
    while at < len(content):
        size, start = read_number(content, at + 1)
        yield Section(content[at], at, start, start + size)
        at = start + size


def read_number(content: bytes, at: int) -> tuple[int, int]:
    """An unsigned number in LEB128, and where it ends."""
    value = shift = 0
    while True:
        byte = content[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def read_signed(content: bytes, at: int) -> tuple[int, int]:
    value, end = read_number(content, at)
    return (value - (1 << 7 * (end - at)) if content[end - 1] & 0x40 else value), end


def encode_number(value: int) -> bytes:
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])


def encode_signed(value: int) -> bytes:
    encoded = bytearray()
    while not -64 <= value < 64:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value & 0x7F])


def encode_sized(content: bytes) -> bytes:
    return encode_number(len(content)) + content


def encode_name(name: str) -> bytes:
    return encode_sized(name.encode())


def encode_vector(parts: Sequence[bytes]) -> bytes:
    return encode_number(len(parts)) + b"".join(parts)


def encode_section(number: int, content: bytes) -> bytes:
    return bytes([number]) + encode_sized(content)
