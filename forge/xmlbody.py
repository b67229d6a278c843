"""What an XML body's elements are called and where they stand, from OpenAPI's XML objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from forge.projection import applied, merged_properties, target
from forge.subschemas import PREFIX
from sandbox.apispec import Schema

MAX_DEPTH = 6
MAX_SCHEMAS = 2_000
ROOT = "root"


def root_name(schema: Schema, schemas: Mapping[str, Schema]) -> str:
    """The name of the document's element: the XML object's, or the schema's own."""
    link = schema.get("$ref") if isinstance(schema, Mapping) else None
    named = str(link).removeprefix(PREFIX) if link else ROOT
    return str(_xml(schema, schemas).get("name") or named)


def hint(schema: Schema, schemas: Mapping[str, Schema]) -> dict[str, Any]:
    """What `toolwright.styles.xml_text` has to know beside the root's name."""
    made = _Hints(schemas).of(schema, 0)
    if target(schema, schemas).get("type") == "array":
        # A document has one root, so the list itself always is an element.
        items = target(schema, schemas).get("items", True)
        made = {"wrapper": root_name(schema, schemas), "name": root_name(items, schemas), **made}
    return made


class _Hints:
    """Hints of one body: at most MAX_SCHEMAS schemas are looked at, whatever refers to what."""

    def __init__(self, schemas: Mapping[str, Schema]) -> None:
        self._schemas, self._left = schemas, MAX_SCHEMAS

    def of(self, schema: Schema, depth: int) -> dict[str, Any]:
        self._left -= 1
        if depth > MAX_DEPTH or self._left < 0:
            return {}
        found = target(schema, self._schemas)
        if found.get("type") == "array":
            return self._array(schema, found.get("items", True), depth)
        made = _own(_xml(schema, self._schemas))
        fields = {
            name: told
            for name, part in merged_properties(schema, self._schemas).items()
            if (told := self.of(part, depth + 1))
        }
        return {**made, "fields": fields} if fields else made

    def _array(self, schema: Schema, items: Schema, depth: int) -> dict[str, Any]:
        xml = _xml(schema, self._schemas)
        made = self.of(items, depth + 1)
        if xml.get("wrapped"):
            made["wrapper"] = _qualified(xml) or WRAPPED
        return made


WRAPPED = ""
"""A wrapper that is called as its property is."""


def _own(xml: Mapping[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    if "name" in xml:
        made["name"] = _qualified(xml)
    if "namespace" in xml:
        made["namespace"] = xml["namespace"]
    if xml.get("attribute"):
        made["attribute"] = True
    return made


def _qualified(xml: Mapping[str, Any]) -> str:
    name, prefix = xml.get("name", ""), xml.get("prefix", "")
    return f"{prefix}:{name}" if prefix and name else str(name)


def _xml(schema: Schema, schemas: Mapping[str, Schema]) -> Mapping[str, Any]:
    found = (part["xml"] for part in applied(schema, schemas) if "xml" in part)
    return next(found, {})
