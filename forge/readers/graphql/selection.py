"""Selection sets for the values of GraphQL fields, and the JSON Schemas of their responses.

A set has the leaves, and objects down to a depth at which it stays small. Fields with required
arguments are left out, and so are those that are looked up by an argument, and fields of a type
that is being selected already.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from forge.readers.graphql.inputs import SCALARS
from forge.readers.graphql.schema import (
    LEAVES,
    GraphqlField,
    GraphqlSchema,
    GraphqlType,
    InputValue,
    TypeRef,
)

DEPTHS = (3, 2, 1, 0)
MAX_LINES = 120
MAX_FIELDS = 2_000
MAX_POSSIBLE = 8
_TYPE_NAME = "__typename"
PAGING = frozenset(
    "first last after before limit offset skip take page perPage per_page pageSize page_size "
    "cursor".split()
)
"""Arguments that say which part of a list is asked for (Relay's and the usual others)."""


@dataclass(frozen=True)
class SelectionSet:
    """The lines between a field's braces, without outer indentation; none for a leaf. `schema` is
    the JSON Schema of the field's value; `variables` are those that the lines use, each with the
    argument that it fills.
    """

    lines: tuple[str, ...]
    schema: dict[str, Any]
    variables: tuple[tuple[str, InputValue], ...] = ()


class _SelectionTooLarge(Exception):
    """More than MAX_FIELDS fields were visited: in some schemas every type leads to every other."""


def select_fields(schema: GraphqlSchema, ref: TypeRef, taken: Collection[str] = ()) -> SelectionSet:
    """Return the deepest selection set of a type that stays within MAX_LINES; only its `__typename`
    where none does. No variable gets a name that is `taken`.
    """
    for depth in DEPTHS:
        try:
            made = _Selector(schema, {*taken}).select_value(ref, depth, ())
        except _SelectionTooLarge:
            continue
        if len(made.lines) <= MAX_LINES:
            return made
    bare = {"type": "object", "properties": {_TYPE_NAME: {"type": "string"}}}
    return SelectionSet((_TYPE_NAME,), _wrap_schema(ref, bare))


@dataclass
class _Selector:
    """One attempt at a selection set. Its methods raise _SelectionTooLarge."""

    schema: GraphqlSchema
    taken: set[str]
    seen: int = 0

    def select_value(self, ref: TypeRef, depth: int, within: tuple[str, ...]) -> SelectionSet:
        inner = self._select_type(ref.innermost_name, depth, within)
        return SelectionSet(inner.lines, _wrap_schema(ref, inner.schema), inner.variables)

    def _select_type(self, name: str, depth: int, within: tuple[str, ...]) -> SelectionSet:
        type_ = self.schema.types.get(name)
        if type_ is None or type_.kind in LEAVES:
            return SelectionSet((), _build_leaf_schema(name, type_))
        chosen = self._select_fields(type_, depth, (*within, name))
        lines, properties = list(chosen.lines), dict(chosen.schema)
        variables = list(chosen.variables)
        is_open = type_.kind in ("UNION", "INTERFACE")
        if is_open:
            fragments, own = self._render_fragments(type_, properties, depth, (*within, name))
            lines += fragments
            variables += own
        if is_open or not lines:
            lines.insert(0, _TYPE_NAME)
            properties[_TYPE_NAME] = {"type": "string"}
        asked = {"type": "object", "properties": properties}
        return SelectionSet(tuple(lines), asked, tuple(variables))

    def _select_fields(
        self,
        type_: GraphqlType,
        depth: int,
        within: tuple[str, ...],
        kept: Collection[str] | None = None,
    ) -> SelectionSet:
        """The fields of a type, of those that are `kept`; `schema` is that of each by its name."""
        lines: list[str] = []
        properties: dict[str, Any] = {}
        variables: list[tuple[str, InputValue]] = []
        for chosen, inner in self._choose_fields(type_, depth, within, kept):
            properties[chosen.name] = inner.schema
            own = self._name_variables(chosen) if inner.lines else ()
            given = ", ".join(f"{argument.name}: ${named}" for named, argument in own)
            head = f"{chosen.name}({given})" if given else chosen.name
            lines += _render_braces(head, inner.lines)
            variables += (*own, *inner.variables)
        return SelectionSet(tuple(lines), properties, tuple(variables))

    def _name_variables(self, field: GraphqlField) -> tuple[tuple[str, InputValue], ...]:
        """A variable for each argument by which a list within an answer is paged, none for others:
        `orders_first` is how many of the orders.
        """
        found = []
        for argument in field.arguments:
            if argument.name in PAGING and argument.type.item is None:
                number, named = 1, f"{field.name}_{argument.name}"
                while named in self.taken:
                    number, named = number + 1, f"{field.name}_{argument.name}_{number + 1}"
                self.taken.add(named)
                found.append((named, argument))
        return tuple(found)

    def _choose_fields(
        self,
        type_: GraphqlType,
        depth: int,
        within: tuple[str, ...],
        kept: Collection[str] | None,
    ) -> Iterator[tuple[GraphqlField, SelectionSet]]:
        names = {field.name for field in type_.fields}
        for field in type_.fields:
            self._count_field()
            if kept is not None and field.name not in kept:
                continue
            if field.deprecated or any(argument.is_needed for argument in field.arguments):
                continue
            if _is_lookup(field):
                continue
            if field.name == "edges" and "nodes" in names:
                continue
            if self._is_leaf(field) or (depth > 0 and self._is_new(field, within)):
                yield field, self.select_value(field.type, depth - 1, within)

    def _count_field(self) -> None:
        self.seen += 1
        if self.seen > MAX_FIELDS:
            raise _SelectionTooLarge

    def _is_leaf(self, field: GraphqlField) -> bool:
        type_ = self.schema.types.get(field.type.innermost_name)
        return field.type.innermost_name in SCALARS or (type_ is not None and type_.kind in LEAVES)

    def _is_new(self, field: GraphqlField, within: tuple[str, ...]) -> bool:
        return (
            field.type.innermost_name in self.schema.types
            and field.type.innermost_name not in within
        )

    def _render_fragments(
        self, type_: GraphqlType, properties: dict[str, Any], depth: int, within: tuple[str, ...]
    ) -> tuple[list[str], list[tuple[str, InputValue]]]:
        """Render fragments with the fields of the possible types that the type itself does not
        have, and return the variables that they use. What an object would have of its own, these
        have one level less of: they are many. Of a name that two of them give different types only
        the first is selected, since the two cannot be merged (GraphQL, section 5.3.2).
        """
        depth = max(depth - 1, 0)
        lines: list[str] = []
        variables: list[tuple[str, InputValue]] = []
        asked: dict[str, TypeRef] = {}
        shared = set(properties)
        for name in type_.possible[:MAX_POSSIBLE]:
            possible = self.schema.types.get(name)
            if possible is None or name in within:
                continue
            for field in possible.fields:
                # Whatever this attempt selects of it, so that no other place settles differently.
                if depth > 0 or self._is_leaf(field):
                    asked.setdefault(field.name, field.type)
            kept = frozenset(
                field.name
                for field in possible.fields
                if field.name not in shared and asked.get(field.name) == field.type
            )
            inner = self._select_fields(possible, depth, (*within, name), kept)
            properties.update(inner.schema)
            variables += inner.variables
            lines += _render_braces(f"... on {name}", inner.lines) if inner.lines else []
        return lines, variables


def _is_lookup(field: GraphqlField) -> bool:
    """Whether a field is found by one of its arguments, as `versionByTag(tag: String)` is: without
    it many resolvers fail, and the object around it is lost with them.
    """
    name = field.name.lower().replace("_", "")
    return any(
        name.endswith(f"by{argument.name.lower().replace('_', '')}") for argument in field.arguments
    )


def _wrap_schema(ref: TypeRef, inner: dict[str, Any]) -> dict[str, Any]:
    """Wrap the schema of the innermost value in the type's lists, nullable where the type is."""
    made = {"type": "array", "items": _wrap_schema(ref.item, inner)} if ref.item else inner
    if ref.required or "type" not in made:
        return made
    return {**made, "type": [made["type"], "null"]}


def _build_leaf_schema(name: str, type_: GraphqlType | None) -> dict[str, Any]:
    """Build a leaf's schema. Enum values are omitted, since new ones must not fail a response."""
    if name in SCALARS:
        return {"type": SCALARS[name]["type"]}
    return {"type": "string"} if type_ is not None and type_.kind == "ENUM" else {}


def _render_braces(head: str, lines: Sequence[str]) -> list[str]:
    if not lines:
        return [head]
    return [f"{head} {{", *(f"  {line}" for line in lines), "}"]
