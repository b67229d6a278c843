"""A tool's arguments as the fields of a form, and what was typed into them as values.

Names, texts and choices come from a stranger's schema: they are bounded here and escaped where they
are shown.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sandbox.schemas.keywords import declared_types

MAX_ARGUMENTS = 60
MAX_CHOICES = 100
MAX_DEPTH = 4
MAX_SHOWN = 80
_DEFINITIONS = "#/$defs/"
_BRANCHES = ("anyOf", "oneOf", "allOf")


@dataclass(frozen=True)
class FormArgument:
    """One argument: the types of JSON Schema that it may have (none where it may be anything) and,
    where it has to be one of a few values, their JSON texts. `sample` is an example of what may be
    typed, `value` what stands in its field until another is typed.
    """

    name: str
    types: frozenset[str] = frozenset()
    required: bool = False
    description: str = ""
    choices: tuple[str, ...] = ()
    sample: str = ""
    value: str = ""

    @property
    def is_text(self) -> bool:
        """Whether what is typed is the value. Softened schemas accept null of every type."""
        return self.types - {"null"} == {"string"}

    def accepts(self, value: Any) -> bool:
        return not self.types or not self.types.isdisjoint(_find_kinds(value))


@dataclass(frozen=True)
class ArgumentProblem:
    """A text that is no value of its argument. `where` is the argument's name."""

    where: str
    reason: str


def list_arguments(schema: Any) -> tuple[FormArgument, ...]:
    """The arguments that an input schema names, those that are required first."""
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    if not isinstance(properties, Mapping):
        return ()
    required = schema.get("required")
    named = [*required] if isinstance(required, list) else []
    found = [_read_argument(str(n), part, n in named, schema) for n, part in properties.items()]
    return tuple(sorted(found, key=lambda each: not each.required)[:MAX_ARGUMENTS])


def fill_field(argument: FormArgument, value: Any) -> FormArgument:
    """The argument with a value in its field, as the text that `read_fields` reads as that."""
    plain = isinstance(value, str) and not argument.choices
    return replace(argument, value=value if plain else _write_json(value))


def _read_argument(name: str, schema: Any, required: bool, root: Mapping[str, Any]) -> FormArgument:
    parts = _list_parts(schema, root, MAX_DEPTH)
    types = frozenset[str]().union(*map(declared_types, parts))
    texts = (part.get("description") for part in parts)
    lists = (part["enum"] for part in parts if isinstance(part.get("enum"), list))
    choices: list[Any] = next(lists, [])
    shown = (part.get(key) for part in parts for key in ("example", "default"))
    sample = next((each for each in shown if each is not None), "")
    return FormArgument(
        name,
        types,
        required,
        next((text for text in texts if isinstance(text, str)), ""),
        tuple(map(_write_json, choices[:MAX_CHOICES])),
        sample if isinstance(sample, str) else _write_json(sample),
    )


def _list_parts(schema: Any, root: Mapping[str, Any], depth: int) -> list[Mapping[str, Any]]:
    """A schema with what it refers to and its branches, at most MAX_CHOICES of them."""
    if not isinstance(schema, Mapping) or depth == 0:
        return []
    name, definitions = str(schema.get("$ref", "")), root.get("$defs")
    inner = [schema[key] for key in _BRANCHES if isinstance(schema.get(key), list)]
    more = [part for branch in inner for part in branch[:MAX_CHOICES]]
    if name.startswith(_DEFINITIONS) and isinstance(definitions, Mapping):
        more.append(definitions.get(name.removeprefix(_DEFINITIONS)))
    found = [schema]
    for part in more:
        if len(found) < MAX_CHOICES:
            found += _list_parts(part, root, depth - 1)
    return found[:MAX_CHOICES]


def read_fields(
    schema: Any, fields: Mapping[str, Any]
) -> tuple[dict[str, Any], tuple[ArgumentProblem, ...]]:
    """The values of what was typed, by argument, and what is no value. Empty fields are left out;
    what belongs to no argument is a problem.
    """
    known = {argument.name: argument for argument in list_arguments(schema)}
    values: dict[str, Any] = {}
    problems = []
    for name, text in fields.items():
        argument = known.get(name)
        if argument is None or not isinstance(text, str):
            problems.append(ArgumentProblem(name, "the tool has no such argument"))
        elif text != "":
            value, reason = _read_text(argument, text)
            if reason:
                problems.append(ArgumentProblem(name, reason))
            else:
                values[name] = value
    return values, tuple(problems)


def _read_text(argument: FormArgument, text: str) -> tuple[Any, str]:
    """A value, and why there is none."""
    if argument.is_text and not argument.choices:
        return text, ""
    try:
        value = json.loads(text)
        if argument.choices or argument.accepts(value):
            return value, ""
    except (ValueError, RecursionError):
        pass
    if not argument.types or "string" in argument.types:
        return text, ""
    return None, f"{text[:MAX_SHOWN]!r} is no {render_types(argument.types)}"


def _find_kinds(value: Any) -> frozenset[str]:
    """The types of JSON Schema that a value is of."""
    if isinstance(value, bool):
        return frozenset({"boolean"})
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return frozenset({"integer", "number"})
    names = {float: "number", str: "string", list: "array", dict: "object"}
    return frozenset({names.get(type(value), "null")})


def render_types(types: frozenset[str]) -> str:
    """Types of JSON Schema in words."""
    return " or ".join(sorted(types - {"null"} or types)) or "any value"


def _write_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
