"""A small REST API on loopback whose only description is a page for people."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.world.loopback import Answering, served

DOCUMENTED_AT = "http://127.0.0.1:8099"
PAGE = Path(__file__).parents[1] / "fixtures" / "prose" / "berths.md"
_KEY = "Every request needs your key in the header `X-Quay-Key`. Keys come from the harbour office."


@dataclass
class Quay:
    """`asked` are the requests that were made, as `METHOD path`."""

    url: str
    berths: list[dict[str, Any]] = field(
        default_factory=lambda: [{"id": 4, "length": 12.5, "free": True}]
    )
    bookings: list[dict[str, Any]] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    @property
    def docs(self) -> str:
        return f"{self.url}/guide/api.md"

    @property
    def host(self) -> str:
        return self.url.removeprefix("http://")

    @property
    def page(self) -> str:
        text = PAGE.read_text(encoding="utf-8").replace(_KEY, "No key is needed.")
        return text.replace(DOCUMENTED_AT, self.url)


@contextmanager
def quay() -> Iterator[Quay]:
    """Serve on a free port of 127.0.0.1 until the block ends."""
    with served(_Answering, Quay) as here:
        yield here


class _Answering(Answering):
    def do_GET(self) -> None:
        here: Quay = self.world
        path = self.path.partition("?")[0]
        here.asked.append(f"GET {path}")
        if path == "/guide/api.md":
            self.answer(200, here.page.encode(), [("Content-Type", "text/markdown")])
        elif path == "/v1/berths":
            self.answer_json(200, {"berths": here.berths})
        elif path.startswith("/v1/berths/"):
            found = [berth for berth in here.berths if str(berth["id"]) == path.split("/")[-1]]
            self.answer_json(
                200 if found else 404, found[0] if found else {"error": "no such berth"}
            )
        else:
            self.answer_json(404, {"error": "not here"})

    def do_POST(self) -> None:
        here: Quay = self.world
        here.asked.append(f"POST {self.path}")
        given = json.loads(self.body())
        here.bookings.append(given)
        self.answer_json(201, {"id": len(here.bookings), **given})
