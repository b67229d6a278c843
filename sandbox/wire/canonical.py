"""Whether a request that a sandbox wrote can only mean what it says, to whoever reads it.

Servers differ in what they take for a path, a method or a host; where they do, somebody can be
made to do what the policy did not see. Such requests are refused before they are matched.
"""

from __future__ import annotations

import json
import re
from urllib.parse import parse_qsl, unquote, urlsplit

from sandbox.caps import Caps
from sandbox.exchange import WireRequest

MAX_DECODINGS = 4
MAX_CONTAINERS = 250_000
"""Of a JSON body that has the word; reading more would hold up everything else."""
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+\Z")
_REFUSED_HEADERS = re.compile(
    r"(?:host|connection|proxy-.*|te|trailer|transfer-encoding|upgrade|expect|via|forwarded"
    r"|content-length|accept-encoding|authorization|keep-alive|:.*"
    r"|x-http-method(?:-override)?|x-method-override|x-original-.*|x-rewrite-.*|x-override-.*"
    r"|x-http-.*override|x-host|x-forwarded(?:-.*)?|x-real-ip|x-client-ip|true-client-ip)\Z"
)
_METHOD_NAMES = frozenset(
    {"_method", "_http_method", "x-http-method", "x-http-method-override", "x-method-override"}
)
"""Parameters by which frameworks take another method than the request's."""
_FORM, _JSON = "application/x-www-form-urlencoded", "json"
_PART = re.compile(
    rb'name="?(?:_method|_http_method|x-http-method(?:-override)?|x-method-override)"?[;\r\n]',
    re.IGNORECASE,
)
_MAY_NAME = re.compile(rb"method|\\u00", re.IGNORECASE)
"""One of these is in every JSON text with such a member; most texts hold none."""
_NOT_PRINTABLE = re.compile(r"[^!-~]")
_NOT_IN_PATH = re.compile(r"[^!-~]|[\\?#]")
_CONTROL, _CONTROL_OR_TAB = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]"), re.compile(r"[\x00-\x1f\x7f]")
_SEPARATOR = re.compile(r"[/\\]")
_MALFORMED = re.compile(r"%(?![0-9A-Fa-f]{2})")
_OVERLONG = re.compile(r"%c[01]%[89ab][0-9a-f]|%e0%[89][0-9a-f]", re.IGNORECASE)
"""UTF-8 that is none, and that old decoders take for ASCII."""


def problem_of(request: WireRequest, caps: Caps) -> str:
    """What is wrong with a request, in words; "" where nothing is."""
    if len(request.url) > caps.url_bytes or len(request.body) > caps.request_bytes:
        return "the request is larger than the caps allow"
    if not is_plain_url(request.url):
        return "the URL is none, or holds a character that must be percent-encoded"
    if not _TOKEN.match(request.method):
        return "the method is not a token"
    if len(request.headers) > caps.headers:
        return "too many headers"
    for name, value in request.headers:
        # Gateway interfaces make one name of `-` and `_`.
        if not _TOKEN.match(name) or _REFUSED_HEADERS.match(name.lower().replace("_", "-")):
            return f"the header {name[:60]!r} is not the sandbox's to set"
        if len(value) > caps.header_bytes or _CONTROL.search(value):
            return f"the value of header {name[:60]!r} is not allowed"
    return "it may name another method in a parameter" if _names_method(request) else ""


def is_plain_url(url: str) -> bool:
    """Whether it is printable ASCII that can be taken apart."""
    try:
        urlsplit(url)
    except ValueError:
        return False
    return not _NOT_PRINTABLE.search(url)


def canonical(path: str) -> bool:
    """Whether a path can only mean what it says.

    False for control characters, a back slash, a fragment or query mark; and for what becomes, how
    often it may be decoded and whatever separates it, a `.` or `..` segment or a control character.
    An escaped slash stays inside its segment.
    """
    if _NOT_IN_PATH.search(path):
        return False
    if _MALFORMED.search(path) or _OVERLONG.search(path):
        return False
    return all(map(_means_itself, path.split("/")))


def _means_itself(segment: str) -> bool:
    for _ in range(MAX_DECODINGS):
        if _CONTROL_OR_TAB.search(segment):
            return False
        parts = _SEPARATOR.split(segment)
        if any(part.partition(";")[0].strip(" ") in (".", "..") for part in parts):
            return False
        decoded = unquote(segment)
        if decoded == segment:
            return True
        segment = decoded
    return False


def _names_method(request: WireRequest) -> bool:
    query = urlsplit(request.url).query
    kind = (request.header("content-type") or "").partition(";")[0].strip().lower()
    named = _names(query)
    if kind == _FORM:
        named |= _names(request.body.decode("latin-1"))
    elif kind.endswith(_JSON) and _MAY_NAME.search(request.body):
        named |= _members(request.body)
    return bool(named & _METHOD_NAMES) or (
        kind.startswith("multipart/") and _PART.search(request.body) is not None
    )


def _names(query: str) -> set[str]:
    if "ethod" not in unquote(query).lower():
        return set()
    return {name.strip().lower() for name, _ in parse_qsl(query, keep_blank_values=True)}


def _members(body: bytes) -> set[str]:
    if body.count(b"{") + body.count(b"[") > MAX_CONTAINERS:
        return set(_METHOD_NAMES)
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return set()
    return {name.lower() for name in value} if isinstance(value, dict) else set()
