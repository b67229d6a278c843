"""A quick yes to values that plainly fit a plain schema.

Of what a schema says only the plain keywords are read. Where it has another, or a value does not
plainly fit, nothing is said: the validator decides then, and words the problem.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

Acceptor = Callable[[Any], bool]

MAX_DEPTH = 30
"""Schemas inside one another; a deeper one is not read."""
_SAYS_NOTHING = frozenset(
    {"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "format"}
    | {"$comment"}
)
"""Keywords that no value can break (json-schema-validation 2020-12, sections 7.2.1 and 9)."""
_OF_TYPE: Mapping[str, tuple[frozenset[type], frozenset[str]]] = {
    "object": (frozenset({dict}), frozenset({"properties", "required", "additionalProperties"})),
    "array": (frozenset({list}), frozenset({"items", "minItems", "maxItems"})),
    "string": (frozenset({str}), frozenset({"minLength", "maxLength", "enum"})),
    "integer": (frozenset({int}), frozenset({"minimum", "maximum"})),
    "number": (frozenset({int, float}), frozenset({"minimum", "maximum"})),
    "boolean": (frozenset({bool}), frozenset()),
    "null": (frozenset({type(None)}), frozenset()),
}
"""By type: Python's types of such values, exactly, and the keywords that are read."""


def compile_acceptor(schema: Any, depth: int = MAX_DEPTH) -> Acceptor | None:
    """What says True only of values that JSON Schema 2020-12 takes; None for a schema that is not
    plain.
    """
    if depth < 0:
        return None
    if schema is True:
        return _accept_all
    if not isinstance(schema, Mapping):
        return None
    said = {key: value for key, value in schema.items() if key not in _SAYS_NOTHING}
    if not said:
        return _accept_all
    kind = said.pop("type", None)
    if not isinstance(kind, str) or kind not in _OF_TYPE:
        return None
    types, read = _OF_TYPE[kind]
    if not said.keys() <= read:
        return None
    if kind == "object":
        return _compile_object(said, depth)
    if kind == "array":
        return _compile_array(said, depth)
    if kind == "string":
        return _compile_string(said)
    return _compile_range(said, types)


def _accept_all(value: Any) -> bool:
    return True


def _compile_object(said: Mapping[str, Any], depth: int) -> Acceptor | None:
    properties, required = said.get("properties", {}), said.get("required", [])
    rest = said.get("additionalProperties", True)
    if not isinstance(properties, Mapping) or not _are_texts(required):
        return None
    if not isinstance(rest, bool):
        return None
    parts = {name: compile_acceptor(part, depth - 1) for name, part in properties.items()}
    # A property whose schema is not plain is refused here, and so left to the validator.
    known = {name: accept or _accept_none for name, accept in parts.items()}
    other = _accept_all if rest else _accept_none

    def accept(value: Any) -> bool:
        if type(value) is not dict:
            return False
        for name in required:
            if name not in value:
                return False
        for name, part in value.items():
            if not known.get(name, other)(part):
                return False
        return True

    return accept


def _accept_none(value: Any) -> bool:
    return False


def _compile_array(said: Mapping[str, Any], depth: int) -> Acceptor | None:
    item = compile_acceptor(said.get("items", True), depth - 1)
    least, most = said.get("minItems", 0), said.get("maxItems", float("inf"))
    if item is None or not _are_numbers((least, most)):
        return None
    return lambda value: (
        type(value) is list and least <= len(value) <= most and all(map(item, value))
    )


def _compile_string(said: Mapping[str, Any]) -> Acceptor | None:
    if "enum" in said:
        choices = said["enum"]
        if len(said) > 1 or not _are_texts(choices):
            return None
        known = frozenset(choices)
        return lambda value: type(value) is str and value in known
    least, most = said.get("minLength", 0), said.get("maxLength", float("inf"))
    if not _are_numbers((least, most)):
        return None
    return lambda value: type(value) is str and least <= len(value) <= most


def _compile_range(said: Mapping[str, Any], types: Collection[type]) -> Acceptor | None:
    if not said:
        return lambda value: type(value) in types
    least, most = said.get("minimum", float("-inf")), said.get("maximum", float("inf"))
    if not _are_numbers((least, most)):
        return None
    return lambda value: type(value) in types and least <= value <= most


def _are_texts(values: Any) -> bool:
    return isinstance(values, list) and all(type(value) is str for value in values)


def _are_numbers(values: Iterable[Any]) -> bool:
    return all(type(value) in (int, float) for value in values)
