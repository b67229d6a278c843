"""A tool's arguments as the fields of a form, and what was typed into them as values.

Names, texts and choices come from a stranger's schema: they are bounded here and escaped where they
are shown.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sandbox.schemas.keywords import declared_types

MAX_ARGUMENTS = 60
MAX_CHOICES = 100
MAX_DEPTH = 4
MAX_SHOWN = 80
MAX_PROPERTIES = 200
MAX_OPENED = 40
"""Fields of an object that stand in fields of their own."""
SMALL = 6
"""Fields of an object within such an object, up to which they too do."""
_DEFINITIONS = "#/$defs/"
_BRANCHES = ("anyOf", "oneOf", "allOf")


@dataclass(frozen=True)
class FormArgument:
    """One argument: the types of JSON Schema that it may have (none where it may be anything) and,
    where it has to be one of a few values, their JSON texts. `sample` is an example of what may be
    typed, `value` what stands in its field until another is typed. `label` is its name for people,
    where that is another one. `path` leads to where its value belongs, by default to its name.
    """

    name: str
    types: frozenset[str] = frozenset()
    required: bool = False
    description: str = ""
    choices: tuple[str, ...] = ()
    sample: str = ""
    value: str = ""
    label: str = ""
    path: tuple[str, ...] = ()

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
    sample = next((each for each in map(_find_sample, parts) if each is not None), "")
    if sample == "" and not choices:
        sample = _make_sample(types, parts, root)
    return FormArgument(
        name,
        types,
        required,
        next((text for text in texts if isinstance(text, str)), ""),
        tuple(map(_write_json, choices[:MAX_CHOICES])),
        sample if isinstance(sample, str) else _write_json(sample),
    )


def _find_sample(schema: Mapping[str, Any]) -> Any:
    listed = schema.get("examples")
    shown = (schema.get("example"), *(listed[:1] if isinstance(listed, list) else ()))
    return next((each for each in (*shown, schema.get("default")) if each is not None), None)


def _make_sample(
    types: frozenset[str], parts: Iterable[Mapping[str, Any]], root: Mapping[str, Any]
) -> Any:
    """What a list or an object looks like, for who has not seen JSON; "" for anything else."""
    kinds = types - {"null"}
    if kinds == {"object"}:
        return {"name": "value"}
    if kinds != {"array"}:
        return ""
    items = [inner for part in parts for inner in _list_parts(part.get("items"), root, 2)]
    shown = next((each for each in map(_find_sample, items) if each is not None), None)
    if shown is not None:
        return [shown]
    of = frozenset[str]().union(*map(declared_types, items)) - {"null"}
    return next((sample for kind, sample in _ITEMS if kind in of), "")


_ITEMS: tuple[tuple[str, list[Any]], ...] = (
    ("string", ["one", "two"]),
    ("integer", [1, 2]),
    ("number", [1, 2]),
    ("object", [{}]),
)
"""Lists, by what they hold."""


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
    return _read_texts(list_arguments(schema), fields)


def _read_texts(
    arguments: Iterable[FormArgument], fields: Mapping[str, Any]
) -> tuple[dict[str, Any], tuple[ArgumentProblem, ...]]:
    known = {argument.name: argument for argument in arguments}
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


def open_arguments(schema: Any) -> tuple[FormArgument, ...]:
    """The arguments that an input schema names, those that are required first. One that is an
    object, such as a body, is opened: its fields are arguments with a name of dots, and one of its
    own name, the last, takes what else it may have.
    """
    arguments = list_arguments(schema)
    names = {each.name for each in arguments}
    found, rest = list[FormArgument](), list[FormArgument]()
    for each in arguments:
        inner = _open_object(each, schema["properties"][each.name], schema)
        if not inner or names & {one.name for one in inner}:
            found.append(each)
            continue
        found += inner[:MAX_OPENED]
        if inner[MAX_OPENED:] or _takes_more(schema["properties"][each.name], schema):
            rest.append(_build_rest(each, inner[MAX_OPENED:]))
    found.sort(key=lambda each: not each.required)
    return tuple(_label(found)) + tuple(rest)


def _open_object(
    argument: FormArgument, schema: Any, root: Mapping[str, Any], most: int = MAX_PROPERTIES
) -> list[FormArgument]:
    """The fields of an argument that is an object; none where it is none, or one of several."""
    parts = _list_parts(schema, root, MAX_DEPTH)
    objects = [part for part in parts if isinstance(part.get("properties"), Mapping)]
    chosen = any(part.get(key) for part in parts for key in ("anyOf", "oneOf"))
    if argument.types - {"null"} != {"object"} or not objects or (chosen and len(objects) > 1):
        return []
    properties = {str(name): each for one in objects for name, each in one["properties"].items()}
    needed = {name for one in objects for name in _list_required(one)}
    if not 0 < len(properties) <= most:
        return []
    path = argument.path or (argument.name,)
    samples = next((each for each in map(_find_sample, parts) if isinstance(each, Mapping)), {})
    opened: list[FormArgument] = []
    for name, part in properties.items():
        each = _read_argument(name, part, name in needed, root)
        each = replace(each, name=f"{argument.name}.{name}", path=(*path, name))
        if name in samples and not each.sample:
            shown = samples[name]
            each = replace(each, sample=shown if isinstance(shown, str) else _write_json(shown))
        if each.required and not argument.required:
            told = f"{each.description} Needed once a field of {argument.name} is filled."
            each = replace(each, required=False, description=told.strip())
        inner = _open_object(each, part, root, SMALL) if len(path) == 1 else []
        opened += inner or [each]
    return sorted(opened, key=lambda each: not each.required)


def _list_required(schema: Mapping[str, Any]) -> list[str]:
    """The names that a schema requires, also where it is softened (`soften_arguments`): then they
    are the first of two alternatives, the second of which takes anything.
    """
    parts: list[Any] = [schema]
    match schema.get("anyOf"):
        case [claimed, {**rest}] if not rest:
            parts.append(claimed)
    lists = [part.get("required") for part in parts if isinstance(part, Mapping)]
    return [
        name for each in lists if isinstance(each, list) for name in each if isinstance(name, str)
    ]


def _takes_more(schema: Any, root: Mapping[str, Any]) -> bool:
    """Whether an object may have fields that its schema does not name."""
    parts = _list_parts(schema, root, MAX_DEPTH)
    return all(part.get("additionalProperties") is not False for part in parts)


def _build_rest(argument: FormArgument, left: Sequence[FormArgument]) -> FormArgument:
    """The field of what an opened object may have beside its opened fields."""
    names = ", ".join(".".join(each.path[1:]) for each in left)
    told = "Taken together with the fields above."
    return replace(
        argument,
        required=any(each.required for each in left),
        description=f"As one JSON object{f': {names}' if names else ''}. {told}",
        sample="",
        label=f"{argument.name}: other fields",
    )


def _label(arguments: Iterable[FormArgument]) -> Iterator[FormArgument]:
    """With labels that leave out the name of the opened object where nothing else is called so."""
    listed = tuple(arguments)
    short = [".".join(each.path[1:]) or each.name for each in listed]
    counts = Counter(short)
    for each, label in zip(listed, short, strict=True):
        yield replace(each, label=label if counts[label] == 1 else each.name)


def read_opened(
    schema: Any, fields: Mapping[str, Any]
) -> tuple[dict[str, Any], tuple[ArgumentProblem, ...]]:
    """The values of what was typed into the fields of `open_arguments`, nested as the schema has
    them, and what is no value. A required object of which nothing was typed is empty.
    """
    opened = open_arguments(schema)
    read, problems = _read_texts(opened, fields)
    values: dict[str, Any] = {}
    found = [*problems]
    # What an object has beside its own fields comes first: they are put into it.
    for each in sorted(opened, key=lambda one: len(one.path)):
        path = each.path or (each.name,)
        if each.name in read and not _place_value(values, path, read[each.name]):
            found.append(ArgumentProblem(each.name, f"it stands in {path[0]}, too"))
    objects = {each.path[0] for each in opened if each.path}
    for each in list_arguments(schema):
        if each.required and each.name in objects:
            values.setdefault(each.name, {})
    return values, tuple(found)


def _place_value(values: dict[str, Any], path: tuple[str, ...], value: Any) -> bool:
    """Put a value where it belongs; whether nothing stood there."""
    for name in path[:-1]:
        values = values.setdefault(name, {})
        if not isinstance(values, dict):
            return False
    if path[-1] in values:
        return False
    values[path[-1]] = value
    return True


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
