"""Merging of the core modules of a component, so that an instance of it is created faster.

componentize-py makes a module of every library, and every instance then has to link them: it looks
up a thousand imports and fills a table with thousands of functions, which takes five times as long
as the rest of it. In one module wasmtime knows both when it compiles. See
https://github.com/WebAssembly/component-model/blob/main/design/mvp/Binary.md
"""

from __future__ import annotations

from dataclasses import dataclass

from sandbox.engines.wasm.coremodule import FUNCTION, GLOBAL, MEMORY, read_module
from sandbox.engines.wasm.encoding import (
    HEADER,
    Reader,
    Section,
    UnexpectedComponent,
    encode_name,
    encode_number,
    encode_section,
    encode_vector,
    list_sections,
)
from sandbox.engines.wasm.linking import CoreInstances, Item, LinkedModule, Source, is_apart

_CUSTOM, _MODULE, _INSTANCES, _ALIASES, _CANONICALS = 0, 1, 2, 6, 8
_LIFT, _LOWER, _LAST_RESOURCE = 0, 1, 4
"""Canonical functions. The last are of resources."""
_MEMORY_OPTION, _FUNCTION_OPTIONS = 3, (4, 5)
_CORE, _EXPORT, _CORE_EXPORT, _INSTANCE = 0, 0, 1, 0x12


@dataclass(frozen=True)
class Alias:
    """An alias of a component: `core` is kind, instance and name where it is of a core instance."""

    content: bytes
    core: tuple[int, int, str] | None


@dataclass(frozen=True)
class Canonical:
    """A function that a component makes of a core function, or the other way round."""

    code: int
    number: int
    options: tuple[tuple[int, int | None], ...] = ()
    type_: int = 0


class ComponentMerger:
    """Writes a component anew, with one module in the place of those that are merged."""

    def __init__(self, wasm: bytes) -> None:
        self._wasm, self._sections = wasm, list(list_sections(wasm))
        binaries = [wasm[s.start : s.end] for s in self._sections if s.number == _MODULE]
        self._instances = CoreInstances([read_module(binary) for binary in binaries])
        for section in self._sections:
            self._list_items(section.number, Reader(wasm, section.start))
        self._parts: list[bytes] = [wasm[:HEADER]]
        self._numbers: dict[Item, int] = {}
        self._apart_modules: dict[int, int] = {}
        self._apart: dict[int, int] = {}
        """The new numbers of items, and of the modules and instances that stay apart."""
        self._old, self._new = [0, 0, 0, 0], [0, 0, 0, 0]
        """The numbers of items of each kind that were read and written so far."""
        self._old_modules = self._old_instances = self._new_modules = self._new_instances = 0
        self._linked: LinkedModule | None = None
        self._linked_at = self._linked_instance = 0
        self._exports: dict[Item, str] = {}

    def merge(self) -> bytes:
        """Raises UnexpectedComponent."""
        for section in self._sections:
            self._write_section(section)
        if self._linked is None:
            raise UnexpectedComponent("nothing in it can be merged")
        exports = [(name, item) for item, name in self._exports.items()]
        self._parts[self._linked_at] = encode_section(_MODULE, self._linked.encode(exports))
        return b"".join(self._parts)

    def _list_items(self, number: int, reader: Reader) -> None:
        if number == _INSTANCES:
            self._instances.sources += _read_instances(reader)
        elif number == _ALIASES:
            for alias in _read_aliases(reader):
                if alias.core:
                    kind, instance, name = alias.core
                    self._instances.items[kind].append((instance, name))
        elif number == _CANONICALS:
            made = [None for canonical in _read_canonicals(reader) if canonical.code != _LIFT]
            self._instances.items[FUNCTION].extend(made)

    def _write_section(self, section: Section) -> None:
        reader, content = Reader(self._wasm, section.start), self._wasm[section.at : section.end]
        if section.number == _MODULE:
            self._write_module(content)
        elif section.number == _INSTANCES:
            for source in _read_instances(reader):
                self._write_instance(source)
        elif section.number == _ALIASES:
            for alias in _read_aliases(reader):
                self._write_alias(alias)
        elif section.number == _CANONICALS:
            for canonical in _read_canonicals(reader):
                self._write_canonical(canonical)
        elif section.number != _CUSTOM:
            self._parts.append(content)

    def _write_module(self, content: bytes) -> None:
        if is_apart(self._instances.modules[self._old_modules]):
            self._parts.append(content)
            self._apart_modules[self._old_modules] = self._new_modules
            self._new_modules += 1
        self._old_modules += 1

    def _write_instance(self, source: Source) -> None:
        number, self._old_instances = self._old_instances, self._old_instances + 1
        if isinstance(source, dict) or not self._instances.is_apart(number):
            return
        taken = {name: self._write_items(instance) for name, instance in source[1].items()}
        self._apart[number] = self._add_instance(self._apart_modules[source[0]], taken)

    def _write_items(self, instance: int) -> int:
        source = self._instances.sources[instance]
        if not isinstance(source, dict):
            raise UnexpectedComponent("a module that stays apart takes all of another")
        found = {name: self._instances.find_item(*item) for name, item in source.items()}
        return self._add_items(found)

    def _add_items(self, items: dict[str, Item]) -> int:
        """Add an instance of these items; returns its number."""
        exports = []
        for name, item in items.items():
            number = encode_number(self._refer_to(item))
            exports.append(encode_name(name) + bytes([item.kind]) + number)
        return self._count_instance(b"\1" + encode_vector(exports))

    def _add_instance(self, module: int, taken: dict[str, int]) -> int:
        """Add an instance of a module; returns its number."""
        given = [encode_name(n) + bytes([_INSTANCE]) + encode_number(i) for n, i in taken.items()]
        return self._count_instance(b"\0" + encode_number(module) + encode_vector(given))

    def _count_instance(self, content: bytes) -> int:
        self._add(_INSTANCES, content)
        self._new_instances += 1
        return self._new_instances - 1

    def _add(self, section: int, content: bytes) -> None:
        self._parts.append(encode_section(section, encode_vector([content])))

    def _write_alias(self, alias: Alias) -> None:
        if alias.core is None:
            self._add(_ALIASES, alias.content)
            return
        kind, instance, name = alias.core
        if self._instances.is_apart(instance):
            self._add_alias(Item(kind, self._old[kind]), self._apart[instance], name)
        self._old[kind] += 1

    def _add_alias(self, item: Item, instance: int, name: str) -> None:
        start = bytes([_CORE, item.kind, _CORE_EXPORT])
        self._add(_ALIASES, start + encode_number(instance) + encode_name(name))
        self._number_item(item)

    def _number_item(self, item: Item) -> None:
        self._numbers[item] = self._new[item.kind]
        self._new[item.kind] += 1

    def _write_canonical(self, canonical: Canonical) -> None:
        number = canonical.number
        if canonical.code == _LIFT:
            number = self._refer_to(self._instances.find_item(FUNCTION, number))
        options = encode_vector([self._renumber_option(*option) for option in canonical.options])
        content = {
            _LIFT: b"\0" + encode_number(number) + options + encode_number(canonical.type_),
            _LOWER: b"\0" + encode_number(number) + options,
        }
        self._add(
            _CANONICALS,
            bytes([canonical.code]) + content.get(canonical.code, encode_number(number)),
        )
        if canonical.code != _LIFT:
            self._number_item(Item(FUNCTION, self._old[FUNCTION]))
            self._old[FUNCTION] += 1

    def _renumber_option(self, option: int, number: int | None) -> bytes:
        if number is None:
            return bytes([option])
        kind = MEMORY if option == _MEMORY_OPTION else FUNCTION
        item = self._instances.find_item(kind, number)
        return bytes([option]) + encode_number(self._refer_to(item))

    def _refer_to(self, item: Item) -> int:
        """The new number of an item, which is made an export where it is in what is merged."""
        if item not in self._numbers:
            if item.instance is None:
                raise UnexpectedComponent("something is used before it is there")
            if self._linked is None:
                self._add_linked()
            self._exports[item] = str(len(self._exports))
            self._add_alias(item, self._linked_instance, self._exports[item])
        return self._numbers[item]

    def _add_linked(self) -> None:
        """Make the place of the one module, whose exports are known at the end, and its instance.
        That is before the first use of it, as all functions of the component that it takes are.
        """
        self._linked, self._linked_at = LinkedModule(self._instances), len(self._parts)
        self._parts.append(b"")
        taken = self._add_items({str(item.number): item for item in self._linked.imports})
        self._new_modules += 1
        self._linked_instance = self._add_instance(self._new_modules - 1, {"": taken})


def merge_modules(wasm: bytes) -> bytes:
    """A component that does the same with three modules. Raises UnexpectedComponent."""
    return ComponentMerger(wasm).merge()


def _read_instances(reader: Reader) -> list[Source]:
    found: list[Source] = []
    for _ in range(reader.read_number()):
        if reader.read_byte():
            items = {}
            for _ in range(reader.read_number()):
                name = reader.read_name()
                items[name] = reader.read_byte(), reader.read_number()
            found.append(items)
        else:
            module, taken = reader.read_number(), {}
            for _ in range(reader.read_number()):
                name = reader.read_name()
                reader.read_byte()
                taken[name] = reader.read_number()
            found.append((module, taken))
    return found


def _read_aliases(reader: Reader) -> list[Alias]:
    found = []
    for _ in range(reader.read_number()):
        start, core = reader.at, None
        kind = reader.read_byte()
        if kind == _CORE:
            kind = reader.read_byte()
        target, instance = reader.read_byte(), reader.read_number()
        if target == _CORE_EXPORT:
            core = kind, instance, reader.read_name()
            if kind > GLOBAL:
                raise UnexpectedComponent(f"an alias of kind {kind:#x}")
        elif target == _EXPORT:
            reader.read_name()
        else:
            reader.read_number()
        found.append(Alias(reader.content[start : reader.at], core))
    return found


def _read_canonicals(reader: Reader) -> list[Canonical]:
    found = []
    for _ in range(reader.read_number()):
        code = reader.read_byte()
        if code > _LAST_RESOURCE:
            raise UnexpectedComponent(f"a component has a function of kind {code:#x}")
        if code not in (_LIFT, _LOWER):
            found.append(Canonical(code, reader.read_number()))
            continue
        reader.read_byte()
        number, options = reader.read_number(), []
        for _ in range(reader.read_number()):
            option = reader.read_byte()
            refers = option == _MEMORY_OPTION or option in _FUNCTION_OPTIONS
            options.append((option, reader.read_number() if refers else None))
        type_ = reader.read_number() if code == _LIFT else 0
        found.append(Canonical(code, number, tuple(options), type_))
    return found
