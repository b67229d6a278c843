"""Request bodies: JSON, form, multipart, text and binary, each as bytes with its media type."""

from __future__ import annotations

import binascii
import re

from .errors import ArgumentInvalid
from .parameters import deep_members, query_pairs
from .styles import Part, Styled
from .values import Unset, is_absent, percent_encode, scalar, to_json, utf8

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    Body = tuple[bytes, str]

_JSON_TYPE = r"(?i:[^;\s]+[/+]json\s*(?:;|\Z))"
_UNQUOTABLE = r'[\x00-\x1f\x7f"\\]'
_TYPE = r"[A-Za-z0-9!#$&^_.+*/;=,\- \"'()]+\Z"
_TYPES = {
    "csv": "text/csv",
    "gif": "image/gif",
    "html": "text/html",
    "jpeg": "image/jpeg",
    "jpg": "image/jpeg",
    "json": "application/json",
    "md": "text/markdown",
    "mp3": "audio/mpeg",
    "mp4": "video/mp4",
    "pdf": "application/pdf",
    "png": "image/png",
    "svg": "image/svg+xml",
    "txt": "text/plain",
    "wav": "audio/wav",
    "webp": "image/webp",
    "xml": "application/xml",
    "zip": "application/zip",
}
"""Types by the ending of a file's name; servers that take only some kinds look at them."""
_BEGINNINGS = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
    b"%PDF-": "application/pdf",
}
"""Types by how a file begins, where its name does not tell."""
_DELIMITERS = {"form": ",", "spaceDelimited": " ", "pipeDelimited": "|", "tabDelimited": "\t"}
_FILE_KEYS = frozenset({"base64", "text", "filename", "content_type"})


def json_body(value: Any, content_type: str | None) -> Body:
    return utf8(to_json(value)), content_type or "application/json"


def form_body(fields: Mapping[str, Any], content_type: str | None) -> Body:
    """`application/x-www-form-urlencoded`; an object, or one inside an array, is JSON."""
    pairs = [pair for name, value in fields.items() for pair in _form_pairs(name, value)]
    return "&".join(pairs).encode(), content_type or "application/x-www-form-urlencoded"


def text_body(value: Any, content_type: str | None) -> Body:
    kind = content_type or "text/plain; charset=utf-8"
    return utf8(_text(value, kind)), kind


def binary_body(value: Any, content_type: str | None) -> Body:
    return decode_base64("", value), content_type or "application/octet-stream"


def multipart_body(fields: Mapping[str, Any], content_type: str | None) -> Body:
    """`multipart/form-data` (RFC 7578). The same fields always give the same bytes.

    Files come last: servers that read a body as it comes know a file's fields only by then, and
    some ignore what follows a file.
    """
    ordered = sorted(fields.items(), key=lambda field: _is_file(field[1]))
    parts = [part for name, value in ordered for part in _parts(name, value)]
    boundary, count = "toolwright-part", 0
    while any(boundary.encode() in head + content for head, content in parts):
        count += 1
        boundary = f"toolwright-part-{count}"
    mark = boundary.encode()
    body = b"".join(
        b"--" + mark + b"\r\n" + head + b"\r\n\r\n" + content + b"\r\n" for head, content in parts
    )
    kind = content_type or "multipart/form-data"
    return body + b"--" + mark + b"--\r\n", f"{kind}; boundary={boundary}"


def decode_base64(where: str, value: Any) -> bytes:
    """The bytes of base64 text, also of RFC 4648's URL-safe alphabet and without padding."""
    if not isinstance(value, str):
        raise ArgumentInvalid(where, "is not base64 text")
    text = "".join(value.split()).replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return binascii.a2b_base64(text + "=" * (-len(text) % 4), strict_mode=True)
    except ValueError as error:
        raise ArgumentInvalid(where, f"is not base64: {error}") from error


def _form_pairs(name: str, value: Any) -> list[str]:
    if isinstance(value, Styled):
        return query_pairs(name, value)
    items = value if isinstance(value, list | tuple) else [value]
    key = percent_encode(name)
    return [f"{key}={percent_encode(scalar(item))}" for item in items if not is_absent(item)]


def _parts(name: str, value: Any) -> list[tuple[bytes, bytes]]:
    content_type, is_file, filename = None, False, None
    if isinstance(value, Part):
        content_type, is_file = value.content_type, value.is_file
        filename, value = value.filename, value.value
    elif isinstance(value, Styled):
        if value.style == "deepObject":
            members = deep_members(name, value.value)
            return [_value_part(key, text, None) for key, text in members]
        value = _unstyled(value)
    items = value if isinstance(value, list | tuple) else [value]
    present = [item for item in items if not is_absent(item)]
    if is_file:
        return [_file_part(name, item, filename, content_type) for item in present]
    return [_value_part(name, item, content_type) for item in present]


def _is_file(value: Any) -> bool:
    return isinstance(value, Part) and value.is_file


def _unstyled(value: Styled) -> Any:
    # RFC 7578 has no styles: the items of an array that is not exploded are in one part.
    delimiter = _DELIMITERS.get(value.style or "form")
    if delimiter and isinstance(value.value, list | tuple) and value.explode is False:
        return delimiter.join(scalar(item) for item in value.value if not is_absent(item))
    return to_json(value.value) if value.style == "json" else value.value


def _value_part(name: str, value: Any, content_type: str | None) -> tuple[bytes, bytes]:
    implied = "application/json" if isinstance(value, dict | list | tuple) else None
    kind = content_type or implied
    return _head(name, None, kind), utf8(_text(value, kind or "text/plain"))


def _file_part(
    name: str, value: Any, filename: str | None, content_type: str | None
) -> tuple[bytes, bytes]:
    given = value if isinstance(value, dict) else {"base64": value}
    if not _FILE_KEYS.issuperset(given) or ("base64" in given) == ("text" in given):
        raise ArgumentInvalid(f"/{name}", "is neither base64 nor an object with base64 or text")
    called = scalar(given.get("filename") or filename or name)
    implied = _TYPES.get(called.rpartition(".")[2].lower())
    if "text" in given:
        content, usual = utf8(scalar(given["text"])), "text/plain; charset=utf-8"
    else:
        told, content = _decode_file(name, given["base64"])
        begins = (kind for mark, kind in _BEGINNINGS.items() if content.startswith(mark))
        implied, usual = told or implied, next(begins, "application/octet-stream")
    kind = scalar(given.get("content_type") or content_type or implied or usual)
    return _head(name, called, kind), content


def _decode_file(name: str, value: Any) -> tuple[str | None, bytes]:
    """A file's type, where a `data:` URL says it (RFC 2397), and its content."""
    head, comma, data = value.partition(",") if isinstance(value, str) else ("", "", "")
    if not comma or not head.lower().startswith("data:") or not head.lower().endswith(";base64"):
        try:
            return None, decode_base64(f"/{name}", value)
        except ArgumentInvalid as error:
            how = 'give its text as {"text": …, "filename": …}, other content in base64'
            raise ArgumentInvalid(error.where, f"{error.reason}; {how}") from error
    return head[5:-7] or None, decode_base64(f"/{name}", data)


def _head(name: str, filename: str | None, content_type: str | None) -> bytes:
    lines = [f'Content-Disposition: form-data; name="{_quotable(name)}"']
    if filename is not None:
        lines[0] += f'; filename="{_quotable(filename)}"'
    if content_type:
        if not re.match(_TYPE, content_type):
            raise ArgumentInvalid("", f"{content_type[:60]!r} is not a media type")
        lines.append(f"Content-Type: {content_type}")
    return "\r\n".join(lines).encode("utf-8", "replace")


def _quotable(text: str) -> str:
    # https://html.spec.whatwg.org/multipage/form-control-infrastructure.html#escaping-a-string
    return re.sub(_UNQUOTABLE, lambda match: f"%{ord(match[0]):02X}", text)


def _text(value: Any, content_type: str) -> str:
    if isinstance(value, Unset):
        return ""
    return to_json(value) if re.match(_JSON_TYPE, content_type) else scalar(value)
