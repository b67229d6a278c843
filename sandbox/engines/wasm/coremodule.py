"""Core modules as values, and the code of their functions with other numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from sandbox.engines.wasm.encoding import (
    Reader,
    UnexpectedComponent,
    encode_number,
    encode_signed,
    list_sections,
)

FUNCTION, TABLE, MEMORY, GLOBAL = range(4)
"""Kinds of what a module imports, defines and exports."""
FIXED_I32 = b"\x7f\x00"
"""The type of a global that never changes."""
_FUNCTION_TYPE, _CUSTOM = 0x60, 0
_UNCHANGED = re.compile(
    rb"(?:[\x00\x01\x05\x0b\x0f\x1a\x1b\x45-\xc4\xd1]|[\x02-\x04][\x40\x6f-\x7f]"
    rb"|[\x0c\x0d\x20-\x22\x3f-\x42]N|[\x28-\x3e][\x00-\x3f]N|\x1c\x01.|\x43.{4}|\x44.{8}|\xd0."
    rb"|\xfc(?:[\x00-\x07]|\x0aNN|\x0bN))++".replace(b"N", rb"[\x80-\xff]*[\x00-\x7f]"),
    re.DOTALL,
)
"""Instructions that refer to nothing with a new number: a function has few others, and to look at
each of these in Python would take many times as long. What reads or writes memory is of the only
one: its alignment says so.
"""
_BLOCKS, _JUMPS, _CALL, _CALL_INDIRECT = (0x02, 0x03, 0x04), 0x0E, 0x10, 0x11
GLOBAL_GET, _GLOBAL_SET, I32_CONST, I32_ADD, END = 0x23, 0x24, 0x41, 0x6A, 0x0B

Expression = list[tuple[int, int]]
"""Instructions with their operands."""


@dataclass
class CoreModule:
    """A module, with everything numbered as in its binary. Names of its parts are left out."""

    types: list[bytes] = field(default_factory=list)
    imports: tuple[list[tuple[str, str]], ...] = field(default_factory=lambda: ([], [], [], []))
    """By kind: the name of the instance that it takes, and the name in that."""
    signatures: list[int] = field(default_factory=list)
    """The types of its functions, those that it imports first."""
    tables: list[bytes] = field(default_factory=list)
    memories: list[bytes] = field(default_factory=list)
    globals: list[tuple[bytes, Expression]] = field(default_factory=list)
    """Their types, and what they begin with."""
    exports: dict[str, tuple[int, int]] = field(default_factory=dict)
    elements: list[tuple[Expression, list[int]]] = field(default_factory=list)
    """Functions, and from which place on they are put into the table."""
    bodies: list[bytes] = field(default_factory=list)

    def count_items(self, kind: int) -> int:
        """The number of its items of a kind, with those that it imports."""
        defined = (self.bodies, self.tables, self.memories, self.globals)[kind]
        return len(self.imports[kind]) + len(defined)


def read_module(binary: bytes) -> CoreModule:
    """Raises UnexpectedComponent."""
    module = CoreModule()
    for section in list_sections(binary):
        if section.number == _CUSTOM:
            continue
        if section.number not in _READERS:
            raise UnexpectedComponent(f"a module has a section {section.number}")
        reader = Reader(binary, section.start)
        for _ in range(reader.read_number()):
            _READERS[section.number](module, reader)
    return module


def _read_type(module: CoreModule, reader: Reader) -> None:
    start = reader.at
    if reader.read_byte() != _FUNCTION_TYPE:
        raise UnexpectedComponent("a type is not one of a function")
    for _ in ("parameters", "results"):
        reader.read_bytes()
    module.types.append(reader.content[start : reader.at])


def _read_import(module: CoreModule, reader: Reader) -> None:
    place = reader.read_name(), reader.read_name()
    kind = reader.read_byte()
    if kind == FUNCTION:
        module.signatures.append(reader.read_number())
    elif kind == TABLE:
        _read_table_type(reader)
    elif kind == MEMORY:
        _read_limits(reader)
    elif kind == GLOBAL:
        reader.read_exactly(len(FIXED_I32))
    else:
        raise UnexpectedComponent(f"a module imports something of kind {kind}")
    module.imports[kind].append(place)


def _read_limits(reader: Reader) -> bytes:
    start, flags = reader.at, reader.read_number()
    for _ in range(1 + (flags & 1)):
        reader.read_number()
    return reader.content[start : reader.at]


def _read_table_type(reader: Reader) -> bytes:
    return reader.read_exactly(1) + _read_limits(reader)


def _read_global(module: CoreModule, reader: Reader) -> None:
    module.globals.append((reader.read_exactly(len(FIXED_I32)), _read_expression(reader)))


def _read_expression(reader: Reader) -> Expression:
    """Raises UnexpectedComponent for anything but sums of globals and constants."""
    found: Expression = []
    while (code := reader.read_byte()) != END:
        if code == I32_CONST:
            found.append((code, reader.read_signed()))
        elif code == GLOBAL_GET:
            found.append((code, reader.read_number()))
        elif code != I32_ADD:
            raise UnexpectedComponent(f"instruction {code:#x} in a constant")
    return found


def _read_export(module: CoreModule, reader: Reader) -> None:
    name = reader.read_name()
    module.exports[name] = reader.read_byte(), reader.read_number()


def _read_element(module: CoreModule, reader: Reader) -> None:
    form = reader.read_number()
    if form not in (0, 2) or (form == 2 and reader.read_number()):
        raise UnexpectedComponent("functions are not simply put into the table")
    place = _read_expression(reader)
    if form == 2 and reader.read_byte():
        raise UnexpectedComponent("something else than functions is put into the table")
    module.elements.append((place, reader.read_numbers()))


_READERS: dict[int, Callable[[CoreModule, Reader], None]] = {
    1: _read_type,
    2: _read_import,
    3: lambda module, reader: module.signatures.append(reader.read_number()),
    4: lambda module, reader: module.tables.append(_read_table_type(reader)),
    5: lambda module, reader: module.memories.append(_read_limits(reader)),
    6: _read_global,
    7: _read_export,
    9: _read_element,
    10: lambda module, reader: module.bodies.append(reader.read_bytes()),
}


def renumber_body(
    body: bytes, types: Sequence[int], functions: Sequence[int], globals_: Sequence[int]
) -> bytes:
    """The code of a function with new numbers in the place of the old ones.

    Raises UnexpectedComponent for an instruction that is not known here.
    """
    reader = Reader(body)
    for _ in range(reader.read_number()):
        reader.read_number()
        reader.read_byte()
    parts: list[bytes] = []
    start = 0
    while True:
        if unchanged := _UNCHANGED.match(body, reader.at):
            reader.at = unchanged.end()
        if reader.at == len(body):
            return b"".join((*parts, body[start:]))
        code = reader.read_byte()
        if code == _JUMPS:
            reader.read_numbers()
            reader.read_number()
            continue
        parts.append(body[start : reader.at])
        if code == _CALL:
            parts.append(encode_number(functions[reader.read_number()]))
        elif code in (GLOBAL_GET, _GLOBAL_SET):
            parts.append(encode_number(globals_[reader.read_number()]))
        elif code == _CALL_INDIRECT:
            parts.append(encode_number(types[reader.read_number()]))
        elif code in _BLOCKS:
            parts.append(encode_signed(types[reader.read_number()]))
        else:
            raise UnexpectedComponent(f"instruction {code:#x} in a function")
        start = reader.at
        if code == _CALL_INDIRECT:
            # The table, of which there is one.
            reader.read_number()
