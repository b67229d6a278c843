"""Input schemas as short as they can be without losing a constraint: models read them whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from functools import cached_property
from typing import Any

from forge.schemas.walk import PREFIX, convert_parts, is_leaf, memoize, rebuild_schema
from forge.text import extract_first_sentence
from sandbox.bundle.apispec import Schema
from sandbox.schemas.keywords import HOLDERS, parts

PROSE_BUDGET = 400
"""Characters of description and examples that a tool's arguments may take before they are cut."""
PROSE_LIMITS = (300, 160, 100, 60)
MAX_INLINED = 3_000
MAX_INLINED_DEPTH = 6
MAX_DEFS = 24
"""Of more definitions none is put in its place."""
_SHARED = ("properties", "$defs")
"""What holds the schemas that several tools have."""
_TOLD = frozenset({"$ref", "title", "description", "examples"})
_TRIMMED = HOLDERS | {"title", "description", "examples"}
_NOTES = frozenset({"description", "title", "examples", "default", "deprecated", "x-in"})


class SchemaShortener:
    """Makes schemas concise. What is known of a property or definition that several share is found
    out once, so these must not change.
    """

    def __init__(self) -> None:
        self._find_facts = memoize(_SchemaFacts)

    def shorten_schema(self, root: Mapping[str, Any]) -> dict[str, Any]:
        """The schema of a tool's arguments, an object of which all is said by its properties, with
        definitions that are used once in their place, and with shorter prose.

        Titles go: beside a property's or definition's name they say nothing. Descriptions keep
        their first sentence, and the shorter the more of them there are. Of a schema with many
        definitions all stay where they are: little is won there.
        """
        made = self._inline_single_uses(root)
        facts = {
            key: {name: self._find_facts(schema) for name, schema in made[key].items()}
            for key in _SHARED
            if key in made
        }
        texts = [part.texts for known in facts.values() for part in known.values() if part.texts]
        if not texts:
            return made
        limit = _choose_limit(texts)
        for key, known in facts.items():
            made[key] = {name: part.trim_prose(limit) for name, part in known.items()}
        return made

    def _inline_single_uses(self, root: Mapping[str, Any]) -> dict[str, Any]:
        defs: Mapping[str, Schema] = root.get("$defs", {})
        if not defs or len(defs) > MAX_DEFS:
            return dict(root)
        facts = map(self._find_facts, (*root["properties"].values(), *defs.values()))
        counts = Counter(link for part in facts for link in part.links)
        once = {
            name: schema
            for name, schema in defs.items()
            if counts[name] == 1 and isinstance(schema, dict) and self._find_facts(schema).is_short
        }
        return self._inline_definitions(root, once) if once else dict(root)

    def _inline_definitions(
        self, root: Mapping[str, Any], once: Mapping[str, dict[str, Any]]
    ) -> dict[str, Any]:
        """The schema with these definitions in the place of the references to them."""
        defs: Mapping[str, Schema] = root["$defs"]

        def inline_shared(schema: Schema) -> Schema:
            # What refers to none of them stays the object of which the facts are known.
            is_apart = once.keys().isdisjoint(self._find_facts(schema).links)
            return schema if is_apart else _inline_references(schema, once)

        made = {key: value for key, value in root.items() if key != "$defs"}
        made["properties"] = {
            name: inline_shared(part) for name, part in made["properties"].items()
        }
        left: dict[str, Schema] = {}
        # In the order in which `_SchemaFacts` of the whole would find them.
        held = [self._find_facts(part) for part in reversed(made["properties"].values())]
        waiting = [link for part in held for link in part.links]
        while waiting:
            name = waiting.pop(0)
            if name not in left and name in defs:
                left[name] = inline_shared(defs[name])
                waiting += self._find_facts(left[name]).links
        return {**made, "$defs": left} if left else made


def _inline_references(
    schema: Schema, once: Mapping[str, dict[str, Any]], depth: int = 0
) -> Schema:
    """The schema with these definitions in the place of the references to them."""
    if not isinstance(schema, dict) or is_leaf(schema):
        return schema
    named = once.get(str(schema.get("$ref", "")).removeprefix(PREFIX))
    if named is not None and depth < MAX_INLINED_DEPTH:
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        if rest.keys() <= _NOTES:
            return _inline_references({**named, **rest}, once, depth + 1)
    return rebuild_schema(schema, lambda part: _inline_references(part, once, depth))


class _SchemaFacts:
    """What is known of one schema: `links` are the names of the definitions that it refers to, as
    often as it does, `texts` the lengths of all its texts that nobody validates by; a title's is 0.
    """

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.links: list[str] = []
        self.texts: list[int] = []
        self._trimmed: dict[int, Schema] = {}
        waiting: list[Schema] = [schema]
        while waiting:
            item = waiting.pop()
            if isinstance(item, dict):
                if not _TOLD.isdisjoint(item):
                    self._read_keywords(item)
                if not HOLDERS.isdisjoint(item):
                    waiting += parts(item)

    def _read_keywords(self, schema: Mapping[str, Any]) -> None:
        if "$ref" in schema:
            self.links.append(schema["$ref"].removeprefix(PREFIX))
        if "title" in schema:
            self.texts.append(0)
        if "description" in schema:
            self.texts.append(len(schema["description"]))
        if "examples" in schema:
            self.texts.append(len(str(schema["examples"][0])) + 15)

    @cached_property
    def is_short(self) -> bool:
        return len(str(self.schema)) <= MAX_INLINED

    def trim_prose(self, limit: int) -> Schema:
        if not self.texts:
            return self.schema
        if limit not in self._trimmed:
            self._trimmed[limit] = _trim_texts(self.schema, limit)
        return self._trimmed[limit]


def _choose_limit(texts: Collection[list[int]]) -> int:
    """The longest limit of PROSE_LIMITS with which all prose stays within the budget, or the last.
    The last is tried first: most schemas with much prose do not even fit into that.
    """
    *longer, last = PROSE_LIMITS
    if not _is_within_budget(texts, last):
        return last
    return next((limit for limit in longer if _is_within_budget(texts, limit)), last)


def _is_within_budget(texts: Collection[list[int]], limit: int) -> bool:
    """Whether the texts, none longer than the limit, take no more than the budget."""
    left = PROSE_BUDGET
    for lengths in texts:
        for length in lengths:
            left -= length if length < limit else limit
        if left < 0:
            return False
    return True


def _trim_texts(schema: Schema, limit: int) -> Schema:
    if not isinstance(schema, dict) or _TRIMMED.isdisjoint(schema):
        return schema
    if HOLDERS.isdisjoint(schema) and _is_brief(schema, limit):
        return schema
    made = {key: value for key, value in schema.items() if key != "title"}
    if len(made.get("description", "")) > limit:
        made["description"] = extract_first_sentence(made["description"], limit)
    if "examples" in made:
        made["examples"] = made["examples"][:1]
    return convert_parts(made, lambda part: _trim_texts(part, limit))


def _is_brief(schema: Mapping[str, Any], limit: int) -> bool:
    return (
        "title" not in schema
        and len(schema.get("description", "")) <= limit
        and len(schema.get("examples", ())) <= 1
    )
