"""The parameters of a tool as its input schema has them: names, types, and what kind of value each
takes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.tasks.reading.units import UNITS, Unit
from registry.search.words import split_words
from sandbox.bundle.model import BY_REFERENCE
from sandbox.schemas.accepted import PAGES, get_place
from sandbox.schemas.classes import is_choosing_name
from sandbox.schemas.keywords import declared_types

MAX_PARAMETERS = 200
MAX_DEPTH = 4
MAX_DESCRIPTION = 600
MAX_ENUM = 200
MAX_PARTS = 50
_PLACES = frozenset(
    "city place location town region country port harbour harbor station airport destination "
    "origin "
    "address village county state municipality area venue island street district borough suburb "
    "neighbourhood neighborhood quarter".split()
)
_PEOPLE = frozenset(
    "person author owner skipper captain customer client employee artist guest contact boat ship "
    "vessel player assignee attendee participant attendees participants assignees".split()
)
_TEXTS = frozenset("query q search term terms keyword keywords text phrase".split())
_IDENTIFYING = frozenset("id number no code key ref reference slug uuid serial sku".split())
_COUNTING = frozenset("limit count top n take rows".split())
_COUNTING_PAIRS = frozenset(
    {("max",), ("first",), ("max", "results"), ("max", "items"), ("per", "page"), ("page", "size")}
)
_PAGES = frozenset("page offset skip cursor".split())
_OF_PAGES = frozenset("number no num index current start".split())
_SORTING = frozenset("sort sorting sorted order ordering orderby sortby".split())
_SORTED_BY = frozenset("by direction dir key field column".split())
_FORMATS: Mapping[str, str] = {
    "date": "date",
    "date-time": "datetime",
    "time": "time",
    "email": "email",
    "idn-email": "email",
    "uri": "url",
    "url": "url",
    "uri-reference": "url",
    "iri": "url",
    "ipv4": "ip",
    "ipv6": "ip",
    "ip": "ip",
    "uuid": "uuid",
    "hostname": "domain",
    "idn-hostname": "domain",
}
_BY_NAME: tuple[tuple[str, frozenset[str]], ...] = (
    ("email", frozenset({"email", "mail"})),
    ("url", frozenset({"url", "uri", "link", "website", "webpage"})),
    ("ip", frozenset({"ip", "ipv4", "ipv6", "cidr"})),
    ("uuid", frozenset({"uuid", "guid"})),
    ("domain", frozenset({"domain", "hostname", "host", "fqdn", "zone", "subdomain"})),
    ("currency", frozenset({"currency", "currencies"})),
    ("language", frozenset({"language", "lang", "locale"})),
    ("latitude", frozenset({"latitude", "lat"})),
    ("longitude", frozenset({"longitude", "lon", "lng", "long"})),
    ("path", frozenset({"path", "file", "filename", "filepath", "directory"})),
    ("date", frozenset({"date", "day"})),
    ("time", frozenset({"time"})),
)
_UNIT_IN_TEXT = re.compile(r"(?:\bin\s+|\()([A-Za-z°%/]{1,14})\b")


@dataclass(frozen=True)
class ToolParameter:
    """One place for a value: an argument, or a field of an argument that is an object.

    `kind` is the kind of value that its format or name asks for, "" where they do not say. `items`
    is the parameter of a list's items. `is_choosing` says that it decides what the call does.
    """

    pointer: tuple[str, ...]
    words: tuple[str, ...]
    description: str
    schema: Mapping[str, Any]
    types: frozenset[str]
    required: bool
    kind: str
    unit: Unit | None
    is_choosing: bool
    items: ToolParameter | None = None

    @property
    def name(self) -> str:
        """Its name as a caller would write it: `body.name`."""
        return ".".join(self.pointer)

    @property
    def is_numeric(self) -> bool:
        return bool(self.types & {"integer", "number"}) and "string" not in self.types

    @property
    def is_boolean(self) -> bool:
        return self.types - {"null"} == {"boolean"}

    @property
    def is_counting(self) -> bool:
        """Whether it says how many results are wanted."""
        counts = self.words[-1:] and self.words[-1] in _COUNTING
        return self.is_numeric and bool(counts or self.words in _COUNTING_PAIRS)

    @property
    def is_paging(self) -> bool:
        """Whether it says which of a list's pages is wanted."""
        words = {*self.words}
        return self.is_numeric and bool(words & _PAGES) and words <= _PAGES | _OF_PAGES

    @property
    def is_sorting(self) -> bool:
        """Whether it says in which order the results are wanted."""
        return bool(_SORTING & {*self.words}) and {*self.words} <= _SORTING | _SORTED_BY

    @property
    def is_identifying(self) -> bool:
        return bool(self.words) and self.words[-1] in _IDENTIFYING

    @property
    def enum(self) -> tuple[Any, ...]:
        """The values that it may have, where the schema lists them."""
        listed = self.schema.get("enum")
        if isinstance(listed, list):
            return tuple(listed[:MAX_ENUM])
        return (self.schema["const"],) if "const" in self.schema else ()


def list_parameters(schema: Mapping[str, Any]) -> tuple[ToolParameter, ...]:
    """The parameters of an input schema, required ones first, at most 200 down to four levels."""
    found: list[ToolParameter] = []
    for each in _walk(schema, schema, (), True):
        found.append(each)
        if len(found) >= MAX_PARAMETERS:
            break
    return tuple(sorted(found, key=lambda each: not each.required))


def _walk(
    schema: Mapping[str, Any], root: Mapping[str, Any], above: tuple[str, ...], needed: bool
) -> Iterator[ToolParameter]:
    properties = schema.get("properties")
    required = schema.get("required")
    named = required if isinstance(required, list) else []
    for name, part in properties.items() if isinstance(properties, Mapping) else ():
        found = resolve_schema(part, root)
        if found is None:
            continue
        pointer = (*above, str(name))
        inner = isinstance(found.get("properties"), Mapping) and len(pointer) < MAX_DEPTH
        if inner and not found.get(BY_REFERENCE):
            yield from _walk(found, root, pointer, needed and name in named)
        elif get_place(found)[0] != PAGES:
            yield _build(pointer, found, root, needed and name in named)


def _build(
    pointer: tuple[str, ...],
    schema: Mapping[str, Any],
    root: Mapping[str, Any],
    required: bool,
    depth: int = 0,
) -> ToolParameter:
    words = tuple(split_words(pointer[-1]))
    description = str(schema.get("description", ""))[:MAX_DESCRIPTION]
    types = declared_types(schema)
    listed = schema.get("enum", [schema["const"]] if "const" in schema else [])
    if not types and listed and all(isinstance(value, str) for value in listed):
        types = frozenset({"string"})
    is_list = "array" in types and depth < 2  # a list may be one of itself
    items = resolve_schema(schema.get("items", {}), root) if is_list else None
    place, sent = get_place(schema)
    choosing = is_choosing_name(pointer[-1]) or (bool(place) and is_choosing_name(sent))
    return ToolParameter(
        pointer=pointer,
        words=words,
        description=description,
        schema=schema,
        types=types,
        required=required,
        kind=find_kind(words, description, schema, types),
        unit=_find_unit(words, description),
        is_choosing=choosing,
        items=None if items is None else _build(pointer, items, root, required, depth + 1),
    )


def resolve_schema(part: Any, root: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """A schema with its reference followed, with what has to fit beside it (`allOf`) as one, and
    with the one alternative that is not null, or the list of those that are a value and a list of
    such.
    """
    for _ in range(8):
        if not isinstance(part, Mapping):
            return {} if part is True else None
        if isinstance(part.get("allOf"), list):
            part = _merge_parts(part, root)
            continue
        if "$ref" in part:
            target = _find_target(part, root)
            beside = {key: value for key, value in part.items() if key != "$ref"}
            part = {**target, **beside} if isinstance(target, Mapping) else beside
            continue
        alternatives = part.get("anyOf") or part.get("oneOf")
        if isinstance(alternatives, list) and not declared_types(part):
            meant = _choose_alternative([a for a in alternatives if not _is_null(a)])
            if meant is not None:
                beside = {k: v for k, v in part.items() if k not in ("anyOf", "oneOf")}
                part = {**meant, **beside}
                continue
        return part
    return None


def _find_target(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Any:
    name = str(schema["$ref"]).removeprefix("#/$defs/")
    return root.get("$defs", {}).get(name.replace("~1", "/").replace("~0", "~"))


def _choose_alternative(real: list[Any]) -> Mapping[str, Any] | None:
    """The only one; of a value and a list of such values (`?status=a&status=b`) the list; of a
    number and its text, which loses no digit of a decimal, the number.
    """
    if len(real) == 2:
        number = next((each for each in real if _is_plain(each, "number")), None)
        if isinstance(number, Mapping) and any(_is_plain(each, "string") for each in real):
            return number
        real = [each for each in real if isinstance(each, Mapping) and each.get("items") in real]
    return real[0] if len(real) == 1 and isinstance(real[0], Mapping) else None


def _is_plain(schema: Any, kind: str) -> bool:
    """Whether a schema is of one type and lists no values."""
    return (
        isinstance(schema, Mapping)
        and declared_types(schema) == {kind}
        and not schema.keys() & {"enum", "const"}
    )


def _merge_parts(schema: Mapping[str, Any], root: Mapping[str, Any]) -> dict[str, Any]:
    """A schema and its `allOf`, at any depth, as one that has the fields of all. Of a keyword or
    field that several have, the outermost counts.
    """
    merged: dict[str, Any] = {}
    properties: dict[str, Any] = {}
    required: list[Any] = []
    waiting: list[Any] = [schema]
    for _ in range(MAX_PARTS):
        part = waiting.pop(0) if waiting else None
        if not isinstance(part, Mapping):
            continue
        fields, needed, held = (part.get(key) for key in ("properties", "required", "allOf"))
        properties = {**(fields if isinstance(fields, Mapping) else {}), **properties}
        required += needed if isinstance(needed, list) else []
        waiting += held if isinstance(held, list) else []
        waiting += [_find_target(part, root)] if "$ref" in part else []
        merged = {**part, **merged}
    own = {"properties": properties, "required": required}
    kept = {key: value for key, value in merged.items() if key not in ("allOf", "$ref", *own)}
    return {**kept, **{key: value for key, value in own.items() if value}}


def _is_null(schema: Any) -> bool:
    return isinstance(schema, Mapping) and declared_types(schema) == {"null"}


def find_kind(
    words: tuple[str, ...], description: str, schema: Mapping[str, Any], types: frozenset[str]
) -> str:
    """The kind of value that a parameter takes, by its format, its name, and last its description;
    "" where none of them says.
    """
    told = str(schema.get("format", ""))
    if told in _FORMATS:
        return _FORMATS[told]
    said, described = {*words}, {*split_words(description)}
    for kind, names in _BY_NAME:
        if said & names and not (kind in ("date", "time") and "string" not in types):
            if kind in ("latitude", "longitude") and "string" in types:
                continue
            if said & _IDENTIFYING and kind not in ("uuid", "domain", "currency", "language"):
                continue
            if kind == "domain" and said & {"id"}:
                continue
            return kind
    if "string" not in types:
        return ""
    if said & _TEXTS:
        return "text"
    if said & _IDENTIFYING:
        return "id"
    if said & _PLACES:
        return "place"
    if said & _PEOPLE:
        return "person"
    if "currency" in described:
        return "currency"
    if {"name", "title"} & said and described & _PLACES:
        return "place"
    return "name" if {"name", "title"} & said else ""


def _find_unit(words: tuple[str, ...], description: str) -> Unit | None:
    """The unit that a parameter is in, by the last word of its name or its description."""
    last = words[-1] if len(words) > 1 or (words and len(words[0]) > 3) else ""
    if last in UNITS:
        return UNITS[last]
    named = [UNITS[word.lower()] for word in _UNIT_IN_TEXT.findall(description)
             if word.lower() in UNITS]  # fmt: skip
    return named[0] if len({unit.name for unit in named}) == 1 else None
