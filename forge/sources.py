"""Locations of API documents, and the protocol by which they are fetched."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol
from urllib.parse import SplitResult, urlsplit

from sandbox.wire.exchange import Headers
from sandbox.wire.policy import Origin, parse_origin

MAX_NAMED = 8
FILE = "file://"
_WORD = re.compile(r"[a-z0-9]{3,40}")
_URL = re.compile(r"https?://[^\s<>\"'`\\]{1,2000}", re.IGNORECASE)
_HOST = re.compile(
    r"(?<![\w./@-])((?:\d{1,3}(?:\.\d{1,3}){3}|localhost|[a-z0-9][a-z0-9-]{0,62}"
    r"(?:\.[a-z0-9][a-z0-9-]{0,62}){0,8}))(:\d{2,5})?(?![\w@-])",
    re.IGNORECASE,
)
_FILE_ENDINGS = frozenset(
    "csv doc docx gz html js json md pdf png py sh toml txt xml yaml yml".split()
)


@dataclass(frozen=True)
class ApiSource:
    """A location to search: a document's file path or URL, an API's base URL, or a bare host.

    `headers` carry the credential in clear and go to the origin of `location` only; they are kept
    out of the repr. `title` is what the user called it.
    """

    location: str
    headers: Headers = field(default=(), repr=False)
    title: str = ""

    @property
    def path(self) -> Path | None:
        """The path of a local file, or None where `location` is a URL or a host."""
        if self.location.startswith(FILE):
            rest = self.location.removeprefix(FILE).removeprefix("localhost")
            return Path(rest) if rest.startswith("/") else None
        named_as_path = self.location.startswith(("/", "./", "../", "~"))
        if not named_as_path and (self.urls or "://" in self.location or not self.location):
            return None
        return Path(self.location).expanduser()

    @property
    def urls(self) -> tuple[str, ...]:
        """The base URLs to try in turn; two for a host that was written without a scheme.

        Plain http comes first for this machine. Elsewhere it comes second, and not at all where
        that would send a credential in clear.
        """
        if _URL.fullmatch(self.location):
            return (self.location,) if parse_origin(self.location) else ()
        host = _HOST.match(self.location)
        if not host or parse_origin(f"http://{self.location}") is None or not _is_host(host):
            return ()
        plain, secure = f"http://{self.location}", f"https://{self.location}"
        if is_loopback(urlsplit(plain)):
            return plain, secure
        return (secure,) if self.headers else (secure, plain)

    @property
    def origins(self) -> frozenset[Origin]:
        return frozenset(filter(None, map(parse_origin, self.urls)))


@dataclass(frozen=True)
class FetchResponse:
    """A response to a GET. `final_url` is its URL after redirects within the origin; a redirect to
    another origin is returned as the 3xx response that it is.
    """

    status: int
    headers: Headers
    body: bytes
    final_url: str


class Fetcher(Protocol):
    """A guarded GET: addresses are checked, the size is capped, redirects are followed within the
    origin only.
    """

    async def __call__(self, url: str, headers: Headers) -> FetchResponse:
        """Raises `sandbox.errors.UpstreamUnreachable` or `ResponseTooLarge`."""
        ...


def rank_sources(
    task: str, explicit: str | None, registered: Iterable[ApiSource]
) -> tuple[ApiSource, ...]:
    """Return the sources to search for a task, likeliest first, each with its registered
    credential.

    The explicit one comes first, then those that the task names, then the registered ones, of these
    the ones that share the most words with the task first.
    """
    known = tuple(registered)
    named = [ApiSource(explicit)] if explicit else []
    named += [ApiSource(location) for location in find_locations(task)]
    ordered = [_attach_credential(source, known) for source in named]
    ordered += sorted(known, key=lambda source: -_count_shared_words(task, source))
    unique: dict[str, ApiSource] = {}
    for source in ordered:
        unique.setdefault(source.location.rstrip("/"), source)
    return tuple(unique.values())


def find_locations(task: str) -> tuple[str, ...]:
    """Return the URLs and hosts in a text, in its order, at most `MAX_NAMED`."""
    text = task[:20_000]
    found = [(match.start(), match.group().rstrip(".,;:!?)]}")) for match in _URL.finditer(text)]
    text = _URL.sub(lambda match: " " * len(match.group()), text)
    found += [(match.start(), match.group()) for match in _HOST.finditer(text) if _is_host(match)]
    return tuple(dict.fromkeys(location for _, location in sorted(found)))[:MAX_NAMED]


def is_loopback(url: SplitResult) -> bool:
    """Whether a URL's host is a loopback address, `localhost` or a name below it (RFC 6761 section
    6.3).
    """
    host = url.hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _is_host(match: re.Match[str]) -> bool:
    """Whether a word is a host: an address, localhost, a name with a port, or a dotted name whose
    last label can be a domain and not a file's ending.
    """
    name, port = match.group(1).lower(), match.group(2)
    try:
        return bool(ipaddress.ip_address(name))
    except ValueError:
        last = name.rpartition(".")[2]
        dotted = "." in name and last.isalpha() and len(last) > 1 and last not in _FILE_ENDINGS
        return name == "localhost" or dotted or (port is not None and not name.isdigit())


def _attach_credential(source: ApiSource, known: tuple[ApiSource, ...]) -> ApiSource:
    for other in known:
        if source.location == other.location:
            return other
        if source.origins & other.origins:
            if "/" not in source.location:
                return other
            # Written without a scheme it has two URLs; the credential belongs to one origin.
            fitting = (url for url in source.urls if parse_origin(url) in other.origins)
            return replace(other, location=next(fitting, other.location))
    return source


def _count_shared_words(task: str, source: ApiSource) -> int:
    words = set(_WORD.findall(task[:20_000].lower()))
    own = set(_WORD.findall(f"{source.title} {source.location}".lower()))
    return len(words & (own - {"http", "https", "www", "com", "org", "net", "api", "json", "yaml"}))
