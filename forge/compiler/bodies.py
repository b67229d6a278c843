"""Encoding of request bodies: XML element names and form fields (OpenAPI 3.1 sections 4.8.15 and
4.8.26).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from forge.schemas.media import DEFAULT_TYPES, choose_media_type, is_json, strip_parameters
from forge.schemas.projection import list_applied_schemas, merge_properties, resolve_schema
from forge.schemas.walk import PREFIX
from forge.text import extract_first_sentence
from sandbox.bundle.apispec import APISpec, Encoding, MediaType, Operation, Schema
from sandbox.schemas.keywords import declared_types

MAX_DEPTH = 6
MAX_SCHEMAS = 2_000
ROOT = "root"


def find_root_name(schema: Schema, schemas: Mapping[str, Schema]) -> str:
    """Return the name of the XML document's root element: the XML object's, or the schema's own."""
    link = schema.get("$ref") if isinstance(schema, Mapping) else None
    named = str(link).removeprefix(PREFIX) if link else ROOT
    return str(_find_xml_object(schema, schemas).get("name") or named)


def build_xml_hint(schema: Schema, schemas: Mapping[str, Schema]) -> dict[str, Any]:
    """Build the hint that `toolwright.styles.xml_text` takes beside the root's name: element names,
    namespaces, attributes and wrappers, nested by field.
    """
    made = _HintBuilder(schemas).build_hint(schema, 0)
    if resolve_schema(schema, schemas).get("type") == "array":
        # A document has one root, so the list itself always is an element.
        items = resolve_schema(schema, schemas).get("items", True)
        made = {
            "wrapper": find_root_name(schema, schemas),
            "name": find_root_name(items, schemas),
            **made,
        }
    return made


class _HintBuilder:
    """Builds the hint of one body. It visits at most MAX_SCHEMAS schemas, so references cannot make
    it exponential.
    """

    def __init__(self, schemas: Mapping[str, Schema]) -> None:
        self._schemas, self._left = schemas, MAX_SCHEMAS

    def build_hint(self, schema: Schema, depth: int) -> dict[str, Any]:
        self._left -= 1
        if depth > MAX_DEPTH or self._left < 0:
            return {}
        found = resolve_schema(schema, self._schemas)
        if found.get("type") == "array":
            return self._build_array_hint(schema, found.get("items", True), depth)
        made = _read_own_hint(_find_xml_object(schema, self._schemas))
        fields = {
            name: told
            for name, part in merge_properties(schema, self._schemas).items()
            if (told := self.build_hint(part, depth + 1))
        }
        return {**made, "fields": fields} if fields else made

    def _build_array_hint(self, schema: Schema, items: Schema, depth: int) -> dict[str, Any]:
        xml = _find_xml_object(schema, self._schemas)
        made = self.build_hint(items, depth + 1)
        if xml.get("wrapped"):
            made["wrapper"] = _qualify_name(xml) or WRAPPED
        return made


WRAPPED = ""
"""A wrapper that is called as its property is."""


def _read_own_hint(xml: Mapping[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    if "name" in xml:
        made["name"] = _qualify_name(xml)
    if "namespace" in xml:
        made["namespace"] = xml["namespace"]
    if xml.get("attribute"):
        made["attribute"] = True
    return made


def _qualify_name(xml: Mapping[str, Any]) -> str:
    name, prefix = xml.get("name", ""), xml.get("prefix", "")
    return f"{prefix}:{name}" if prefix and name else str(name)


def _find_xml_object(schema: Schema, schemas: Mapping[str, Schema]) -> Mapping[str, Any]:
    found = (part["xml"] for part in list_applied_schemas(schema, schemas) if "xml" in part)
    return next(found, {})


_FILE_WORDS = frozenset(
    "attachment attachments audio avatar document file files image images logo photo photos "
    "picture upload video".split()
)
_CONCRETE = re.compile(r"[\w!#$&^.+-]+/[\w!#$&^.+-]+")
_STYLES = {"spaceDelimited": "ssv", "pipeDelimited": "pipes", "tabDelimited": "tsv"}


@dataclass(frozen=True)
class Wrapper:
    """A call of a function of `toolwright.styles`, with its arguments besides the value."""

    function: str
    arguments: Mapping[str, str | bool] = field(default_factory=dict)


def find_wrappers(media: MediaType, schemas: Mapping[str, Schema]) -> dict[str, Wrapper]:
    """Return the wrapper of each form or multipart field that needs one, by field name."""
    properties = merge_properties(media.schema, schemas)
    is_multipart = strip_parameters(media.type).startswith("multipart/")
    made = {}
    for name in dict.fromkeys([*properties, *media.encoding]):
        written = properties.get(name, True)
        encoding = media.encoding.get(name, Encoding())
        if is_multipart:
            wrapper = _choose_part_wrapper(written, encoding, schemas)
        else:
            wrapper = _choose_field_wrapper(encoding)
        if wrapper is not None:
            made[name] = wrapper
    if is_multipart and not any(each.function == "file" for each in made.values()):
        for name, written in properties.items():
            if name not in made and _may_be_file(name, resolve_schema(written, schemas)):
                made[name] = Wrapper("file", {"plain": True})
    return made


def _may_be_file(name: str, schema: Mapping[str, Any]) -> bool:
    """Whether a text of a multipart body without a declared file may be one: it is described as in
    an answer, by its URL (drf-spectacular with the same schema for both), or is only named so.
    """
    if "string" not in declared_types(schema) or "enum" in schema or "const" in schema:
        return False
    if schema.get("format") == "uri":
        return True
    words = re.findall(r"[a-z]+", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name).lower())
    return "format" not in schema and bool(words) and words[-1] in _FILE_WORDS


def has_file(media: MediaType, schemas: Mapping[str, Schema]) -> bool:
    """Whether a field of a body is declared to be a file or a list of files."""
    fields = merge_properties(media.schema, schemas).values()
    return any(find_file_form(field, schemas) is not None for field in fields)


def split_uploads(api: APISpec) -> APISpec:
    """Split each operation that takes JSON or a form, or else other fields with a file in parts, in
    two: a tool sends one kind of body, and the file could not be sent by it.
    """
    taken = {operation.id for operation in api.operations}
    made: list[Operation] = []
    for operation in api.operations:
        made.append(operation)
        made += (each for each in _list_uploads(operation, api.schemas) if each.id not in taken)
    return api if len(made) == len(taken) else replace(api, operations=tuple(made))


def _list_uploads(operation: Operation, schemas: Mapping[str, Schema]) -> Iterator[Operation]:
    body = operation.body
    if body is None or len(body.content) < 2:
        return
    chosen, kind = choose_media_type(body.content, schemas)
    if kind not in ("json", "form") or has_file(chosen, schemas):
        return
    form = DEFAULT_TYPES["multipart"]
    parts = tuple(
        media
        for media in body.content
        if strip_parameters(media.type) == form and has_file(media, schemas)
    )
    if parts:
        is_nameless = operation.id.startswith(f"{operation.method} /")
        named = f"{operation.method.lower()}{operation.path}" if is_nameless else operation.id
        lead = operation.summary or extract_first_sentence(operation.description, 200)
        yield replace(
            operation,
            id=f"{named}_file",
            summary=f"{lead.rstrip(' .')} (in parts, with a file)".lstrip(),
            body=replace(body, content=parts),
        )


def _choose_field_wrapper(encoding: Encoding) -> Wrapper | None:
    if encoding.content_type and is_json(encoding.content_type):
        return Wrapper("json_text")
    if encoding.style == "deepObject":
        return Wrapper("deep")
    if encoding.explode:
        return None
    return Wrapper(_STYLES.get(encoding.style or "", "csv"))


def _choose_part_wrapper(
    field: Schema, encoding: Encoding, schemas: Mapping[str, Schema]
) -> Wrapper | None:
    written = encoding.content_type or ""
    kind = strip_parameters(written) if _CONCRETE.fullmatch(strip_parameters(written)) else ""
    schema = resolve_schema(field, schemas)
    if find_file_form(field, schemas, kind) is not None:
        return Wrapper("file", {"content_type": kind} if kind else {})
    if encoding.style == "deepObject":
        return Wrapper("deep")
    if kind and not (schema.get("type") == "string" and kind == "text/plain"):
        return Wrapper("part", {"content_type": kind})
    if schema.get("type") == "array" and not encoding.explode:
        return Wrapper(_STYLES.get(encoding.style or "", "csv"))
    return None


FileForm = Literal["one", "list"]


def find_file_form(
    field: Schema, schemas: Mapping[str, Schema], kind: str = "", depth: int = 0
) -> FileForm | None:
    """Whether a multipart field is a file or a list of files, in its own words, those of the parts
    that it is put together from, or those of an alternative: a file that may be left out is one of
    `anyOf` beside null.
    """
    if _is_file(resolve_schema(field, schemas), kind):
        return "one"
    for part in list_applied_schemas(field, schemas) if depth < MAX_DEPTH else ():
        if _is_file(part, ""):
            return "one"
        if "items" in part and find_file_form(part["items"], schemas, kind, depth + 1):
            return "list"
        for branch in (*part.get("anyOf", ()), *part.get("oneOf", ())):
            found = find_file_form(branch, schemas, "", depth + 1)
            if found is not None:
                return found
    return None


def _is_file(schema: Mapping[str, Any], kind: str) -> bool:
    if schema.get("format") == "binary" or schema.get("type") == "file":
        return True
    if "contentMediaType" in schema and "contentEncoding" not in schema:
        return not is_json(schema["contentMediaType"])
    return not schema and bool(kind) and not is_json(kind) and not kind.startswith("text/")
