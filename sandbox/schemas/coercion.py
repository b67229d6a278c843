"""Values of another JSON type than the schema's, read as what they unambiguously stand for.

Models write `"true"` for a boolean, `"5"` for an integer, 5 for `"5"`, a lone value for a list of
one, and an object as its JSON text. What has two readings is not read: it is named.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from itertools import islice
from typing import Any

from sandbox import exactjson
from sandbox.bundle.apispec import Schema
from sandbox.bundle.model import Bundle, ToolDefinition
from sandbox.schemas.accepted import get_place, is_claim
from sandbox.schemas.keywords import declared_types
from sandbox.schemas.steps import StepBudget
from sandbox.schemas.validator import accepts_within, get_checker

MAX_VISITS = 5_000
"""Pairs of a schema and a value that are looked at; a check that takes more reads nothing."""
CHECK_VISITS = 25
"""What asking whether an alternative takes a value counts for."""
MAX_DEPTH = 32
MAX_TEXT = 256 * 1024
"""Characters of JSON text that is read as the object or list that it stands for."""
MAX_NOTES = 8
MAX_SHOWN = 60
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,30})\Z")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,30})(?:\.[0-9]{1,30})?(?:[eE][+-]?[0-9]{1,3})?\Z")
_LOOSE_NUMBER = re.compile(r"\s*[+-]?[0-9._,]+\s*\Z")
_TRUTHS = {"true": True, "false": False}
_LIKE_TRUTHS = frozenset({"1", "0", "yes", "no", "on", "off", "y", "n", "t", "f"})


@dataclass(frozen=True)
class Coercion:
    """Arguments as they were read, a note for each value that was read as another, and the doubts
    for which values were left as they are.
    """

    arguments: Mapping[str, Any]
    notes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()


def nest_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values by dotted names (`body.name`) as the object that they are members of."""
    nested: dict[str, Any] = {}
    for dotted, value in values.items():
        place = nested
        *outer, inner = dotted.split(".")
        for part in outer:
            place = place.setdefault(part, {})
        place[inner] = value
    return nested


def coerce_arguments(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> Coercion:
    """Read arguments that break the schema. They are returned as they are where what they would be
    read as breaks it too.
    """
    reader = _ValueReader(schema.get("$defs", {}), StepBudget(arguments))
    try:
        made = reader.read_arguments(schema, arguments)
    except (_Exhausted, RecursionError):
        return Coercion(arguments)
    doubts = tuple(reader.doubts[:MAX_NOTES])
    if doubts or not reader.notes or get_checker(schema).find_problem(made) is not None:
        return Coercion(arguments, doubts=doubts)
    return Coercion(made, tuple(reader.notes))


def render_notes(notes: tuple[str, ...]) -> str:
    """What a caller is told of values that were read as others; "" where none was."""
    if not notes:
        return ""
    more = f"; and {len(notes) - MAX_NOTES} more" if len(notes) > MAX_NOTES else ""
    return f"Arguments were read by their types: {'; '.join(notes[:MAX_NOTES])}{more}."


class _Exhausted(Exception):
    """Too many pairs of a schema and a value were looked at."""


@dataclass(frozen=True)
class _Doubt:
    """Why a value is not read as a type: it has these readings."""

    readings: tuple[str, str]


_NOTHING = object()


@dataclass
class _ValueReader:
    """Reads the values of one call."""

    definitions: Mapping[str, Schema]
    budget: StepBudget
    notes: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    left: int = MAX_VISITS

    def read_arguments(
        self, schema: Mapping[str, Any], arguments: Mapping[str, Any]
    ) -> dict[str, Any]:
        made = {}
        for name, value in arguments.items():
            part = schema.get("properties", {}).get(name)
            if part is None:
                made[name] = value
                continue
            where = f"/{_escape(name)}"
            if value is None and self._is_left_out(name, part, schema):
                self.notes.append(f"{where} null as not given")
                continue
            made[name] = self.read_value(part, value, where, 0)
        return made

    def read_value(self, schema: Schema, value: Any, where: str, depth: int) -> Any:
        """The value as the schema's types read it; itself where they take it or cannot."""
        self.left -= 1
        if self.left < 0:
            raise _Exhausted
        found = self._resolve(schema)
        if not isinstance(found, Mapping) or depth > MAX_DEPTH:
            return value
        types = declared_types(found)
        if types and not any(_is_of_type(value, kind) for kind in types):
            return self._convert_value(found, types, value, where, depth)
        value = self._read_parts(found, value, where, depth)
        for part in found.get("allOf", ()):
            value = self.read_value(part, value, where, depth + 1)
        for key in ("anyOf", "oneOf"):
            if key in found:
                value = self._read_alternatives(found[key], value, where, depth)
        return value

    def _read_parts(self, schema: Mapping[str, Any], value: Any, where: str, depth: int) -> Any:
        if isinstance(value, Mapping):
            known, rest = schema.get("properties", {}), schema.get("additionalProperties", True)
            return {
                name: self.read_value(
                    known.get(name, rest), part, f"{where}/{_escape(name)}", depth + 1
                )
                for name, part in value.items()
            }
        if isinstance(value, list):
            first = schema.get("prefixItems", ())
            rest = schema.get("items", True)
            return [
                self.read_value(
                    first[at] if at < len(first) else rest, item, f"{where}/{at}", depth + 1
                )
                for at, item in enumerate(value)
            ]
        return value

    def _read_alternatives(self, branches: Any, value: Any, where: str, depth: int) -> Any:
        """The value where one alternative takes it as it is, or as the only reading that any of
        them takes.
        """
        if any(self._takes(branch, value) for branch in branches):
            return value
        found: dict[bytes, tuple[Any, list[str]]] = {}
        doubts: list[str] = []
        for branch in branches:
            other = _ValueReader(self.definitions, self.budget, left=self.left)
            made = other.read_value(branch, value, where, depth + 1)
            self.left = other.left
            doubts += other.doubts
            if not other.doubts and self._takes(branch, made):
                found.setdefault(exactjson.dumps(made), (made, other.notes))
        if len(found) > 1:
            first, second = [made for made, _ in found.values()][:2]
            doubts = [_describe_doubt(where, value, (_show(first), _show(second)))]
        if len(found) != 1:
            self.doubts += doubts
            return value
        ((made, notes),) = found.values()
        self.notes += notes
        return made

    def _convert_value(
        self,
        schema: Mapping[str, Any],
        types: frozenset[str],
        value: Any,
        where: str,
        depth: int,
    ) -> Any:
        """The value as the only one of the types that it stands for."""
        found: dict[bytes, Any] = {}
        doubts: list[_Doubt] = []
        for kind in sorted(types):
            made = (
                self._read_list(schema, value, where, depth)
                if kind == "array"
                else _CONVERSIONS[kind](value)
                if kind in _CONVERSIONS
                else _NOTHING
            )
            if isinstance(made, _Doubt):
                doubts.append(made)
            elif made is not _NOTHING:
                found.setdefault(exactjson.dumps(made), made)
        if len(found) > 1:
            first, second = list(found.values())[:2]
            doubts.append(_Doubt((_show(first), _show(second))))
        if doubts or not found:
            self.doubts += [_describe_doubt(where, value, doubt.readings) for doubt in doubts]
            return value
        (made,) = found.values()
        self.notes.append(f"{where} {_show(value)} as {_show(made)}")
        return self._read_parts(schema, made, where, depth)

    def _read_list(self, schema: Mapping[str, Any], value: Any, where: str, depth: int) -> Any:
        """A list of one, or the list that a text is in JSON."""
        items = schema.get("items", True)
        other = _ValueReader(self.definitions, self.budget, left=self.left)
        lone = other.read_value(items, value, f"{where}/0", depth + 1)
        self.left = other.left
        fits = not other.doubts and self._takes(items, lone) and value is not None
        if not isinstance(value, str):
            return [lone] if fits else _NOTHING
        parsed = _parse_json(value, list)
        if parsed is not _NOTHING:
            return _Doubt((_show([value]), _show(parsed))) if fits else parsed
        if "," in value or not value.strip():
            split = [part.strip() for part in value.split(",")] if value.strip() else []
            return _Doubt((_show([value]), _show(split)))
        return [lone] if fits else _NOTHING

    def _takes(self, schema: Schema, value: Any) -> bool:
        root = {**schema, "$defs": self.definitions} if isinstance(schema, Mapping) else schema
        self.left -= CHECK_VISITS
        if self.left < 0:
            raise _Exhausted
        return accepts_within(root, value, self.budget)

    def _resolve(self, schema: Schema) -> Schema:
        """The schema with its reference followed, what stands beside it kept."""
        beside: dict[str, Any] = {}
        for _ in range(16):
            if not isinstance(schema, Mapping) or "$ref" not in schema:
                return {**schema, **beside} if isinstance(schema, Mapping) else schema
            beside = {**{k: v for k, v in schema.items() if k != "$ref"}, **beside}
            name = str(schema["$ref"]).removeprefix("#/$defs/")
            schema = self.definitions.get(name.replace("~1", "/").replace("~0", "~"), True)
        return True

    def _is_left_out(self, name: str, schema: Schema, root: Mapping[str, Any]) -> bool:
        """Whether an argument's null says that it is not given: it goes nowhere on the wire."""
        needed = name in root.get("required", ())
        return not needed and get_place(schema)[0] != "path" and not self._takes(schema, None)


def _is_of_type(value: Any, kind: str) -> bool:
    if kind == "integer":
        whole = isinstance(value, float) and value.is_integer()
        return whole or (isinstance(value, int) and not isinstance(value, bool))
    if kind == "number":
        return isinstance(value, int | float) and not isinstance(value, bool)
    named = {"string": str, "boolean": bool, "array": list, "object": Mapping}
    return value is None if kind == "null" else isinstance(value, named.get(kind, object))


def _to_boolean(value: Any) -> Any:
    if isinstance(value, str) and value.lower() in _TRUTHS:
        return _TRUTHS[value.lower()]
    text = str(value).lower() if isinstance(value, str | int | float) else ""
    if text in _LIKE_TRUTHS:
        truth = text in ("1", "yes", "on", "y", "t")
        return _Doubt(("true" if truth else "false", f"{_show(value)} itself"))
    return _NOTHING


def _to_integer(value: Any) -> Any:
    if isinstance(value, str) and _INTEGER.match(value):
        return int(value)
    if isinstance(value, float) and math.isfinite(value):
        return _Doubt((str(math.floor(value)), str(math.ceil(value))))
    return _doubt_number(value)


def _to_number(value: Any) -> Any:
    if isinstance(value, str) and _INTEGER.match(value):
        return int(value)
    if isinstance(value, str) and _NUMBER.match(value):
        made = float(value)
        try:
            exact = math.isfinite(made) and Decimal(repr(made)) == Decimal(value)
        except InvalidOperation:
            exact = False
        return made if exact else _Doubt((_show(value), repr(made)))
    return _doubt_number(value)


def _doubt_number(value: Any) -> Any:
    """A text that may be a number written in some other way than JSON's."""
    if not isinstance(value, str) or not _LOOSE_NUMBER.match(value) or len(value) > MAX_SHOWN:
        return _NOTHING
    return _Doubt((f"the number {value.strip()}", f"the text {_show(value)}"))


def _to_text(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float) and math.isfinite(value):
        text = repr(value)
        if value.is_integer() or "e" in text:
            return _Doubt((_show(text), _show(str(Decimal(text).normalize()))))
        return text
    return _NOTHING


def _to_object(value: Any) -> Any:
    return _parse_json(value, dict) if isinstance(value, str) else _NOTHING


def _parse_json(text: str, kind: type) -> Any:
    """The object or list that a text is in JSON; `_NOTHING` where it is none."""
    if len(text) > MAX_TEXT or text.strip()[:1] not in ("{", "["):
        return _NOTHING
    try:
        value = exactjson.loads(text.encode())
    except (ValueError, RecursionError):
        return _NOTHING
    return value if isinstance(value, kind) else _NOTHING


_CONVERSIONS: Mapping[str, Callable[[Any], Any]] = {
    "boolean": _to_boolean,
    "integer": _to_integer,
    "number": _to_number,
    "string": _to_text,
    "object": _to_object,
}


def _describe_doubt(where: str, value: Any, readings: tuple[str, str]) -> str:
    return f"{where}: {_show(value)} could be {readings[0]} or {readings[1]}; give the one you mean"


def _show(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"


def _escape(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")[:MAX_SHOWN]


def render_claims(claimed: Mapping[str, Any], arguments: Mapping[str, Any]) -> str:
    """What is told of arguments that an API refused and that are not as its document says; ""
    where all are.
    """
    problems = list(islice(iterate_problems(claimed, arguments), MAX_NOTES))
    if not problems:
        return ""
    said = "; ".join(f"{where}: {rule} (given: {given})" for where, rule, given in problems)
    return f"The API's document says otherwise of these arguments: {said}"


def find_claims(bundle: Bundle, tool: ToolDefinition, arguments: Mapping[str, Any]) -> str:
    """`render_claims` of a tool's arguments; "" where its schema is no document's word."""
    return render_claims(tool.input_schema, arguments) if is_claim(bundle, tool) else ""


def iterate_problems(
    claimed: Mapping[str, Any], arguments: Mapping[str, Any]
) -> Iterator[tuple[str, str, str]]:
    """What a document says of arguments that are not as it says: the argument, the rule, and what
    was given.
    """
    definitions = claimed.get("$defs", {})
    properties = claimed.get("properties", {})
    for name in claimed.get("required", ()):
        if name not in arguments:
            yield f"/{_escape(name)}", "is required", "nothing"
    for name, value in arguments.items():
        part = properties.get(name)
        if not isinstance(part, Mapping):
            continue
        problem = get_checker({**part, "$defs": definitions}).find_problem(value)
        # An integer fits both alternatives of a oneOf of integer and number, as generators of
        # descriptions write them: what several alternatives take is as the document says.
        if problem is not None and problem.keyword != "many":
            yield f"/{_escape(name)}{problem.where}", problem.reason, _show(value)
