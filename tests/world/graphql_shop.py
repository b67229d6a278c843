"""A GraphQL API on loopback: a real engine (graphql-core) over values in memory."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from graphql import GraphQLError, build_schema, graphql_sync

SDL = """
type Boat { id: ID! name: String! length: Float }
input BoatInput { name: String! length: Float = 5.5 }
type Query { boats(longer: Float): [Boat!]! boat(id: ID!): Boat }
type Mutation { addBoat(boat: BoatInput!): Boat! }
"""


@dataclass
class Shop:
    """`asked` are the documents that came, in order."""

    url: str = ""
    boats: list[dict[str, Any]] = field(
        default_factory=lambda: [{"id": "1", "name": "Ann", "length": 7.5}]
    )
    asked: list[str] = field(default_factory=list)

    def answer(self, document: str, variables: Any) -> dict[str, Any]:
        self.asked.append(document)
        said = graphql_sync(SCHEMA, document, root_value=_Root(self), variable_values=variables)
        return dict(said.formatted)


class _Root:
    """Resolvers by name, as graphql-core's default resolver calls them."""

    def __init__(self, shop: Shop) -> None:
        self._shop = shop

    def boats(self, info: Any, longer: float = 0.0) -> list[dict[str, Any]]:
        return [boat for boat in self._shop.boats if boat["length"] > longer]

    def boat(self, info: Any, id: str) -> dict[str, Any]:
        for boat in self._shop.boats:
            if boat["id"] == id:
                return boat
        raise GraphQLError(f"there is no boat {id}")

    def addBoat(self, info: Any, boat: dict[str, Any]) -> dict[str, Any]:
        made = {"id": str(len(self._shop.boats) + 1), **boat}
        self._shop.boats.append(made)
        return made


SCHEMA = build_schema(SDL)


@contextmanager
def graphql_shop() -> Iterator[Shop]:
    """The API while the block runs."""
    shop = Shop()

    class Door(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            document = parse_qs(urlsplit(self.path).query).get("query", [""])[0]
            if document:
                self._say(200, shop.answer(document, None))
            else:
                self._say(400, {"errors": [{"message": "there is no query"}]})

        def do_POST(self) -> None:
            given = json.loads(self.rfile.read(int(self.headers["content-length"])))
            self._say(200, shop.answer(given["query"], given.get("variables")))

        def _say(self, status: int, value: Any) -> None:
            body = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Door)
    shop.url = f"http://127.0.0.1:{server.server_port}/graphql"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield shop
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
