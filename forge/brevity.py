"""Input schemas as short as they can be without losing a constraint: models read them whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from forge.prose import first_sentence
from forge.subschemas import PREFIX, parts, rebuilt
from sandbox.apispec import Schema

PROSE_BUDGET = 400
"""Characters of description and examples that a tool's arguments may take before they are cut."""
PROSE_LIMITS = (300, 160, 100, 60)
MAX_INLINED = 3_000
MAX_INLINED_DEPTH = 6
_NOTES = frozenset({"description", "title", "examples", "default", "deprecated", "x-in"})


def concise(root: Mapping[str, Any]) -> dict[str, Any]:
    """The schema with definitions that are used once in their place, and with shorter prose.

    Titles go: beside a property's or definition's name they say nothing. Descriptions keep their
    first sentence, and the shorter the more of them there are.
    """
    made = _inlined(root)
    texts = _prose(made)
    total = sum(texts)
    for limit in PROSE_LIMITS:
        if total <= PROSE_BUDGET or limit == PROSE_LIMITS[-1]:
            break
        total = sum(min(text, PROSE_LIMITS[PROSE_LIMITS.index(limit) + 1]) for text in texts)
    return _trimmed(made, limit)


def _inlined(root: Mapping[str, Any]) -> dict[str, Any]:
    defs: Mapping[str, Schema] = root.get("$defs", {})
    counts = Counter(name for schema in (root, *defs.values()) for name in _links(schema))
    once = {
        name
        for name, schema in defs.items()
        if counts[name] == 1 and isinstance(schema, Mapping) and len(str(schema)) <= MAX_INLINED
    }

    def inline(schema: Schema, depth: int = 0) -> Schema:
        if not isinstance(schema, Mapping):
            return schema
        name = str(schema.get("$ref", "")).removeprefix(PREFIX)
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        if name in once and depth < MAX_INLINED_DEPTH and rest.keys() <= _NOTES:
            return inline({**_mapping(defs[name]), **rest}, depth + 1)
        return rebuilt(schema, lambda part: inline(part, depth))

    made = _mapping(inline({key: value for key, value in root.items() if key != "$defs"}))
    left: dict[str, Schema] = {}
    waiting = _links(made)
    while waiting:
        name = waiting.pop(0)
        if name not in left and name in defs:
            left[name] = inline(defs[name])
            waiting += _links(left[name])
    return {**made, "$defs": left} if left else made


def _mapping(schema: Schema) -> dict[str, Any]:
    return dict(schema) if isinstance(schema, Mapping) else {}


def _links(schema: Schema) -> list[str]:
    """The names of the definitions that a schema refers to, as often as it does."""
    found, waiting = [], [schema]
    while waiting:
        item = waiting.pop()
        if isinstance(item, Mapping) and "$ref" in item:
            found.append(item["$ref"].removeprefix(PREFIX))
        waiting += parts(item)
    return found


def _prose(root: Mapping[str, Any]) -> list[int]:
    """The lengths of all texts in a schema that nobody validates by."""
    found: list[int] = []
    waiting: list[Schema] = [root, *root.get("$defs", {}).values()]
    while waiting:
        item = waiting.pop()
        if isinstance(item, Mapping):
            if "description" in item:
                found.append(len(item["description"]))
            if "examples" in item:
                found.append(len(str(item["examples"][0])) + 15)
        waiting += parts(item)
    return found


def _trimmed(root: Mapping[str, Any], limit: int) -> dict[str, Any]:
    def trim(schema: Schema) -> Schema:
        if not isinstance(schema, Mapping):
            return schema
        made = {key: value for key, value in schema.items() if key != "title"}
        if len(made.get("description", "")) > limit:
            made["description"] = first_sentence(made["description"], limit)
        if "examples" in made:
            made["examples"] = made["examples"][:1]
        return rebuilt(made, trim)

    made = _mapping(trim({key: value for key, value in root.items() if key != "$defs"}))
    if "$defs" in root:
        made["$defs"] = {name: trim(schema) for name, schema in root["$defs"].items()}
    return made
