"""Linking of the core modules of a component into one, as creating an instance would link them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sandbox.engines.wasm.coremodule import (
    END,
    FIXED_I32,
    FUNCTION,
    GLOBAL,
    GLOBAL_GET,
    I32_CONST,
    MEMORY,
    TABLE,
    CoreModule,
    Expression,
    renumber_body,
)
from sandbox.engines.wasm.encoding import (
    MODULE_HEADER,
    UnexpectedComponent,
    encode_name,
    encode_number,
    encode_section,
    encode_signed,
    encode_sized,
    encode_vector,
)

ADAPTED = "$imports"
"""The table of the two modules that stand between the component and those functions of the host
which need its memory. They stay apart: one is created before the memory, the other after it."""
Source = tuple[int, dict[str, int]] | dict[str, tuple[int, int]]
"""What a core instance is made of: a module, and other instances by the names that it knows them
by; or items of the component, kind and number by name.
"""


@dataclass(frozen=True)
class Item:
    """A function, table, memory or global: the module's of an instance that is merged, or, without
    one, the component's.
    """

    kind: int
    number: int
    instance: int | None = None


class CoreInstances:
    """The core instances of a component, and what its core items are."""

    def __init__(self, modules: list[CoreModule]) -> None:
        self.modules = modules
        self.sources: list[Source] = []
        self.items: tuple[list[tuple[int, str] | None], ...] = ([], [], [], [])
        """By kind: the instance whose export an item is, and the name; None if it is of none."""

    def list_merged(self) -> dict[int, CoreModule]:
        """The instances that are merged, with their modules."""
        return {
            instance: self.modules[source[0]]
            for instance, source in enumerate(self.sources)
            if isinstance(source, tuple) and not is_apart(self.modules[source[0]])
        }

    def is_apart(self, instance: int) -> bool:
        """Whether it is of a module that is not merged."""
        source = self.sources[instance]
        return isinstance(source, tuple) and is_apart(self.modules[source[0]])

    def find_item(self, kind: int, number: int) -> Item:
        """What an item of the component is."""
        place = self.items[kind][number]
        if place is None or self.is_apart(place[0]):
            return Item(kind, number)
        return self._find_export(*place)

    def find_in_module(self, instance: int, kind: int, number: int) -> Item:
        """What an item of an instance's module is."""
        source = self.sources[instance]
        if isinstance(source, dict):
            raise UnexpectedComponent("an instance is of no module")
        imports = self.modules[source[0]].imports[kind]
        if number >= len(imports):
            return Item(kind, number, instance)
        taken, name = imports[number]
        return self._find_export(source[1][taken], name)

    def _find_export(self, instance: int, name: str) -> Item:
        source = self.sources[instance]
        if isinstance(source, dict):
            return self.find_item(*source[name])
        if self.is_apart(instance):
            raise UnexpectedComponent("a module takes all of one that stays apart")
        return self.find_in_module(instance, *self.modules[source[0]].exports[name])


def is_apart(module: CoreModule) -> bool:
    """Whether a module is not merged."""
    return ADAPTED in module.exports or ("", ADAPTED) in module.imports[TABLE]


class LinkedModule:
    """The modules of all instances that are merged, as one. Raises UnexpectedComponent."""

    def __init__(self, instances: CoreInstances) -> None:
        self._find, self._merged = instances.find_in_module, instances.list_merged()
        self._types: dict[bytes, int] = {}
        self._numbers: dict[Item, int] = {}
        self.imports: dict[Item, int] = {}
        """The functions of the component that it takes, with their types."""
        for instance, module in self._merged.items():
            self._take_functions(instance, module)
        counts = [len(self.imports), 0, 0, 0]
        for instance, module in self._merged.items():
            for kind in (FUNCTION, TABLE, MEMORY, GLOBAL):
                for number in range(len(module.imports[kind]), module.count_items(kind)):
                    self._numbers[Item(kind, number, instance)] = counts[kind]
                    counts[kind] += 1
        if counts[TABLE] != 1 or counts[MEMORY] != 1:
            raise UnexpectedComponent("its modules have several tables or memories")

    def _take_functions(self, instance: int, module: CoreModule) -> None:
        for number in range(len(module.imports[FUNCTION])):
            item = self._find(instance, FUNCTION, number)
            if item.instance is None and item not in self.imports:
                self._numbers[item] = len(self.imports)
                self.imports[item] = self._number_type(module.types[module.signatures[number]])

    def _number_type(self, type_: bytes) -> int:
        return self._types.setdefault(type_, len(self._types))

    def _list_numbers(self, instance: int, kind: int) -> list[int]:
        """The new numbers of the items of an instance's module."""
        items = [
            self._find(instance, kind, number)
            for number in range(self._merged[instance].count_items(kind))
        ]
        if any(item not in self._numbers for item in items):
            raise UnexpectedComponent("a module takes more than functions of the component")
        return [self._numbers[item] for item in items]

    def _evaluate(self, instance: int, expression: Expression) -> int:
        """The value of an expression in an instance."""
        total = 0
        for code, operand in expression:
            total += operand if code != GLOBAL_GET else self._evaluate_global(instance, operand)
        return total

    def _evaluate_global(self, instance: int, number: int) -> int:
        item = self._find(instance, GLOBAL, number)
        if item.instance is None:
            raise UnexpectedComponent("a constant of a module is the component's")
        module = self._merged[item.instance]
        type_, expression = module.globals[item.number - len(module.imports[GLOBAL])]
        if type_ != FIXED_I32:
            raise UnexpectedComponent("a constant of a module changes")
        return self._evaluate(item.instance, expression)

    def encode(self, exports: Iterable[tuple[str, Item]]) -> bytes:
        """The module. It exports `exports`, and takes its imports from one instance, in which the
        numbers of the component are their names.
        """
        content: dict[int, list[bytes]] = {number: [] for number in (1, 2, 3, 4, 5, 6, 7, 9, 10)}
        for instance, module in self._merged.items():
            for number, parts in self._encode_parts(instance, module):
                content[number] += parts
        content[1] += self._types
        content[2] += [
            encode_name("") + encode_name(str(item.number)) + bytes([FUNCTION]) + encode_number(n)
            for item, n in self.imports.items()
        ]
        content[7] += [
            encode_name(name) + bytes([item.kind]) + encode_number(self._numbers[item])
            for name, item in exports
        ]
        sections = [encode_section(n, encode_vector(parts)) for n, parts in content.items()]
        return MODULE_HEADER + b"".join(sections)

    def _encode_parts(self, instance: int, module: CoreModule) -> Iterable[tuple[int, list[bytes]]]:
        """What a module has in its sections, with new numbers."""
        types = [self._number_type(type_) for type_ in module.types]
        functions = self._list_numbers(instance, FUNCTION)
        globals_ = self._list_numbers(instance, GLOBAL)
        for kind in (TABLE, MEMORY):
            self._list_numbers(instance, kind)
        defined = module.signatures[len(module.imports[FUNCTION]) :]
        bodies = [renumber_body(body, types, functions, globals_) for body in module.bodies]
        yield 3, [encode_number(types[signature]) for signature in defined]
        yield 4, module.tables
        yield 5, module.memories
        yield (
            6,
            [t + _encode_constant(self._evaluate(instance, value)) for t, value in module.globals],
        )
        yield (
            9,
            [
                bytes([0])
                + _encode_constant(self._evaluate(instance, place))
                + encode_vector([encode_number(functions[number]) for number in listed])
                for place, listed in module.elements
            ],
        )
        yield 10, [encode_sized(body) for body in bodies]


def _encode_constant(value: int) -> bytes:
    signed = (value + 2**31) % 2**32 - 2**31
    return bytes([I32_CONST]) + encode_signed(signed) + bytes([END])
