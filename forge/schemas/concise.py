"""Input schemas as short as they can be without losing a constraint: models read them whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any

from forge.schemas.walk import PREFIX, Memo, is_leaf, rebuild_schema
from forge.text import extract_first_sentence
from sandbox.bundle.apispec import Schema
from sandbox.schemas.keywords import parts

PROSE_BUDGET = 400
"""Characters of description and examples that a tool's arguments may take before they are cut."""
PROSE_LIMITS = (300, 160, 100, 60)
MAX_INLINED = 3_000
MAX_INLINED_DEPTH = 6
MAX_DEFS = 24
"""Of more definitions none is put in its place."""
_SHARED = ("properties", "$defs")
"""What holds the schemas that several tools have."""
_NOTHING: Mapping[str, Schema] = MappingProxyType({})
_NOTES = frozenset({"description", "title", "examples", "default", "deprecated", "x-in"})


class SchemaShortener:
    """Makes schemas concise. What is known of a property or definition that several share is found
    out once, so these must not change.
    """

    def __init__(self) -> None:
        self._find_facts = Memo(_SchemaFacts)

    def shorten_schema(self, root: Mapping[str, Any]) -> dict[str, Any]:
        """The schema with definitions that are used once in their place, and with shorter prose.

        Titles go: beside a property's or definition's name they say nothing. Descriptions keep
        their first sentence, and the shorter the more of them there are. Of a schema with many
        definitions all stay where they are: little is won there.
        """
        made = self._inline_single_uses(root)
        named = {key: made[key] for key in _SHARED if key in made}
        own = _SchemaFacts({**made, **dict.fromkeys(named, _NOTHING)})
        facts = {
            key: {name: self._find_facts(schema) for name, schema in schemas.items()}
            for key, schemas in named.items()
        }
        known = [own, *(part for parts in facts.values() for part in parts.values())]
        if not any(part.has_prose for part in known):
            return made
        limit = _choose_limit(known)
        trimmed = {
            key: {name: part.trim_prose(limit) for name, part in parts.items()}
            for key, parts in facts.items()
        }
        return {**_to_mapping(own.trim_prose(limit)), **trimmed}

    def _inline_single_uses(self, root: Mapping[str, Any]) -> dict[str, Any]:
        defs: Mapping[str, Schema] = root.get("$defs", {})
        if not defs or len(defs) > MAX_DEFS:
            return dict(root)
        counts = Counter(_list_links({**root, "properties": _NOTHING}))
        for schema in (*root.get("properties", _NOTHING).values(), *defs.values()):
            counts.update(self._find_facts(schema).links)
        once = {
            name
            for name, schema in defs.items()
            if counts[name] == 1 and isinstance(schema, dict) and self._find_facts(schema).is_short
        }
        return _inline_definitions(root, once) if once else dict(root)


class _SchemaFacts:
    """What is known of one schema, found out when it is asked for."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self._trimmed: dict[int, Schema] = {}
        self._prose: dict[int, int] = {}

    @cached_property
    def links(self) -> list[str]:
        return _list_links(self.schema)

    @cached_property
    def texts(self) -> list[int]:
        return _measure_texts(self.schema)

    @cached_property
    def is_short(self) -> bool:
        return len(str(self.schema)) <= MAX_INLINED

    @property
    def has_prose(self) -> bool:
        return bool(self.texts)

    def count_prose(self, limit: int) -> int:
        """The characters of prose where none is longer than the limit."""
        if limit not in self._prose:
            self._prose[limit] = sum(min(text, limit) for text in self.texts)
        return self._prose[limit]

    def trim_prose(self, limit: int) -> Schema:
        if not self.texts:
            return self.schema
        if limit not in self._trimmed:
            self._trimmed[limit] = _trim_texts(self.schema, limit)
        return self._trimmed[limit]


def _choose_limit(known: Collection[_SchemaFacts]) -> int:
    """The longest limit of PROSE_LIMITS with which all prose stays within the budget, or the last.
    The last is tried first: most schemas with much prose do not even fit into that.
    """
    *longer, last = PROSE_LIMITS
    if sum(part.count_prose(last) for part in known) > PROSE_BUDGET:
        return last
    return next(
        (at for at in longer if sum(p.count_prose(at) for p in known) <= PROSE_BUDGET), last
    )


def _inline_definitions(root: Mapping[str, Any], once: set[str]) -> dict[str, Any]:
    """The schema with these definitions in the place of the references to them."""
    defs: Mapping[str, Schema] = root["$defs"]

    def inline(schema: Schema, depth: int = 0) -> Schema:
        if not isinstance(schema, dict) or is_leaf(schema):
            return schema
        name = str(schema.get("$ref", "")).removeprefix(PREFIX)
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        if name in once and depth < MAX_INLINED_DEPTH and rest.keys() <= _NOTES:
            return inline({**_to_mapping(defs[name]), **rest}, depth + 1)
        return rebuild_schema(schema, lambda part: inline(part, depth))

    made = _to_mapping(inline({key: value for key, value in root.items() if key != "$defs"}))
    left: dict[str, Schema] = {}
    waiting = _list_links(made)
    while waiting:
        name = waiting.pop(0)
        if name not in left and name in defs:
            left[name] = inline(defs[name])
            waiting += _list_links(left[name])
    return {**made, "$defs": left} if left else made


def _to_mapping(schema: Schema) -> dict[str, Any]:
    return dict(schema) if isinstance(schema, dict) else {}


def _list_links(schema: Schema) -> list[str]:
    """The names of the definitions that a schema refers to, as often as it does."""
    found, waiting = [], [schema]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict) and "$ref" in item:
            found.append(item["$ref"].removeprefix(PREFIX))
        waiting += parts(item)
    return found


def _measure_texts(schema: Schema) -> list[int]:
    """The lengths of all texts in a schema that nobody validates by; a title's is 0."""
    found: list[int] = []
    waiting: list[Schema] = [schema]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            if "title" in item:
                found.append(0)
            if "description" in item:
                found.append(len(item["description"]))
            if "examples" in item:
                found.append(len(str(item["examples"][0])) + 15)
        waiting += parts(item)
    return found


def _trim_texts(schema: Schema, limit: int) -> Schema:
    if not isinstance(schema, dict) or (is_leaf(schema) and _is_brief(schema, limit)):
        return schema
    made = {key: value for key, value in schema.items() if key != "title"}
    if len(made.get("description", "")) > limit:
        made["description"] = extract_first_sentence(made["description"], limit)
    if "examples" in made:
        made["examples"] = made["examples"][:1]
    return rebuild_schema(made, lambda part: _trim_texts(part, limit))


def _is_brief(schema: Mapping[str, Any], limit: int) -> bool:
    return (
        "title" not in schema
        and len(schema.get("description", "")) <= limit
        and len(schema.get("examples", ())) <= 1
    )
