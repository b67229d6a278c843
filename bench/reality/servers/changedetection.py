"""changedetection.io: OpenAPI 3.1 that it ships and serves without its key; an apiKey in a header,
watches and tags made, changed, searched and deleted, a bulk import of plain text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from bench.reality.model import Arguments, RealServer, Running, Scenario, Seen
from bench.reality.packages import install_pip
from bench.reality.processes import free_port, running

_API = "/api/v1"
_TITLE = "Żaglówka ⛵"


@contextmanager
def _start(directory: Path) -> Iterator[Running]:
    python = install_pip("changedetection.io==0.60.10")
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    store = directory / "store"
    words = ["changedetection.io", "-C", "-d", str(store), "-h", "127.0.0.1", "-p", str(port)]
    words += ["-P", "true"]
    begin = f"import sys; sys.argv = {words!r}; from changedetectionio import main; main()"
    with running([str(python), "-c", begin], f"{url}{_API}/full-spec", directory):
        settings = json.loads((store / "changedetection.json").read_text())["settings"]
        key = settings["application"]["api_access_token"]
        yield Running(url, directory, f"{url}{_API}/full-spec", key)


def _made(direct: httpx.Client, title: str) -> str:
    body = {"url": "http://watched.example/" + title, "title": title, "paused": True}
    uuid: str = direct.post(f"{_API}/watch", json=body).raise_for_status().json()["uuid"]
    return uuid


def _one(named: str, **body: Any) -> Callable[[httpx.Client], Arguments]:
    """Arguments of an operation on a watch that is made for it."""

    def prepare(direct: httpx.Client) -> Arguments:
        uuid = _made(direct, named)
        return {"uuid": uuid, "body": body} if body else {"uuid": uuid}

    return prepare


def _watches(seen: Seen) -> dict[str, Any]:
    watches: dict[str, Any] = seen.get(f"{_API}/watch")
    return watches


def _titles(seen: Seen) -> set[str]:
    return {watch["title"] for watch in _watches(seen).values()}


def _listed(seen: Seen) -> None:
    seen.expect("watches", sorted(_watches(seen)), sorted(seen.body))


def _created(seen: Seen) -> None:
    seen.expect("kept", True, _TITLE in _titles(seen))


def _read(seen: Seen) -> None:
    seen.expect("title", "to-read", seen.body["title"])


def _changed(seen: Seen) -> None:
    seen.expect("titles", True, "changed" in _titles(seen))
    seen.expect("the old one", False, "to-change" in _titles(seen))


def _deleted(seen: Seen) -> None:
    seen.expect("there", False, "to-delete" in _titles(seen))


def _tagged(seen: Seen) -> None:
    seen.expect(
        "tags", True, "Hafen" in [tag["title"] for tag in seen.get(f"{_API}/tags").values()]
    )


def _found(seen: Seen) -> None:
    seen.expect("found", True, "sought" in [row.get("title") for row in seen.body.values()])


def _seek(direct: httpx.Client) -> Arguments:
    _made(direct, "sought")
    return {"q": "sought", "partial": "true"}


def _imported(seen: Seen) -> None:
    urls = {watch["url"] for watch in _watches(seen).values()}
    seen.expect("both", True, {"http://one.example/a", "http://two.example/b"} <= urls)


def _counted(seen: Seen) -> None:
    seen.expect("watches", len(_watches(seen)), seen.body["watch_count"])


SERVER = RealServer(
    name="changedetection",
    kind="OpenAPI 3.1 served without its key; apiKey in a header, a bulk import of text, search",
    task="watch pages for changes",
    start=_start,
    sources=("{host}", "{description}", "{description} --base-url {url}/api/v1"),
    secrets={"ApiKeyAuth": "{key}"},
    headers={"x-api-key": "{key}"},
    scenarios=(
        Scenario(
            "a watch with a unicode title is made",
            "POST /watch",
            {"body": {"url": "http://watched.example/", "title": _TITLE, "paused": True}},
            _created,
        ),
        Scenario("all watches", "GET /watch", {}, _listed, through_serve=True),
        Scenario("one watch", "GET /watch/{uuid}", _one("to-read"), _read),
        Scenario(
            "a watch is changed",
            "PUT /watch/{uuid}",
            _one("to-change", title="changed"),
            _changed,
        ),
        Scenario("a watch is deleted", "DELETE /watch/{uuid}", _one("to-delete"), _deleted),
        Scenario("a tag is made", "POST /tag", {"body": {"title": "Hafen"}}, _tagged, True),
        Scenario("a search", "GET /search", _seek, _found),
        Scenario(
            "an import of lines",
            "POST /import",
            {"body": "http://one.example/a\nhttp://two.example/b"},
            _imported,
        ),
        Scenario("the system", "GET /systeminfo", {}, _counted),
    ),
)
