"""Requests of a read session that hold a mutation somewhere: none reaches a real GraphQL engine."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Iterator
from urllib.parse import quote

import pytest

from sandbox.broker.addresses import resolve_by_system
from sandbox.bundle.model import Bundle, Provenance, RequestPattern, ToolDefinition
from sandbox.wire.exchange import Exchange, WireRequest
from sandbox.wire.policy import RequestRule, build_read_policy, parse_origin
from tests.attacks.wire import brokered
from tests.world.graphql_shop import Shop, graphql_shop

READ = "query boats($longer: Float) { boats(longer: $longer) { name } }"
WRITE = 'mutation { addBoat(boat: {name: "Eve"}) { id } }'
JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
IN_URL = f"?query={quote(WRITE)}"
DECLARED = json.dumps({"query": READ, "variables": {"longer": 1}}).encode()


@pytest.fixture
def shop() -> Iterator[Shop]:
    with graphql_shop() as api:
        yield api


def rule(url: str) -> RequestRule:
    """What a session may ask whose bundle declares one query there."""
    origin = parse_origin(url)
    assert origin
    tool = ToolDefinition(
        "boats",
        "Boats.",
        {"type": "object"},
        {"type": "object"},
        "read",
        requests=(RequestPattern("POST", url, READ),),
    )
    bundle = Bundle(
        name="shop",
        version=1,
        title="Shop",
        base_url=str(origin),
        source_code="",
        tools=(tool,),
        provenance=Provenance("test", "0" * 64),
        permissions=(f"network:{origin.host}:{origin.port}",),
    )
    (made,) = build_read_policy(bundle).rules
    return made


def asked(url: str, request: WireRequest) -> Exchange:
    async def run() -> Exchange:
        allowed = rule(url)
        granted = [allowed.origin]
        async with brokered(allowed, granted=granted, resolve=resolve_by_system) as broker:
            return await broker.perform(request)

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("query", "kinds", "body"),
    [
        (IN_URL, (JSON,), DECLARED),
        ("?extensions=%7B%22persistedQuery%22:1%7D", (JSON,), DECLARED),
        ("?operationName=other", (JSON,), DECLARED),
        ("", (FORM,), f"query={quote(WRITE)}".encode()),
        ("", (FORM,), DECLARED),
        ("", ("application/graphql",), WRITE.encode()),
        ("", ("text/plain",), DECLARED),
        ("", (), DECLARED),
        ("", (JSON, FORM), DECLARED),
        ("", ("application/json; charset=utf-16",), DECLARED.decode().encode("utf-16")),
        ("", (JSON,), DECLARED.decode().encode("utf-16-le")),
        ("", (JSON,), b"\xef\xbb\xbf" + DECLARED),
        ("", (JSON,), json.dumps([{"query": READ}, {"query": WRITE}]).encode()),
        ("", (JSON,), f'{{"query": {json.dumps(WRITE)}, "query": {json.dumps(READ)}}}'.encode()),
        ("", (JSON,), json.dumps({"query": f"{READ} {WRITE}"}).encode()),
        ("", (JSON,), json.dumps({"query": READ, "operationName": "other"}).encode()),
        ("", (JSON,), json.dumps({"query": READ, "extensions": {}}).encode()),
        ("", (JSON,), json.dumps({"query": READ, "id": "kept"}).encode()),
        ("", (JSON,), json.dumps({"query": READ, "Query": WRITE}).encode()),
        ("", (JSON,), json.dumps({"query": READ, "variables": "x"}).encode()),
        ("", (JSON,), b""),
    ],
    ids=[
        "URL",
        "persisted",
        "operation in the URL",
        "form",
        "JSON as a form",
        "document as the body",
        "JSON as text",
        "no type",
        "two types",
        "UTF-16",
        "UTF-16 undeclared",
        "byte order mark",
        "batch",
        "member twice",
        "two operations",
        "operation name",
        "extensions",
        "kept document",
        "member in other case",
        "variables as text",
        "no body",
    ],
)
def test_a_read_session_sends_nothing_but_its_document(
    shop: Shop, query: str, kinds: tuple[str, ...], body: bytes
) -> None:
    headers = tuple(("content-type", kind) for kind in kinds)
    exchange = asked(shop.url, WireRequest("POST", shop.url + query, headers, body))
    assert (exchange.refusal, shop.asked, len(shop.boats)) == ("refused", [], 1)


def test_a_coded_body_does_not_reach_a_graphql_server(shop: Shop) -> None:
    headers = (("content-type", JSON), ("content-encoding", "gzip"))
    body = gzip.compress(json.dumps({"query": WRITE}).encode())
    assert asked(shop.url, WireRequest("POST", shop.url, headers, body)).refusal == "refused"
    assert shop.asked == []


@pytest.mark.parametrize("query", ["", "?tenant=a"])
@pytest.mark.parametrize("kind", [JSON, "application/json; charset=utf-8", "Application/JSON"])
def test_the_declared_document_is_answered(shop: Shop, query: str, kind: str) -> None:
    url = shop.url + query
    exchange = asked(url, WireRequest("POST", url, (("content-type", kind),), DECLARED))
    assert exchange.response is not None
    assert json.loads(exchange.response.body) == {"data": {"boats": [{"name": "Ann"}]}}
    assert shop.asked == [READ]
