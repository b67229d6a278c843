"""An API that knows it is probed: its answers make the probe send nothing but reads that it would
send anyway, for as long as its budget lasts, and take nothing off a schema.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from forge.compiler.compile import compile_document
from forge.readers.document import parse_document
from orchestrator.forging.learning import learn_from_probe
from sandbox.broker.broker import Broker
from sandbox.broker.live import LiveHttp
from sandbox.bundle.model import Bundle
from sandbox.bundle.report import Proof, StageReport
from sandbox.bundle.widening import SCALARS
from sandbox.schemas.validator import get_checker
from sandbox.stages.live import prove_live, restrict_broker
from sandbox.stages.probe.budget import ProbeBudget
from sandbox.wire.policy import Origin, Policy
from tests.sandbox.local import LocalRunner
from tests.world.site import Page, Site, site

JSON = (("Content-Type", "application/json"),)
ONE = [{"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}]
BOX = {"type": "object", "properties": {"id": {"type": "string"}, "size": {"type": "integer"}}}
PATIENT = 100.0
"""Seconds of asking where time is not what is tried."""


def get(schema: Any = BOX, **more: Any) -> dict[str, Any]:
    content = {"application/json": {"schema": schema}}
    return {"get": {"responses": {"200": {"description": "ok", "content": content}}, **more}}


PATHS = {
    "/boxes": get({"type": "array", "items": BOX}),
    "/boxes/{id}": get(parameters=ONE),
    "/boxes/mine": get({"type": "array", "items": BOX}),
    "/logout": get(),
    "/admin/delete": get(),
    "/size": get(),
}


def page(value: Any) -> Page:
    return Page(json.dumps(value).encode(), 200, JSON)


def described(url: str, paths: dict[str, Any]) -> Bundle:
    document = {
        "openapi": "3.0.3",
        "info": {"title": "Boxes", "version": "1"},
        "servers": [{"url": url}],
        "paths": paths,
    }
    return compile_document(parse_document(json.dumps(document).encode(), "boxes.json")).bundle


def probe(
    api: Site, *others: Site, seconds: float = PATIENT, paths: dict[str, Any] = PATHS
) -> tuple[Bundle, Bundle, StageReport]:
    """A bundle of an API, what it becomes by a probe over the real network, and the report."""
    bundle = described(api.url, paths)
    places = [urlsplit(each.url) for each in (api, *others)]
    granted = frozenset(Origin("http", "127.0.0.1", at.port or 80) for at in places)

    async def run() -> StageReport:
        async with LiveHttp(granted) as upstream:
            broker = Broker(Policy(()), upstream)
            meter = restrict_broker(broker, bundle, ProbeBudget(seconds=seconds, pause=0.0))
            async with LocalRunner().open(bundle, broker) as session:
                return await prove_live(bundle, session, meter)

    report = asyncio.run(run())
    return bundle, learn_from_probe(bundle, Proof("", (report,))), report


@pytest.mark.parametrize(
    "identity",
    [
        "../admin/delete",
        "..",
        "%2e%2e%2fadmin%2fdelete",
        "1;drop",
        "?x=",
        "a?action=delete",
        "#",
        "x" * 129,
        "x" * 1_000_000,
        "\uff0e\uff0e/admin",
        "\u202eeteled",
        "b\u00f6x",
        10**400,
        1e308,
        "http://evil.test/",
        "//evil.test",
        "7:cancel",
        "delete",
        "mine",
        "logout",
        "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8",
        {"id": "b1"},
        ["b1"],
        None,
    ],
)
def test_an_id_that_is_made_to_do_something_is_not_sent(identity: Any) -> None:
    with site({"/boxes": page([{"id": identity}]), "/boxes/mine": page([])}) as api:
        probe(api)
        assert set(api.paths) == {"/boxes", "/boxes/mine", "/size"}


@pytest.mark.parametrize("identity", ["b1", 7, "example.org.", "0af3-11"])
def test_an_id_that_is_one_is_sent(identity: Any) -> None:
    with site({"/boxes": page([{"id": identity}]), "/boxes/mine": page([])}) as api:
        probe(api)
        assert f"/boxes/{identity}" in api.paths


@pytest.mark.parametrize("target", ["/logout", "/admin/delete", "/boxes/../admin/delete"])
def test_a_redirect_leads_the_probe_to_nothing_that_acts(target: str) -> None:
    away = Page(b"", 302, (("Location", target),))
    with site({"/boxes": away, "/size": page({}), "/boxes/mine": page([])}) as api:
        probe(api)
        assert set(api.paths) == {"/boxes", "/size", "/boxes/mine"}


def test_a_redirect_to_another_plain_read_is_followed() -> None:
    away = Page(b"", 302, (("Location", "/size"),))
    with site({"/boxes": away, "/size": page({}), "/boxes/mine": page([])}) as api:
        probe(api)
        assert api.paths.count("/size") == 2


def test_an_id_is_not_carried_to_another_origin() -> None:
    with site({"/boxes/b1": page({})}) as other, site({"/boxes": page([{"id": "b1"}])}) as api:
        elsewhere = {**get(parameters=ONE), "servers": [{"url": other.url}]}
        probe(api, other, paths={"/boxes": PATHS["/boxes"], "/boxes/{id}": elsewhere})
        assert (api.paths, other.paths) == (["/boxes"], [])


def test_an_id_goes_on_within_its_origin() -> None:
    with site({"/boxes": page([{"id": "b1"}]), "/boxes/b1": page({})}) as api:
        probe(api, paths={"/boxes": PATHS["/boxes"], "/boxes/{id}": PATHS["/boxes/{id}"]})
        assert api.paths == ["/boxes", "/boxes/b1"]


def test_an_api_that_leads_on_for_ever_gets_ten_requests() -> None:
    onward = {f"/r{n}": Page(b"", 302, (("Location", f"/r{(n + 1) % 20}"),)) for n in range(20)}
    with site(onward) as api:
        _, _, report = probe(api, paths={path: get() for path in onward})
        assert len(api.paths) <= 10
        assert report.passed


def test_an_api_of_many_reads_gets_ten_requests_too() -> None:
    pages = {f"/r{n}": page({"id": "b"}) for n in range(20)}
    with site(pages) as api:
        _, _, report = probe(api, paths={path: get() for path in pages})
        assert len(api.paths) == 10
        assert report.verdict == "passed"


def drip() -> Iterator[bytes]:
    yield b'[{"id": "b1", "size": "x"}'
    for _ in range(100_000):
        time.sleep(0.05)
        yield b" "


def flood() -> Iterator[bytes]:
    yield b'[{"id": "b1", "size": "x"}'
    for _ in range(4096):
        yield b" " * 65_536


def pieces() -> Iterator[bytes]:
    yield from (b'[{"id": "b1"', b', "size": "x"}', b"]")


@pytest.mark.parametrize(
    ("body", "seconds"), [(drip, 0.5), (flood, PATIENT)], ids=["drip", "flood"]
)
def test_an_answer_without_an_end_is_cut_and_teaches_nothing(body: Any, seconds: float) -> None:
    with site({"/boxes": Page(b"", 200, JSON, body)}) as api:
        before, after, report = probe(api, seconds=seconds, paths={"/boxes": PATHS["/boxes"]})
        assert after == before
        assert (report.verdict, report.findings) == ("inconclusive", ())


def test_an_answer_in_pieces_is_one() -> None:
    with site({"/boxes": Page(b"", 200, JSON, pieces)}) as api:
        _, after, report = probe(api, paths={"/boxes": PATHS["/boxes"]})
        assert report.verdict == "passed"
        assert [one.types for one in after.widened] == [("string",)]


@pytest.mark.parametrize(
    "answer",
    [
        [{"id": {}, "size": []}],
        {"any": "thing"},
        "text",
        [[[[[]]]]],
        [{"id": [], "size": {"deep": [{}]}}] * 500,
    ],
)
def test_no_answer_makes_a_schema_that_takes_anything(answer: Any) -> None:
    with site({"/boxes": page(answer)}) as api:
        before, after, _ = probe(api, paths={"/boxes": PATHS["/boxes"]})
    assert all(set(one.types) <= set(SCALARS) and not one.values for one in after.widened)
    schema = get_checker(after.get_tool("get_boxes").output_schema)
    for bad in ([{"id": {}}], [{"size": []}], [{"size": {"a": 1}}], [[]], {"id": "x"}):
        assert schema.find_problem({"status": 200, "body": bad}) is not None
    assert before.get_tool("get_boxes").requests == after.get_tool("get_boxes").requests


def test_an_answer_of_another_scalar_is_taken() -> None:
    with site({"/boxes": page([{"id": 4, "size": None}])}) as api:
        _, after, _ = probe(api, paths={"/boxes": PATHS["/boxes"]})
    told = sorted(map(str, after.widened))
    assert "get_boxes: /body/*/id may also be integer" in told
    schema = get_checker(after.get_tool("get_boxes").output_schema)
    assert schema.find_problem({"status": 200, "body": [{"id": 4, "size": None}]}) is None


def test_an_answer_that_is_deep_or_broken_teaches_nothing() -> None:
    for body in (b"[" * 200_000, b'[{"id":' * 50_000, b'[{"size": ' + b"9" * 50_000 + b"}]"):
        with site({"/boxes": Page(body, 200, JSON)}) as api:
            before, after, report = probe(api, paths={"/boxes": PATHS["/boxes"]})
        assert (after, report.findings) == (before, ())
