"""A quick yes to values that plainly fit a plain schema.

Of what a schema says only the plain keywords are read. Where it has another, or a value does not
plainly fit, nothing is said: the validator decides then, and words the problem.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

Acceptor = Callable[[Any], bool]

MAX_DEPTH = 30
"""Schemas inside one another; a deeper one is not read."""
_SAYS_NOTHING = frozenset(
    {"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "format"}
    | {"$comment"}
)
"""Keywords that no value can break (json-schema-validation 2020-12, sections 7.2.1 and 9); so are
those that begin with `x-`, as every argument of a compiled tool has one.
"""
_EXTENSION = "x-"
_RANGE = frozenset({"minimum", "maximum"})
_KEYWORDS: Mapping[str, frozenset[str]] = {
    "object": frozenset({"properties", "required", "additionalProperties"}),
    "array": frozenset({"items", "minItems", "maxItems"}),
    "string": frozenset({"minLength", "maxLength"}),
    "integer": _RANGE,
    "number": _RANGE,
    "boolean": frozenset(),
    "null": frozenset(),
}
"""By type, the keywords that are read. Each says something of values of its own type alone."""
_READ: frozenset[str] = frozenset().union(*_KEYWORDS.values())
_DEFINITION = re.compile(r"#/\$defs/([^/~%]+)")
"""A definition whose name is the same in a pointer and in a URI."""
_ENUMERABLE = (str, int, type(None))
"""Python's types of values that JSON Schema and Python take for equal in the same cases. A boolean
is of none of them, since types are compared exactly.
"""


def compile_acceptor(schema: Any) -> Acceptor | None:
    """What says True only of values that JSON Schema 2020-12 takes; None for a schema that is not
    plain.
    """
    if not isinstance(schema, Mapping):
        return _accept_all if schema is True else None
    named = schema.get("$defs", {})
    reader = _SchemaReader(named if isinstance(named, Mapping) else {})
    return reader.read({key: part for key, part in schema.items() if key != "$defs"}, MAX_DEPTH)


@dataclass
class _SchemaReader:
    """Reads the schemas of one document. Each of `named` is read once."""

    named: Mapping[str, Any]
    known: dict[str, Acceptor | None] = field(default_factory=dict)

    def read(self, schema: Any, depth: int) -> Acceptor | None:
        if depth < 0:
            return None
        if schema is True:
            return _accept_all
        if not isinstance(schema, Mapping):
            return None
        said = {
            key: value
            for key, value in schema.items()
            if key not in _SAYS_NOTHING and not key.startswith(_EXTENSION)
        }
        if not said:
            return _accept_all
        if said.keys() == {"$ref"}:
            return self._read_named(said["$ref"], depth - 1)
        return self._read_types(said, depth)

    def _read_named(self, reference: Any, depth: int) -> Acceptor | None:
        """A definition that is read while it is reached again is not plain."""
        found = _DEFINITION.fullmatch(reference) if isinstance(reference, str) else None
        if found is None:
            return None
        name = found[1]
        if name not in self.known:
            self.known[name] = None
            self.known[name] = self.read(self.named.get(name), depth)
        return self.known[name]

    def _read_types(self, said: dict[str, Any], depth: int) -> Acceptor | None:
        """Each value is judged by what is said of its type."""
        kinds = said.pop("type", None)
        kinds = [kinds] if isinstance(kinds, str) else kinds
        if kinds is None or not _are_texts(kinds) or not _KEYWORDS.keys() >= set(kinds):
            return None
        if said.keys() == {"enum"}:
            return _read_choices(kinds, said["enum"])
        if not said.keys() <= _READ:
            return None
        by_type: dict[type, Acceptor] = {}
        for kind in kinds:
            accept = self._read_kind(kind, said, depth)
            if accept is None:
                return None
            by_type |= dict.fromkeys(_TYPES[kind], accept)
        if all(accept is _accept_all for accept in by_type.values()):
            types = frozenset(by_type)
            return lambda value: type(value) in types
        return lambda value: by_type.get(type(value), _accept_none)(value)

    def _read_kind(self, kind: str, said: Mapping[str, Any], depth: int) -> Acceptor | None:
        if not _KEYWORDS[kind] & said.keys():
            return _accept_all
        if kind == "object":
            return self._read_object(said, depth)
        if kind == "array":
            return self._read_array(said, depth)
        if kind == "string":
            return _read_length(said)
        return _read_range(said)

    def _read_object(self, said: Mapping[str, Any], depth: int) -> Acceptor | None:
        properties, required = said.get("properties", {}), said.get("required", [])
        rest = said.get("additionalProperties", True)
        if not isinstance(properties, Mapping) or not _are_texts(required):
            return None
        if not isinstance(rest, bool):
            return None
        # A property whose schema is not plain is refused here, and so left to the validator.
        known = {
            name: self.read(part, depth - 1) or _accept_none for name, part in properties.items()
        }
        other = _accept_all if rest else _accept_none

        def accept(value: Any) -> bool:
            for name in required:
                if name not in value:
                    return False
            for name, part in value.items():
                if not known.get(name, other)(part):
                    return False
            return True

        return accept

    def _read_array(self, said: Mapping[str, Any], depth: int) -> Acceptor | None:
        item = self.read(said.get("items", True), depth - 1)
        least, most = said.get("minItems", 0), said.get("maxItems", float("inf"))
        if item is None or not _are_numbers((least, most)):
            return None
        return lambda value: least <= len(value) <= most and all(map(item, value))


_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}
"""Python's types of such values, exactly."""


def _accept_all(value: Any) -> bool:
    return True


def _accept_none(value: Any) -> bool:
    return False


def _read_choices(kinds: Iterable[str], choices: Any) -> Acceptor | None:
    types = {each for kind in kinds for each in _TYPES[kind]}
    if not isinstance(choices, list) or any(type(one) not in _ENUMERABLE for one in choices):
        return None
    known = frozenset(one for one in choices if type(one) in types)
    allowed = types & {*_ENUMERABLE}
    return lambda value: type(value) in allowed and value in known


def _read_length(said: Mapping[str, Any]) -> Acceptor | None:
    least, most = said.get("minLength", 0), said.get("maxLength", float("inf"))
    if not _are_numbers((least, most)):
        return None
    return lambda value: least <= len(value) <= most


def _read_range(said: Mapping[str, Any]) -> Acceptor | None:
    least, most = said.get("minimum", float("-inf")), said.get("maximum", float("inf"))
    if not _are_numbers((least, most)):
        return None
    return lambda value: least <= value <= most


def _are_texts(values: Any) -> bool:
    return isinstance(values, list) and all(type(value) is str for value in values)


def _are_numbers(values: Iterable[Any]) -> bool:
    return all(type(value) in (int, float) for value in values)
