"""Etherpad, texts that many write: OpenAPI 3.0 served; a key in the query, every operation by GET
and by POST, so GETs that write; failures with status 200.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from bench.reality.model import Arguments, RealServer, Running, Scenario, Seen
from bench.reality.packages import install_npm
from bench.reality.processes import free_port, running

_API = "/api/1.2.15"
_PAD = "Hafen-⚓-ä"
_TEXT = "größe: 10 % & mehr?\nΩ+1 #2"


@contextmanager
def _start(directory: Path) -> Iterator[Running]:
    modules = install_npm("ep_etherpad-lite@1.8.14")
    # It looks for its files beside the directory that it lies in, which has to have this name.
    source = directory / "src"
    shutil.copytree(modules / "ep_etherpad-lite", source)
    (directory / "node_modules").mkdir()
    for module in modules.iterdir():
        linked = source if module.name == "ep_etherpad-lite" else module
        (directory / "node_modules" / module.name).symlink_to(linked)
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    settings = {"ip": "127.0.0.1", "port": port, "dbType": "dirty", "users": {}}
    settings["dbSettings"] = {"filename": str(directory / "pads.db")}
    (directory / "settings.json").write_text(json.dumps(settings))
    command = ["node", "src/node/server.js"]
    with running(command, f"{url}/api", directory, {"NODE_ENV": "production"}):
        key = (directory / "APIKEY.txt").read_text().strip()
        yield Running(url, directory, f"{url}/api/openapi.json", key)


def _ask(direct: httpx.Client, act: str, **query: str) -> httpx.Response:
    return direct.get(f"{_API}/{act}", params=query)


def _read(seen: Seen, pad: str) -> object:
    return (_ask(seen.direct, "getText", padID=pad).json()["data"] or {}).get("text")


def _prepared(pad: str, **more: str) -> Callable[[httpx.Client], Arguments]:
    """Arguments of an operation on a pad that is made for it."""

    def prepare(direct: httpx.Client) -> Arguments:
        _ask(direct, "createPad", padID=pad, text="first").raise_for_status()
        return {"padID": pad, **more}

    return prepare


def _copied(direct: httpx.Client) -> Arguments:
    _prepared("copied")(direct)
    return {"sourceID": "copied", "destinationID": "copy", "force": "true"}


def _is_made(seen: Seen) -> None:
    seen.expect("text", _TEXT + "\n", _read(seen, _PAD))
    seen.expect("code", 0, seen.body["code"])


def _is_read(seen: Seen) -> None:
    seen.expect("text", _TEXT + "\n", seen.body["data"]["text"])


def _are_listed(seen: Seen) -> None:
    seen.expect("pad is listed", True, _PAD in seen.body["data"]["padIDs"])


def _holds(pad: str, text: str) -> Callable[[Seen], None]:
    return lambda seen: seen.expect("text", text, _read(seen, pad))


def _is_html(seen: Seen) -> None:
    seen.expect("marked", True, "<body>first<br>" in seen.body["data"]["html"])


def _is_gone(seen: Seen) -> None:
    answer = _ask(seen.direct, "getText", padID="gone").json()
    seen.expect("code", 1, answer["code"])


def _is_told(seen: Seen) -> None:
    seen.expect("the API's answer", "padID does not exist", seen.body["message"])


def _author_is_made(seen: Seen) -> None:
    author = seen.body["data"]["authorID"]
    kept = _ask(seen.direct, "getAuthorName", authorID=author).json()["data"]
    seen.expect("name", "Jürgen", kept)


def _is_ok(seen: Seen) -> None:
    seen.expect("answer", {"code": 0, "message": "ok", "data": None}, seen.body)


SERVER = RealServer(
    name="etherpad",
    kind="OpenAPI 3.0 served, a key in the query, GETs that write, null data",
    task="read and write pads",
    start=_start,
    secrets={"ApiKey": "{key}"},
    query={"apikey": "{key}"},
    scenarios=(
        Scenario("the key is taken", "GET /checkToken", {}, _is_ok),
        Scenario(
            "a pad is made", "POST /createPad", {"padID": _PAD, "text": _TEXT}, _is_made, True
        ),
        Scenario("a pad is read", "GET /getText", {"padID": _PAD}, _is_read),
        Scenario("pads are listed, through serve", "GET /listAllPads", {}, _are_listed, True),
        Scenario(
            "a GET that writes",
            "GET /setText",
            _prepared("by get", text="second"),
            _holds("by get", "second\n"),
        ),
        Scenario(
            "a text is added",
            "POST /appendText",
            _prepared("grows", text=" and more"),
            _holds("grows", "first and more\n"),
        ),
        Scenario("a text as HTML", "GET /getHTML", _prepared("shown"), _is_html),
        Scenario("a pad is copied", "POST /copyPad", _copied, _holds("copy", "first\n"), True),
        Scenario("an author is made", "POST /createAuthor", {"name": "Jürgen"}, _author_is_made),
        Scenario("a pad is deleted", "GET /deletePad", _prepared("gone"), _is_gone),
        Scenario(
            "a failure under status 200 is told as it came",
            "GET /getText",
            {"padID": "nowhere"},
            _is_told,
        ),
    ),
)
