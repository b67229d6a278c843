"""A GraphQL endpoint becomes a server by its address alone, and keeps reads and writes apart."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.functional.home import Home, until
from tests.functional.peer import Peer, text
from tests.world.graphql_shop import Shop, graphql_shop


@pytest.fixture(scope="module")
def shop(toolwright_home: Home) -> Iterator[Shop]:
    with graphql_shop() as api:
        host = api.url.removeprefix("http://").removesuffix("/graphql")
        toolwright_home.person(
            "forge", "boats", "--source", api.url, "--allow", host, "--name", "shop"
        )
        yield api


def test_queries_answer_and_mutations_wait_for_a_person(
    served: Peer, toolwright_home: Home, shop: Shop
) -> None:
    found = served.value("call_read", tool="shop.boats", arguments={"longer": 1})
    assert found["body"] == {"data": {"boats": [{"id": "1", "name": "Ann", "length": 7.5}]}}

    arguments = {"boat": {"name": "Bea"}}
    pending = served.value("call_write", tool="shop.add_boat", arguments=arguments)
    assert pending["state"] == "pending"
    assert json.loads(pending["request"]["body"])["variables"] == arguments
    assert not [document for document in shop.asked if document.startswith("mutation")]

    toolwright_home.person("approve", pending["approval"])
    until(lambda: len(shop.boats) == 2, "the boat is added")
    assert shop.boats[1] == {"id": "2", "name": "Bea", "length": 5.5}
    assert len([document for document in shop.asked if document.startswith("mutation")]) == 1


def test_errors_among_the_data_are_told_as_a_failure(served: Peer, shop: Shop) -> None:
    answer = served.call("call_read", tool="shop.boat", arguments={"id": "77"})
    assert answer["isError"]
    assert "there is no boat 77 (at boat)" in text(answer)
