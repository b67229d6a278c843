"""The schemas of a tool's arguments, as they are before they are projected and made concise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from forge.fields import wrappers
from forge.media import BodyKind
from forge.projection import target
from sandbox.apispec import MediaType, Parameter, Schema

_BASE64 = {"type": "string", "contentEncoding": "base64"}
_FILE: dict[str, Any] = {
    "anyOf": [
        _BASE64,
        {
            "type": "object",
            "properties": {
                "base64": _BASE64,
                "filename": {"type": "string", "minLength": 1},
                "content_type": {"type": "string", "pattern": "^[!-~]+/[!-~]+$"},
            },
            "required": ["base64"],
            "additionalProperties": False,
        },
    ]
}
"""A file as the runtime takes it: its content in base64, alone or with a name and type."""


def argument_schema(parameter: Parameter, schemas: Mapping[str, Schema]) -> Schema:
    """What a caller gives for a parameter."""
    schema = dict(parameter.schema) if isinstance(parameter.schema, Mapping) else {}
    if parameter.schema is False:
        return False
    if parameter.description:
        schema["description"] = parameter.description
    if parameter.location == "path" and target(schema, schemas).get("type") == "string":
        # An empty value would name another resource: the path without it.
        schema["minLength"] = max(1, schema.get("minLength", 0))
    return schema


def body_schema(
    media: MediaType, kind: BodyKind, described: str, schemas: Mapping[str, Schema]
) -> Schema:
    """What a caller gives for a body: bytes in base64, text as a string, files as the runtime takes
    them, and else what the document says.
    """
    written = True if media.schema is None else media.schema
    if kind == "binary":
        schema: dict[str, Any] = {**_BASE64}
        described = described or f"The content ({media.type}), in base64."
    elif kind == "text" and target(written, schemas).get("type") != "string":
        schema = {"type": "string"}
        described = described or f"The content ({media.type}), as text."
    elif written is False:
        return False
    else:
        schema = dict(written) if isinstance(written, Mapping) else {}
    if kind in ("form", "multipart") and "type" not in target(schema, schemas):
        schema = {"type": "object", **schema}
    if kind == "multipart":
        schema = _with_files(schema, media, schemas)
    if kind == "lines" and target(schema, schemas).get("type") != "array":
        schema = {"type": "array", "items": schema}
    return {**schema, "description": described} if described else schema


def _with_files(
    schema: dict[str, Any], written: MediaType, schemas: Mapping[str, Schema]
) -> dict[str, Any]:
    """The schema of a multipart body with its file fields as what the runtime takes for a file."""
    root = target(schema, schemas)
    fields = root.get("properties", {})
    own = {
        name: _file_field(fields[name], schemas)
        for name, wrapper in wrappers(written, schemas).items()
        if wrapper.function == "file" and name in fields
    }
    notes = {key: value for key, value in schema.items() if key != "$ref"}
    return {**root, **notes, "properties": {**fields, **own}} if own else schema


def _file_field(schema: Schema, schemas: Mapping[str, Schema]) -> dict[str, Any]:
    found = target(schema, schemas)
    told = {**found, **(schema if isinstance(schema, Mapping) else {})}
    notes = {"description": told["description"]} if "description" in told else {}
    if found.get("type") == "array":
        bounds = {key: found[key] for key in ("minItems", "maxItems") if key in found}
        return {"type": "array", "items": _FILE, **bounds, **notes}
    return {**_FILE, **notes}
