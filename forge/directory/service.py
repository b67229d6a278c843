"""The directory of public APIs: its services, and the index that comes with this package.

Every entry was written by strangers. It says where something may be, and grants nothing.
"""

from __future__ import annotations

import ipaddress
import json
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Literal
from urllib.parse import urlsplit

from forge.errors import DirectoryUnreadable
from forge.text import redact_instructions, sanitize_line
from sandbox.wire.policy import parse_origin

PREFIX = "directory:"
"""How a source begins that is an entry of the directory."""
SHIPPED = "services.gz"
FORMAT = 1
MAX_INDEX = 32 * 1024 * 1024
MAX_SUMMARY = 160
COLUMNS = 11
Field = Literal["name", "title", "topic"]
FIELDS: tuple[Field, ...] = ("name", "title", "topic")
Scheme = Literal["https", "http", ""]
_IDENTITY = re.compile(
    r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}(?:/[A-Za-z0-9_-][A-Za-z0-9._&() -]{0,149})?\Z"
)
_LOCAL = ("local", "localhost", "internal", "intranet", "lan", "home", "corp", "test", "invalid")


@dataclass(frozen=True)
class Service:
    """An entry: `server` is the base URL that its description names first, `origin` where that was
    published, `updated` the newest date that it gives of itself, "" for none. `size` is in bytes.
    """

    identity: str
    provider: str
    title: str
    summary: str
    origin: str
    server: str
    operations: int
    size: int
    updated: str
    categories: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    """Further hosts that its description names as servers."""

    @property
    def location(self) -> str:
        """The source of an order that names the entry."""
        return f"{PREFIX}{self.identity}"

    @property
    def scheme(self) -> Scheme:
        """That of the server; "" where the description names none."""
        found = parse_origin(self.server)
        return "" if found is None else "https" if found.scheme == "https" else "http"

    @property
    def host(self) -> str:
        """`host:port` of the server; "" where the description names none."""
        return find_host(self.server)

    @property
    def is_local(self) -> bool:
        """Whether the server is no public one: whoever runs it knows where it is."""
        return is_local_host(urlsplit(self.server).hostname or "") or self.provider.endswith(
            ".local"
        )

    @property
    def is_likely(self) -> bool:
        """Whether the server's name is the provider's, or below it."""
        names = (urlsplit(self.server).hostname or "", *self.others)
        return all(is_related(name, self.provider) for name in names)


@dataclass(frozen=True)
class Package:
    """The npm package that has the descriptions: its tarball is known by `integrity` (sha512, as
    npm writes it), and a description lies in it at `MEMBER`.
    """

    name: str
    version: str
    integrity: str


@dataclass(frozen=True)
class Directory:
    """Services by number, and the postings of their words by stem, parsed when they are asked
    for.
    """

    package: Package
    rows: tuple[str, ...]
    postings: Mapping[str, str]
    numbers: Mapping[str, int] = field(repr=False)

    def get(self, identity: str) -> Service | None:
        """The service of that identity."""
        number = self.numbers.get(identity)
        return None if number is None else self.read_row(number)

    def read_row(self, number: int) -> Service:
        return parse_row(self.rows[number])

    def count_operations(self, number: int) -> int:
        """The operations of a service, without reading the rest of its row."""
        return int(self.rows[number].split("\t", 7)[6])


def parse_row(row: str) -> Service:
    """A row of an index. Raises DirectoryUnreadable."""
    cells = row.split("\t")
    if len(cells) != COLUMNS or not is_identity(cells[0]):
        raise DirectoryUnreadable(f"the row {row[:60]!r} is no service")
    identity, provider, title, summary, origin, server, *rest = cells
    operations, size, updated, categories, others = rest
    return Service(
        identity,
        provider,
        redact_instructions(sanitize_line(title, 80)) or provider,
        redact_instructions(sanitize_line(summary, MAX_SUMMARY)),
        origin,
        server,
        int(operations),
        int(size),
        updated,
        tuple(filter(None, categories.split(","))),
        tuple(filter(None, others.split(","))),
    )


def format_row(service: Service) -> str:
    """The row of a service, which `parse_row` reads."""
    cells = (
        *(service.identity, service.provider, service.title, service.summary, service.origin),
        *(service.server, str(service.operations), str(service.size), service.updated),
        *(",".join(service.categories), ",".join(service.others)),
    )
    return "\t".join(" ".join(cell.split()) for cell in cells)


def parse_index(content: bytes) -> Directory:
    """The directory in an index (gzip). Raises DirectoryUnreadable."""
    try:
        inflate = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
        text = inflate.decompress(content, MAX_INDEX)
        if not inflate.eof:
            raise DirectoryUnreadable(f"it is cut, or has more than {MAX_INDEX} bytes")
        head, _, rest = text.decode().partition("\n")
        about = json.loads(head)
        if about["format"] != FORMAT:
            raise DirectoryUnreadable(f"its format is {about['format']!r}, not {FORMAT}")
        services, _, words = rest.partition("\n\n")
        package = Package(about["package"], about["version"], about["integrity"])
    except (zlib.error, ValueError, KeyError, TypeError) as error:
        raise DirectoryUnreadable(str(error)) from error
    rows = tuple(services.split("\n")) if services else ()
    postings = dict(line.split("\t", 1) for line in words.split("\n") if "\t" in line)
    numbers = {row.partition("\t")[0]: number for number, row in enumerate(rows)}
    return Directory(package, rows, postings, numbers)


@cache
def load_directory() -> Directory:
    """The index that comes with this package; read once a process."""
    return parse_index(resources.files("forge.directory").joinpath(SHIPPED).read_bytes())


def is_identity(text: str) -> bool:
    """Whether a text can be an entry's identity: names, of which none is `..` or hidden."""
    return bool(_IDENTITY.match(text)) and ".." not in text


def find_host(url: str) -> str:
    """`host:port` of an http(s) URL; "" of anything else."""
    origin = parse_origin(url)
    return f"{origin.host}:{origin.port}" if origin else ""


def is_local_host(name: str) -> bool:
    """Whether a host is none of the public network's: an address, of any kind, or a name without a
    public domain.
    """
    plain = name.strip("[]").rstrip(".").lower()
    try:
        return bool(ipaddress.ip_address(plain)) or True
    except ValueError:
        last = plain.rpartition(".")[2]
        return "." not in plain or last in _LOCAL or last.isdecimal() or last.startswith("0x")


def is_related(name: str, provider: str) -> bool:
    """Whether a host is the provider's, or below it."""
    own = provider.lower().removeprefix("www.")
    return bool(own) and f".{name.lower()}".endswith(f".{own}")
