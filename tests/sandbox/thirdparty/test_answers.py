"""Answers and log messages of third-party servers, read as hostile text."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from sandbox.thirdparty.answers import COMPLETE, GET, MAX_VALUES, READ, read_answer
from sandbox.wire.notifications import (
    MAX_DATA,
    MAX_LOGGED,
    LogListener,
    LogMessage,
    read_log_message,
)
from sandbox.wire.redaction import Redaction

HIDE = Redaction(["sesame-sesame-4711"])
PART = {"uri": "notes://1", "mimeType": "text/plain", "text": "words"}
SAID = {"role": "user", "content": {"type": "text", "text": "words"}}


def read(method: str, result: Any) -> Any:
    return read_answer(method, {"id": 1, "result": result}, HIDE)


def test_contents_hold_no_invisible_text_no_secret_and_nothing_that_is_not_mcps() -> None:
    text = {**PART, "text": "a\u200b\x1b[31m sesame-sesame-4711", "_meta": {"x": 1}, "more": 2}
    made = read(READ, {"contents": [text, 7], "more": 1, "_meta": {}})
    assert made.result == {"contents": [{**PART, "text": "a [redacted]"}]}
    assert made.dropped == 1


def test_a_blob_is_judged_by_its_bytes() -> None:
    blob = base64.b64encode(b"key=sesame-sesame-4711").decode()
    made = read(READ, {"contents": [{"uri": "notes://1", "blob": blob}]})
    assert b"sesame" not in base64.b64decode(made.result["contents"][0]["blob"])


@pytest.mark.parametrize(
    ("method", "result"),
    [
        (READ, None),
        (READ, {}),
        (READ, {"contents": "text"}),
        (READ, {"contents": [{"uri": "notes://1"}]}),
        (READ, {"contents": [{"uri": "no uri", "text": ""}]}),
        (READ, {"contents": [{**PART, "blob": "AAAA"}]}),
        (READ, {"contents": [{"uri": "notes://1", "blob": "no base64!"}]}),
        (READ, {"contents": [{"uri": "notes://1", "blob": "A" * (17 << 20)}]}),
        (GET, {"messages": {}}),
        (GET, {"messages": [{"role": "user", "content": {"type": "ui"}}]}),
        (COMPLETE, {"completion": {"values": "all"}}),
        (COMPLETE, {"completion": []}),
    ],
)
def test_what_is_no_answer_is_an_error(method: str, result: Any) -> None:
    made = read(method, result)
    assert made.result is None
    assert made.code == -32603


def test_a_prompt_has_messages_of_user_and_assistant_and_a_description() -> None:
    strange = [{"role": "system", "content": SAID["content"]}, {"role": "user", "content": "x"}]
    made = read(GET, {"messages": [SAID, *strange], "description": "A\x07 prompt", "_meta": {}})
    assert made.result == {"messages": [SAID], "description": "A prompt"}
    assert made.dropped == 2


def test_completions_are_so_many_short_texts() -> None:
    values = [*(str(n) for n in range(MAX_VALUES + 5)), 7, "x" * 2000]
    made = read(COMPLETE, {"completion": {"values": values, "total": 9, "hasMore": True}})
    assert len(made.result["completion"]["values"]) == MAX_VALUES
    assert made.result["completion"]["total"] == 9
    assert made.dropped == 7


def test_a_server_may_not_ask_back_before_it_answers() -> None:
    made = read(GET, {"resultType": "input_required", "inputRequests": {}})
    assert "ask back" in made.message


@pytest.mark.parametrize(("code", "told"), [(-32002, -32002), (-32602, -32602), ("x", -32603)])
def test_an_error_is_told_in_clean_words_with_a_code_that_is_known(code: Any, told: int) -> None:
    error = {"code": code, "message": "no \x1b[1msesame-sesame-4711" + "x" * 5000}
    made = read_answer(READ, {"error": error}, HIDE)
    assert (made.result, made.code) == (None, told)
    assert made.message.startswith("no [redacted]x")
    assert len(made.message) == 500


@pytest.mark.parametrize("said", [None, {}, {"level": "loud", "data": 1}, {"level": "info"}])
def test_what_is_no_log_message_is_none(said: Any) -> None:
    assert read_log_message(said) is None


def test_a_log_message_is_clean_and_cut() -> None:
    said = {"level": "info", "logger": "l\u202e" * 200, "data": {"k\x00": ["x" * 9000]}}
    message = read_log_message(said)
    assert message
    assert len(str(message.data)) < MAX_DATA + 40
    assert "\u202e" not in message.logger
    assert "9000" not in str(message.data)
    assert "[cut:" in str(message.data)


def test_an_ear_hears_from_its_level_on_and_no_more_than_so_much() -> None:
    heard: list[LogMessage] = []
    ear = LogListener(heard.append, "warning")
    for level in ("info", "warning", "emergency"):
        ear.deliver_message(LogMessage(level, "x"))
    assert [message.level for message in heard] == ["warning", "emergency"]
    for _ in range(MAX_LOGGED):
        ear.deliver_message(LogMessage("error", "x"))
    assert (len(heard), ear.dropped) == (MAX_LOGGED, 2)
