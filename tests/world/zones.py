"""Two small APIs on loopback: zones with records, and a register of owners by name."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tests.world.site import Asked, Page, Site, site

JSON = (("Content-Type", "application/json"),)
ZONES = [{"id": "z-4711", "name": "example.org"}, {"id": "z-0815", "name": "example.net"}]
_ZONE = {"type": "object", "properties": {"id": {"type": "string"}, "name": {"type": "string"}}}
_RECORD = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "content": {"type": "string"}},
    "required": ["name", "content"],
}
_ID = {"name": "zone_id", "in": "path", "required": True, "schema": {"type": "string"}}


def build_page(value: Any, status: int = 200) -> Page:
    return Page(json.dumps(value).encode(), status, JSON)


def _describe(title: str, paths: Mapping[str, Any]) -> Page:
    info = {"title": title, "version": "1"}
    return build_page({"openapi": "3.0.3", "info": info, "servers": [{"url": "/"}], "paths": paths})


def _answer(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"200": {"description": "ok", "content": {"application/json": {"schema": schema}}}}


def _operate(
    operation: str, summary: str, schema: Mapping[str, Any], **more: Any
) -> dict[str, Any]:
    return {"operationId": operation, "summary": summary, "responses": _answer(schema), **more}


def _describe_zones() -> Page:
    many = {"type": "array", "items": _ZONE}
    body = {"required": True, "content": {"application/json": {"schema": _RECORD}}}
    records = {
        "get": _operate(
            "listRecords", "List the records of a zone", {"type": "array"}, parameters=[_ID]
        ),
        "post": _operate(
            "createRecord", "Create a record in a zone", _RECORD, parameters=[_ID], requestBody=body
        ),
    }
    return _describe(
        "Zones",
        {
            "/zones": {"get": _operate("listZones", "List the zones", many)},
            "/zones/{zone_id}/records": records,
        },
    )


def _describe_owners() -> Page:
    named = {"name": "name", "in": "query", "required": True, "schema": {"type": "string"}}
    return _describe(
        "Owners",
        {
            "/owners": {
                "get": _operate("findOwner", "Find the owner of a name", _ZONE, parameters=[named])
            },
            "/count": {"get": _operate("countOwners", "Count the owners", {"type": "object"})},
        },
    )


def _answer_records(asked: Asked) -> Page:
    if asked.method == "POST":
        return build_page(json.loads(asked.body))
    return build_page([{"name": "www", "content": "192.0.2.1"}])


@contextmanager
def zones_api() -> Iterator[Site]:
    """Zones `z-4711` and `z-0815`, each with its records."""
    pages: dict[str, Any] = {
        "/openapi.json": _describe_zones(),
        "/zones": build_page(ZONES),
        **{f"/zones/{zone['id']}/records": _answer_records for zone in ZONES},
    }
    with site(pages) as here:
        yield here


@contextmanager
def owners_api() -> Iterator[Site]:
    """Who owns a name."""
    pages: dict[str, Any] = {
        "/openapi.json": _describe_owners(),
        "/count": build_page({"count": 2}),
        **{
            f"/owners?name={zone['name']}": build_page({"id": "o-1", "name": "Ada"})
            for zone in ZONES
        },
    }
    with site(pages) as here:
        yield here
