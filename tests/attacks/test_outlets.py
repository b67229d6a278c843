"""Ways in which a secret could leave: every encoding of it, on every way out."""

from __future__ import annotations

import asyncio
import base64
import gzip
import hashlib
import html
import json
import zlib
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sandbox.sanitize import clean_json, clean_text, strip_unprintable
from sandbox.session.interface import Outcome
from sandbox.session.recording import CallLog
from sandbox.thirdparty.answers import COMPLETE, GET, READ, read_answer
from sandbox.wire.exchange import WireResponse
from sandbox.wire.notifications import LogListener, LogMessage, ProgressNotice
from sandbox.wire.redaction import MARK, MAX_SPANS, Redaction
from tests.attacks.answering import answering, result_line

SECRET = "Tw-c4n4ry+77/secret"
HIDE = Redaction([SECRET])
SECRETS = st.text(st.characters(min_codepoint=33, max_codepoint=0x2FFF, categories=["L", "N", "P"]))
LONG = SECRETS.filter(
    lambda text: (
        len(text) >= 8
        and not text.isdigit()
        and text.isprintable()
        and strip_unprintable(text) == text
        and not set(text) & {*"\\%&"}
    )
)
"""Without what begins an escape: between such letters a reader cannot tell what is escaped. And
without letters that nobody sees: what is left of a secret may be too short to be looked for.
"""
HIDDEN = {
    "zero width space": "\u200b",
    "soft hyphen": "\u00ad",
    "joiner": "\u200d",
    "non-joiner": "\u200c",
    "selector": "\ufe0f",
    "selectors": "\ufe0e\U000e0101",
    "filler": "\u3164",
    "braille blank": "\u2800",
    "tag": "\U000e0041",
    "direction": "\u202e",
    "byte order mark": "\ufeff",
    "NUL": "\0",
    "bell": "\a",
    "carriage return": "\r",
    "delete": "\x7f",
    "C1": "\x85",
    "private": "\ue000",
    "unassigned": "\U00050000",
    "assigned since Unicode 14": "\u0cf3",
    "colour": "\x1b[31m",
    "colour in eight bits": "\x9b31m",
    "link": "\x1b]8;;https://x.test\x07",
    "odd escape": '\x1b"0',
    "open escape": "\x1b",
}


def insert(text: str, between: str) -> str:
    return between.join(text)


def wrapped(content: bytes, width: int) -> bytes:
    return b"\r\n".join(content[at : at + width] for at in range(0, len(content), width))


ENCODINGS: dict[str, Callable[[str], bytes]] = {
    "base64 in lines of 4": lambda s: wrapped(base64.b64encode(s.encode()), 4),
    "base64 in lines of 76": lambda s: base64.encodebytes(b"x" * 50 + s.encode()),
    "base64 with escaped breaks": lambda s: wrapped(base64.b64encode(s.encode()), 5).replace(
        b"\r\n", b"\\n"
    ),
    "base64 in JSON in JSON": lambda s: json.dumps(
        json.dumps(wrapped(base64.b64encode(s.encode()), 6).decode())
    ).encode(),
    "URL-safe base64 in lines": lambda s: wrapped(base64.urlsafe_b64encode(s.encode()), 7),
    "base64 after one byte": lambda s: base64.b64encode(b"\xff" + s.encode() + b"\xff"),
    "base64 after two bytes": lambda s: base64.b64encode(b"\xff\xff" + s.encode() + b"\xff"),
    "hex": lambda s: s.encode().hex().encode(),
    "HEX": lambda s: s.encode().hex().upper().encode(),
    "hex in lines": lambda s: wrapped(s.encode().hex().encode(), 8),
    "hex as a C array": lambda s: ", ".join(f"0x{b:02X}" for b in s.encode()).encode(),
    "percent": lambda s: "".join(f"%{b:02x}" for b in s.encode()).encode(),
    "percent twice": lambda s: quote(quote(s, safe=""), safe="").encode(),
    "JSON": lambda s: json.dumps(s).encode(),
    "HTML": lambda s: html.escape(s).encode(),
    "HTML numbers": lambda s: "".join(f"&#{ord(c)};" for c in s).encode(),
    "gzip": lambda s: gzip.compress(b"padding " * 100 + s.encode()),
    "zlib in gzip": lambda s: gzip.compress(s.encode()) + gzip.compress(b"more"),
    "gzip as base64": lambda s: b"data: " + base64.b64encode(gzip.compress(s.encode())) + b" end",
    "gzip as base64 in lines": lambda s: base64.encodebytes(gzip.compress(s.encode() * 3)),
    "gzip as URL-safe base64": lambda s: base64.urlsafe_b64encode(gzip.compress(s.encode())),
    "zero width as JSON": lambda s: "\\u200b".join(s).encode(),
    "soft hyphen as HTML": lambda s: "&shy;".join(s).encode(),
    "zero width as HTML": lambda s: "&#8203;".join(s).encode(),
    "zero width as percent": lambda s: "%E2%80%8B".join(s).encode(),
    "escape sequence as JSON": lambda s: "\\u001b[0m".join(s).encode(),
}


@pytest.mark.parametrize("encoding", ENCODINGS)
@settings(max_examples=20)
@given(secret=LONG)
@example(secret="0000000\u115f")
def test_no_encoding_of_a_secret_gets_out(encoding: str, secret: str) -> None:
    echoed = ENCODINGS[encoding](secret)
    clean = Redaction([secret]).redact_bytes(echoed)
    assert MARK.encode() in clean
    assert echoed not in clean


@settings(max_examples=50)
@given(
    secret=LONG,
    hidden=st.lists(st.sampled_from(sorted(HIDDEN.values())), min_size=1, max_size=3),
    at=st.integers(1, 7),
)
def test_no_mixture_of_unseen_characters_hides_a_secret(
    secret: str, hidden: list[str], at: int
) -> None:
    echoed = f"a {secret[:at]}{''.join(hidden)}{secret[at:]} b"
    for clean in (Redaction([secret]).redact_text(echoed),):
        assert secret not in clean_text(clean)
        assert secret not in "".join(c for c in clean if c.isprintable())


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_what_is_no_secret_is_left_in_every_encoding(encoding: str) -> None:
    innocent = ENCODINGS[encoding]("Tw-c4n4ry+78/public")
    assert HIDE.redact_bytes(innocent) is innocent


@pytest.mark.parametrize("hidden", HIDDEN)
def test_text_with_unseen_characters_and_no_secret_stays_exactly_as_it_is(hidden: str) -> None:
    text = insert("nothing secret in here", HIDDEN[hidden])
    assert HIDE.redact_text(text) is text


def test_more_occurrences_than_anybody_needs_are_withheld_with_the_rest() -> None:
    clean = HIDE.redact_bytes((SECRET + ".").encode() * (MAX_SPANS + 1000))
    assert SECRET.encode() not in clean
    assert clean.count(MARK.encode()) <= MAX_SPANS + 2


def test_one_secret_inside_another_leaves_nothing_of_either() -> None:
    clean = Redaction(["abcdefgh", "ghijklmn", "defg"]).redact_text("..abcdefghijklmn..")
    assert clean == f"..{MARK}.."


def test_a_long_secret_is_found_whole_and_in_part() -> None:
    key = base64.b85encode(hashlib.shake_128(b"key").digest(2000)).decode()
    clean = Redaction([key])
    assert set(clean.redact_text(f"<{key}>").split(MARK)) == {"<", "", ">"}
    assert key[512:1024] not in clean.redact_text(f"<{key[300:1500]}>")
    assert MARK in clean.redact_text(base64.b64encode(key.encode()).decode())


def test_numbers_and_names_of_json_are_redacted() -> None:
    hide = Redaction(["7731889900", SECRET])
    assert hide.redact_json({SECRET: [7731889900, 1, True]}) == {MARK: [MARK, 1, True]}


# The ways out of a session.


def call(result: bytes, *notices: bytes) -> tuple[Outcome, list[str]]:
    """The outcome of a call with that result, and all that was told during it."""
    told: list[str] = []

    def hear(progress: ProgressNotice) -> None:
        told.append(progress.message)

    def log(message: LogMessage) -> None:
        told.append(json.dumps(message.data, ensure_ascii=False))

    async def run() -> Outcome:
        def say(identity: str, _: dict[str, Any]) -> list[bytes]:
            lines = [notice.replace(b"TOKEN", identity.encode()) for notice in notices]
            return [*lines, result_line(identity, result)]

        async with answering(say, HIDE) as session:
            tape = CallLog(heard=hear, logged=LogListener(log))
            return await session.call("say", {}, tape=tape)

    return asyncio.run(run()), told


def shown(value: Any) -> str:
    """What a reader sees of a value: cleaned, and without what is not seen."""
    text = json.dumps(clean_json(value), ensure_ascii=False)
    return "".join(letter for letter in text if letter.isprintable())


@pytest.mark.parametrize("hidden", HIDDEN)
def test_a_secret_with_something_unseen_in_it_is_in_no_result(hidden: str) -> None:
    echoed = insert(SECRET, HIDDEN[hidden])
    result = {
        "content": [
            {"type": "text", "text": f"it is {echoed}"},
            {"type": "resource", "resource": {"uri": "x:y", "text": echoed}},
        ],
        "structuredContent": {"a": [echoed], echoed: 1},
    }
    outcome, _ = call(json.dumps(result).encode())
    assert SECRET not in shown(outcome.result)
    # Cleaned, the one is a line end after each letter, the other nothing at all.
    assert MARK in shown(outcome.result) or hidden in ("carriage return", "open escape")


@pytest.mark.parametrize("hidden", HIDDEN)
def test_a_secret_with_something_unseen_in_it_is_in_no_error(hidden: str) -> None:
    echoed = insert(SECRET, HIDDEN[hidden])
    result = {
        "isError": True,
        "content": [{"type": "text", "text": f"no: {echoed}"}],
        "_meta": {"toolwright/error": {"kind": "http", "where": echoed}},
    }
    outcome, _ = call(json.dumps(result).encode())
    assert outcome.failure is not None
    assert SECRET not in shown([outcome.result, vars(outcome.failure)])


@pytest.mark.parametrize("between", ["<b></b>", "<i>", "</script>", "<!-- -->", "&#8203;<b>"])
def test_a_secret_with_tags_in_it_is_in_no_message_of_a_page(between: str) -> None:
    page = f"<html><style>x</style>{insert(SECRET, between)}<p>end</html>"
    result = {"isError": True, "content": [{"type": "text", "text": f"HTTP 404\n\n{page}"}]}
    outcome, _ = call(json.dumps(result).encode())
    assert outcome.failure is not None
    assert outcome.failure.message.endswith("end")
    assert SECRET not in shown(vars(outcome.failure))


@pytest.mark.parametrize("hidden", HIDDEN)
def test_a_secret_with_something_unseen_in_it_is_in_no_notice(hidden: str) -> None:
    echoed = insert(SECRET, HIDDEN[hidden])
    progress = {"progressToken": "TOKEN", "progress": 1, "message": f"at {echoed}"}
    log = {"level": "error", "logger": echoed, "data": {"said": [echoed], echoed: 1}}
    lines = [
        {"jsonrpc": "2.0", "method": "notifications/progress", "params": progress},
        {"jsonrpc": "2.0", "method": "notifications/message", "params": log},
        {"jsonrpc": "2.0", "method": "notifications/message", "params": {**log, "data": echoed}},
    ]
    _, told = call(b'{"content":[]}', *(json.dumps(line).encode() for line in lines))
    assert len(told) == 3
    assert SECRET not in shown(told)


def test_a_secret_in_two_notices_loses_its_second_half() -> None:
    halves = [SECRET[:10], SECRET[10:]]
    lines = [
        {
            "jsonrpc": "2.0",
            "method": "notifications/message",
            "params": {"level": "info", "data": h},
        }
        for h in halves
    ]
    _, told = call(b'{"content":[]}', *(json.dumps(line).encode() for line in lines))
    assert SECRET[10:] not in "".join(told)


def test_a_secret_over_two_blocks_is_found() -> None:
    texts = ["it is ", SECRET[:9], SECRET[9:], "."]
    result = {"content": [{"type": "text", "text": text} for text in texts]}
    outcome, _ = call(json.dumps(result).encode())
    assert [block["text"] for block in outcome.result["content"]] == ["it is ", MARK, MARK, "."]


def test_what_is_told_without_a_secret_comes_as_it_was_said() -> None:
    progress = {"progressToken": "TOKEN", "progress": 1, "message": "half of it"}
    lines = [
        {"jsonrpc": "2.0", "method": "notifications/progress", "params": progress},
        {
            "jsonrpc": "2.0",
            "method": "notifications/message",
            "params": {"level": "info", "data": 7},
        },
    ]
    result = {"content": [{"type": "text", "text": "\u0645\u06cc\u200c\u062e 1\ufe0f\u20e3"}]}
    outcome, told = call(
        json.dumps(result).encode(), *(json.dumps(line).encode() for line in lines)
    )
    assert outcome.text == "\u0645\u06cc\u200c\u062e 1\ufe0f\u20e3"
    assert told == ["half of it", "7"]


@pytest.mark.parametrize("hidden", HIDDEN)
@pytest.mark.parametrize("method", [READ, GET, COMPLETE])
def test_a_secret_with_something_unseen_in_it_is_in_no_other_answer(
    method: str, hidden: str
) -> None:
    echoed = insert(SECRET, HIDDEN[hidden])
    results: dict[str, Any] = {
        READ: {"contents": [{"uri": "x:y", "text": echoed}]},
        GET: {
            "description": echoed,
            "messages": [{"role": "user", "content": {"type": "text", "text": echoed}}],
        },
        COMPLETE: {"completion": {"values": [echoed]}},
    }
    for answer in ({"result": results[method]}, {"error": {"code": -1, "message": echoed}}):
        told = read_answer(method, answer, HIDE)
        assert SECRET not in shown([told.result, told.message])


@pytest.mark.parametrize("encoding", ["gzip", "zero width as JSON", "base64 in lines of 4"])
def test_an_api_s_answer_is_redacted_before_code_or_records_have_it(encoding: str) -> None:
    body = ENCODINGS[encoding](SECRET)
    clean = HIDE.redact_response(WireResponse(200, (("x-echo", "\u00ad".join(SECRET)),), body))
    assert body not in clean.body
    assert dict(clean.headers)["x-echo"] == MARK


def test_packed_data_that_holds_no_secret_is_let_through_and_what_has_no_end_is_not() -> None:
    innocent = gzip.compress(b"nothing" * 100_000)
    assert HIDE.redact_bytes(innocent) is innocent
    assert HIDE.redact_bytes(b"\x1f\x8bnot gzip") == b"\x1f\x8bnot gzip"
    bomb = zlib.compressobj(9, wbits=31)
    packed = b"".join(bomb.compress(bytes(1 << 20)) for _ in range(140)) + bomb.flush()
    assert HIDE.redact_bytes(packed) == MARK.encode()
