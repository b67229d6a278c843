"""Documents that cannot become a server, each with what has to be said about it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

_HEAD = "openapi: 3.0.0\ninfo: {title: x, version: '1'}\n"
_BOMB = "".join(f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12))

NO_API = "it is no OpenAPI, GraphQL, Postman or HAR document"

BAD_FILES: Mapping[str, tuple[bytes, str]] = {
    "empty": (b"", "the document is empty"),
    "blank": (b" \n\t\n", "the document is empty"),
    "50_mb": (b'{"openapi": "3.0.0", "x": "' + b"a" * 50_000_000 + b'"}', "larger than"),
    "web_page": (
        b"<!doctype html><html><body>Hello</body></html>",
        "it is a web page that documents no requests",
    ),
    "other_json": (b'{"a": [1, 2, 3]}', NO_API),
    "a_number": (b"42", NO_API),
    "binary": (b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 40, NO_API),
    "cut_off": (b'{"openapi": "3.0.0", "info": {"title": "x"', "not JSON"),
    "broken_yaml": (b"openapi: 3.0.0\ninfo: {title: x\npaths: ]\n", "not YAML"),
    "alias_to_itself": (
        b"openapi: 3.0.0\ninfo: &info\n  title: x\n  version: '1'\n  me: *info\npaths: {}\n",
        "contains itself",
    ),
    "yaml_bomb": (f"{_HEAD}a0: &a0 [x]\n{_BOMB}paths: {{}}\n".encode(), "aliases expanded"),
    "too_deep": (b'{"openapi": "3.0.0", "x": ' + b"[" * 90_000 + b"]" * 90_000 + b"}", "deeper"),
    "newer_dialect": (b'{"openapi": "9.0.0", "info": {}, "paths": {}}', "'9.0.0' cannot be read"),
    "no_operation": (f"{_HEAD}paths: {{}}\n".encode(), "no operation can be used"),
    "no_server": (
        f"{_HEAD}paths: {{/a: {{get: {{responses: {{'200': {{description: x}}}}}}}}}}\n".encode(),
        "no server is an absolute http(s) URL",
    ),
}
"""By what is wrong: the bytes, and words that the error must hold."""


def _absent(path: Path) -> None:
    """Leave nothing there."""


def _unreadable_even_to_root(path: Path) -> None:
    path.symlink_to(path)


BAD_PLACES: Mapping[str, tuple[Callable[[Path], None], str]] = {
    "absent": (_absent, "No such file"),
    "directory": (Path.mkdir, "is a directory"),
    "pipe": (os.mkfifo, "not a plain file"),
    "link_to_itself": (_unreadable_even_to_root, "symbolic link"),
}
"""By what is wrong: what makes it, and words that the error must hold."""


def described(paths: Mapping[str, Any], server: str = "/", **components: Any) -> bytes:
    """An OpenAPI document with these paths."""
    document = {
        "openapi": "3.0.3",
        "info": {"title": "Things", "version": "1"},
        "servers": [{"url": server}],
        "paths": paths,
        "components": components,
    }
    return json.dumps(document).encode()


def reading(schema: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """A path item with one GET that answers with that schema."""
    content = {"application/json": {"schema": schema}}
    return {"get": {"responses": {"200": {"description": "ok", "content": content}}, **more}}


OBJECT = {"type": "object", "properties": {"name": {"type": "string"}}}
HALF_BROKEN = {
    "/good/1": reading(OBJECT),
    "/good/2": reading({"$ref": "#/components/schemas/Tree"}),
    "/good/3": reading(OBJECT, parameters=[{"name": "q", "in": "query", "schema": {}}]),
    "/good/4": reading({"type": "array", "items": OBJECT}),
    "/broken/1": {"get": "not an operation"},
    "/broken/2": {"$ref": "#/paths/~1broken~12"},
    "/broken/3": {"post": {"requestBody": {"$ref": "#/components/requestBodies/Gone"}}},
    "/broken/{4": reading(OBJECT),
}
TREE = {"type": "object", "properties": {"inner": {"$ref": "#/components/schemas/Tree"}}}
"""A schema that refers to itself, as real ones do: no error."""
