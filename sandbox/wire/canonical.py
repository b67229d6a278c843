"""Checks that a request written by a sandbox has one reading only.

Servers parse paths, methods and hosts differently. A request that two of them could read in two
ways may do what the policy did not see, so it is refused before it is matched.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from urllib.parse import unquote, urlsplit

from sandbox.wire.bodies import OVERRIDE, find_body_problem
from sandbox.wire.exchange import Caps, WireRequest
from sandbox.wire.overrides import has_override, is_refused_header, names_other_method

MAX_DECODINGS = 4
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+\Z")
_NOT_PRINTABLE = re.compile(r"[^!-~]")
_NOT_IN_PATH = re.compile(r"[^!-~]|[\\?#]")
_UNSEEN = frozenset({"Zs", "Cf", "Mn"})
"""Unicode categories of spaces and of what cannot be seen."""
_CONTROL, _CONTROL_OR_TAB = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]"), re.compile(r"[\x00-\x1f\x7f]")
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_HTTP = frozenset({"http", "https"})
_SEPARATOR = re.compile(r"[/\\]")
_MALFORMED = re.compile(r"%(?![0-9A-Fa-f]{2})")
_WIDE_ESCAPE = re.compile(r"%u[0-9A-Fa-f]{4}")
"""An escape that only IIS knows."""
_ALIKE = str.maketrans(
    {
        **dict.fromkeys("\u2044\u2215\u29f8", "/"),
        **dict.fromkeys("\u2216\u29f5\u29f9", "\\"),
        **dict.fromkeys("\u3002\uff61", "."),
    }
)
"""What servers that write a narrower charset take for a slash, backslash or dot."""


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
        if not _TOKEN.match(name) or is_refused_header(name):
            return f"the header {name[:60]!r} is not the sandbox's to set"
        if len(value) > caps.header_bytes or _CONTROL.search(value):
            return f"the value of header {name[:60]!r} is not allowed"
    if request.url.partition(":")[0].lower() not in _HTTP:
        return ""
    return OVERRIDE if _names_method(request) else find_body_problem(request)


def is_plain_url(url: str) -> bool:
    """Whether a URL is printable ASCII that can be parsed."""
    try:
        urlsplit(url)
    except ValueError:
        return False
    return not _NOT_PRINTABLE.search(url)


@lru_cache(maxsize=256)
def is_canonical_path(path: str) -> bool:
    """Whether a path has one reading only.

    False for control characters, a backslash, `?`, `#`, malformed escapes and those of other text
    than UTF-8; and for a segment that becomes dots alone or a control character, however often it
    is percent-decoded (up to `MAX_DECODINGS`) and in whatever variant (fullwidth, with spaces) its
    characters are. An escaped slash stays inside its segment.
    """
    if _NOT_IN_PATH.search(path) or _MALFORMED.search(path):
        return False
    plain = "%" not in path and not _has_dots(path)
    return plain or all(map(_is_unambiguous, path.split("/")))


def _is_unambiguous(segment: str) -> bool:
    for _ in range(MAX_DECODINGS):
        if _CONTROL_OR_TAB.search(segment) or _WIDE_ESCAPE.search(segment) or _has_dots(segment):
            return False
        try:
            # Overlong forms (RFC 3629, section 3) are none, though old decoders take them.
            decoded = unquote(segment, errors="strict")
        except UnicodeDecodeError:
            return False
        if decoded == segment:
            return True
        segment = decoded
    return False


def _has_dots(text: str) -> bool:
    """Whether a part between slashes is nothing but dots, to who drops spaces and parameters."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text).translate(_ALIKE)
        text = "".join(letter for letter in text if unicodedata.category(letter) not in _UNSEEN)
    if "." not in text:
        return False
    parts = (part.partition(";")[0].replace(" ", "") for part in _SEPARATOR.split(text))
    return any(part and not part.strip(".") for part in parts)


def _names_method(request: WireRequest) -> bool:
    parts, safe = urlsplit(request.url), request.method in _SAFE_METHODS
    if parts.query and names_other_method(parts.query, safe):
        return True
    if ";" in parts.path and has_override(parts.path):
        return True
    # PHP's $_REQUEST may hold cookies as well.
    cookies = (value for name, value in request.headers if name.lower() == "cookie")
    return any(has_override(value.replace("; ", ";")) for value in cookies)
