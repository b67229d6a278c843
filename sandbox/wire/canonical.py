"""Checks that a request written by a sandbox has one reading only.

Servers parse paths, methods and hosts differently. A request that two of them could read in two
ways may do what the policy did not see, so it is refused before it is matched.
"""

from __future__ import annotations

import json
import re
from urllib.parse import parse_qsl, unquote, urlsplit

from sandbox.wire.exchange import Caps, WireRequest

MAX_DECODINGS = 4
MAX_CONTAINERS = 250_000
"""Brackets in a JSON body that is parsed; more would hold up the event loop."""
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
"""Parameters by which frameworks override the request's method."""
_FORM, _JSON = "application/x-www-form-urlencoded", "json"
_PART = re.compile(
    rb'name="?(?:_method|_http_method|x-http-method(?:-override)?|x-method-override)"?[;\r\n]',
    re.IGNORECASE,
)
_MAY_NAME = re.compile(rb"method|\\u00", re.IGNORECASE)
"""Matches every JSON text that may have such a member; most texts are not parsed at all."""
_NOT_PRINTABLE = re.compile(r"[^!-~]")
_NOT_IN_PATH = re.compile(r"[^!-~]|[\\?#]")
_CONTROL, _CONTROL_OR_TAB = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]"), re.compile(r"[\x00-\x1f\x7f]")
_SEPARATOR = re.compile(r"[/\\]")
_MALFORMED = re.compile(r"%(?![0-9A-Fa-f]{2})")
_OVERLONG = re.compile(r"%c[01]%[89ab][0-9a-f]|%e0%[89][0-9a-f]", re.IGNORECASE)
"""Overlong UTF-8 (RFC 3629 section 3), which old decoders take for ASCII."""


def find_request_problem(request: WireRequest, caps: Caps) -> str:
    """The reason to refuse a request, in words; "" if there is none."""
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
    return "it may name another method in a parameter" if _overrides_method(request) else ""


def is_plain_url(url: str) -> bool:
    """Whether a URL is printable ASCII that can be parsed."""
    try:
        urlsplit(url)
    except ValueError:
        return False
    return not _NOT_PRINTABLE.search(url)


def is_canonical_path(path: str) -> bool:
    """Whether a path has one reading only.

    False for control characters, a backslash, `?`, `#` and malformed escapes; and for a segment
    that becomes `.`, `..` or a control character, however often it is percent-decoded (up to
    `MAX_DECODINGS`). An escaped slash stays inside its segment.
    """
    if _NOT_IN_PATH.search(path):
        return False
    if _MALFORMED.search(path) or _OVERLONG.search(path):
        return False
    return all(map(_is_unambiguous, path.split("/")))


def _is_unambiguous(segment: str) -> bool:
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


def _overrides_method(request: WireRequest) -> bool:
    query = urlsplit(request.url).query
    kind = (request.get_header("content-type") or "").partition(";")[0].strip().lower()
    named = _parse_names(query)
    if kind == _FORM:
        named |= _parse_names(request.body.decode("latin-1"))
    elif kind.endswith(_JSON) and _MAY_NAME.search(request.body):
        named |= _parse_member_names(request.body)
    return bool(named & _METHOD_NAMES) or (
        kind.startswith("multipart/") and _PART.search(request.body) is not None
    )


def _parse_names(query: str) -> set[str]:
    if "ethod" not in unquote(query).lower():
        return set()
    return {name.strip().lower() for name, _ in parse_qsl(query, keep_blank_values=True)}


def _parse_member_names(body: bytes) -> set[str]:
    if body.count(b"{") + body.count(b"[") > MAX_CONTAINERS:
        return set(_METHOD_NAMES)
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return set()
    return {name.lower() for name in value} if isinstance(value, dict) else set()
