"""What is asked of a GraphQL field's value: a selection set, and the JSON Schema of its answer.

Leaves, and objects down to a depth at which the whole stays small. Fields that need arguments are
left out, and so is what leads back to a type that is being selected.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from forge.graphql.inputs import SCALARS
from forge.graphql.schema import LEAVES, Field, GraphqlSchema, Ref, Type

DEPTHS = (3, 2, 1, 0)
MAX_LINES = 120
MAX_FIELDS = 2_000
MAX_POSSIBLE = 8
_TYPE_NAME = "__typename"


@dataclass(frozen=True)
class Selection:
    """The lines between a field's braces, not indented as a whole; none for a leaf. `schema` is
    that of the field's value.
    """

    lines: tuple[str, ...]
    schema: dict[str, Any]


class _TooLarge(Exception):
    """More than MAX_FIELDS fields were looked at: there are schemas in which everything leads to
    everything.
    """


def selection(schema: GraphqlSchema, ref: Ref) -> Selection:
    """The deepest selection of a value of this type that stays within MAX_LINES; its `__typename`
    alone where none does.
    """
    for depth in DEPTHS:
        try:
            made = _Selecting(schema).value(ref, depth, ())
        except _TooLarge:
            continue
        if len(made.lines) <= MAX_LINES:
            return made
    bare = {"type": "object", "properties": {_TYPE_NAME: {"type": "string"}}}
    return Selection((_TYPE_NAME,), _shaped(ref, bare))


@dataclass
class _Selecting:
    """One attempt at a selection. Its methods raise _TooLarge."""

    schema: GraphqlSchema
    seen: int = 0

    def value(self, ref: Ref, depth: int, within: tuple[str, ...]) -> Selection:
        inner = self._named(ref.named, depth, within)
        return Selection(inner.lines, _shaped(ref, inner.schema))

    def _named(self, name: str, depth: int, within: tuple[str, ...]) -> Selection:
        type_ = self.schema.types.get(name)
        if type_ is None or type_.kind in LEAVES:
            return Selection((), _leaf(name, type_))
        lines: list[str] = []
        properties: dict[str, Any] = {}
        for chosen, inner in self._chosen(type_, depth, (*within, name)):
            properties[chosen.name] = inner.schema
            lines += _braced(chosen.name, inner.lines)
        is_open = type_.kind in ("UNION", "INTERFACE")
        if is_open:
            lines += self._fragments(type_, properties)
        if is_open or not lines:
            lines.insert(0, _TYPE_NAME)
            properties[_TYPE_NAME] = {"type": "string"}
        return Selection(tuple(lines), {"type": "object", "properties": properties})

    def _chosen(
        self, type_: Type, depth: int, within: tuple[str, ...]
    ) -> Iterator[tuple[Field, Selection]]:
        names = {field.name for field in type_.fields}
        for field in type_.fields:
            self._look()
            if field.deprecated or any(argument.needed for argument in field.arguments):
                continue
            if field.name == "edges" and "nodes" in names:
                continue
            if self._is_leaf(field) or (depth > 0 and self._is_new(field, within)):
                yield field, self.value(field.type, depth - 1, within)

    def _look(self) -> None:
        self.seen += 1
        if self.seen > MAX_FIELDS:
            raise _TooLarge

    def _is_leaf(self, field: Field) -> bool:
        type_ = self.schema.types.get(field.type.named)
        return field.type.named in SCALARS or (type_ is not None and type_.kind in LEAVES)

    def _is_new(self, field: Field, within: tuple[str, ...]) -> bool:
        return field.type.named in self.schema.types and field.type.named not in within

    def _fragments(self, type_: Type, properties: dict[str, Any]) -> list[str]:
        """The leaves of the types that a value can have. Of a name that two of them give another
        type only the first is asked, since the two could not be merged (GraphQL, section 5.3.2).
        """
        lines: list[str] = []
        asked: dict[str, Field] = {}
        shared = set(properties)
        for name in type_.possible[:MAX_POSSIBLE]:
            possible = self.schema.types.get(name)
            leaves = []
            for field, inner in self._chosen(possible, 0, ()) if possible else ():
                known = asked.setdefault(field.name, field)
                if field.name not in shared and known.type == field.type:
                    leaves.append(field.name)
                    properties[field.name] = inner.schema
            lines += _braced(f"... on {name}", leaves) if leaves else []
        return lines


def _shaped(ref: Ref, inner: dict[str, Any]) -> dict[str, Any]:
    """The schema of the innermost value in as many lists as the type has, null where it may be."""
    made = {"type": "array", "items": _shaped(ref.item, inner)} if ref.item else inner
    if ref.required or "type" not in made:
        return made
    return {**made, "type": [made["type"], "null"]}


def _leaf(name: str, type_: Type | None) -> dict[str, Any]:
    """A leaf's type. Enumerations grow, so their values are not held against an answer."""
    if name in SCALARS:
        return {"type": SCALARS[name]["type"]}
    return {"type": "string"} if type_ is not None and type_.kind == "ENUM" else {}


def _braced(head: str, lines: Sequence[str]) -> list[str]:
    if not lines:
        return [head]
    return [f"{head} {{", *(f"  {line}" for line in lines), "}"]
