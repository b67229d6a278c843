"""Base URLs of operations, and URLs of token endpoints."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote, urljoin, urlsplit, urlunsplit

from forge.readers.openapi.context import ReaderContext
from forge.readers.openapi.references import Node

_VARIABLE = re.compile(r"\{([^{}]*)\}")
_HOST = re.compile(r"[A-Za-z0-9_.-]+(:[0-9]{1,5})?\Z|\[[0-9A-Fa-f:.]+\](:[0-9]{1,5})?\Z")
# RFC 3986 section 3.3; an escape that is there stays.
PATH_SAFE = "/:@!$&'()*+,;=-._~%"


def find_base_url(context: ReaderContext, levels: list[Node], document_url: str | None) -> str:
    """Return the first usable server of the nearest level (operation, path, document) that has any.

    "" where none is usable; relative URLs and a missing host are resolved against `document_url`.
    """
    if context.dialect == "2.0":
        return _build_swagger_url(context.references.root, document_url)
    for level in levels:
        servers = level.get("servers").list_elements()
        if servers:
            urls = (normalize_url(_fill_variables(server), document_url) for server in servers[:32])
            return next(filter(None, urls), "")
    return normalize_url("/", document_url)


def normalize_url(url: str, document_url: str | None = None) -> str:
    """Return an http(s) URL without user info, query or fragment, its path encoded; "" where it is
    invalid.
    """
    try:
        parts = urlsplit(urljoin(document_url or "", url.strip()))
        host = parts.netloc if parts.netloc.isascii() else parts.netloc.encode("idna").decode()
        parts.port  # noqa: B018 - it raises where the port is out of range
    except (ValueError, UnicodeError):
        return ""
    if parts.scheme.lower() not in ("http", "https") or not _HOST.match(host):
        return ""
    path = quote(parts.path, safe=PATH_SAFE).rstrip("/")
    if "%7B" in path or any(segment in (".", "..") for segment in path.split("/")):
        return ""
    return urlunsplit((parts.scheme.lower(), host.lower(), path, "", ""))


def resolve_token_url(url: object, base: str) -> str:
    """Return the absolute http(s) URL of a token endpoint or discovery document with its query; ""
    where it is invalid.
    """
    if not isinstance(url, str) or not url.strip() or len(url) > 2000:
        return ""
    try:
        whole = urljoin(base.rstrip("/") + "/" if base else "", url.strip())
        parts = urlsplit(whole)
        parts.port  # noqa: B018 - it raises where the port is out of range
        host = parts.netloc if parts.netloc.isascii() else parts.netloc.encode("idna").decode()
    except (ValueError, UnicodeError):
        return ""
    if parts.scheme.lower() not in ("http", "https") or not _HOST.match(host):
        return ""
    path, query = quote(parts.path, safe=PATH_SAFE), quote(parts.query, safe=PATH_SAFE + "?")
    return urlunsplit((parts.scheme.lower(), host.lower(), path, query, ""))


def _fill_variables(server: Node) -> str:
    url = server.get("url").value
    variables = server.get("variables")

    def value(match: re.Match[str]) -> str:
        default, choices = (variables.get(match[1]).get(key).value for key in ("default", "enum"))
        if default in (None, "") and isinstance(choices, list) and choices:
            default = choices[0]
        return match[0] if default is None else str(default)

    return _VARIABLE.sub(value, url) if isinstance(url, str) else ""


def _build_swagger_url(root: Node, document_url: str | None) -> str:
    own = urlsplit(document_url or "")
    host: Any = root.get("host").value or own.netloc
    schemes: Any = root.get("schemes").value
    named = [s for s in schemes if s in ("https", "http")] if isinstance(schemes, list) else []
    scheme = "https" if "https" in named else next(iter(named), own.scheme or "https")
    path = root.get("basePath").value
    path = path if isinstance(path, str) else ""
    return normalize_url(f"{scheme}://{host}/{path.lstrip('/')}") if host else ""
