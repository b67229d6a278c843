"""Where an answer is of other types than a schema says, and what of it can be learned.

A difference has a place and a type, and nothing of the answer: the names in its place are those of
the schema.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sandbox.bundle.widening import SCALARS

MAX_STEPS = 50_000
MAX_DEPTH = 30
MAX_MEMBERS = 200
"""Items of a list, and members of an object, that are looked at."""
_PREFIX = "#/$defs/"


@dataclass(frozen=True, order=True)
class TypeDifference:
    """A JSON pointer into answers, in which `*` is any item or any undeclared member, and the JSON
    type that came there against the schema.
    """

    where: str
    type: str

    @property
    def is_scalar(self) -> bool:
        return self.type in SCALARS


def find_differences(
    schema: Any, defs: Mapping[str, Any], answer: Any, where: str = ""
) -> frozenset[TypeDifference]:
    """Return the places of an answer whose type the schema refuses, as far as the steps suffice."""
    return frozenset(_Comparison(defs).compare(schema, answer, where, 0))


def get_type(value: Any) -> str:
    """Return the JSON type of a value; a number without a fraction is an integer (JSON Schema
    2020-12, section 6.1.1).
    """
    if isinstance(value, float) and value.is_integer():
        return "integer"
    kinds = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array"}
    return "null" if value is None else kinds.get(type(value), "object")


class _Comparison:
    """One answer's comparison, with the steps that are left for it."""

    def __init__(self, defs: Mapping[str, Any]) -> None:
        self._defs = defs
        self._left = MAX_STEPS

    def compare(self, schema: Any, value: Any, where: str, depth: int) -> Iterator[TypeDifference]:
        self._left -= 1
        schema = self._resolve(schema)
        if self._left < 0 or depth > MAX_DEPTH or not isinstance(schema, Mapping):
            return
        for part in _list_schemas(schema.get("allOf")):
            yield from self.compare(part, value, where, depth + 1)
        for key in ("anyOf", "oneOf"):
            yield from self._compare_branches(schema.get(key), value, where, depth)
        kind = get_type(value)
        if not _accepts(schema, kind):
            yield TypeDifference(where, kind)
            return
        for part, member, token in _iterate_members(schema, value):
            yield from self.compare(part, member, f"{where}/{token}", depth + 1)

    def _compare_branches(
        self, branches: Any, value: Any, where: str, depth: int
    ) -> Iterable[TypeDifference]:
        """The differences from the branch that fits best."""
        best: frozenset[TypeDifference] | None = None
        for branch in _list_schemas(branches):
            found = frozenset(self.compare(branch, value, where, depth + 1))
            if not found:
                return ()
            if best is None or len(found) < len(best):
                best = found
        return best or ()

    def _resolve(self, schema: Any) -> Any:
        for _ in range(MAX_DEPTH):
            reference = schema.get("$ref") if isinstance(schema, Mapping) else None
            if not isinstance(reference, str):
                return schema
            if not reference.startswith(_PREFIX):
                return None
            schema = self._defs.get(reference.removeprefix(_PREFIX))
        return None


def _iterate_members(schema: Mapping[str, Any], value: Any) -> Iterator[tuple[Any, Any, str]]:
    """The described parts of a list or an object, each with its schema and its name in a place."""
    if isinstance(value, list) and "items" in schema:
        yield from ((schema["items"], item, "*") for item in value[:MAX_MEMBERS])
    if not isinstance(value, Mapping):
        return
    known, others = schema.get("properties", {}), schema.get("additionalProperties")
    for name in list(value)[:MAX_MEMBERS]:
        if name in known:
            yield known[name], value[name], name.replace("~", "~0").replace("/", "~1")
        elif isinstance(others, Mapping):
            yield others, value[name], "*"


def _accepts(schema: Mapping[str, Any], kind: str) -> bool:
    types = schema.get("type")
    if types is None:
        values = schema["enum"] if "enum" in schema else [schema.get("const")]
        told = "enum" in schema or "const" in schema
        return not told or kind in set(map(get_type, values))
    known = {types} if isinstance(types, str) else set(types)
    return kind in known or (kind == "integer" and "number" in known)


def _list_schemas(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
