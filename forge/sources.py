"""Locations of API documents, and the protocol by which they are fetched."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol
from urllib.parse import SplitResult, urlsplit

from forge.addresses import find_locations
from forge.directory.service import PREFIX
from sandbox.wire.exchange import Headers
from sandbox.wire.policy import Origin, parse_origin

FILE = "file://"
_URL = re.compile(r"https?://[^\s<>\"'`\\]{1,2000}", re.IGNORECASE)
_HOST = re.compile(
    r"(?<![\w./@-])((?:\d{1,3}(?:\.\d{1,3}){3}|localhost|[a-z0-9][a-z0-9-]{0,62}"
    r"(?:\.[a-z0-9][a-z0-9-]{0,62}){0,8}))(:\d{2,5})?(?![\w@-])",
    re.IGNORECASE,
)
_LIKE_URL = re.compile(r"https?:/|https?//", re.IGNORECASE)
"""How URLs begin, and how they begin where a sign of `://` is missing."""
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
        if self.location.startswith(PREFIX):
            return None
        if self.location.startswith(FILE):
            rest = self.location.removeprefix(FILE).removeprefix("localhost")
            return Path(rest) if rest.startswith("/") else None
        named_as_path = self.location.startswith(("/", "./", "../", "~"))
        is_url = self.urls or "://" in self.location or _LIKE_URL.match(self.location)
        if not named_as_path and (is_url or not self.location):
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
    """A response to a request of discovery. `final_url` is its URL after redirects within the
    origin; a redirect to another origin is returned as the 3xx response that it is.
    """

    status: int
    headers: Headers
    body: bytes
    final_url: str


class Fetcher(Protocol):
    """A guarded GET, or POST where there is a body: addresses are checked, the size is capped,
    redirects are followed within the origin only, those of a POST not at all.
    """

    async def __call__(self, url: str, headers: Headers, body: bytes = b"") -> FetchResponse:
        """Raises `sandbox.errors.UpstreamUnreachable` or `ResponseTooLarge`."""
        ...


def choose_sources(
    task: str, explicit: str | None, registered: Iterable[ApiSource]
) -> tuple[ApiSource, ...]:
    """Return the sources that are named, in their order, each with its registered credential.

    An explicit one is the only one; without it they are those that the task names. A registered
    source that nobody named is none of them.
    """
    known = tuple(registered)
    named = (explicit,) if explicit else find_locations(task)
    chosen = (_attach_credential(ApiSource(location), known) for location in named)
    unique: dict[str, ApiSource] = {}
    for source in chosen:
        unique.setdefault(source.location.rstrip("/"), source)
    return tuple(unique.values())


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
