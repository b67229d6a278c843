"""Pages of documentation as text, with their links, and detection of documented requests."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from importlib import import_module
from itertools import islice
from urllib.parse import urldefrag, urljoin

from forge.text import sanitize_line
from sandbox.wire.policy import parse_origin

MAX_PAGE_BYTES = 400_000
MAX_LINE = 4_000
MAX_LINKS = 400
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")
_METHOD = rf"\b(?:{'|'.join(METHODS)})\b"
_REQUEST = re.compile(
    rf"{_METHOD}[^\n/]{{0,40}}(?:https?://[^\s/]{{1,200}})?/[A-Za-z0-9{{:<]"
    rf"|/[\w{{}}:<>/.-]{{2,100}}[^\n\w]{{1,20}}{_METHOD}|^[ \t>$`]{{0,12}}curl[ \t]"
    rf"|http:(?:get|post|put|patch|delete)::|{_METHOD}[^\n]{{0,40}}\n[^\n/]{{0,40}}"
    rf"(?:https?://[^\s/]{{1,200}})?/[\w{{]",
    re.MULTILINE,
)
_HTML = re.compile(
    r"<(?:!doctype html|html|head|body|main|article|h1|div|p|table)\b", re.IGNORECASE
)
_MARKED = re.compile(r"[\x00-\x08\x0e-\x1f]")
_API_WORDS = re.compile(
    r"api|doc|reference|endpoint|auth|rate|limit|error|resource|rest|guide|pagin|webhook", re.I
)
_LINK = re.compile(r"\[([^\[\]\n]{0,200})\]\(([^()\s]{1,500})\)")
_NO_PAGE = re.compile(r"\.(?:png|jpe?g|gif|svg|css|js|zip|gz|pdf|ico|mp4|woff2?|xml)\Z", re.I)


@dataclass(frozen=True)
class Page:
    """One page. `location` is its URL or file, `content` its bytes, `text` its visible text:
    Markdown for HTML, anything else as written. `links` are URLs of the same origin that look like
    documentation.
    """

    location: str
    content: bytes = field(repr=False)
    text: str = field(repr=False)
    title: str = ""
    links: tuple[str, ...] = field(default=(), repr=False)

    @property
    def digest(self) -> str:
        """The sha256 of the bytes, in hex."""
        return hashlib.sha256(self.content).hexdigest()

    @property
    def documents_requests(self) -> bool:
        """Whether the text shows a request."""
        return has_request(self.text)


def has_request(text: str) -> bool:
    """Whether a text has a method next to a path, or a curl command."""
    return _REQUEST.search(text) is not None


def parse_page(location: str, content: bytes) -> Page | None:
    """Parse a page from the bytes of a response or file; None where they are no text for people."""
    text = content[:MAX_PAGE_BYTES].decode("utf-8-sig", "replace")
    if not text.strip() or text.lstrip()[:1] in ("{", "[") or _MARKED.search(text[:2000]):
        return None
    if text.lstrip()[:1] == "<" or _HTML.search(text[:2000]):
        if text.lstrip().startswith("<?xml") and not _HTML.search(text[:2000]):
            return None
        # Its library takes a quarter of a second to load, which most processes never need.
        read = import_module("forge.readers.html").read_markup(text)
        links = _select_api_links(location, read.links)
        return Page(
            location, content, sanitize_lines(read.text), sanitize_line(read.title, 200), links
        )
    named = tuple((found[2], found[1]) for found in islice(_LINK.finditer(text), MAX_LINKS))
    links = _select_api_links(location, named)
    return Page(location, content, sanitize_lines(text), _find_first_heading(text), links)


def sanitize_lines(text: str) -> str:
    """Sanitize a text line by line; line breaks and indentation are kept."""
    lines = []
    for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        body = line.expandtabs(4)
        indent = min(len(body) - len(body.lstrip(" ")), 40)
        lines.append((" " * indent + sanitize_line(body, MAX_LINE)).rstrip())
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n")


def _find_first_heading(text: str) -> str:
    first = next((line for line in text.split("\n")[:50] if line.strip()), "")
    return sanitize_line(first.strip("#=*- \t"), 200)


def _select_api_links(location: str, links: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    """Return the URLs of the same origin that look like an API's documentation, each once."""
    here = parse_origin(location)
    found: dict[str, None] = {}
    for target, words in links if here else ():
        url = _resolve_url(location, target)
        if url and parse_origin(url) == here and url != urldefrag(location).url:
            if _API_WORDS.search(f"{url} {words}") and not _NO_PAGE.search(url.partition("?")[0]):
                found[url] = None
    return tuple(found)


def _resolve_url(location: str, target: str) -> str:
    try:
        url = urldefrag(urljoin(location, target.strip())).url
    except ValueError:
        return ""
    return url if url.isascii() and url.isprintable() and " " not in url and len(url) < 2000 else ""
