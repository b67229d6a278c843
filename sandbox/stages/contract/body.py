"""Checking that a request body holds an argument, by media type."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote_plus
from xml.etree import ElementTree

from sandbox.bundle.apispec import Encoding, MediaType, Parameter, Style
from sandbox.stages.contract.styles import DELIMITERS, is_nothing, read_query
from sandbox.stages.contract.texts import (
    NOT_JSON,
    all_read_as,
    decode_base64,
    is_equal_json,
    parse_json,
    reads_as,
)

_DECLARATIONS = ("<!DOCTYPE", "<!ENTITY")


def contains_scalars(body: bytes, value: Any) -> bool:
    """Whether the texts and attributes of an XML document are the argument's scalars, each as
    often.

    A document with declarations is not parsed at all, since entities can expand exponentially, and
    none but one in UTF-8, in which no declaration hides.
    """
    try:
        text = body.decode("utf-8-sig")
        if "\0" in text or any(mark in text.upper() for mark in _DECLARATIONS):
            return False
        root = ElementTree.fromstring(text)  # nosec B314 # without declarations nothing expands
    except (UnicodeDecodeError, ValueError, ElementTree.ParseError):
        return False
    written = list(_iterate_texts(root))
    wanted = list(iterate_leaves(value))
    if Counter(written) == Counter(map(str, wanted)):
        return True
    return len(written) == len(wanted) and _matches_leaves(written, wanted)


def _matches_leaves(written: list[str], wanted: list[Any]) -> bool:
    left = list(written)
    for leaf in wanted:
        found = next((text for text in left if reads_as(text, leaf)), None)
        if found is None:
            return False
        left.remove(found)
    return True


def _iterate_texts(element: ElementTree.Element) -> Iterator[str]:
    for each in element.iter():  # Not by recursion: a document may be nested without end.
        yield from each.attrib.values()
        if len(each) == 0 and each.text:
            yield each.text


def iterate_leaves(value: Any) -> Iterator[Any]:
    """The values in a JSON value that hold no others, but null and empty texts."""
    if isinstance(value, Mapping):
        for item in value.values():
            yield from iterate_leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from iterate_leaves(item)
    elif value is not None and value != "":
        yield value


_BOUNDARY = re.compile(r';\s*boundary=(?:"([^"]{1,70})"|([^\s;"]{1,70}))', re.IGNORECASE)
_FIELD = re.compile(r';\s*(name|filename)="((?:[^"\\]|\\.)*)"', re.IGNORECASE)
_STREAMS = ("ndjson", "jsonl", "json-seq", "stream+json")
_ESCAPES = {"%22": '"', "%0D": "\r", "%0A": "\n"}
_FILE_KEYS = frozenset({"base64", "text", "filename", "content_type"})
MAX_PARTS = 10_000


def extract_essence(content_type: str) -> str:
    """The type and subtype in lower case, without parameters (RFC 9110, section 8.3.1)."""
    return content_type.partition(";")[0].strip().lower()


def is_json(media_type: str) -> bool:
    """Whether the type's content is one JSON value (RFC 6839, section 3.1), not a stream."""
    subtype = media_type.partition("/")[2]
    if any(name in subtype for name in _STREAMS):
        return False
    return subtype == "json" or subtype.endswith("+json")


def find_media_type(content_type: str, content: tuple[MediaType, ...]) -> MediaType | None:
    """The documented media type or range that a Content-Type matches, the most exact
    one, or None.
    """
    sent = extract_essence(content_type)
    ranges = (sent, sent.partition("/")[0] + "/*", "*/*")
    for wanted in ranges:
        for media in content:
            if extract_essence(media.type) == wanted:
                return media
    return None


def has_fields(content_type: str) -> bool:
    """Whether a schema describes the content's fields rather than its bytes or lines."""
    sent = extract_essence(content_type)
    is_form = sent == "application/x-www-form-urlencoded" or sent.startswith("multipart/")
    return is_form or is_json(sent)


def check_body(media: MediaType, content_type: str, value: Any, body: bytes) -> str | None:
    """The difference between the body and the argument, in words, or None where they are equal."""
    sent = extract_essence(content_type)
    if is_json(sent):
        parsed = parse_json(body)
        if parsed is NOT_JSON:
            return "is not JSON"
        return (
            None
            if is_equal_json(parsed, value)
            else f"holds {_shorten_value(parsed)} in place of the argument"
        )
    if sent == "application/x-www-form-urlencoded":
        return _check_form(media, value, body)
    if sent.startswith("multipart/"):
        return _check_multipart(media, content_type, value, body)
    if any(name in sent for name in _STREAMS) and isinstance(value, list):
        lines = [parse_json(line.strip(b"\x1e \r")) for line in body.split(b"\n") if line.strip()]
        return None if is_equal_json(lines, value) else "does not hold the argument line by line"
    if (sent.endswith(("/xml", "+xml"))) and isinstance(value, Mapping | list):
        return None if contains_scalars(body, value) else "is not XML that holds the argument"
    return None if _is_content(body, value) else "does not hold the argument"


def _shorten_value(value: Any) -> str:
    return repr(value)[:120]


def _is_content(body: bytes, value: Any) -> bool:
    """Text as it is, bytes from base64, or anything else as JSON."""
    if isinstance(value, str):
        return body == value.encode() or body == decode_base64(value)
    return reads_as(body.decode("utf-8", "replace"), value)


def _check_form(media: MediaType, value: Any, body: bytes) -> str | None:
    if not isinstance(value, Mapping):
        return None if _is_content(body, value) else "does not hold the argument"
    try:
        text = body.decode("ascii")
    except UnicodeDecodeError:
        return "is not percent-encoded"
    split = [pair.partition("=") for pair in text.split("&") if pair]
    pairs = [(unquote_plus(name), raw) for name, _, raw in split]
    used: set[int] = set()
    for name, item in value.items():
        found = _find_form_field(name, item, media.encoding.get(name), pairs)
        if found is None:
            return f"does not hold the field {name}"
        used |= found
    extra = [pairs[at][0] for at in range(len(pairs)) if at not in used]
    return f"holds the field {extra[0]!r} that is not in the argument" if extra else None


def _find_form_field(
    name: str, value: Any, encoding: Encoding | None, pairs: list[tuple[str, str]]
) -> frozenset[int] | None:
    """Positions of a field. Without an encoding lists are repeated; objects have no set form."""
    encoding = encoding or Encoding()
    own = [at for at, (key, _) in enumerate(pairs) if key == name]
    if is_nothing(value) and not own:
        return frozenset()
    styles: tuple[Style, ...] = (encoding.style,) if encoding.style else ("form", "deepObject")
    if isinstance(value, Mapping) and not encoding.style and len(own) == 1:
        return frozenset(own) if reads_as(unquote_plus(pairs[own[0]][1]), value) else None
    for style in styles:
        parameter = Parameter(name, "query", style=style, explode=encoding.explode)
        found = read_query(parameter, value, pairs)
        if found is not None:
            return found
    if encoding.content_type and is_json(extract_essence(encoding.content_type)) and len(own) == 1:
        return frozenset(own) if reads_as(unquote_plus(pairs[own[0]][1]), value) else None
    return None


@dataclass(frozen=True)
class MultipartPart:
    """One part of a multipart body (RFC 7578)."""

    name: str
    filename: str | None
    content_type: str
    content: bytes


def parse_multipart(content_type: str, body: bytes) -> list[MultipartPart] | None:
    """The parts of a body, or None where it is not well-formed."""
    found = _BOUNDARY.search(content_type)
    if not found:
        return None
    mark = b"--" + (found[1] or found[2]).encode()
    pieces = (b"\r\n" + body).split(b"\r\n" + mark)
    if len(pieces) < 2 or len(pieces) > MAX_PARTS or not pieces[-1].startswith(b"--"):
        return None
    parts = [_parse_part(piece) for piece in pieces[1:-1]]
    return None if None in parts else [part for part in parts if part]


def _parse_part(piece: bytes) -> MultipartPart | None:
    head, gap, content = piece.partition(b"\r\n\r\n")
    headers = {}
    for line in head.decode("utf-8", "replace").split("\r\n"):
        key, _, text = line.partition(":")
        headers[key.strip().lower()] = text.strip()
    fields = {
        key.lower(): _unescape_text(text)
        for key, text in _FIELD.findall(headers.get("content-disposition", ""))
    }
    if not gap or "name" not in fields:
        return None
    return MultipartPart(
        fields["name"], fields.get("filename"), headers.get("content-type", ""), content
    )


def _unescape_text(text: str) -> str:
    for escape, letter in _ESCAPES.items():
        text = text.replace(escape, letter)
    return re.sub(r"\\(.)", r"\1", text)


def _check_multipart(media: MediaType, content_type: str, value: Any, body: bytes) -> str | None:
    parts = parse_multipart(content_type, body)
    if parts is None:
        return "is not a well-formed multipart body"
    if not isinstance(value, Mapping):
        return "is multipart, and the argument is not an object"
    spread: set[str] = set()
    for name, item in value.items():
        own = [part for part in parts if part.name == name]
        encoding = media.encoding.get(name)
        members = _find_members(name, item, encoding, parts)
        spread |= members
        if members or (is_nothing(item) and not own):
            continue
        if not _holds_value(own, item) and not _is_joined_list(own, item, encoding):
            return f"does not hold the part {name}"
        if _is_file(media, name) and any(part.filename is None for part in own):
            return f"sends the file {name} without a file name"
    extra = [part.name for part in parts if part.name not in value and part.name not in spread]
    return f"holds the part {extra[0]!r} that is not in the argument" if extra else None


def _find_members(
    name: str, value: Any, encoding: Encoding | None, parts: list[MultipartPart]
) -> set[str]:
    """The names of the parts that hold a field member by member (style deepObject)."""
    if encoding is None or encoding.style != "deepObject":
        return set()
    pairs = [(part.name, quote(part.content)) for part in parts]
    found = read_query(Parameter(name, "query", style="deepObject"), value, pairs)
    return {pairs[at][0] for at in found or ()}


def _holds_value(parts: list[MultipartPart], value: Any) -> bool:
    if len(parts) == 1 and _is_part(parts[0], value):
        return True
    if not isinstance(value, list) or len(parts) != len(value):
        return False
    return all(_is_part(part, item) for part, item in zip(parts, value, strict=True))


def _is_part(part: MultipartPart, value: Any) -> bool:
    """The value itself, as JSON where the part says that it is, or a file given as its content,
    file name and type.
    """
    if _is_content(part.content, value):
        return True
    if is_json(extract_essence(part.content_type)):
        parsed = parse_json(part.content)
        if parsed is not NOT_JSON and is_equal_json(parsed, value):
            return True
    if not isinstance(value, Mapping) or not _FILE_KEYS.issuperset(value):
        return False
    told = {"filename": part.filename, "content_type": part.content_type}
    content = value.get("text", value.get("base64"))
    return _is_content(part.content, content) and all(
        told[key] == value[key] for key in told if key in value
    )


def _is_joined_list(parts: list[MultipartPart], value: Any, encoding: Encoding | None) -> bool:
    """Whether a list that is not exploded stands in one part."""
    if not isinstance(value, list) or encoding is None or encoding.explode or len(parts) != 1:
        return False
    text = parts[0].content.decode("utf-8", "replace")
    delimiter = DELIMITERS.get(encoding.style or "form", ",")
    return all_read_as(text.split(delimiter), value) if text else value in ([], [""], [None])


def _is_file(media: MediaType, name: str) -> bool:
    schema = media.schema if isinstance(media.schema, Mapping) else {}
    field = (schema.get("properties") or {}).get(name)
    if not isinstance(field, Mapping):
        return False
    is_bytes = "contentMediaType" in field and "contentEncoding" not in field
    return field.get("format") == "binary" or is_bytes
