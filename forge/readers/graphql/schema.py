"""Parsing of a GraphQL schema from its introspection (GraphQL, October 2021, section 4)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

NAME = re.compile(r"(?!__)[_A-Za-z][_0-9A-Za-z]{0,99}\Z")
"""A name (section 2.1.9); two underscores are kept for introspection (section 4.1)."""
MAX_WRAPPED = 8
WRITTEN = "written"
"""At the root of a schema that was read in its own language and not told by an introspection."""
MAX_DESCRIPTION = 2_000
LEAVES = ("SCALAR", "ENUM")
Kind = Literal["SCALAR", "OBJECT", "INTERFACE", "UNION", "ENUM", "INPUT_OBJECT"]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True)
class TypeRef:
    """A reference to a type: a named type, or a list of `item`; `required` is true for non-null."""

    name: str = ""
    item: TypeRef | None = None
    required: bool = False

    @property
    def innermost_name(self) -> str:
        """The name of the innermost type."""
        return self.item.innermost_name if self.item else self.name

    def __str__(self) -> str:
        written = f"[{self.item}]" if self.item else self.name
        return f"{written}!" if self.required else written


@dataclass(frozen=True)
class InputValue:
    """An argument, or a field of an input object. `default` is a GraphQL literal, at most 200
    characters of it.
    """

    name: str
    type: TypeRef
    description: str = ""
    default: str | None = None

    @property
    def is_needed(self) -> bool:
        return self.type.required and self.default is None


@dataclass(frozen=True)
class GraphqlField:
    """A field of an object or interface, with its arguments."""

    name: str
    type: TypeRef
    arguments: tuple[InputValue, ...] = ()
    description: str = ""
    deprecated: bool = False


@dataclass(frozen=True)
class GraphqlType:
    """A named type. Depending on the kind it has `fields`, `inputs`, enum `values` or `possible`
    types.
    """

    name: str
    kind: Kind
    fields: tuple[GraphqlField, ...] = ()
    inputs: tuple[InputValue, ...] = ()
    values: tuple[str, ...] = ()
    possible: tuple[str, ...] = ()
    description: str = ""


@dataclass(frozen=True)
class GraphqlSchema:
    """The types by name, and the names of the query and mutation root types."""

    types: Mapping[str, GraphqlType]
    query: str = ""
    mutation: str = ""


def find_schema_object(root: Any) -> Mapping[str, Any] | None:
    """Return the `__schema` object of an introspection's result, with or without `data` around it,
    or None.
    """
    if isinstance(root, dict) and isinstance(root.get("data"), dict):
        root = root["data"]
    found = root.get("__schema") if isinstance(root, dict) else None
    return found if isinstance(found, dict) and isinstance(found.get("types"), list) else None


def read_schema(told: Mapping[str, Any], complain: Callable[[str, str], None]) -> GraphqlSchema:
    """Parse a `__schema` object. Invalid parts are left out and passed to `complain` with their
    JSON pointer and the reason.
    """
    types: dict[str, GraphqlType] = {}
    for at, given in enumerate(told["types"]):
        made = _parse_type(given, f"/__schema/types/{at}", complain)
        if made is not None:
            types[made.name] = made
    return GraphqlSchema(
        types, _find_root_type(told, "queryType"), _find_root_type(told, "mutationType")
    )


def _find_root_type(told: Mapping[str, Any], key: str) -> str:
    given = told.get(key)
    return str(given.get("name", "")) if isinstance(given, dict) else ""


def _parse_type(given: Any, where: str, complain: Callable[[str, str], None]) -> GraphqlType | None:
    name = given.get("name") if isinstance(given, dict) else None
    if not isinstance(name, str) or name.startswith("__"):
        return None
    kind = next((kind for kind in KINDS if kind == given.get("kind")), None)
    if not NAME.match(name) or kind is None:
        complain(where, "is no type that has a GraphQL name and kind; it is left out")
        return None
    return GraphqlType(
        name=name,
        kind=kind,
        fields=tuple(_parse_list(given, "fields", _parse_field, where, complain)),
        inputs=tuple(_parse_list(given, "inputFields", _parse_input, where, complain)),
        values=tuple(v for v in _list_names(given, "enumValues")),
        possible=tuple(_list_names(given, "possibleTypes")),
        description=_parse_text(given.get("description")),
    )


def _parse_list(
    given: Mapping[str, Any],
    key: str,
    read: Callable[..., Any],
    where: str,
    complain: Callable[[str, str], None],
) -> list[Any]:
    items = given.get(key)
    made = []
    for at, item in enumerate(items if isinstance(items, list) else ()):
        place = f"{where}/{key}/{at}"
        found = read(item, place, complain) if isinstance(item, dict) else None
        if found is None:
            complain(place, "has no GraphQL name and type; it is left out")
        else:
            made.append(found)
    return made


def _parse_field(
    given: Mapping[str, Any], where: str, complain: Callable[[str, str], None]
) -> GraphqlField | None:
    name, type_ = given.get("name"), _parse_ref(given.get("type"))
    if not isinstance(name, str) or not NAME.match(name) or type_ is None:
        return None
    return GraphqlField(
        name,
        type_,
        tuple(_parse_list(given, "args", _parse_input, where, complain)),
        _parse_text(given.get("description")),
        given.get("isDeprecated") is True,
    )


def _parse_input(
    given: Mapping[str, Any], where: str, complain: Callable[[str, str], None]
) -> InputValue | None:
    name, type_ = given.get("name"), _parse_ref(given.get("type"))
    if not isinstance(name, str) or not NAME.match(name) or type_ is None:
        return None
    default = given.get("defaultValue")
    kept = default[:200] if isinstance(default, str) else None
    return InputValue(name, type_, _parse_text(given.get("description")), kept)


def _parse_ref(given: Any, required: bool = False, depth: int = 0) -> TypeRef | None:
    if not isinstance(given, dict) or depth > MAX_WRAPPED:
        return None
    kind = given.get("kind")
    if kind == "NON_NULL":
        return _parse_ref(given.get("ofType"), True, depth + 1)
    if kind == "LIST":
        item = _parse_ref(given.get("ofType"), depth=depth + 1)
        return TypeRef(item=item, required=required) if item else None
    name = given.get("name")
    return TypeRef(name, required=required) if isinstance(name, str) and NAME.match(name) else None


def _list_names(given: Mapping[str, Any], key: str) -> list[str]:
    items = given.get(key)
    listed = items if isinstance(items, list) else ()
    names = (item.get("name") for item in listed if isinstance(item, dict))
    return [name for name in names if isinstance(name, str) and NAME.match(name)]


def _parse_text(value: Any) -> str:
    return value[:MAX_DESCRIPTION] if isinstance(value, str) else ""
