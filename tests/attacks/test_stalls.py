"""Answers that take long to read, and the other servers' calls that must not wait for them."""

from __future__ import annotations

import asyncio
import base64
import gzip
import itertools
import json
from collections.abc import Callable, Collection, Coroutine, Mapping
from typing import Any

import pytest

from forge.discovery.search import Discovery, NotFound, discover_description
from forge.sources import ApiSource, FetchResponse
from sandbox import exactjson
from sandbox.broker.broker import Broker
from sandbox.errors import UpstreamUnreachable
from sandbox.offload import INLINE_BYTES
from sandbox.session.interface import Limits, Outcome
from sandbox.session.pipe import MAX_NOTICE, PipeSession
from sandbox.session.recording import CallLog
from sandbox.wire.exchange import Headers, WireRequest
from sandbox.wire.framing import measure_depth, parse_message
from sandbox.wire.notifications import LogListener, LogMessage, ProgressNotice
from sandbox.wire.policy import Policy
from sandbox.wire.redaction import Redaction
from tests.attacks.answering import ANY, Say, answering, result_line, text_result
from tests.sandbox.scripted import Told

SECRET = "canary-7731-secret"
MEGABYTE = 1024 * 1024
HONEST = 5
"""Calls of an honest server that end before the hostile answer is read."""


def structured(value: str) -> bytes:
    return b'{"content":[],"structuredContent":{"a":%s}}' % value.encode()


def escaped(text: str) -> bytes:
    """A result with a text that is escaped already, so that nothing is written out twice."""
    return b'{"content":[{"type":"text","text":"%s"}]}' % text.encode()


HOSTILE: dict[str, Callable[[], bytes]] = {
    "invisible characters": lambda: escaped("\u200b" * (8 * MEGABYTE)),
    "invisible characters between others": lambda: escaped("a\u200b" * (6 * MEGABYTE)),
    "selectors": lambda: escaped("\u00e9\ufe0f\ufe0f" * (3 * MEGABYTE)),
    "open escapes": lambda: escaped("\\u001b]" * (4 * MEGABYTE)),
    "a million containers": lambda: structured("[" + "[]," * 900_000 + "1]"),
    "a million objects": lambda: structured("[" + '{"a":1},' * 900_000 + "1]"),
    "four million numbers": lambda: structured("[" + "1," * 3_900_000 + "1]"),
    "numbers of 19 digits": lambda: structured("[" + "1234567890123456789," * 1_500_000 + "1]"),
    "numbers of 21 digits": lambda: structured("[" + "123456789012345678901," * 800_000 + "1]"),
    "keys": lambda: structured("{" + ",".join(f'"k{n}":1' for n in range(900_000)) + "}"),
    "a secret again and again": lambda: escaped((SECRET + ".") * 600_000),
    "nearly a secret": lambda: escaped(SECRET[:-1] * 1_000_000),
    "much text": lambda: escaped("plain text and nothing else, " * 1_000_000),
}


def hostile(what: str) -> Say:
    result = HOSTILE[what]()
    return lambda identity, _: [result_line(identity, result)]


def honest(identity: str, _: dict[str, Any]) -> list[bytes]:
    return [result_line(identity, text_result("fine"))]


async def race(
    say: Say, secrets: Redaction | None, gives: Mapping[str, Any] = ANY
) -> tuple[int, Outcome]:
    """The honest calls that ended before a hostile one, which was there first, and its outcome."""
    async with answering(say, secrets, gives=gives) as slow, answering(honest) as quick:
        return await race_call(slow.call("say", {}), quick)


async def race_call(slow: Coroutine[Any, Any, Outcome], quick: PipeSession) -> tuple[int, Outcome]:
    """As `race`, of a call that is not under way yet."""
    running = asyncio.create_task(slow)
    await asyncio.sleep(0)
    ended = 0
    while ended < HONEST and not running.done():
        assert (await quick.call("say", {})).ok
        # A turn of the loop, in which the hostile one ends if it can.
        await asyncio.sleep(0)
        ended += not running.done()
    return ended, await running


@pytest.mark.parametrize("secrets", [None, Redaction([SECRET])], ids=["forged", "third-party"])
@pytest.mark.parametrize("what", HOSTILE)
def test_an_honest_call_does_not_wait_for_a_hostile_answer(
    what: str, secrets: Redaction | None
) -> None:
    ended, outcome = asyncio.run(race(hostile(what), secrets))
    assert ended == HONEST
    assert SECRET not in outcome.text or secrets is None


def test_an_honest_call_does_not_wait_for_a_small_answer_that_breaks_its_schema_everywhere() -> (
    None
):
    result = structured("[" + "1," * 50_000 + "1]")
    assert len(result) < INLINE_BYTES
    gives = {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string"}}}}
    ended, outcome = asyncio.run(race(lambda id, _: [result_line(id, result)], None, gives))
    assert ended == HONEST
    assert outcome.failure is not None
    assert outcome.failure.kind == "schema"


def test_an_honest_call_does_not_wait_for_a_small_answer_of_thousands_of_blocks() -> None:
    blocks = [{"type": "text", "text": word} for word in ["a"] * 6_000 + [SECRET]]
    result = json.dumps({"content": blocks}).encode()
    assert len(result) < INLINE_BYTES
    ended, outcome = asyncio.run(race(lambda id, _: [result_line(id, result)], Redaction([SECRET])))
    assert ended == HONEST
    assert SECRET not in json.dumps(outcome.result)


BOMB = base64.b64encode(gzip.compress(b"\0" * 50_000_000)).decode()
PACKED = {
    "as text": escaped(BOMB),
    "as text with an escaped letter": escaped(BOMB.replace("H", "\\u0048", 1)),
    "as structured content": structured(json.dumps(BOMB)),
    "as an image": json.dumps(
        {"content": [{"type": "image", "mimeType": "image/png", "data": BOMB}]}
    ).encode(),
    "as text in bytes": json.dumps(
        {
            "content": [
                {
                    "type": "resource",
                    "resource": {
                        "uri": "a:b",
                        "blob": base64.b64encode(f"a {BOMB}".encode()).decode(),
                    },
                }
            ]
        }
    ).encode(),
}


@pytest.mark.parametrize("packed", PACKED)
def test_an_honest_call_does_not_wait_for_a_small_answer_that_unpacks_to_much(packed: str) -> None:
    result = PACKED[packed]
    assert len(result) < INLINE_BYTES
    ended, _ = asyncio.run(race(lambda id, _: [result_line(id, result)], Redaction([SECRET])))
    assert ended == HONEST


WIDE = {
    "alternatives": {"anyOf": [{"type": "string", "minLength": n} for n in range(150)]},
    "choices": {"enum": [[n] for n in range(3_000)]},
    "few alternatives": {"anyOf": [{"type": "string", "minLength": n} for n in range(50)]},
}


@pytest.mark.parametrize("wide", WIDE)
def test_an_honest_call_does_not_wait_for_a_small_answer_that_has_a_wide_schema(wide: str) -> None:
    result = structured("[" + "1," * 450 + "1]")
    assert len(result) < 1000
    gives = {"type": "object", "properties": {"a": {"type": "array", "items": WIDE[wide]}}}
    ended, outcome = asyncio.run(race(lambda id, _: [result_line(id, result)], None, gives))
    assert ended == HONEST
    assert outcome.failure is not None
    assert outcome.failure.kind == "schema"


@pytest.mark.parametrize("wide", WIDE)
def test_an_honest_call_does_not_wait_for_few_arguments_that_have_a_wide_schema(wide: str) -> None:
    takes = {"type": "object", "properties": {"a": {"type": "array", "items": WIDE[wide]}}}

    async def run() -> tuple[int, Outcome]:
        async with answering(honest, takes=takes) as slow, answering(honest) as quick:
            return await race_call(slow.call("say", {"a": [1] * 450}), quick)

    ended, outcome = asyncio.run(run())
    assert ended == HONEST
    assert outcome.failure is not None
    assert outcome.failure.kind == "arguments"


def test_nothing_waits_until_the_body_of_a_request_is_read() -> None:
    form = (("content-type", "application/x-www-form-urlencoded"),)
    request = WireRequest("POST", "https://api.test/a", form, b"%41&" * (INLINE_BYTES // 4))

    async def run() -> tuple[str, int]:
        asking = asyncio.create_task(Broker(Policy(()), Told([])).perform(request))
        turns = 0
        while not asking.done():
            turns += 1
            await asyncio.sleep(0)
        return (await asking).refusal, turns

    refusal, turns = asyncio.run(run())
    assert refusal == "refused"
    assert turns > HONEST * 100


def test_a_large_answer_comes_whole_and_in_its_order() -> None:
    items = [{"id": n, "name": f"item {n}", "big": 10**25 + n} for n in range(20_000)]
    large = {"content": [{"type": "text", "text": "x"}], "structuredContent": {"items": items}}
    results = itertools.cycle([json.dumps(large).encode(), text_result("small")])

    async def run() -> list[Outcome]:
        async with answering(lambda id, _: [result_line(id, next(results))]) as session:
            return list(await asyncio.gather(*(session.call("say", {}) for _ in range(6))))

    outcomes = asyncio.run(run())
    assert [outcome.structured for outcome in outcomes[::2]] == [{"items": items}] * 3
    assert [outcome.text for outcome in outcomes[1::2]] == ["small"] * 3
    assert outcomes[0].size > INLINE_BYTES


def test_an_answer_counts_whose_server_ends_right_after_it() -> None:
    result = text_result("x" * MEGABYTE)

    async def run() -> Outcome:
        def say(identity: str, _: dict[str, Any]) -> list[bytes]:
            asyncio.get_running_loop().call_soon(lambda: session.end())
            return [result_line(identity, result)]

        async with answering(say) as session:
            return await session.call("say", {})

    assert len(asyncio.run(run()).text) == MEGABYTE


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","id":[' + b"1," * 3_000_000 + b'1],"result":{}}',
        b'{"jsonrpc":"2.0","id":"' + b"1" * 3_000_000 + b'","result":{}}',
        b'{"jsonrpc":"2.0","id":' + b"1" * 3000 + b',"result":{}}',
        b'{"jsonrpc":"2.0","id":[' + b"1," * 3_000_000 + b'1],"method":"toolwright/request"}',
        b'{"jsonrpc":"2.0","method":"toolwright/request","id":1,"params":{"call":['
        + b"1," * 3_000_000
        + b"1]}}",
        b'{"jsonrpc":"2.0","method":["' + b"a" * MEGABYTE + b'"],"id":1}',
    ],
    ids=["list as id", "long id", "long number", "id of a request", "call", "method"],
)
@pytest.mark.parametrize("secrets", [None, Redaction([SECRET])], ids=["forged", "third-party"])
def test_what_is_no_id_is_never_written_out(line: bytes, secrets: Redaction | None) -> None:
    async def run() -> tuple[Outcome, int]:
        def say(identity: str, _: dict[str, Any]) -> list[bytes]:
            return [line, result_line(identity, text_result("fine"))]

        async with answering(say, secrets) as session:
            return await session.call("say", {}), session.strays

    outcome, strays = asyncio.run(run())
    assert outcome.text == "fine"
    assert strays <= 1


def notice(method: str, **params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode()


def test_a_notice_without_end_is_dropped_and_a_short_one_heard() -> None:
    heard: list[LogMessage] = []
    told: list[ProgressNotice] = []

    def say(identity: str, _: dict[str, Any]) -> list[bytes]:
        return [
            notice("notifications/message", level="info", data="x" * (MAX_NOTICE + 1)),
            notice("notifications/message", level="info", data=["short", 1]),
            notice("notifications/progress", progressToken=identity, progress=1, message="a"),
            notice(
                "notifications/progress",
                progressToken=identity,
                progress=2,
                message="\u200b" * MAX_NOTICE,
            ),
            result_line(identity, text_result("fine")),
        ]

    async def run() -> None:
        async with answering(say, Redaction([SECRET])) as session:
            tape = CallLog(heard=told.append, logged=LogListener(heard.append))
            assert (await session.call("say", {}, tape=tape)).text == "fine"

    asyncio.run(run())
    assert [message.data for message in heard] == [["short", 1]]
    assert [progress.message for progress in told] == ["a"]


LONG_TO_CLEAN = ["a"] * (MAX_NOTICE // 5 - 100)
UNHEARD = {
    "below the level": {"level": "debug", "data": LONG_TO_CLEAN},
    "in another member": {"level": "info", "data": 1, "more": LONG_TO_CLEAN},
    "as the logger's name": {"level": "info", "data": 1, "logger": LONG_TO_CLEAN},
    "of no level": {"level": LONG_TO_CLEAN, "data": 1},
}


@pytest.mark.parametrize("what", UNHEARD)
def test_what_nobody_hears_of_log_messages_is_not_cleaned(what: str) -> None:
    """To clean one takes a fifth of a second, in which nothing else is done."""
    heard: list[LogMessage] = []
    line = notice("notifications/message", **UNHEARD[what])
    assert len(line) < MAX_NOTICE

    async def run() -> None:
        def say(identity: str, _: dict[str, Any]) -> list[bytes]:
            return [*[line] * 500, result_line(identity, text_result("fine"))]

        limits = Limits(answer_bytes=1000 * MAX_NOTICE, strays=1000)
        async with answering(say, Redaction([SECRET]), limits) as session:
            tape = CallLog(logged=LogListener(heard.append))
            assert (await session.call("say", {}, tape=tape)).text == "fine"

    asyncio.run(run())
    assert {str(message.data) for message in heard} <= {"1"}


@pytest.mark.parametrize("levels", [1, 64, 128, 129, 1000])
def test_depth_is_measured_level_by_level(levels: int) -> None:
    value: Any = 1
    for _ in range(levels):
        value = {"a": [0, value]} if levels < 3 else [value, value] if levels < 10 else [value]
    assert (measure_depth(value, 128) > 128) == (levels > 128)


@pytest.mark.parametrize("token", [b"NaN", b"Infinity", b"-Infinity", b"1e999", b"-1e999"])
@pytest.mark.parametrize("beside", [b"1", b"123456789012345678901234"])
def test_what_is_no_number_is_not_read_whatever_stands_beside_it(
    token: bytes, beside: bytes
) -> None:
    line = b'{"jsonrpc":"2.0","id":"1","result":[' + beside + b"," + token + b"]}"
    assert parse_message(line, 128) is None


@pytest.mark.parametrize("number", [float("inf"), float("-inf"), float("nan")])
def test_what_is_no_number_is_written_as_null(number: float) -> None:
    for beside in (1, 10**30, "\ud800"):
        written = exactjson.dumps({"a": [number, beside]})
        assert json.loads(written, parse_constant=pytest.fail)["a"][0] is None


@pytest.mark.parametrize(
    "number", [2**63 - 1, 2**63, 2**64 - 1, 2**64, -(2**63), -(2**63) - 1, 10**18, 10**40, 1.5]
)
def test_every_integer_is_kept_exactly(number: float) -> None:
    assert exactjson.loads(exactjson.dumps([number, -1])) == [number, -1]


@pytest.mark.parametrize(
    "result",
    [
        b"[" * INLINE_BYTES + b"]" * INLINE_BYTES,
        b"[" + b"[]," * 1_000_000 + b"1]",
        b"x" * (2 * INLINE_BYTES),
    ],
    ids=["too deep", "too many values", "no JSON"],
)
def test_a_large_line_that_is_no_answer_fails_its_call_and_no_other(result: bytes) -> None:
    def say(identity: str, arguments: dict[str, Any]) -> list[bytes]:
        return [result_line(identity, result if arguments else text_result("well"))]

    async def run() -> tuple[Outcome, Outcome, int]:
        async with answering(say) as session:
            failed, well = await asyncio.gather(
                session.call("say", {"a": 1}), session.call("say", {})
            )
            return failed, well, session.strays

    failed, well, strays = asyncio.run(run())
    assert failed.failure is not None
    assert "cannot be read" in failed.failure.message
    assert well.ok
    assert strays == 0


@pytest.mark.parametrize(("named", "fits"), [("", True), ("0", False)], ids=["its", "another"])
def test_a_large_answer_that_an_engine_hands_over_is_to_what_was_asked(
    named: str, fits: bool
) -> None:
    async def run() -> Outcome:
        async with answering(lambda identity, _: []) as session:
            call = asyncio.ensure_future(session.call("say", {}))
            while not session.tapes:
                await asyncio.sleep(0)
            (asked,) = session.tapes
            line = result_line(named or asked, text_result("x" * (2 * INLINE_BYTES)))
            session.feed_answer(asked, line)
            return await call

    assert asyncio.run(run()).ok is fits


REFUSAL = b"<html><body>" + b"<p id=1>a" * 2_000


async def search(places: Collection[str]) -> tuple[Discovery, int]:
    """What a search finds at a host that answers at these places, with an error and a page about
    it, and the turns of the loop from its last answer to the end.
    """
    turns = 0

    async def fetch(url: str, headers: Headers, body: bytes = b"") -> FetchResponse:
        nonlocal turns
        if (url.removeprefix("https://api.test") or "/") not in places:
            raise UpstreamUnreachable(f"{url} is not there")
        turns = 0
        return FetchResponse(404, (("content-type", "text/html"),), REFUSAL, url)

    searching = asyncio.create_task(discover_description(ApiSource("https://api.test"), fetch))
    while not searching.done():
        turns += 1
        await asyncio.sleep(0)
    return searching.result(), turns


def test_nothing_waits_until_the_pages_that_answered_a_search_are_read() -> None:
    places = ("/", "/openapi.json", "/swagger.json", "/openapi.yaml", "/swagger.yaml", "/docs")
    # What is loaded for the first search is loaded beside the loop as well.
    asyncio.run(search(places))
    found, turns = asyncio.run(search(places))
    assert isinstance(found, NotFound)
    assert "HTTP 404" in found.reason
    # Read in the loop they would leave it the few turns that short pages leave it.
    assert turns > HONEST * 40
