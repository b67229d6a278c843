"""Documents in the notations that requests are recorded in, and what is made of them."""

from __future__ import annotations

import json
from typing import Any

from forge.compiler.compile import Compilation, compile_document
from forge.readers.document import parse_document
from sandbox.bundle.model import render_files

SCHEMA = "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"
CANARY = "k4n4ry-5f21c9"


def postman(*items: Any, **more: Any) -> dict[str, Any]:
    return {"info": {"name": "Pet shop", "schema": SCHEMA}, "item": list(items), **more}


def request(name: str, url: Any, method: str = "GET", **more: Any) -> dict[str, Any]:
    return {"name": name, "request": {"method": method, "url": url, **more}}


def har(*entries: Any) -> dict[str, Any]:
    return {"log": {"version": "1.2", "entries": list(entries)}}


def entry(
    url: str,
    method: str = "GET",
    *,
    status: int = 200,
    answer: Any = None,
    media_type: str = "application/json",
    **more: Any,
) -> dict[str, Any]:
    content = {"mimeType": media_type, "text": json.dumps(answer)}
    return {
        "request": {"method": method, "url": url, "headers": [], **more},
        "response": {"status": status, "content": content},
    }


def compiled(document: Any, **options: Any) -> Compilation:
    """The compilation of a document given as JSON values or as text."""
    text = document if isinstance(document, str) else json.dumps(document)
    return compile_document(parse_document(text.encode(), "notes"), **options)


def routes(made: Compilation) -> set[str]:
    return {f"{r.method} {r.url}" for tool in made.bundle.tools for r in tool.requests}


def files(made: Compilation) -> str:
    """All that the bundle's files say."""
    return "\n".join(content.decode() for content in render_files(made.bundle).values())
