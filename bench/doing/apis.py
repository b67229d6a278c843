"""APIs that tasks in words are about: eighteen services of loopback, each with its description.

An API is a value: operations over rows in memory, from which its OpenAPI document and its answers
are both made. Nothing here is read by the product but through HTTP.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from tests.world.loopback import Answering, served

Row = dict[str, Any]
Rows = dict[str, list[Row]]
Arguments = Mapping[str, Any]
Reply = tuple[int, Any]
Handler = Callable[[Rows, Arguments], Reply]
DOCUMENT = "/openapi.json"
_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", list: "array"}


@dataclass(frozen=True)
class Parameter:
    """A query or path parameter. `choices` are all its values where there are few."""

    name: str
    description: str
    type: str = "string"
    required: bool = False
    choices: tuple[str, ...] = ()

    def to_schema(self) -> Row:
        listed = {"enum": list(self.choices)} if self.choices else {}
        return {"type": self.type, **listed}


@dataclass(frozen=True)
class Operation:
    """One operation; `body` are the fields of a JSON body, `answer` a sample of what it gives."""

    method: str
    path: str
    name: str
    summary: str
    handler: Handler
    parameters: tuple[Parameter, ...] = ()
    body: tuple[Parameter, ...] = ()
    answer: Any = None


@dataclass(frozen=True)
class Api:
    """A service: its name as a registered server, its title, operations and first rows."""

    name: str
    title: str
    description: str
    operations: tuple[Operation, ...]
    rows: Rows

    def build_document(self, url: str) -> Row:
        """The OpenAPI document of the service at a URL."""
        paths: dict[str, Row] = {}
        for operation in self.operations:
            paths.setdefault(operation.path, {})[operation.method.lower()] = _describe(operation)
        return {
            "openapi": "3.0.3",
            "info": {"title": self.title, "version": "1", "description": self.description},
            "servers": [{"url": url}],
            "paths": paths,
        }


@dataclass(frozen=True)
class Request:
    """A request that arrived, but for that of the document."""

    method: str
    path: str
    query: Mapping[str, str]
    body: Any

    def __str__(self) -> str:
        query = "&".join(f"{name}={value}" for name, value in sorted(self.query.items()))
        return f"{self.method} {self.path}" + (f"?{query}" if query else "")


@dataclass
class Service:
    """A running API: what it holds by now, and what it was asked."""

    url: str
    api: Api
    rows: Rows
    requests: list[Request] = field(default_factory=list)

    @property
    def host(self) -> str:
        return urlsplit(self.url).netloc

    def answer(self, request: Request) -> Reply:
        self.requests.append(request)
        for operation in self.api.operations:
            pattern = re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", operation.path)
            found = re.fullmatch(pattern, request.path)
            if found and operation.method == request.method:
                named = {name: unquote(value) for name, value in found.groupdict().items()}
                body = request.body if isinstance(request.body, dict) else {}
                return operation.handler(self.rows, {**body, **request.query, **named})
        return 404, {"error": "no such operation"}


@contextmanager
def run_api(api: Api) -> Iterator[Service]:
    """Serve the API on a free port of 127.0.0.1 until the block ends."""
    with served(_Answering, lambda url: Service(url, api, copy.deepcopy(api.rows))) as service:
        yield service


class _Answering(Answering):
    timeout = 30.0

    def do_GET(self) -> None:
        service: Service = self.world
        parts = urlsplit(self.path)
        if parts.path == DOCUMENT:
            status, value = 200, service.api.build_document(service.url)
        else:
            raw = self.body()
            sent = json.loads(raw) if raw else None
            query = dict(parse_qsl(parts.query, keep_blank_values=True))
            status, value = service.answer(Request(self.command, parts.path, query, sent))
        body = b"" if value is None else json.dumps(value).encode()
        self.answer(status, body, (("Content-Type", "application/json"),))

    do_POST = do_PUT = do_PATCH = do_DELETE = do_GET


def _describe(operation: Operation) -> Row:
    told: Row = {
        "operationId": operation.name,
        "summary": operation.summary,
        "parameters": [
            {
                "name": each.name,
                "in": "path" if f"{{{each.name}}}" in operation.path else "query",
                "required": each.required,
                "description": each.description,
                "schema": each.to_schema(),
            }
            for each in operation.parameters
        ],
        "responses": {"200": {"description": "OK", "content": _content(operation.answer)}},
    }
    if operation.body:
        schema = {
            "type": "object",
            "properties": {
                each.name: {**each.to_schema(), "description": each.description}
                for each in operation.body
            },
            "required": [each.name for each in operation.body if each.required],
        }
        told["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": schema}},
        }
    return told


def _content(sample: Any) -> Row:
    return {"application/json": {"schema": describe_sample(sample)}}


def describe_sample(sample: Any) -> Row:
    """The schema of a sample value."""
    if isinstance(sample, dict):
        return {
            "type": "object",
            "properties": {name: describe_sample(value) for name, value in sample.items()},
        }
    if isinstance(sample, list):
        return {"type": "array", "items": describe_sample(sample[0])} if sample else {}
    return {"type": _TYPES[type(sample)]} if type(sample) in _TYPES else {}


def list_rows(table: str, *filters: str) -> Handler:
    """Answers with the rows whose fields are as the query says, letter case aside."""

    def handle(rows: Rows, given: Arguments) -> Reply:
        found = rows[table]
        for name in filters:
            if name in given:
                wanted = str(given[name]).lower()
                found = [row for row in found if str(row[name]).lower() == wanted]
        return 200, found[: int(given.get("limit", 100))]

    return handle


def get_row(table: str, key: str = "id") -> Handler:
    """Answers with the row of that key, or 404."""

    def handle(rows: Rows, given: Arguments) -> Reply:
        row = find_row(rows[table], key, given[key])
        return (200, row) if row else (404, {"error": f"no {key} {given[key]}"})

    return handle


def add_row(table: str, *names: str) -> Handler:
    """Adds a row of the named fields of the body under the next number."""

    def handle(rows: Rows, given: Arguments) -> Reply:
        row: Row = {"id": len(rows[table]) + 1, **{name: given.get(name) for name in names}}
        rows[table].append(row)
        return 201, row

    return handle


def change_row(table: str, *names: str, key: str = "id") -> Handler:
    """Changes the named fields of a row to what the body says."""

    def handle(rows: Rows, given: Arguments) -> Reply:
        row = find_row(rows[table], key, given[key])
        if row is None:
            return 404, {"error": f"no {key} {given[key]}"}
        row.update({name: given[name] for name in names if name in given})
        return 200, row

    return handle


def remove_row(table: str, key: str = "id") -> Handler:
    """Takes a row away."""

    def handle(rows: Rows, given: Arguments) -> Reply:
        row = find_row(rows[table], key, given[key])
        if row is None:
            return 404, {"error": f"no {key} {given[key]}"}
        rows[table].remove(row)
        return 200, {"removed": given[key]}

    return handle


def find_row(rows: Sequence[Row], key: str, value: Any) -> Row | None:
    """The first row whose `key` is the value as text."""
    return next((row for row in rows if str(row[key]).lower() == str(value).lower()), None)
