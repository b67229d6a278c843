"""Documents that want to cost time or memory, and a program that compiles one of them by name.

Run as a child process, which its caller bounds.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

from forge.compiler.compile import compile_document
from forge.errors import ForgeError
from forge.readers.document import parse_document
from sandbox.bundle.model import render_files


def _api(schema: Any, more: dict[str, Any] | None = None, media: str = "application/json") -> bytes:
    content = {media: {"schema": schema}}
    operation = {"requestBody": {"content": content}, "responses": {"200": {"content": content}}}
    paths = {"/a": {"post": operation}, "/b": {"get": {**operation, "requestBody": None}}}
    root = {"openapi": "3.1.0", "paths": paths, "components": {"schemas": more or {}}}
    return json.dumps(root).encode()


def _ref(number: int) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/S{number}"}


def _wide(key: str) -> bytes:
    """Every schema refers to the next one ten times: written out, 10 ** 60 of them."""
    schemas: dict[str, Any] = {}
    for number in range(60):
        parts: Any = [_ref(number + 1)] * 10
        if key == "properties":
            parts = {f"p{n}": _ref(number + 1) for n in range(10)}
        schemas[f"S{number}"] = {key: parts}
    media = "application/xml" if key == "properties" else "application/json"
    return _api({"type": "object", "allOf": [_ref(0)]}, schemas, media)


def _laughs() -> bytes:
    lines = ["a0: &a0 [ha, ha, ha, ha, ha, ha, ha, ha, ha, ha]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    return "\n".join(["openapi: 3.0.0", *lines, "paths: {/a: {get: {x: *a11}}}"]).encode()


def _linked() -> bytes:
    """A hundred and twenty schemas that all refer to all others."""
    schemas = {
        f"S{n}": {"type": "object", "properties": {f"p{m}": _ref(m) for m in range(120)}}
        for n in range(120)
    }
    paths = {
        f"/a{n}": {"put": {"requestBody": {"content": {"application/json": {"schema": _ref(n)}}}}}
        for n in range(120)
    }
    root = {"openapi": "3.0.0", "paths": paths, "components": {"schemas": schemas}}
    return json.dumps(root).encode()


def _chain() -> bytes:
    """Each schema is made of the next, twice."""
    schemas = {f"S{n}": {"anyOf": [_ref(n + 1), {"not": _ref(n + 1)}]} for n in range(3000)}
    return _api(_ref(0), schemas)


def _inline() -> bytes:
    schema: Any = {"type": "string"}
    for _ in range(7):
        schema = {"anyOf": [schema, schema], "oneOf": [schema]}
    return _api(schema)


def _patterns() -> bytes:
    nasty = ["(a+)+$", "(a|a)*b", "(.*a){25}", "([a-z]+)*=" * 50, "(" * 900, "[" * 2000, "a{99999}"]
    return _api({"type": "object", "patternProperties": {n: {"pattern": n} for n in nasty}})


def _slow_text() -> bytes:
    texts = [
        "<" * 400_000,
        "[" * 400_000,
        "&" * 400_000,
        "a" * 900_000,
        "<!--" * 100_000,
        "!" * 9000,
    ]
    tags = [{"name": text} for text in texts]
    operations = {
        f"/{n}": {"get": {"description": t, "summary": t, "operationId": t, "tags": [t]}}
        for n, t in enumerate(texts)
    }
    return json.dumps(
        {
            "openapi": "3.2.0",
            "info": {"title": texts[0], "description": texts[1]},
            "tags": tags,
            "paths": operations,
        }
    ).encode()


def _enumerated() -> bytes:
    values = [f"value-{n}" for n in range(50_000)]
    return _api({"type": "string", "enum": values})


def _repeated() -> bytes:
    """A name twice among many."""
    names = ",".join(f'"a{n}":1' for n in range(300_000))
    return b'{"openapi":"3.1.0","x":{%s,"a0":2},"paths":{"/a":{"get":{}}}}' % names.encode()


def _requests(number: int, make: Callable[[int], dict[str, Any]]) -> bytes:
    """An HTTP archive of requests of one path."""
    answer = {"status": 200, "content": {"mimeType": "application/json", "text": "{}"}}
    plain = {"method": "GET", "url": "https://api.test/a", "headers": []}
    entries = [{"request": plain | make(n), "response": answer} for n in range(number)]
    return json.dumps({"log": {"version": "1.2", "entries": entries}}).encode()


def _headers() -> bytes:
    """Requests that all have headers of their own."""

    def make(number: int) -> dict[str, Any]:
        names = (f"x-a{number}-{n}" for n in range(40))
        return {"headers": [{"name": name, "value": "b"} for name in names]}

    return _requests(5_000, make)


def _queries() -> bytes:
    """Requests that all have query parameters of their own."""

    def make(number: int) -> dict[str, Any]:
        return {"url": f"https://api.test/a?{'&'.join(f'{number}a{n}=b' for n in range(350))}"}

    return _requests(400, make)


DOCUMENTS: dict[str, Callable[[], bytes]] = {
    "yaml aliases": _laughs,
    "references to allOf": lambda: _wide("allOf"),
    "references to anyOf": lambda: _wide("anyOf"),
    "references to properties": lambda: _wide("properties"),
    "linked schemas": _linked,
    "a chain": _chain,
    "inline doubling": _inline,
    "patterns": _patterns,
    "texts": _slow_text,
    "an enumeration": _enumerated,
    "a hundred megabytes": lambda: b'{"openapi": "3.0.0", "x": "' + b"a" * 100_000_000 + b'"}',
    "small values": lambda: b'{"openapi":"3.0.0","x":[' + b"{}," * 10_000_000 + b"0]}",
    "numbers": lambda: b'{"openapi":"3.0.0","x":[' + b"1.5," * 7_500_000 + b"0]}",
    "small yaml values": lambda: b"openapi: 3.0.0\nx:\n" + b"- a\n" * 2_100_000,
    "deep json": lambda: b'{"openapi":"3.0.0","x":' + b"[" * 1_000_000,
    "deep yaml": lambda: b"openapi: 3.0.0\nx: " + b"[" * 1_000_000,
    "a long number": lambda: b'{"openapi":"3.0.0","x":' + b"9" * 20_000_000 + b"}",
    "a name twice": _repeated,
    "headers of requests": _headers,
    "queries of requests": _queries,
    "yaml directives": lambda: (
        "".join(f"%TAG !{n}! tag:x,{n}:\n" for n in range(120_000)).encode() + b"--- a"
    ),
    "a long yaml key": lambda: b"? " + b"a" * 20_000_000 + b"\n: b\n",
}


def main(name: str) -> None:
    """Print how many tools the document makes, or why it is refused."""
    try:
        document = parse_document(DOCUMENTS[name](), "hostile")
        bundle = compile_document(document, base_url="https://api.test").bundle
    except ForgeError as error:
        print(f"refused: {error}")
    else:
        size = sum(map(len, render_files(bundle).values()))
        print(f"{len(bundle.tools)} tools, {size} bytes")


if __name__ == "__main__":
    main(sys.argv[1])
