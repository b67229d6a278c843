"""Small documents to compile. `api` puts paths into the least document around them."""

from __future__ import annotations

import textwrap
from typing import Any

from forge.compiler.compile import Compilation, compile_document
from forge.readers.document import Document, parse_document
from forge.readers.openapi.reader import ParsedApi, read_openapi
from sandbox.bundle.apispec import Operation

BASE = "https://api.example.com/v1"


def document(text: str, name: str = "api.yaml") -> Document:
    return parse_document(textwrap.dedent(text).encode(), name)


def api(paths: str, rest: str = "", version: str = "3.0.3") -> Document:
    body = textwrap.indent(textwrap.dedent(paths).strip("\n"), "  ")
    head = f"openapi: {version}\ninfo: {{title: Pets, version: '1'}}\n"
    servers = f"servers: [{{url: {BASE}}}]\n"
    return document(f"{head}{servers}paths:\n{body}\n{textwrap.dedent(rest)}")


def swagger(paths: str, rest: str = "") -> Document:
    body = textwrap.indent(textwrap.dedent(paths).strip("\n"), "  ")
    head = "swagger: '2.0'\ninfo: {title: Pets, version: '1'}\n"
    server = "host: api.example.com\nbasePath: /v1\nschemes: [https]\n"
    return document(f"{head}{server}paths:\n{body}\n{textwrap.dedent(rest)}")


def reading(paths: str, rest: str = "", version: str = "3.0.3") -> ParsedApi:
    return read_openapi(api(paths, rest, version))


def operation(paths: str, rest: str = "", version: str = "3.0.3") -> Operation:
    """The only operation of a document, which must be free of problems."""
    found = reading(paths, rest, version)
    assert found.problems == ()
    (only,) = found.spec.operations
    return only


def swagger_operation(paths: str, rest: str = "") -> Operation:
    found = read_openapi(swagger(paths, rest))
    assert found.problems == ()
    (only,) = found.spec.operations
    return only


def compiled(paths: str, rest: str = "", version: str = "3.0.3", **options: Any) -> Compilation:
    return compile_document(api(paths, rest, version), **options)
