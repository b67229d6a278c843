"""Answers as real APIs give them: a schema that holds to what its author meant.

Documents promise properties that servers leave out, and close objects that later versions extend
(PowerDNS requires `changetype` of a record set and never sends it), and say of hardly any field
that it may be null. What clients rely on admits all of that. What is said of other types and of
values stays.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from forge.schemas.walk import convert_parts, rebuild_schema
from sandbox.bundle.apispec import Schema
from sandbox.schemas.keywords import HOLDERS

_PRESENCE = frozenset(
    "required dependentRequired dependentSchemas minProperties maxProperties "
    "not if then else".split()
)
_OF_ONE_PAGE = frozenset({"maxItems", "uniqueItems"})
_CLOSED = frozenset({"additionalProperties", "unevaluatedProperties", "unevaluatedItems"})
_CHANGED = HOLDERS | _PRESENCE


def relax_schema(schema: Schema) -> Schema:
    """The schema without demands on which properties are there, in it and in its parts."""
    if not isinstance(schema, dict) or _CHANGED.isdisjoint(schema):
        return schema
    return relax_alternatives(convert_parts(drop_presence(schema), relax_schema))


def drop_presence(
    schema: Mapping[str, Any], others: Collection[str] = frozenset()
) -> dict[str, Any]:
    """The schema without demands on which properties are there, and without `others` of its
    keywords; its parts are as they were.
    """
    return {
        key: value
        for key, value in schema.items()
        if key not in _PRESENCE and key not in others and not (value is False and key in _CLOSED)
    }


def relax_alternatives(made: dict[str, Any]) -> dict[str, Any]:
    """A schema whose parts are relaxed. Branches that only differ in what they require overlap
    then, so `oneOf` becomes `anyOf`.
    """
    if "oneOf" in made:
        branches = made.pop("oneOf")
        if "anyOf" in made:
            made["allOf"] = [*made.get("allOf", ()), {"anyOf": branches}]
        else:
            made["anyOf"] = branches
    return made


def relax_list_bounds(schema: Schema) -> Schema:
    """The schema of an answer whose list is that of several pages: without bounds on lists."""
    if not isinstance(schema, dict):
        return schema
    return convert_parts(
        {k: v for k, v in schema.items() if k not in _OF_ONE_PAGE}, relax_list_bounds
    )


def admit_null(schema: Schema) -> Schema:
    """The schema of an answer in which any value may be null, whatever its type is said to be."""
    if not isinstance(schema, dict):
        return schema
    made = rebuild_schema(schema, admit_null)
    if "type" in made:
        types = made["type"] if isinstance(made["type"], list) else [made["type"]]
        made["type"] = types if "null" in types else [*types, "null"]
    if "const" in made and made["const"] is not None:
        made["enum"] = [made.pop("const")]
    if "enum" in made and None not in made["enum"]:
        made["enum"] = [*made["enum"], None]
    return made
