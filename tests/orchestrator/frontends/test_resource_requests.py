"""What a client may ask of prompts and resources, and what is sent on of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from orchestrator.frontends.protocol import RpcError
from orchestrator.frontends.resource_requests import (
    MAX_VALUE,
    check_no_cursor,
    parse_completion_request,
    parse_prompt_request,
    parse_uri,
    parse_uris,
)
from sandbox.bundle.offer import Offer

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
    assert parse_prompt_request({"name": "plain", **more}, OFFER) == {"name": "plain"}
    given = {"name": "greet", "arguments": {"who": "you"}}
    assert parse_prompt_request({**given, **more}, OFFER) == given
    ref = {**PROMPT, "title": "x"}
    asked = {"ref": ref, "argument": {**ARGUMENT, "more": 1}, "context": {"arguments": {}}, **more}
    assert parse_completion_request(asked, OFFER) == {
        "ref": PROMPT,
        "argument": ARGUMENT,
        "context": {"arguments": {}},
    }
    for uri in ("notes://one", "notes://{id}"):
        ref = {"type": "ref/resource", "uri": uri}
        assert parse_completion_request({"ref": ref, "argument": ARGUMENT}, OFFER)["ref"] == ref
    assert parse_uri({"uri": "file:///etc/passwd", **more}) == "file:///etc/passwd"
    listen = {"notifications": {"resourceSubscriptions": ["a:b", "a:b"], "toolsListChanged": True}}
    assert parse_uris(listen) == ("a:b",)
    assert parse_uris({"notifications": {}}) == ()


@pytest.mark.parametrize(
    ("read", "params"),
    [
        (check_no_cursor, {"cursor": "2"}),
        (parse_uri, {}),
        (parse_uri, {"uri": 7}),
        (parse_uri, {"uri": "no uri"}),
        (parse_uri, {"uri": "a:" + "b" * 3000}),
        (parse_uris, {}),
        (parse_uris, {"notifications": {"resourceSubscriptions": "a:b"}}),
        (parse_uris, {"notifications": {"resourceSubscriptions": ["a"]}}),
        (parse_uris, {"notifications": {"resourceSubscriptions": [f"a:{n}" for n in range(101)]}}),
        (parse_prompt_request, {}),
        (parse_prompt_request, {"name": 7}),
        (parse_prompt_request, {"name": "other"}),
        (parse_prompt_request, {"name": "greet"}),
        (parse_prompt_request, {"name": "greet", "arguments": {"how": "so"}}),
        (parse_prompt_request, {"name": "greet", "arguments": {"who": "A", "what": "B"}}),
        (parse_prompt_request, {"name": "greet", "arguments": {"who": 7}}),
        (parse_prompt_request, {"name": "greet", "arguments": ["who"]}),
        (parse_prompt_request, {"name": "greet", "arguments": {"who": "x" * (MAX_VALUE + 1)}}),
        (parse_completion_request, {"ref": PROMPT}),
        (parse_completion_request, {"ref": PROMPT, "argument": {"name": "who", "value": 7}}),
        (
            parse_completion_request,
            {"ref": PROMPT, "argument": {"name": "who", "value": "x" * MAX_VALUE}},
        ),
        (parse_completion_request, {"ref": {"type": "ref/prompt"}, "argument": ARGUMENT}),
        (
            parse_completion_request,
            {"ref": {"type": "ref/resource", "uri": "x:y"}, "argument": ARGUMENT},
        ),
        (parse_completion_request, {"ref": "greet", "argument": ARGUMENT}),
        (
            parse_completion_request,
            {"ref": PROMPT, "argument": ARGUMENT, "context": {"arguments": {"a": 1}}},
        ),
    ],
)
def test_what_makes_no_sense_is_refused_and_not_sent(
    read: Callable[..., Any], params: dict[str, Any]
) -> None:
    with pytest.raises(RpcError) as refused:
        read(params, OFFER) if read in (parse_prompt_request, parse_completion_request) else read(
            params
        )
    assert refused.value.code == -32602
