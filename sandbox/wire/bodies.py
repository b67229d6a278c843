"""Checks that the body of a request has one reading only, and names no other method.

What a server makes of a body depends on its type, charset and framework, so each form is read as
the loosest server would, and what is written unusually enough to be read in two ways is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from sandbox.wire.exchange import WireRequest
from sandbox.wire.overrides import MAX_PAIRS, has_override, is_override

MAX_CONTAINERS = 250_000
"""Brackets in a JSON body that is parsed; more would hold up the event loop."""
MAX_PARTS = 1000
FORM, MULTIPART = "application/x-www-form-urlencoded", "multipart/"
OVERRIDE = "it may name another method in a parameter"

_TOKEN = r"[A-Za-z0-9!#$%&'*+.^_`|~-]++"
_PARAMETER = re.compile(rf"\s*+;\s*+({_TOKEN})=({_TOKEN}|\"[^\"\\\x00-\x1f\x7f]*+\")")
_TYPE = re.compile(rf"\s*+({_TOKEN}/{_TOKEN})((?:{_PARAMETER.pattern})*+)\s*+;?\s*+\Z")
_UTF8 = frozenset({"utf-8", "utf8", "us-ascii", "ascii"})
_LIKE_ASCII = re.compile(r"(?:iso-?8859-?\d{1,2}|latin-?\d|windows-125\d|cp-?125\d|koi8-[ru])\Z")
"""Charsets in which ASCII is ASCII; UTF-7, UTF-16 and EBCDIC write other texts with its bytes."""
_VARIANTS = ("\uff45", "\uff25", "\uff4d", "\uff2d")
"""Fullwidth letters of the word."""
_IN_NAME = r"[^\s\"',:{}\[\]=]"
_MEMBER = re.compile(rf"(?<!{_IN_NAME})({_IN_NAME}++)[\"']?\s*+[:=]")
"""A name and its sign. What cannot be one is passed over as a whole, so that a text is read once
(possessive quantifiers, https://docs.python.org/3/library/re.html#index-13).
"""
_ESCAPE = re.compile(r"\\u\{?([0-9A-Fa-f]{4})\}?")

_BOUNDARY = re.compile(r"[A-Za-z0-9'()+_,./:=?-]{1,70}\Z")
_QUOTED = r'"([^"\\\x00-\x1f\x7f]*)"'
_DISPOSITION = re.compile(
    rf"(?:form-data|attachment|inline)(?:; name={_QUOTED})?(?:; filename={_QUOTED})?\Z"
)
_PLAIN_VALUE = re.compile(r"[^\x00-\x1f\x7f]*\Z")
_PART_HEADERS = re.compile(r"content-(?:disposition|type|id|length|location|transfer-encoding)\Z")
_UNENCODED = frozenset({"7bit", "8bit", "binary"})


def find_body_problem(request: WireRequest) -> str:
    """The reason to refuse a request for its body, in words; "" if there is none."""
    types = [value for name, value in request.headers if name.lower() == "content-type"]
    if len(types) > 1:
        return "it has two content types"
    if not request.body:
        return ""
    parsed = _parse_type(types[0]) if types else ("", ())
    if parsed is None:
        return f"its content type {types[0][:60]!r} is none"
    kind, parameters = parsed
    names = [name for name, _ in parameters]
    if len(set(names)) != len(names):
        return "its content type has a parameter twice"
    charset = dict(parameters).get("charset", "utf-8").lower()
    if charset not in _UTF8 and not (_LIKE_ASCII.match(charset) and request.body.isascii()):
        return f"its text is in the charset {charset[:40]!r}; it has to be UTF-8"
    if kind.startswith(MULTIPART):
        return _find_parts_problem(kind, dict(parameters).get("boundary", ""), request.body)
    return _find_text_problem(kind, request.body)


def _parse_type(text: str) -> tuple[str, tuple[tuple[str, str], ...]] | None:
    """The type in lower case and its parameters (RFC 9110, section 8.3.1); None if it is none."""
    match = _TYPE.match(text)
    if match is None:
        return None
    found = _PARAMETER.finditer(match[2])
    return match[1].lower(), tuple((each[1].lower(), each[2].strip('"')) for each in found)


def _find_text_problem(kind: str, body: bytes) -> str:
    is_json, is_form = "json" in kind, "form-urlencoded" in kind
    # Without a type, Rack reads a form.
    if not (is_json or is_form or not kind or body.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"{"):
        return ""
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError:
        return f"its {kind} is not UTF-8" if is_json or is_form else ""
    if (is_json or is_form) and "\0" in text:
        return f"its {kind} has a zero byte"
    if (is_form or not kind) and has_override(text):
        return OVERRIDE
    if not is_form and _may_name(text) and _has_member(text, is_json or not kind):
        return OVERRIDE
    return ""


def _may_name(text: str) -> bool:
    """Whether a JSON text may have such a member; most are not parsed at all. A regular expression
    would take ten times as long.
    """
    if "\\u" in text or "ethod" in text.lower():
        return True
    return not text.isascii() and any(part in text for part in _VARIANTS)


def _has_member(text: str, declared: bool) -> bool:
    """Whether a JSON text, or one of several after another, names another method. What is no JSON
    though it was `declared` to be is searched for all that some parser could take for a name.
    """
    if text.count("{") + text.count("[") > MAX_CONTAINERS:
        return True
    try:
        return any(isinstance(value, dict) and _is_any(value) for value in _parse_values(text))
    except RecursionError:
        return True
    except ValueError:
        if not declared:
            return False
        if text.count(":") + text.count("=") > MAX_PAIRS:
            return True
        plain = _ESCAPE.sub(lambda match: chr(int(match[1], 16)), text)
        return _is_any([match[1] for match in _MEMBER.finditer(plain)])


def _is_any(names: Sequence[str] | dict[str, Any]) -> bool:
    return any(map(is_override, names))


def _parse_values(text: str) -> Iterator[Any]:
    """The values of a JSON text, or of several with white space between. Raises ValueError."""
    at, end = 0, len(text)
    while True:
        while at < end and text[at] in " \t\r\n":
            at += 1
        if at >= end:
            return
        value, at = _DECODER.raw_decode(text, at)
        yield value


_DECODER = json.JSONDecoder(parse_int=str, parse_float=str)


def _find_parts_problem(kind: str, boundary: str, body: bytes) -> str:
    """`body` has to be what RFC 2046 (section 5.1.1) and RFC 7578 write plainly."""
    mark = b"--" + boundary.encode("ascii", "replace")
    if body.count(mark) > MAX_PARTS:
        return f"it has more than {MAX_PARTS} parts"
    pieces = body.split(mark)
    if not _BOUNDARY.match(boundary) or len(pieces) < 2 or pieces[0]:
        return "its parts are not divided by a plain boundary"
    if pieces[-1] not in (b"--", b"--\r\n"):
        return "its parts have no plain end"
    for piece in pieces[1:-1]:
        head, blank, _ = piece.partition(b"\r\n\r\n")
        if not (blank and head.startswith(b"\r\n") and piece.endswith(b"\r\n")):
            return "a part is not divided plainly from the next"
        problem = _find_head_problem(kind, head[2:])
        if problem:
            return problem
    return ""


def _find_head_problem(kind: str, head: bytes) -> str:
    try:
        lines = head.decode().split("\r\n") if head else []
    except UnicodeDecodeError:
        return "the head of a part is not UTF-8"
    found: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        key = name.lower()
        if not colon or not _PART_HEADERS.match(key) or not _PLAIN_VALUE.match(value):
            return f"a part has the header {name[:60]!r}, which servers may read differently"
        if key in found:
            return f"a part has the header {name[:60]!r} twice"
        found[key] = value.strip(" ")
    if found.get("content-transfer-encoding", "binary").lower() not in _UNENCODED:
        return "a part is encoded; send its content as it is"
    disposition = _DISPOSITION.match(found.get("content-disposition", "inline"))
    named = disposition is not None and disposition[1] is not None
    encoded = disposition is not None and "=?" in disposition[0]
    if disposition is None or encoded or (kind == "multipart/form-data" and not named):
        return 'a part\'s name is not written as form-data; name="…"'
    return OVERRIDE if is_override(disposition[1] or "") else ""
