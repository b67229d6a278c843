"""Documentation, and what a model would say of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from forge.documentation.checking import LocatedClaims
from forge.documentation.claims import parse_api_claims
from forge.documentation.to_openapi import DerivedDocument, derive_document
from forge.readers.page import Page, parse_page

PROSE = Path(__file__).parents[2] / "fixtures" / "prose"
BERTHS: dict[str, Any] = {
    "base_url": {
        "url": "http://127.0.0.1:8099/v1",
        "quote": "Base URL: `http://127.0.0.1:8099/v1`",
    },
    "auth": {
        "kind": "header",
        "name": "X-Quay-Key",
        "quote": "Every request needs your key in the header `X-Quay-Key`.",
    },
    "limits": {
        "requests": 60,
        "per_seconds": 60,
        "quote": "You may send at most 60 requests per minute.",
    },
    "operations": [
        {
            "method": "GET",
            "path": "/berths",
            "summary": "List berths",
            "quote": "GET /berths",
            "parameters": [
                {
                    "name": "min_length",
                    "in": "query",
                    "type": "integer",
                    "required": False,
                    "quote": "min_length | integer | no | Only berths at least this long",
                },
                {
                    "name": "free",
                    "in": "query",
                    "type": "boolean",
                    "quote": "free | boolean | no | Only berths that are free",
                },
            ],
            "responses": [
                {
                    "status": 200,
                    "quote": "Answers 200:",
                    "example": '{"berths": [{"id": 4, "length": 12.5, "free": true}]}',
                }
            ],
        },
        {
            "method": "GET",
            "path": "/berths/:id",
            "summary": "One berth",
            "quote": "GET /berths/:id returns one berth",
            "errors": [
                {
                    "status": 404,
                    "description": "no such berth",
                    "quote": "or 404 when there is no such berth.",
                }
            ],
        },
        {
            "method": "POST",
            "path": "/bookings",
            "summary": "Book a berth",
            "quote": "Send a POST request to /bookings with a JSON body",
            "body": {
                "quote": "with a JSON body",
                "fields": [
                    {
                        "name": "berth",
                        "type": "integer",
                        "required": True,
                        "quote": "`berth` (integer, required)",
                    },
                    {
                        "name": "boat",
                        "type": "string",
                        "required": True,
                        "quote": "`boat` (string, required)",
                    },
                    {"name": "nights", "type": "integer", "quote": "`nights` (integer)"},
                ],
            },
            "responses": [{"status": 201, "quote": "It answers 201 with the booking"}],
            "errors": [{"status": 409, "quote": "409 when the berth is taken"}],
        },
        {
            "method": "DELETE",
            "path": "/bookings/{booking_id}",
            "summary": "Cancel",
            "quote": "`DELETE /bookings/{booking_id}` answers 204.",
            "responses": [{"status": 204, "quote": "answers 204"}],
        },
    ],
}
"""All that tests/fixtures/prose/berths.md documents."""


def operation(method: str, path: str, quote: str, **more: Any) -> dict[str, Any]:
    return {"method": method, "path": path, "quote": quote, **more}


def page(name: str, location: str = "") -> Page:
    content = (PROSE / name).read_bytes()
    found = parse_page(location or name, content)
    assert found is not None
    return found


def text_page(text: str, location: str = "https://docs.example/api") -> Page:
    found = parse_page(location, text.encode())
    assert found is not None
    return found


def answered(content: dict[str, Any], number: int = 1) -> LocatedClaims:
    return LocatedClaims("docs", f"/part/{number}", parse_api_claims(content))


def read(page: Page, *contents: dict[str, Any]) -> DerivedDocument:
    answers = [answered(content, number) for number, content in enumerate(contents, 1)]
    return derive_document([page], answers, "openai m-1", ["prompt"])


def requests(made: DerivedDocument) -> set[str]:
    paths = made.root["paths"]
    return {f"{method.upper()} {path}" for path, item in paths.items() for method in item}


def reasons(made: DerivedDocument) -> str:
    return "\n".join(map(str, made.problems))
