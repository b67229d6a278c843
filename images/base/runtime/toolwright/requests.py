"""A request as it goes over the wire, credentials not included."""

from __future__ import annotations

import re
from functools import lru_cache

from .errors import ArgumentInvalid
from .parameters import (
    expand_path,
    expand_template_query,
    header_text,
    query_pairs,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+\Z")
_ABSOLUTE = re.compile(r"(https?://[^/?#]+)(.*)\Z", re.IGNORECASE | re.DOTALL)
# What frames a message belongs to the client that sends it (RFC 9112, sections 6 and 9).
FRAMING = frozenset(
    {
        "host",
        "content-length",
        "transfer-encoding",
        "connection",
        "keep-alive",
        "te",
        "trailer",
        "upgrade",
        "expect",
        "accept-encoding",
    }
)


class WireRequest:
    """`url` is absolute and encoded; header names are lower-case."""

    __slots__ = ("body", "headers", "method", "url")

    def __init__(
        self, method: str, url: str, headers: list[tuple[str, str]], body: bytes = b""
    ) -> None:
        self.method, self.url, self.headers, self.body = method, url, headers, body


def build(
    base_url: str,
    method: str,
    template: str,
    *,
    path: Mapping[str, Any],
    query: Mapping[str, Any],
    header: Mapping[str, Any],
    cookie: Mapping[str, Any],
    body: tuple[bytes, str] | None,
) -> WireRequest:
    """The request that a template and values make. Raises ArgumentInvalid for a hostile value.

    Headers that frame the message are left out, whatever the values say.
    """
    if not _TOKEN.match(method):
        raise TypeError(f"{method!r} is not an HTTP method")
    headers = _headers(header)
    if body is not None:
        headers["content-type"] = body[1]
    cookies = [pair for name, value in cookie.items() for pair in query_pairs(name, value)]
    if cookies:
        headers["cookie"] = "; ".join(filter(None, [headers.get("cookie"), *cookies]))
    url = build_url(base_url, template, path, query)
    return WireRequest(method.upper(), url, list(headers.items()), body[0] if body else b"")


def build_url(
    base_url: str, template: str, path: Mapping[str, Any], query: Mapping[str, Any]
) -> str:
    """Base URL and template joined by one slash; a template's own query comes first."""
    origin, route, own = _parts(base_url, template)
    pairs = [expand_template_query(own, path)] if own else []
    for name, value in query.items():
        pairs += query_pairs(name, value)
    joined = f"{origin}/{expand_path(route, path)}"
    return f"{joined}?{'&'.join(pairs)}" if pairs else joined


@lru_cache(maxsize=256)
def _parts(base_url: str, template: str) -> tuple[str, str, str]:
    """A template's origin, its path without the first slashes, and its query."""
    absolute = _ABSOLUTE.match(template)
    origin, rest = absolute.groups() if absolute else (base_url.rstrip("/"), template)
    route, _, own = rest.partition("#")[0].partition("?")
    return origin, route.lstrip("/"), own


def _headers(values: Mapping[str, Any]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for name, value in values.items():
        key, text = name.lower(), header_text(name, value)
        if not _TOKEN.match(name):
            raise ArgumentInvalid(f"/{name[:60]}", "is not the name of a header")
        if text is not None and key not in FRAMING:
            headers[key] = text
    return headers
