"""Media types: how the runtime is handed a body, and which of several types is taken."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Literal

from forge.schemas.projection import resolve_schema
from sandbox.bundle.apispec import MediaType, Schema
from sandbox.schemas.keywords import declared_types

BodyKind = Literal["json", "form", "multipart", "text", "binary", "lines", "xml"]
PREFERENCE: tuple[BodyKind, ...] = ("json", "form", "multipart", "lines", "text", "binary", "xml")
DEFAULT_TYPES: Mapping[BodyKind, str] = {
    "json": "application/json",
    "form": "application/x-www-form-urlencoded",
    "multipart": "multipart/form-data",
    "text": "text/plain",
    "binary": "application/octet-stream",
    "lines": "text/plain",
    "xml": "text/plain",
}
"""The type that a body is sent as where the code names none."""
_LINES = re.compile(r"application/(x-)?(ndjson|jsonl|jsonlines|json-seq|json-lines)")
_JSON = re.compile(r"[^/]+/([^/]+\+)?json")
"""Of any family: some descriptions misspell `application`."""
_MARKUP = re.compile(r"[^/]+/([^/]*\+)?xml")
_BYTES = frozenset({"application/octet-stream", "application/x-tar", "application/zip"})
_PACKED = re.compile(
    r"application/([\w.-]*[.+-])?(avro|bson|cbor|grpc|messagepack|msgpack|protobuf|thrift)"
)
"""Values in a binary form, which no JSON may stand for whatever their schema says."""
_TEXT = re.compile(
    r"text/.+|[^/]+/([^/]*\+)?(xml|yaml|x-yaml|graphql|javascript|sql|toml|csv)|application/(jwt|jose)"
)


def classify_media_type(media: MediaType, schemas: Mapping[str, Schema]) -> BodyKind:
    """The kind of a media type; of one that says nothing (`*/*`) by its schema.

    `lines` is a list of JSON values and `xml` an object or list; where the schema says that the
    caller writes a string, both are `text`.
    """
    name = strip_parameters(media.type)
    written = resolve_schema(media.schema if media.schema is not None else True, schemas)
    if _LINES.fullmatch(name):
        return "text" if written.get("type") == "string" else "lines"
    if _MARKUP.fullmatch(name) and (written.get("type") in ("object", "array")):
        return "xml"
    if is_json(media.type):
        return "json"
    if name == DEFAULT_TYPES["form"]:
        # Without fields that are told, a caller writes the encoded form.
        kinds = declared_types(written)
        return "form" if not kinds or "object" in kinds else "text"
    if name.startswith("multipart/"):
        return "multipart"
    if _TEXT.fullmatch(name):
        return "text"
    if name in _BYTES or _PACKED.fullmatch(name):
        return "binary"
    is_text = written.get("type") == "string" and written.get("format") not in ("binary", "byte")
    if name == "*/*" and written.get("format") != "binary":
        return "json"
    if name.startswith("application/") and written.get("type") in ("object", "array"):
        return "json"
    return "text" if is_text and name.startswith("application/") else "binary"


def choose_media_type(
    content: Iterable[MediaType], schemas: Mapping[str, Schema]
) -> tuple[MediaType, BodyKind]:
    """The preferred of several representations; the first of a kind, an exact JSON type before it.
    Markup is the last choice: a caller has to write it by hand.

    Raises ValueError where there is none.
    """
    return min(
        ((media, classify_media_type(media, schemas)) for media in content),
        key=lambda pair: (
            _MARKUP.fullmatch(strip_parameters(pair[0].type)) is not None,
            PREFERENCE.index(pair[1]),
            strip_parameters(pair[0].type) != DEFAULT_TYPES[pair[1]],
        ),
    )


def is_json(media_type: str) -> bool:
    """Whether answers of this type are JSON values (RFC 6839 section 3.1)."""
    if media_type == "application/json":
        return True
    return _JSON.fullmatch(strip_parameters(media_type)) is not None


def strip_parameters(media_type: str) -> str:
    """The type without parameters, in lower case."""
    return media_type.partition(";")[0].strip().lower()
