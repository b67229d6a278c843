"""A web site on loopback that answers what a test tells it, and remembers what it was asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from tests.world.loopback import Answering, served


@dataclass(frozen=True)
class Page:
    """An answer. With `chunks` the body is streamed until the client goes away or they end."""

    body: bytes = b""
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    chunks: Callable[[], Iterator[bytes]] | None = None


@dataclass(frozen=True)
class Asked:
    path: str
    headers: Mapping[str, str]
    method: str = "GET"
    body: bytes = b""


Answer = Page | Callable[[Asked], Page]


@dataclass
class Site:
    """`pages` may be changed while the site runs; a path that is not among them is a 404."""

    url: str
    pages: dict[str, Answer]
    asked: list[Asked] = field(default_factory=list)

    @property
    def paths(self) -> list[str]:
        return [asked.path for asked in self.asked]


@contextmanager
def site(pages: Mapping[str, Answer] | None = None) -> Iterator[Site]:
    """Serve the pages on a free port of 127.0.0.1 until the block ends."""
    with served(_Answering, lambda url: Site(url, dict(pages or {}))) as here:
        yield here


class _Answering(Answering):
    def do_GET(self) -> None:
        here: Site = self.world
        headers = {name.lower(): value for name, value in self.headers.items()}
        asked = Asked(self.path, headers, self.command, self.body())
        here.asked.append(asked)
        answer = here.pages.get(self.path, Page(b"Not Found", 404))
        page = answer(asked) if callable(answer) else answer
        with suppress(ConnectionError):
            self.answer(page.status, page.body, page.headers, page.chunks)

    do_POST = do_GET
