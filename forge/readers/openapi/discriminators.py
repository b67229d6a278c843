"""Discriminators: which value of a property chooses which schema (OpenAPI 3.1 section 4.8.25).

An object says so beside alternatives (`oneOf`), or in a base schema whose subtypes refer to it by
`allOf`: a value of the base then is one of a subtype.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from forge.readers.openapi.conflicts import find_values
from forge.readers.openapi.references import Node, Place, References, UnresolvedReference
from forge.schemas.projection import (
    CHOSEN_BY,
    HAS_SUBTYPES,
    list_applied_schemas,
    merge_properties,
)
from forge.schemas.walk import PREFIX
from sandbox.bundle.apispec import Schema

MAX_SUBTYPES = 200
"""Of one base schema."""
MAX_LINKS = 20_000
"""From all base schemas to their subtypes, so that no document grows more than in proportion."""
_CONTAINERS = (("components", "schemas"), ("definitions",))
_ALTERNATIVES = frozenset({"oneOf", "anyOf"})
_OWN_VALUE = "x-ms-discriminator-value"
"""In the descriptions of Azure's APIs."""


def is_base(schema: Any) -> bool:
    """Whether a schema leaves to a property which of its subtypes a value is of."""
    return (
        isinstance(schema, dict) and _ALTERNATIVES.isdisjoint(schema) and bool(_read_name(schema))
    )


def mark_alternatives(branches: list[Schema], discriminator: Mapping[str, Any]) -> list[Schema]:
    """Note at each alternative the values of the discriminator's property that choose it."""
    name = discriminator.get("propertyName")
    mapping = _invert_mapping(discriminator)
    return [
        _mark(branch, name, mapping.get(target) or ([] if mapping else [target]))
        if isinstance(name, str) and isinstance(branch, dict) and (target := _find_target(branch))
        else branch
        for branch in branches
    ]


def _mark(branch: Mapping[str, Any], name: str, values: list[str]) -> dict[str, Any]:
    if not values:
        return {**branch}
    return {**branch, CHOSEN_BY: {"property": name, "values": values}}


def _find_target(branch: Mapping[str, Any]) -> str:
    return str(branch.get("$ref", "")).rpartition("/")[2]


def _read_name(schema: Mapping[str, Any]) -> str:
    """The name of a discriminator's property, which in Swagger 2.0 is all that it says."""
    written = schema.get("discriminator")
    name = written.get("propertyName") if isinstance(written, dict) else written
    return name if isinstance(name, str) and len(name) <= 200 else ""


def _invert_mapping(discriminator: Any) -> dict[str, list[str]]:
    """The values that a discriminator's mapping has for each schema, by the schema's name."""
    mapping = discriminator.get("mapping") if isinstance(discriminator, Mapping) else None
    chosen: dict[str, list[str]] = {}
    for value, target in mapping.items() if isinstance(mapping, dict) else ():
        if isinstance(value, str) and isinstance(target, str):
            chosen.setdefault(target.rpartition("/")[2], []).append(value)
    return chosen


class SubtypeIndex:
    """The named schemas of a document by what they refer to in `allOf`."""

    def __init__(self, references: References) -> None:
        self._by_base: dict[tuple[str, Place], list[tuple[str, Node]]] = {}
        self._left = MAX_LINKS
        for name, node in _list_named(references):
            for part in node.get("allOf").list_elements():
                reference = part.read("$ref")
                if isinstance(reference, str):
                    try:
                        target = references.resolve_reference(part, reference)
                    except UnresolvedReference:
                        continue
                    found = self._by_base.setdefault((target.file, target.place), [])
                    found.append((name, node))

    def find_subtypes(self, base: Node) -> dict[str, Node]:
        """Return the subtypes of a base by name, and theirs, as far as these are no bases
        themselves: at most MAX_SUBTYPES, and MAX_LINKS of all bases together.
        """
        found: dict[str, Node] = {}
        waiting = [base]
        while waiting:
            parent = waiting.pop()
            for name, node in self._by_base.get((parent.file, parent.place), ()):
                if len(found) >= MAX_SUBTYPES or self._left <= 0:
                    return found
                if name not in found:
                    self._left -= 1
                    found[name] = node
                    waiting += [] if is_base(node.value) else [node]
        return found


def _list_named(references: References) -> Iterator[tuple[str, Node]]:
    for keys in _CONTAINERS:
        node = references.root
        for key in keys:
            node = node.get(key)
        for name, written in node.list_items():
            try:
                yield name, references.resolve_node(written)
            except UnresolvedReference:
                continue


def build_base(
    node: Node,
    base: Mapping[str, Any],
    subtypes: Mapping[str, tuple[str, Node]],
    defs: Mapping[str, Schema],
) -> dict[str, Any]:
    """Build the schema for values of a base or of a subtype. `subtypes` are the subtypes' names in
    `defs`, and their nodes, by their names in the document.
    """
    name, mapping = _read_name(node.value), _invert_mapping(node.value["discriminator"])
    if not _may_be_text(merge_properties(base, defs).get(name, True), defs):
        return {**base}
    possible = _list_values(base, name, defs)
    branches: list[Schema] = []
    known: list[Any] = []
    for called, (link, subtype) in subtypes.items():
        own = subtype.read(_OWN_VALUE)
        values = mapping.get(called) or [own if isinstance(own, str) else called]
        listed = _list_values(defs[link], name, defs)
        branch: dict[str, Any] = {"$ref": PREFIX + link}
        if listed is not None and listed is not possible and listed != possible:
            values = listed
        else:
            branch["properties"] = {name: {"enum": values}}
        branches.append(branch)
        known.extend(values)
    if possible is None or not {*map(str, possible)} <= {*map(str, known)}:
        # Any other value is of the base alone.
        branches.append({"properties": {name: {"not": {"enum": known}}}})
    made = {**base, "anyOf": branches, HAS_SUBTYPES: True}
    if made.get("additionalProperties") is False:
        # Of the base alone; its subtypes have more.
        del made["additionalProperties"]
    return made


def _may_be_text(schema: Schema, defs: Mapping[str, Schema]) -> bool:
    kinds = [part["type"] for part in list_applied_schemas(schema, defs) if "type" in part]
    return all("string" in kind for kind in kinds)


def _list_values(schema: Schema, name: str, defs: Mapping[str, Schema]) -> list[Any] | None:
    """The values that a property of an object can have; None where they are not told."""
    parts = list_applied_schemas(merge_properties(schema, defs).get(name, True), defs)
    return next((values for part in parts if (values := find_values(part)) is not None), None)
