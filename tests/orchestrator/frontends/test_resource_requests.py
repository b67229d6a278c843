"""What a client may ask of prompts and resources, and what is sent on of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from orchestrator.asker import Refusal
from orchestrator.requested import (
    MAX_VALUE,
    completion_of,
    no_cursor,
    prompt_of,
    uri_of,
    uris_of,
)
from sandbox.offer import Offer

OFFER = Offer(
    prompts=(
        {
            "name": "greet",
            "arguments": [{"name": "who", "required": True}, {"name": "how"}],
        },
        {"name": "plain"},
    ),
    resources=({"uri": "notes://one", "name": "One"},),
    templates=({"uriTemplate": "notes://{id}", "name": "Notes"},),
)
ARGUMENT = {"name": "who", "value": "A"}
PROMPT = {"type": "ref/prompt", "name": "greet"}


def test_only_what_is_known_is_sent_on() -> None:
    more = {"_meta": {"progressToken": 1}, "more": 2}
    assert prompt_of({"name": "plain", **more}, OFFER) == {"name": "plain"}
    given = {"name": "greet", "arguments": {"who": "you"}}
    assert prompt_of({**given, **more}, OFFER) == given
    ref = {**PROMPT, "title": "x"}
    asked = {"ref": ref, "argument": {**ARGUMENT, "more": 1}, "context": {"arguments": {}}, **more}
    assert completion_of(asked, OFFER) == {
        "ref": PROMPT,
        "argument": ARGUMENT,
        "context": {"arguments": {}},
    }
    for uri in ("notes://one", "notes://{id}"):
        ref = {"type": "ref/resource", "uri": uri}
        assert completion_of({"ref": ref, "argument": ARGUMENT}, OFFER)["ref"] == ref
    assert uri_of({"uri": "file:///etc/passwd", **more}) == "file:///etc/passwd"
    listen = {"notifications": {"resourceSubscriptions": ["a:b", "a:b"], "toolsListChanged": True}}
    assert uris_of(listen) == ("a:b",)
    assert uris_of({"notifications": {}}) == ()


@pytest.mark.parametrize(
    ("read", "params"),
    [
        (no_cursor, {"cursor": "2"}),
        (uri_of, {}),
        (uri_of, {"uri": 7}),
        (uri_of, {"uri": "no uri"}),
        (uri_of, {"uri": "a:" + "b" * 3000}),
        (uris_of, {}),
        (uris_of, {"notifications": {"resourceSubscriptions": "a:b"}}),
        (uris_of, {"notifications": {"resourceSubscriptions": ["a"]}}),
        (uris_of, {"notifications": {"resourceSubscriptions": [f"a:{n}" for n in range(101)]}}),
        (prompt_of, {}),
        (prompt_of, {"name": 7}),
        (prompt_of, {"name": "other"}),
        (prompt_of, {"name": "greet"}),
        (prompt_of, {"name": "greet", "arguments": {"how": "so"}}),
        (prompt_of, {"name": "greet", "arguments": {"who": "A", "what": "B"}}),
        (prompt_of, {"name": "greet", "arguments": {"who": 7}}),
        (prompt_of, {"name": "greet", "arguments": ["who"]}),
        (prompt_of, {"name": "greet", "arguments": {"who": "x" * (MAX_VALUE + 1)}}),
        (completion_of, {"ref": PROMPT}),
        (completion_of, {"ref": PROMPT, "argument": {"name": "who", "value": 7}}),
        (completion_of, {"ref": PROMPT, "argument": {"name": "who", "value": "x" * MAX_VALUE}}),
        (completion_of, {"ref": {"type": "ref/prompt"}, "argument": ARGUMENT}),
        (completion_of, {"ref": {"type": "ref/resource", "uri": "x:y"}, "argument": ARGUMENT}),
        (completion_of, {"ref": "greet", "argument": ARGUMENT}),
        (completion_of, {"ref": PROMPT, "argument": ARGUMENT, "context": {"arguments": {"a": 1}}}),
    ],
)
def test_what_makes_no_sense_is_refused_and_not_sent(
    read: Callable[..., Any], params: dict[str, Any]
) -> None:
    with pytest.raises(Refusal) as refused:
        read(params, OFFER) if read in (prompt_of, completion_of) else read(params)
    assert refused.value.code == -32602
