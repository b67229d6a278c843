"""A GraphQL schema as its introspection tells it (GraphQL, October 2021, section 4)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

NAME = re.compile(r"[A-Za-z][_0-9A-Za-z]{0,99}\Z")
MAX_WRAPPED = 8
MAX_DESCRIPTION = 2_000
LEAVES = ("SCALAR", "ENUM")
Kind = Literal["SCALAR", "OBJECT", "INTERFACE", "UNION", "ENUM", "INPUT_OBJECT"]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True)
class Ref:
    """A use of a type: the named type, or a list of `item`; `required` where it is non-null."""

    name: str = ""
    item: Ref | None = None
    required: bool = False

    @property
    def named(self) -> str:
        """The name of the innermost type."""
        return self.item.named if self.item else self.name

    def __str__(self) -> str:
        written = f"[{self.item}]" if self.item else self.name
        return f"{written}!" if self.required else written


@dataclass(frozen=True)
class Input:
    """An argument, or a field of an input object. `default` is as the schema writes it."""

    name: str
    type: Ref
    description: str = ""
    default: str | None = None

    @property
    def needed(self) -> bool:
        return self.type.required and self.default is None


@dataclass(frozen=True)
class Field:
    name: str
    type: Ref
    arguments: tuple[Input, ...] = ()
    description: str = ""
    deprecated: bool = False


@dataclass(frozen=True)
class Type:
    name: str
    kind: Kind
    fields: tuple[Field, ...] = ()
    inputs: tuple[Input, ...] = ()
    values: tuple[str, ...] = ()
    possible: tuple[str, ...] = ()
    description: str = ""


@dataclass(frozen=True)
class GraphqlSchema:
    """The types by name, and the names of those that queries and mutations are fields of."""

    types: Mapping[str, Type]
    query: str = ""
    mutation: str = ""


def introspected(root: Any) -> Mapping[str, Any] | None:
    """The `__schema` object of an introspection's result as tools save it, or None."""
    if isinstance(root, dict) and isinstance(root.get("data"), dict):
        root = root["data"]
    found = root.get("__schema") if isinstance(root, dict) else None
    return found if isinstance(found, dict) and isinstance(found.get("types"), list) else None


def read_schema(told: Mapping[str, Any], complain: Callable[[str, str], None]) -> GraphqlSchema:
    """The schema of a `__schema` object. What cannot be read is left out, and complained of by its
    JSON pointer and the reason.
    """
    types: dict[str, Type] = {}
    for at, given in enumerate(told["types"]):
        made = _type(given, f"/__schema/types/{at}", complain)
        if made is not None:
            types[made.name] = made
    return GraphqlSchema(types, _root(told, "queryType"), _root(told, "mutationType"))


def _root(told: Mapping[str, Any], key: str) -> str:
    given = told.get(key)
    return str(given.get("name", "")) if isinstance(given, dict) else ""


def _type(given: Any, where: str, complain: Callable[[str, str], None]) -> Type | None:
    name = given.get("name") if isinstance(given, dict) else None
    if not isinstance(name, str) or name.startswith("__"):
        return None
    kind = next((kind for kind in KINDS if kind == given.get("kind")), None)
    if not NAME.match(name) or kind is None:
        complain(where, "is no type that has a GraphQL name and kind; it is left out")
        return None
    return Type(
        name=name,
        kind=kind,
        fields=tuple(_read(given, "fields", _field, where, complain)),
        inputs=tuple(_read(given, "inputFields", _input, where, complain)),
        values=tuple(v for v in _names(given, "enumValues")),
        possible=tuple(_names(given, "possibleTypes")),
        description=_text(given.get("description")),
    )


def _read(
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


def _field(
    given: Mapping[str, Any], where: str, complain: Callable[[str, str], None]
) -> Field | None:
    name, type_ = given.get("name"), _ref(given.get("type"))
    if not isinstance(name, str) or not NAME.match(name) or type_ is None:
        return None
    return Field(
        name,
        type_,
        tuple(_read(given, "args", _input, where, complain)),
        _text(given.get("description")),
        given.get("isDeprecated") is True,
    )


def _input(
    given: Mapping[str, Any], where: str, complain: Callable[[str, str], None]
) -> Input | None:
    name, type_ = given.get("name"), _ref(given.get("type"))
    if not isinstance(name, str) or not NAME.match(name) or type_ is None:
        return None
    default = given.get("defaultValue")
    kept = default[:200] if isinstance(default, str) else None
    return Input(name, type_, _text(given.get("description")), kept)


def _ref(given: Any, required: bool = False, depth: int = 0) -> Ref | None:
    if not isinstance(given, dict) or depth > MAX_WRAPPED:
        return None
    kind = given.get("kind")
    if kind == "NON_NULL":
        return _ref(given.get("ofType"), True, depth + 1)
    if kind == "LIST":
        item = _ref(given.get("ofType"), depth=depth + 1)
        return Ref(item=item, required=required) if item else None
    name = given.get("name")
    return Ref(name, required=required) if isinstance(name, str) and NAME.match(name) else None


def _names(given: Mapping[str, Any], key: str) -> list[str]:
    items = given.get(key)
    listed = items if isinstance(items, list) else ()
    names = (item.get("name") for item in listed if isinstance(item, dict))
    return [name for name in names if isinstance(name, str) and NAME.match(name)]


def _text(value: Any) -> str:
    return value[:MAX_DESCRIPTION] if isinstance(value, str) else ""
