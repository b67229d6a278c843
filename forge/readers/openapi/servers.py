"""Base URLs of operations, and URLs of token endpoints."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from urllib.parse import quote, urljoin, urlsplit, urlunsplit

from forge.readers.openapi.context import ReaderContext
from forge.readers.openapi.references import Node
from forge.text import sanitize_line
from sandbox.wire.policy import parse_origin

_EXAMPLES = (".example.com", ".example.org", ".example.net", "example.com", "example.org")
_FILE_HOSTS = frozenset(
    {
        "bitbucket.org",
        "cdn.jsdelivr.net",
        "gist.githubusercontent.com",
        "github.com",
        "gitlab.com",
        "raw.githubusercontent.com",
        "unpkg.com",
    }
)
"""Hosts from which descriptions of other people's APIs are read."""
_BARE_HOST = re.compile(
    r"(?!v\d)(?:localhost|(?:\d{1,3}\.){3}\d{1,3}|(?:[A-Za-z0-9-]+\.)+[A-Za-z]{2,})"
    r"(?::\d{1,5})?(?=[/?#]|\Z)"
)
_FILE_NAME = re.compile(
    r"[^/]*\.(?:as[hmp]x|asp|cgi|dll|do|html?|json|jspx?|php\d?|pl|py|svc|xml|ya?ml)(?:[/?#]|\Z)",
    re.IGNORECASE,
)
"""A relative URL that begins with the name of a file or program, which reads like a host's."""
_TEMPLATED_HOST = re.compile(r"https?://[^/?#]*\{[^/?#]*(/[^?#{}]*)?\Z")
_SCHEMES = ("https", "http")
_VARIABLE = re.compile(r"\{([^{}]*)\}")
_HOST = re.compile(r"[A-Za-z0-9_.-]+(:[0-9]{1,5})?\Z|\[[0-9A-Fa-f:.]+\](:[0-9]{1,5})?\Z")
# RFC 3986 section 3.3; an escape that is there stays.
PATH_SAFE = "/:@!$&'()*+,;=-._~%"


def find_base_url(context: ReaderContext, levels: list[Node], document_url: str | None) -> str:
    """Return the server of the nearest level (operation, path, document) that has any: the one at
    the origin that served the document, else the first usable one.

    A server that can only be meant for its author's machine, or for nobody, is taken to be the one
    that served the document. "" where none is usable; relative URLs and a missing host are resolved
    against `document_url`.
    """
    if context.dialect == "2.0":
        return _add_prefix(_build_swagger_url(context, document_url), context, document_url)
    for level in levels:
        servers = level.get("servers").list_elements()
        if servers:
            # What an operation or a path names for itself is meant for it.
            whole = level is levels[-1]
            found = _choose_server(context, level.get("servers"), servers[:32], document_url, whole)
            if not found and not whole:
                # Where the document was is unknown; its own server is the next best place.
                beside = find_base_url(context, levels[-1:], document_url)
                found = _choose_server(context, level.get("servers"), servers[:32], beside, False)
            return _add_prefix(found, context, document_url)
    return _add_prefix(normalize_url("/", document_url), context, document_url)


def _choose_server(
    context: ReaderContext, at: Node, servers: list[Node], document_url: str | None, whole: bool
) -> str:
    written = [_read_server_url(context, server, document_url) for server in servers]
    usable = [url for url in (normalize_url(each, document_url) for each in written) if url]
    here = parse_origin(document_url or "")
    if here is None or not context.served or not may_serve_api(document_url or ""):
        return next(iter(usable), "")
    own = [url for url in usable if parse_origin(url) == here]
    if not whole and usable:
        return (own or usable)[0]
    meant = own or [url for url in usable if not is_placeholder(url, document_url or "")]
    if meant:
        return meant[0]
    paths = [urlsplit(url).path for url in usable] or list(map(_find_path_behind_host, written))
    moved = next((normalize_url(path or "/", document_url) for path in paths), "")
    if moved:
        named = sanitize_line(usable[0] if usable else written[0], 200)
        reason = f"{named!r} is nobody's address; the server that served the document is taken"
        context.problems.add(at.to_problem(reason))
    return moved


def is_placeholder(url: str, document_url: str) -> bool:
    """Whether a server's URL is its author's own machine, or an example's, in a document that
    another server served.
    """
    host = (urlsplit(url).hostname or "").lower()
    example = host.endswith(_EXAMPLES) or host in _EXAMPLES
    mine = _is_own_machine(host)
    return (mine or example) and parse_origin(url) != parse_origin(document_url)


def _is_own_machine(host: str) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        own = host == "localhost" or host.endswith(".localhost")
        return own or host == "host.docker.internal"
    return address.is_loopback or address.is_unspecified


def may_serve_api(url: str) -> bool:
    """Whether the host of a document's URL may be an API's, and keeps no files for everybody."""
    return (urlsplit(url).hostname or "").lower() not in _FILE_HOSTS


def _find_path_behind_host(url: str) -> str:
    """The path of a URL whose host has variables without a value; "" for any other."""
    found = _TEMPLATED_HOST.match(url)
    return (found.group(1) or "/") if found else ""


def _add_prefix(url: str, context: ReaderContext, document_url: str | None) -> str:
    """The URL below the path at which the API was found to answer, where the document has none."""
    own = parse_origin(url) == parse_origin(document_url or "") and not urlsplit(url).path
    return f"{url}{context.prefix}" if url and own and context.prefix else url


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


def _read_server_url(context: ReaderContext, server: Node, document_url: str | None) -> str:
    """The URL of a server, with a scheme where it names a host and none.

    An empty one is the host's root, as where no server is named: resolved by RFC 3986 it would be
    the document itself, below which no API is (plumber for R writes it).
    """
    url = _fill_variables(server).strip() or "/"
    whole = _add_scheme(url, document_url)
    if whole != url and not url.startswith("//"):
        reason = f"{sanitize_line(url, 200)!r} has no scheme; {whole.partition(':')[0]} is taken"
        context.problems.add(server.to_problem(reason))
    return whole


def _add_scheme(url: str, document_url: str | None) -> str:
    if url.startswith("//"):
        return url if document_url else f"https:{url}"
    if not _BARE_HOST.match(url) or _FILE_NAME.match(url):
        return url
    whole = f"https://{url}"
    return f"http://{url}" if _is_own_machine(urlsplit(whole).hostname or "") else whole


def _fill_variables(server: Node) -> str:
    url = server.read("url")
    variables = server.get("variables")

    def value(match: re.Match[str]) -> str:
        default, choices = (variables.get(match[1]).read(key) for key in ("default", "enum"))
        if default in (None, "") and isinstance(choices, list) and choices:
            default = choices[0]
        return match[0] if default is None else str(default)

    return _VARIABLE.sub(value, url) if isinstance(url, str) else ""


@dataclass(frozen=True)
class _Place:
    """What Swagger 2.0 says of a server in three fields; `schemes` in the order written."""

    host: str
    schemes: tuple[str, ...]
    path: str


def _read_place(context: ReaderContext) -> _Place:
    """Read `host`, `schemes` and `basePath`. A whole URL in one of the fields is also taken."""
    root = context.references.root
    host, path, schemes = (root.read(key) for key in ("host", "basePath", "schemes"))
    host = host.strip().rstrip("/") if isinstance(host, str) else ""
    path = path.strip() if isinstance(path, str) else ""
    named = tuple(s for s in schemes if s in _SCHEMES) if isinstance(schemes, list) else ()
    for key, written in (("basePath", path), ("host", host)):
        whole = urlsplit(normalize_url(written) if "://" in written else "")
        if whole.netloc:
            reason = f"{sanitize_line(written, 200)!r} is a whole URL; it is taken as the server's"
            context.problems.add(root.get(key).to_problem(reason))
            below = f"/{path.lstrip('/')}" if key == "host" else ""
            return _Place(whole.netloc, (whole.scheme,), whole.path + below)
    return _Place(host, named, path)


def _build_swagger_url(context: ReaderContext, document_url: str | None) -> str:
    said, own = _read_place(context), urlsplit(document_url or "")
    host, named = said.host or own.netloc, said.schemes
    scheme = "https" if "https" in named else next(iter(named), own.scheme or "https")
    served = context.served and bool(own.netloc) and may_serve_api(document_url or "")
    if served and host != own.netloc and is_placeholder(f"{scheme}://{host}", document_url or ""):
        reason = f"{sanitize_line(host, 100)!r} is nobody's address; the server that served the "
        at = context.references.root.get("host")
        context.problems.add(at.to_problem(f"{reason}document is taken"))
        host, named = own.netloc, (own.scheme,)
    if served and host == own.netloc and (":" in host or own.scheme in named or not said.host):
        # One port speaks one scheme, which is the one by which the document came.
        scheme = own.scheme
    return normalize_url(f"{scheme}://{host}/{said.path.lstrip('/')}") if host else ""
