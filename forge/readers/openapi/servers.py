"""The absolute base URL of an operation."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote, urljoin, urlsplit, urlunsplit

from forge.openapi.context import Context
from forge.openapi.references import Node

_VARIABLE = re.compile(r"\{([^{}]*)\}")
_HOST = re.compile(r"[A-Za-z0-9_.-]+(:[0-9]{1,5})?\Z|\[[0-9A-Fa-f:.]+\](:[0-9]{1,5})?\Z")
# RFC 3986 section 3.3; an escape that is there stays.
PATH_SAFE = "/:@!$&'()*+,;=-._~%"


def base_url(context: Context, levels: list[Node], document_url: str | None) -> str:
    """The first usable server of the nearest level (operation, path, document) that names any.

    "" where none is usable; `document_url` is what relative URLs and a missing host relate to.
    """
    if context.dialect == "2.0":
        return _swagger(context.references.root, document_url)
    for level in levels:
        servers = level.get("servers").elements()
        if servers:
            urls = (absolute(_filled(server), document_url) for server in servers[:32])
            return next(filter(None, urls), "")
    return absolute("/", document_url)


def absolute(url: str, document_url: str | None = None) -> str:
    """An http(s) URL without user info, query or fragment, its path encoded; "" where it is not."""
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


def token_url(url: object, base: str) -> str:
    """The absolute http(s) URL of a token endpoint or discovery document, its query kept; "" where
    it is none.
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


def _filled(server: Node) -> str:
    url = server.get("url").value
    variables = server.get("variables")

    def value(match: re.Match[str]) -> str:
        default, choices = (variables.get(match[1]).get(key).value for key in ("default", "enum"))
        if default in (None, "") and isinstance(choices, list) and choices:
            default = choices[0]
        return match[0] if default is None else str(default)

    return _VARIABLE.sub(value, url) if isinstance(url, str) else ""


def _swagger(root: Node, document_url: str | None) -> str:
    own = urlsplit(document_url or "")
    host: Any = root.get("host").value or own.netloc
    schemes: Any = root.get("schemes").value
    named = [s for s in schemes if s in ("https", "http")] if isinstance(schemes, list) else []
    scheme = "https" if "https" in named else next(iter(named), own.scheme or "https")
    path = root.get("basePath").value
    path = path if isinstance(path, str) else ""
    return absolute(f"{scheme}://{host}/{path.lstrip('/')}") if host else ""
