"""Selection sets for the values of GraphQL fields, and the JSON Schemas of their responses.

A set has the leaves, and objects down to a depth at which it stays small. Fields with required
arguments are left out, and so are those that are looked up by an argument, fields of a type that
is being selected already, and objects of which nothing but their place in a list would be left.
"""

from __future__ import annotations

import re
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
CONNECTION_SIZE = 10
"""How many items of a connection within an answer are asked for where the caller does not say:
GitHub, Shopify and Saleor answer none at all without `first`, and count the costs of a query by it.
"""
_PLACES = frozenset({_TYPE_NAME, "cursor", "pageInfo"})
"""What an object in a connection, or a connection, tells of the place in the list only."""


@dataclass(frozen=True)
class PagingVariable:
    """A variable that fills an argument by which a list within an answer is paged. `value` is sent
    where the caller gives none.
    """

    name: str
    argument: InputValue
    value: int | None = None


@dataclass(frozen=True)
class SelectionSet:
    """The lines between a field's braces, without outer indentation; none for a leaf. `schema` is
    the JSON Schema of the field's value; `variables` are those that the lines use.
    """

    lines: tuple[str, ...]
    schema: dict[str, Any]
    variables: tuple[PagingVariable, ...] = ()


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
        variables: list[PagingVariable] = []
        # The items of a connection come before what is said of the page: an answer that is cut for
        # reading has them.
        found = self._choose_fields(type_, depth, within, kept)
        for chosen, inner in sorted(found, key=lambda each: each[0].name == "pageInfo"):
            properties[chosen.name] = inner.schema
            own = self._name_variables(chosen) if inner.lines else ()
            given = ", ".join(f"{each.argument.name}: ${each.name}" for each in own)
            head = f"{chosen.name}({given})" if given else chosen.name
            lines += _render_braces(head, inner.lines)
            variables += (*own, *inner.variables)
        return SelectionSet(tuple(lines), properties, tuple(variables))

    def _name_variables(self, field: GraphqlField) -> tuple[PagingVariable, ...]:
        """A variable for each argument by which a list within an answer is paged, none for others:
        `orders_first` is how many of the orders. A connection that does not say how many it gives
        is asked for its first, and not backwards: many refuse `first` beside `last`.
        """
        sized = self._is_connection(field) and any(
            a.name == "first" and a.type.name == "Int" and a.default is None
            for a in field.arguments
        )
        found = []
        for argument in field.arguments:
            if sized and argument.name in ("last", "before"):
                continue
            if argument.name in PAGING and argument.type.item is None:
                number, named = 1, f"{field.name}_{argument.name}"
                while named in self.taken:
                    number, named = number + 1, f"{field.name}_{argument.name}_{number + 1}"
                self.taken.add(named)
                value = CONNECTION_SIZE if sized and argument.name == "first" else None
                found.append(PagingVariable(named, argument, value))
        return tuple(found)

    def _is_connection(self, field: GraphqlField) -> bool:
        type_ = self.schema.types.get(field.type.innermost_name)
        return type_ is not None and any(inner.name == "pageInfo" for inner in type_.fields)

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
            if self._is_leaf(field):
                yield field, self.select_value(field.type, depth - 1, within)
            elif depth > 0 and self._is_new(field, within):
                # The edges of a connection are its rows, as `nodes` are, and no level beside them.
                below = depth if field.name == "edges" else depth - 1
                inner = self.select_value(field.type, below, within)
                if not self._tells_place_only(field, inner.lines):
                    yield field, inner

    def _tells_place_only(self, field: GraphqlField, lines: tuple[str, ...]) -> bool:
        """Whether an object has more to tell than its place in a list, and these lines do not ask
        for it: what it has lies deeper than this attempt goes.
        """
        type_ = self.schema.types[field.type.innermost_name]
        asked = {re.split(r"[ (]", line)[0] for line in lines if line[0] not in " }"}
        has = {inner.name for inner in type_.fields}
        return type_.kind == "OBJECT" and asked <= _PLACES and not has <= _PLACES

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
    ) -> tuple[list[str], list[PagingVariable]]:
        """Render fragments with the fields of the possible types that the type itself does not
        have, and return the variables that they use. What an object would have of its own, these
        have one level less of: they are many. Of a name that two of them give different types only
        the first is selected, since the two cannot be merged (GraphQL, section 5.3.2).
        """
        depth = max(depth - 1, 0)
        lines: list[str] = []
        variables: list[PagingVariable] = []
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
