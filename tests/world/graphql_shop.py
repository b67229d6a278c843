"""A GraphQL API on loopback: a real engine (graphql-core) over values in memory."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

from graphql import GraphQLError, build_schema, graphql_sync

from tests.world.loopback import Answering, served

SDL = """
type Boat { id: ID! name: String! length: Float }
input BoatInput { name: String! length: Float = 5.5 }
type Query { boats(longer: Float): [Boat!]! boat(id: ID!): Boat }
type Mutation { addBoat(boat: BoatInput!): Boat! }
"""


@dataclass
class Shop:
    """`asked` are the documents that came, in order."""

    url: str
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
    with served(_Door, lambda url: Shop(f"{url}/graphql")) as shop:
        yield shop


class _Door(Answering):
    def do_GET(self) -> None:
        shop: Shop = self.world
        document = parse_qs(urlsplit(self.path).query).get("query", [""])[0]
        if document:
            self.answer_json(200, shop.answer(document, None))
        else:
            self.answer_json(400, {"errors": [{"message": "there is no query"}]})

    def do_POST(self) -> None:
        """As the most tolerant servers do: from the URL first, then a form or JSON of any charset,
        coding and number.
        """
        shop: Shop = self.world
        body, kind = self.body(), self.headers.get("Content-Type", "")
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        in_url = parse_qs(urlsplit(self.path).query).get("query", [""])[0]
        in_form = parse_qs(body.decode("latin-1")).get("query", [""])[0] if "form" in kind else ""
        if in_url or in_form or "graphql" in kind:
            self.answer_json(200, shop.answer(in_url or in_form or body.decode(), None))
            return
        given = json.loads(body, object_pairs_hook=_keep_first)
        asked = given if isinstance(given, list) else [given]
        answers = [shop.answer(each["query"], each.get("variables")) for each in asked]
        self.answer_json(200, answers if isinstance(given, list) else answers[0])


def _keep_first(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return dict(reversed(pairs))
