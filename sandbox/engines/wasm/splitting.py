"""Splitting of a component into its code and the content that its memory begins with.

The content is mapped by `sandbox.engines.wasm.memory`, which wasmtime cannot do for a memory that
it did not make itself: it would copy all of it into every instance. See "Modules" and "Data
Section" of https://webassembly.github.io/spec/core/binary/modules.html, and
https://github.com/WebAssembly/component-model/blob/main/design/mvp/Binary.md
"""

from __future__ import annotations

from sandbox.engines.wasm.encoding import (
    HEADER,
    UnexpectedComponent,
    encode_number,
    list_sections,
    read_number,
    read_signed,
)

WASM_PAGE = 65_536
_CORE_MODULE = 1
"""A section of a component; the others are of a module."""
_MEMORY, _DATA, _DATA_COUNT = 5, 11, 12
_ACTIVE, _I32_CONST, _END = 0, 0x41, 0x0B


def split_memory(wasm: bytes) -> tuple[bytes, bytes]:
    """The component with an empty memory, and what that is to begin with.

    Raises UnexpectedComponent.
    """
    parts, contents = [wasm[:HEADER]], []
    for section in list_sections(wasm):
        if section.number == _CORE_MODULE:
            module, content = _split_module(wasm[section.start : section.end])
            parts.append(bytes([_CORE_MODULE]) + encode_number(len(module)) + module)
            contents += content
        else:
            parts.append(wasm[section.at : section.end])
    if len(contents) != 1:
        raise UnexpectedComponent(f"it has {len(contents)} memories")
    return b"".join(parts), contents[0]


def _split_module(module: bytes) -> tuple[bytes, list[bytes]]:
    parts, contents = [module[:HEADER]], []
    for section in list_sections(module):
        if section.number == _MEMORY:
            contents.append(bytearray(_read_size(module, section.start)))
        if section.number == _DATA:
            if not contents:
                raise UnexpectedComponent("a module fills the memory of another")
            _fill_memory(contents[0], module, section.start)
        elif section.number != _DATA_COUNT:
            parts.append(module[section.at : section.end])
    return b"".join(parts), [bytes(content) for content in contents]


def _read_size(module: bytes, at: int) -> int:
    """The bytes that the memory of a memory section begins with."""
    count, at = read_number(module, at)
    if count != 1:
        raise UnexpectedComponent(f"a module has {count} memories")
    pages, _ = read_number(module, at + 1)
    return pages * WASM_PAGE


def _fill_memory(content: bytearray, module: bytes, at: int) -> None:
    """Do what the segments of a data section do when an instance is created."""
    count, at = read_number(module, at)
    for _ in range(count):
        if module[at] != _ACTIVE or module[at + 1] != _I32_CONST:
            raise UnexpectedComponent("a segment is not simply copied to an address")
        address, at = read_signed(module, at + 2)
        size, start = read_number(module, at + 1)
        if module[at] != _END or not 0 <= address <= len(content) - size:
            raise UnexpectedComponent("a segment does not fit into the memory")
        at = start + size
        content[address : address + size] = module[start:at]
