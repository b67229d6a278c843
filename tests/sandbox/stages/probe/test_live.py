"""The live stage as a probe: what it asks of an API, when it stops, and what it learns."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from forge.compiler.compile import compile_document
from forge.readers.document import parse_document
from orchestrator.forging.learning import learn_from_probe
from sandbox.broker.broker import Broker
from sandbox.bundle.credential import Credential
from sandbox.bundle.model import Bundle, parse_files, render_files
from sandbox.bundle.report import Proof, StageReport, from_json, to_json
from sandbox.bundle.widening import MAX_LEARNED
from sandbox.clock import VirtualClock
from sandbox.killswitch import KillSwitch
from sandbox.schemas.validator import get_checker
from sandbox.stages.live import prove_live, restrict_broker
from sandbox.stages.probe.budget import ProbeBudget
from sandbox.stages.prove import find_live_obstacle, prove_bundle, prove_widened
from sandbox.wire.exchange import WireRequest, WireResponse
from sandbox.wire.policy import Policy
from tests.sandbox.local import LocalRunner

BOX = {
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "size": {"type": "integer"},
        "note": {"type": "string"},
        "lid": {"type": "object", "properties": {"open": {"type": "boolean"}}},
    },
}
BOXES = {"type": "array", "items": BOX}
OTHER = ("/version", "/labels", "/colours")
SECRET = "VALUE-OF-AN-ANSWER-5519"
Answer = Callable[[WireRequest], WireResponse]


def described(paths: Mapping[str, Any], **schemas: Any) -> Bundle:
    """A bundle of GETs, by path and answer schema; `writes` take part in them."""
    made: dict[str, Any] = {}
    for path, schema in paths.items():
        names = [part[1:-1] for part in path.split("/") if part.startswith("{")]
        given = [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
            for name in names
        ]
        content = {"application/json": {"schema": schema}}
        ok = {"responses": {"200": {"description": "ok", "content": content}}}
        made[path] = {"get": {"parameters": given, **ok}, "delete": {"parameters": given, **ok}}
    document = {
        "openapi": "3.0.3",
        "info": {"title": "Boxes", "version": "1"},
        "servers": [{"url": "https://api.test"}],
        "paths": made,
        "components": {"schemas": schemas},
    }
    return compile_document(parse_document(json.dumps(document).encode(), "boxes.json")).bundle


BOXED = described(
    {
        "/boxes": BOXES,
        "/boxes/{box_id}": BOX,
        "/boxes/{box_id}/delete": BOX,
        "/boxes/{box_id}/labels": {"type": "array", "items": {"type": "string"}},
        "/tokens": {"type": "array", "items": BOX},
        "/logout": BOX,
        **{path: {"type": "object", "properties": {"name": {"type": "string"}}} for path in OTHER},
    }
)


def page(value: Any, status: int = 200, **headers: str) -> WireResponse:
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    return WireResponse(status, (("content-type", "application/json"), *headers.items()), body)


class Api:
    """An upstream in place of the network. Each answer takes `seconds` of its clock."""

    def __init__(self, answer: Answer, clock: VirtualClock, seconds: float = 0.0) -> None:
        self.answer, self.clock, self.seconds = answer, clock, seconds
        self.asked: list[str] = []

    async def send(self, request: WireRequest) -> WireResponse:
        self.asked.append(f"{request.method} {request.url.removeprefix('https://api.test')}")
        await self.clock.sleep(self.seconds)
        return self.answer(request)


def probed(
    answer: Answer,
    bundle: Bundle = BOXED,
    seconds: float = 0.0,
    requests: int = 10,
    brake: KillSwitch | None = None,
    withheld: frozenset[str] = frozenset(),
) -> tuple[Bundle, Proof, list[str]]:
    """What a bundle learned, the proof that is its live stage, and what the API was asked."""
    clock = VirtualClock()
    api = Api(answer, clock, seconds)
    broker = Broker(Policy(()), api, clock=clock, kill_switch=brake)
    meter = restrict_broker(broker, bundle, ProbeBudget(requests, clock=clock), withheld)

    async def run() -> StageReport:
        async with LocalRunner().open(bundle, broker) as session:
            return await prove_live(bundle, session, meter, withheld)

    proof = Proof("", (asyncio.run(run()),))
    return learn_from_probe(bundle, proof), proof, api.asked


def proved(answer: Answer, requests: int = 10) -> tuple[Proof, list[str]]:
    """The whole proof of a bundle, and what the API was asked."""
    clock = VirtualClock()
    api = Api(answer, clock)
    budget = ProbeBudget(requests, clock=clock)
    broker = Broker(Policy(()), api, clock=clock)
    return asyncio.run(prove_bundle(BOXED, LocalRunner(), live=broker, probe=budget)), api.asked


def live(proof: Proof) -> StageReport:
    return next(report for report in proof.reports if report.stage == "live")


def honest(request: WireRequest) -> WireResponse:
    path = request.url.removeprefix("https://api.test")
    if path == "/boxes":
        return page([{"id": "b1", "size": 4}, {"id": "b2"}])
    if path.endswith("/labels") and path != "/labels":
        return page(["red"])
    return page({"id": "b1", "name": "oar"})


def real(request: WireRequest) -> WireResponse:
    path = request.url.removeprefix("https://api.test")
    box = {"id": "b1", "size": "4", "note": None, "lid": {"open": None}, "more": SECRET}
    return page([box]) if path == "/boxes" else page({**box, "id": SECRET})


def told(bundle: Bundle) -> list[str]:
    return sorted(map(str, bundle.widened))


def test_an_answer_of_other_types_widens_the_schema_before_anything_is_registered() -> None:
    made, proof, _ = probed(real)
    assert "get_boxes: /body/*/size may also be string" in told(made)
    assert "get_boxes_by_box_id: /body/size may also be string" in told(made)
    box = {"id": "b1", "size": "4", "note": None, "lid": {"open": None}}
    listed = get_checker(made.get_tool("get_boxes").output_schema)
    assert listed.find_problem({"status": 200, "body": [box]}) is None
    assert listed.find_problem({"status": 200, "body": [{"size": [4]}]}) is not None
    note = live(proof).note
    assert "null in practice" in note
    assert "`size` of get_boxes is a string in practice" in note
    assert live(proof).verdict == "passed"


def test_the_document_that_is_right_teaches_nothing() -> None:
    made, proof, _ = probed(honest)
    assert made == BOXED
    assert (live(proof).verdict, live(proof).findings, live(proof).note) == ("passed", (), "")


def test_what_was_learned_is_proved_and_only_what_it_changed_is_run_again() -> None:
    proof, _ = proved(real)
    made = learn_from_probe(BOXED, proof)
    again = asyncio.run(prove_widened(proof, BOXED, made, LocalRunner()))
    whole = asyncio.run(prove_bundle(made, LocalRunner()))
    assert again.passed
    assert again.bundle_digest == made.compute_digest() != BOXED.compute_digest()
    cells = [{(c.operation, c.case, c.verdict) for c in p.reports[1].cases} for p in (again, whole)]
    assert cells[0] == cells[1]
    assert live(again) == live(proof)


def test_nothing_of_a_value_is_in_what_is_kept() -> None:
    made, proof, asked = probed(real)
    assert any(SECRET in line for line in asked) is False
    kept = b"".join(render_files(made).values()).decode()
    assert SECRET not in kept + json.dumps([to_json(report) for report in proof.reports])
    ids = probed(honest)[1]
    assert "b1" not in json.dumps([to_json(report) for report in ids.reports])
    assert "/boxes/{box_id}" in live(ids).cases[-1].evidence + str(live(ids).cases)


def test_the_report_and_the_bundle_come_back_from_what_is_stored() -> None:
    made, proof, _ = probed(real)
    assert live(proof).learned
    assert from_json(json.loads(json.dumps(to_json(live(proof))))) == live(proof)
    assert parse_files(render_files(made), "") == made


def test_reads_without_arguments_come_first_and_ids_feed_the_read_of_one() -> None:
    _, _, asked = probed(honest)
    assert asked[0] == "GET /boxes"
    assert {"GET /boxes/b1", "GET /boxes/b1/labels"} <= set(asked)
    assert len(asked) <= 10


def test_nothing_that_writes_or_acts_by_its_name_is_asked() -> None:
    _, _, asked = probed(honest)
    assert {line.partition(" ")[0] for line in asked} == {"GET"}
    assert not [line for line in asked if "delete" in line or "token" in line or "logout" in line]


def test_what_a_person_classified_as_a_write_is_not_asked() -> None:
    _, _, asked = probed(honest, withheld=frozenset({"get_boxes", "get_labels"}))
    assert asked
    assert not [line for line in asked if line in ("GET /boxes", "GET /labels")]


@pytest.mark.parametrize("requests", [1, 4, 10])
def test_the_number_of_requests_is_kept_to(requests: int) -> None:
    many = described({f"/things{n}": BOX for n in range(30)})
    _, _, asked = probed(honest, many, requests=requests)
    assert len(asked) == requests


def test_no_requests_are_none() -> None:
    proof, asked = proved(honest, requests=0)
    assert asked == []
    assert (live(proof).verdict, proof.passed) == ("skipped", True)


def test_pages_that_lead_on_count_as_requests() -> None:
    def endless(request: WireRequest) -> WireResponse:
        return WireResponse(302, (("location", "https://api.test/version"),))

    _, proof, asked = probed(endless)
    assert len(asked) <= 10
    assert proof.passed


def test_time_cuts_what_takes_too_long() -> None:
    _, proof, asked = probed(honest, seconds=1.0)
    assert len(asked) <= 3
    assert proof.passed
    _, proof, asked = probed(honest, seconds=100.0)
    assert len(asked) == 1
    assert live(proof).verdict == "inconclusive"


@pytest.mark.parametrize("status", [401, 403, 404, 500, 503])
def test_a_refusal_teaches_nothing_and_is_not_insisted_on(status: int) -> None:
    made, proof, asked = probed(lambda request: page({"size": "x", "id": None}, status))
    assert made == BOXED
    assert len(asked) == 3
    assert (live(proof).verdict, live(proof).findings, proof.passed) == ("inconclusive", (), True)


@pytest.mark.parametrize("status", [401, 403])
def test_a_refusal_for_want_of_a_credential_says_what_to_set(status: int) -> None:
    def barred(request: WireRequest) -> WireResponse:
        return page({}, status)

    _, proof, _ = probed(barred)
    assert f"{status}, and no credential is declared: see forge --auth" in live(proof).note
    keyed = replace(BOXED, credentials=(Credential("key", "apiKey", parameter="X-Key"),))
    _, proof, _ = probed(barred, keyed)
    assert "`toolwright secret set boxes.key`" in live(proof).note


def test_what_a_document_promises_and_an_answer_lacks_is_no_difference() -> None:
    strict = described({"/box": {**BOX, "required": ["id", "size"]}})
    made, proof, _ = probed(lambda request: page({"id": "b1"}), strict)
    assert (made, live(proof).verdict, live(proof).note) == (strict, "passed", "")


@pytest.mark.parametrize("headers", [{}, {"retry-after": "1"}, {"retry-after": "3600"}])
def test_a_limit_ends_the_probe(headers: dict[str, str]) -> None:
    made, proof, asked = probed(lambda request: page({}, 429, **headers))
    assert made == BOXED
    assert len(asked) == 1
    assert "wait" in live(proof).note


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>", b'{"size": "x"', b'{"a":1}\n{"a":2}', b"[" * 100_000, b"9" * 10_000, b"\xff"],
)
def test_a_broken_answer_teaches_nothing(body: bytes) -> None:
    made, proof, _ = probed(lambda request: page(body))
    assert made == BOXED
    assert live(proof).findings == ()
    assert proof.passed


def test_a_freeze_ends_the_probe_before_a_byte_leaves() -> None:
    brake = KillSwitch()

    def freeze(request: WireRequest) -> WireResponse:
        brake.engage()
        return honest(request)

    _, proof, asked = probed(freeze, brake=brake)
    assert len(asked) == 1
    assert "frozen" in live(proof).note


def test_a_list_or_an_object_in_the_place_of_a_scalar_is_told_and_not_taken() -> None:
    def shaped(request: WireRequest) -> WireResponse:
        return page([{"size": {"any": "thing"}}, {"note": None}])

    made, proof, _ = probed(shaped)
    assert made == BOXED
    assert "`size` of get_boxes is an object in practice" in live(proof).note


@pytest.mark.parametrize("count", [100, 300])
def test_a_widening_never_takes_away_what_a_schema_holds(count: int) -> None:
    """At 300 the schema is as large as one may be: one that grew would be cut."""
    fields = {f"f{n}": {"type": "integer"} for n in range(count)}
    wide = described({"/wide": {"type": "object", "properties": fields}})
    values: list[Any] = [None, "x", 1.5, True]
    made, proof, _ = probed(
        lambda request: page({name: values[n % 4] for n, name in enumerate(fields)}), wide
    )
    assert len(live(proof).learned) > 0
    assert len(made.widened) <= MAX_LEARNED
    assert bool(made.widened) == (count < 300)
    checker = get_checker(made.get_tool("get_wide").output_schema)
    for bad in ([], {}):
        for name in fields:
            assert checker.find_problem({"status": 200, "body": {name: bad}}) is not None


def test_what_was_learned_before_is_not_learned_again() -> None:
    made, _, _ = probed(real)
    again, proof, _ = probed(real, made)
    assert again == made
    assert live(proof).learned == ()


def test_what_is_not_asked_says_why() -> None:
    def note(bundle: Bundle) -> str:
        broker = Broker(Policy(()), Api(honest, VirtualClock()))
        return find_live_obstacle(bundle, broker, None, frozenset())

    assert note(replace(BOXED, spec=None)) == "there is no API to ask"
    only_one = described({"/boxes/{box_id}": BOX})
    assert note(only_one) == "no read by GET can be called without arguments"
    assert note(BOXED) == ""
