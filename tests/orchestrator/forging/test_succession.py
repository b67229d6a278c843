from __future__ import annotations

from graphql import build_schema, introspection_from_schema

from orchestrator.forging.succession import find_undecided
from sandbox.bundle.model import Bundle
from tests.forge.readers.graphql.shop import compiled
from tests.registry.samples import entry


def shop(fields: str) -> Bundle:
    told = build_schema(f"type Ship {{ {fields} }} type Query {{ ship: Ship ships: [Ship!] }}")
    return compiled({"data": dict(introspection_from_schema(told))}).bundle


def test_requests_of_a_graphql_server_that_change_together_are_told_once() -> None:
    before, after = shop("id: ID!"), shop("id: ID! name: String")
    need = find_undecided((entry(source="s"),), before, after, "s")
    assert need is not None
    assert need.changes == ("POST https://shop.example/graphql",)
