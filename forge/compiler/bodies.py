"""How the fields of a form or multipart body are written where it is not the runtime's default."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from forge.media import bare, is_json
from forge.projection import merged_properties, target
from sandbox.apispec import Encoding, MediaType, Schema

_CONCRETE = re.compile(r"[\w!#$&^.+-]+/[\w!#$&^.+-]+")
_STYLES = {"spaceDelimited": "ssv", "pipeDelimited": "pipes", "tabDelimited": "tsv"}


@dataclass(frozen=True)
class Wrapper:
    """A call of `toolwright.styles`: the function, and its arguments besides the value."""

    function: str
    arguments: Mapping[str, str] = field(default_factory=dict)


def wrappers(media: MediaType, schemas: Mapping[str, Schema]) -> dict[str, Wrapper]:
    """The wrapper of each field that needs one."""
    properties = merged_properties(media.schema, schemas)
    is_multipart = bare(media.type).startswith("multipart/")
    made = {}
    for name in dict.fromkeys([*properties, *media.encoding]):
        schema = target(properties.get(name, True), schemas)
        encoding = media.encoding.get(name, Encoding())
        wrapper = (_part if is_multipart else _field)(schema, encoding, schemas)
        if wrapper is not None:
            made[name] = wrapper
    return made


def _field(
    schema: Mapping[str, Any], encoding: Encoding, schemas: Mapping[str, Schema]
) -> Wrapper | None:
    if encoding.content_type and is_json(encoding.content_type):
        return Wrapper("json_text")
    if encoding.style == "deepObject":
        return Wrapper("deep")
    if encoding.explode:
        return None
    return Wrapper(_STYLES.get(encoding.style or "", "csv"))


def _part(
    schema: Mapping[str, Any], encoding: Encoding, schemas: Mapping[str, Schema]
) -> Wrapper | None:
    written = encoding.content_type or ""
    kind = bare(written) if _CONCRETE.fullmatch(bare(written)) else ""
    items = target(schema.get("items", True), schemas) if schema.get("type") == "array" else schema
    if _is_file(items, kind):
        return Wrapper("file", {"content_type": kind} if kind else {})
    if kind and not (schema.get("type") == "string" and kind == "text/plain"):
        return Wrapper("part", {"content_type": kind})
    if schema.get("type") == "array" and not encoding.explode:
        return Wrapper("csv")
    return None


def _is_file(schema: Mapping[str, Any], kind: str) -> bool:
    if schema.get("format") == "binary":
        return True
    if "contentMediaType" in schema and "contentEncoding" not in schema:
        return not is_json(schema["contentMediaType"])
    return not schema and bool(kind) and not is_json(kind) and not kind.startswith("text/")
