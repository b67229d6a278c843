"""A property of every front: what arrived with 2xx is given whole, unflagged and readable, whatever
the document promised.
"""

from __future__ import annotations

import base64
import json
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from jsonschema import Draft202012Validator

from forge.compiler.compile import compile_document
from forge.readers.document import parse_document
from sandbox.sanitize import clean_json, clean_text
from tests.functional.home import Home, new_home
from tests.functional.peer import Peer
from tests.functional.test_arrived import RUNTIME, write_exported
from tests.world.loopback import Answering, served

NODE = {
    "type": "object",
    "required": ["id", "next"],
    "properties": {"id": {"type": "integer"}, "next": {"$ref": "#/components/schemas/Node"}},
}
ROW = {
    "type": "object",
    "required": ["id", "name", "tags"],
    "additionalProperties": False,
    "properties": {
        "id": {"type": "integer", "minimum": 1},
        "name": {"type": "string", "minLength": 2, "enum": ["on", "off"]},
        "tags": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
        "at": {"type": "string", "format": "date-time"},
        "node": {"$ref": "#/components/schemas/Node"},
    },
}
RESPONSES: dict[str, dict[str, Any]] = {
    "row": {"200": {"content": {"application/json": {"schema": ROW}}}},
    "rows": {
        "200": {
            "content": {
                "application/json": {"schema": {"type": "array", "items": ROW, "maxItems": 1}}
            }
        }
    },
    "word": {"201": {"content": {"application/json": {"schema": {"const": "done"}}}}},
    "either": {
        "2XX": {
            "content": {
                "application/vnd.api+json": {"schema": {"oneOf": [ROW, {"type": "boolean"}]}}
            }
        }
    },
    "table": {"200": {"content": {"text/csv": {"schema": {"type": "string", "maxLength": 3}}}}},
    "picture": {"200": {"content": {"image/png": {}}}},
    "nothing": {"204": {"description": "None"}},
    "unsaid": {"default": {"description": "Something"}},
    "two": {
        "200": {"content": {"application/json": {"schema": ROW}}},
        "201": {"content": {"text/plain": {}, "application/json": {"schema": NODE}}},
    },
}
READ_FRONTS = ("serve", "run", "directory", "exported")
WRITE_FRONTS = ("directory", "exported")


@dataclass
class World:
    """An API that answers everything but its description with `content`. `heard` counts."""

    url: str
    status: int = 200
    kind: str = "application/json"
    content: bytes = b"{}"
    heard: list[str] = field(default_factory=list)

    def build_document(self) -> bytes:
        def describe(name: str, verb: str) -> dict[str, Any]:
            responses = {
                status: {"description": "An answer", **response}
                for status, response in RESPONSES[name].items()
            }
            return {"operationId": f"{verb}_{name}", "responses": responses}

        paths = {
            f"/{name}": {"get": describe(name, "get"), "post": describe(name, "make")}
            for name in RESPONSES
        }
        return json.dumps(
            {
                "openapi": "3.1.0",
                "info": {"title": "Things", "version": "1"},
                "servers": [{"url": self.url}],
                "paths": paths,
                "components": {"schemas": {"Node": NODE}},
            }
        ).encode()


class _Api(Answering):
    def do_GET(self) -> None:
        self.body()
        world: World = self.world
        if self.path == "/openapi.json":
            self.answer(200, world.build_document())
            return
        world.heard.append(self.command)
        if world.status == 204:
            self.send_response(204)
            self.end_headers()
            return
        self.answer(
            world.status, world.content, (("Content-Type", world.kind),) if world.kind else ()
        )

    do_POST = do_GET


@dataclass
class Fronts:
    """One API behind every way to call it. `schemas` is what an exported server lists."""

    world: World
    home: Home
    peers: dict[str, Peer]
    schemas: dict[str, Any]

    def call(self, front: str, tool: str) -> dict[str, Any]:
        if front == "serve":
            return self.peers[front].call("call_read", tool=f"things.{tool}", arguments={})
        return self.peers[front].call(tool)


class _Exported(Home):
    """An exported server in place of a home: it needs no Toolwright."""

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "toolwright", *words]


@pytest.fixture(scope="module")
def fronts(any_engine: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fronts]:
    place = tmp_path_factory.mktemp("whole")
    with ExitStack() as stack:
        world = stack.enter_context(served(_Api, World))
        home = stack.enter_context(new_home(place, any_engine))
        document = place / "things.json"
        document.write_bytes(world.build_document())
        host = world.url.removeprefix("http://")
        home.person(
            "forge", "get things", "--source", world.url, "--allow", host, "--name", "things"
        )
        done = home.run("compile", str(document), "--out", str(place / "things"))
        assert done.returncode == 0, done.stderr
        bundle = compile_document(parse_document(document.read_bytes(), "things.json")).bundle
        (place / "exported").mkdir()
        write_exported(bundle, place / "exported")
        directory = ("run", str(place / "things"), "--allow-private", "--allow-writes")
        bare = _Exported(place, {**os.environ, "PYTHONPATH": str(RUNTIME)}, fresh=True)
        peers = {
            "serve": stack.enter_context(Peer(home, "serve")),
            "run": stack.enter_context(Peer(home, "run", "things")),
            "directory": stack.enter_context(Peer(home, *directory)),
            "exported": stack.enter_context(Peer(bare, str(place / "exported"))),
        }
        listed = peers["exported"].request("tools/list")["result"]["tools"]
        yield Fronts(world, home, peers, {tool["name"]: tool["outputSchema"] for tool in listed})


words = some.text('abcxyzäöß日本 {}[]",:-0179\\\r\n\t', max_size=12)
values = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats(-1e300, 1e300) | words,
    lambda inner: (
        some.lists(inner, max_size=3)
        | some.dictionaries(
            some.sampled_from(["id", "name", "tags", "at", "node", "next", "more"]),
            inner,
            max_size=5,
        )
    ),
    max_leaves=8,
)
PECULIAR = (
    b"",
    b" \n",
    b"null",
    b"[1, 2",
    b'{"id": 1}\n{"id": null}\n',
    b'{"id": 1, "id": 2}',
    b'{"id": NaN}',
    b'{"id": 1e999}',
    b'{"id": ' + b"9" * 5000 + b"}",
    b'{"name": "\\ud800"}',
    b'{"name": "\\u0000\\u200b"}',
    b"\xef\xbb\xbf",
    b"\xef\xbb\xbf" + b'{"id": 7}',
    '{"name": "ö"}'.encode("utf-16"),
    '{"name": "ö"}'.encode("latin-1"),
    b"[" * 150 + b"]" * 150,
    b"\x89PNG\r\n\x1a\n\x00\x00",
    b"\x00\x01\x02",
    b"<html><body>moved</body></html>",
    b'{"id": "' + b"x" * 300_000 + b'"}',
)
contents = some.one_of(
    values.map(lambda value: json.dumps(value, ensure_ascii=False).encode()),
    words.map(str.encode),
    some.binary(max_size=12),
    some.sampled_from(PECULIAR),
)
KINDS = (
    "application/json",
    "application/json; charset=utf-8",
    "application/json; charset=iso-8859-1",
    "application/hal+json",
    "application/x-ndjson",
    "text/plain",
    "text/csv; charset=windows-1252",
    "text/html",
    "application/octet-stream",
    "image/png",
    "application/vnd.acme.thing",
    "",
)
BINARY = frozenset({"application/octet-stream", "image/png"})
STATUSES = (200, 201, 202, 203, 206, 207, 226, 299, 204)


def list_texts(kind: str, content: bytes) -> list[str]:
    """The text that the bytes are by their own word, none where nobody could tell."""
    charset = kind.partition("charset=")[2]
    if not charset and content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        charset = "utf-16"
    for name in ("utf-8-sig" if charset in ("", "utf-8") else charset, "latin-1"):
        try:
            return [content.decode(name)]
        except UnicodeDecodeError:
            continue
    return []


def has_to_be_text(kind: str, content: bytes) -> bool:
    """Whether a reader has to be given text: it is declared so, and is UTF-8 that can be shown."""
    textual = kind.startswith("text/") or "json" in kind
    try:
        shown = content.decode()
    except UnicodeDecodeError:
        return False
    return textual and not any(ord(letter) < 9 for letter in shown)


def check_given(world: World, result: dict[str, Any], cleaned: bool) -> None:
    """The result is no error, the line that it came in is JSON, and the body is there: as text
    alone in its block, or as its bytes.
    """
    assert not result.get("isError"), result["content"]
    json.dumps(result, allow_nan=False).encode()
    if world.status == 204 or not world.content:
        assert result["content"][0]["text"].startswith(f"HTTP {world.status}")
        return
    (expected,) = list_texts(world.kind, world.content)
    told = [block.get("text") for block in result["content"]]
    if not expected and world.kind not in BINARY:
        # A mark of byte order alone is an empty text.
        assert len(told) == 1
        assert told[0].startswith(f"HTTP {world.status}")
        return
    if told[0] == (clean_text(expected) if cleaned else expected):
        structured = (result.get("structuredContent") or {}).get("body")
        if structured is not None:
            # Half of a surrogate pair has no form in UTF-8.
            spelled = json.dumps(json.loads(expected), ensure_ascii=False)
            parsed = json.loads(spelled.encode("utf-8", "replace"))
            assert structured == (clean_json(parsed) if cleaned else parsed)
        return
    assert not has_to_be_text(world.kind, world.content), told[0][:300]
    held = [
        block.get("data") or (block.get("resource") or {}).get("blob") or ""
        for block in result["content"]
    ]
    assert world.content in [base64.b64decode(data) for data in held if data], result["content"]


def check_strict(schema: Any, world: World, result: dict[str, Any]) -> None:
    """A client that throws away what breaks the listed schema has all of it."""
    structured = result["structuredContent"]
    Draft202012Validator(schema).validate(structured)
    assert structured["status"] == world.status


@settings(max_examples=60, deadline=None)
@given(
    some.sampled_from(sorted(RESPONSES)),
    some.sampled_from(STATUSES),
    some.sampled_from(KINDS),
    contents,
)
def test_what_arrived_is_the_result_behind_every_front(
    fronts: Fronts, name: str, status: int, kind: str, content: bytes
) -> None:
    check_everywhere(fronts, name, status, kind, content)


def check_everywhere(fronts: Fronts, name: str, status: int, kind: str, content: bytes) -> None:
    world = fronts.world
    world.status, world.kind, world.content = status, kind, content
    world.heard.clear()
    for front in READ_FRONTS:
        result = fronts.call(front, f"get_{name}")
        check_given(world, result, front != "exported")
        if front == "exported":
            check_strict(fronts.schemas[f"get_{name}"], world, result)
    for front in WRITE_FRONTS:
        result = fronts.call(front, f"make_{name}")
        check_given(world, result, front != "exported")
        if front == "exported":
            check_strict(fronts.schemas[f"make_{name}"], world, result)
    # On a loaded machine a call may fail, and then `serve` reads by itself to find out why.
    assert world.heard.count("GET") >= len(READ_FRONTS)
    assert world.heard.count("POST") == len(WRITE_FRONTS)


@pytest.mark.parametrize("content", PECULIAR, ids=lambda content: repr(content[:24]))
def test_peculiar_bytes_are_given_whole_under_any_type(content: bytes, fronts: Fronts) -> None:
    for kind in ("application/json", "text/csv; charset=windows-1252", "application/octet-stream"):
        check_everywhere(fronts, "row", 200, kind, content)
    for kind in ("application/json", "application/json; charset=iso-8859-1", ""):
        check_everywhere(fronts, "unsaid", 201, kind, content)
