"""Checking the result of a call against the answer that the API gave."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from sandbox.session.interface import Outcome
from sandbox.stages.contract.body import extract_essence, is_json
from sandbox.stages.contract.texts import NOT_JSON, decode_base64, is_equal_json, parse_json
from sandbox.wire.content import get_media_data, is_media_type
from sandbox.wire.exchange import WireResponse

Expectation = Literal[
    "answer",
    "differs",
    "arrived",
    "http",
    "timeout",
    "too_large",
    "arguments",
    "refused",
    "upstream",
]
"""`answer`: a success that arrives whole, told as documented. `differs`: one that arrives whole and
is told to differ from the document; `arrived`: one that arrives whole, whatever is told of it. The
others: a failure of that kind, never a success;
`arguments` one before any request, `refused` one whose request the broker does not
send.
"""

SUCCESSES: frozenset[Expectation] = frozenset({"answer", "differs", "arrived"})

TELLING = ("etag", "link", "location", "x-ratelimit-remaining")
"""Headers that callers need, of those that docs/runtime-protocol.md names."""

_SHOWN = 120
_FORMS = frozenset({"body", "text", "base64", "bytes"})
_IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_MEDIA_TYPES = {"image/jpg": "image/jpeg"}
"""Registered media types for unregistered names."""


def check_result(
    expectation: Expectation, response: WireResponse | None, outcome: Outcome
) -> tuple[str, ...]:
    """The problems of an outcome, compared with what the contract requires for this answer.

    `response` is the API's answer, None where no complete answer reached the server.
    """
    if expectation in SUCCESSES:
        assert response is not None
        told = _check_difference(expectation, response, outcome)
        return (*_check_answer(response, outcome), *told)
    return tuple(_check_failure(expectation, response, outcome))


def _check_answer(response: WireResponse, outcome: Outcome) -> Iterator[str]:
    if outcome.failure is not None or outcome.result.get("isError"):
        told = outcome.failure
        yield (
            f"a good answer became a failure: {told.kind if told else 'isError'}: "
            + ((told.message if told else outcome.text)[:_SHOWN])
        )
        return
    given = outcome.structured
    if not isinstance(given, Mapping):
        yield "the result has no structuredContent"
        return
    if given.get("status") != response.status:
        yield f"the status {response.status} arrived as {given.get('status')!r}"
    yield from _check_headers(response, given)
    blocks = [block for block in outcome.result["content"] if block["type"] != "text"]
    said = extract_essence(response.get_header("content-type") or "")
    if blocks and response.body and not is_json(said) and "text" not in given:
        yield from _check_media(response, said, blocks, given, outcome.text)
        return
    yield from _check_content(response, given)
    if response.body.strip() and not holds_body(outcome.text, response.body):
        yield f"the result's text does not hold the answer: {outcome.text[:_SHOWN]!r}"


def _check_difference(
    expectation: Expectation, response: WireResponse, outcome: Outcome
) -> Iterator[str]:
    """The problems of what is told of a difference, and of a body that has to stay readable beside
    it: a client parses the block that holds it.
    """
    if outcome.failure is not None:
        return
    seen = outcome.difference
    if seen is None:
        if expectation == "differs":
            yield "nothing tells that the answer differs from the document"
        return
    if expectation == "answer":
        where, reason = seen.where or "/", seen.reason[:_SHOWN]
        yield f"a documented answer is told to differ from the document at {where}: {reason}"
    body = response.body.decode("utf-8", "replace")
    texts = [b["text"] for b in outcome.result["content"] if b["type"] == "text"]
    if response.body and body not in texts:
        yield "no content block is the answer alone"
    if not texts or texts[-1] == body:
        yield "no content block tells how the answer differs from the document"


def _check_headers(response: WireResponse, given: Mapping[str, Any]) -> Iterator[str]:
    told = given.get("headers")
    told = told if isinstance(told, Mapping) else {}
    for name in TELLING:
        value = response.get_header(name)
        if value is not None and told.get(name) != value:
            yield f"the header {name}: {value[:_SHOWN]} arrived as {str(told.get(name))[:_SHOWN]}"


def _check_content(response: WireResponse, given: Mapping[str, Any]) -> Iterator[str]:
    present = _FORMS & given.keys()
    if not response.body:
        if present:
            yield f"an empty answer arrived as {str(given[min(present)])[:_SHOWN]!r}"
        return
    content_type = response.get_header("content-type") or ""
    sent = parse_json(response.body) if is_json(extract_essence(content_type)) else NOT_JSON
    if sent is not NOT_JSON:
        if "body" not in given:
            yield "the answer's body is missing from structuredContent"
        elif not is_equal_json(sent, given["body"]):
            yield describe_difference(sent, given["body"])
        return
    arrived = given.get("text")
    if not isinstance(arrived, str) or arrived.encode() != response.body:
        yield f"the answer's {len(response.body)} bytes of {content_type} did not arrive as sent"
    elif extract_essence(str(given.get("content_type"))) != extract_essence(content_type):
        yield f"the content type {content_type} arrived as {given.get('content_type')!r}"


def _check_media(
    response: WireResponse,
    said: str,
    blocks: Sequence[Mapping[str, Any]],
    given: Mapping[str, Any],
    text: str,
) -> Iterator[str]:
    """The problems of bytes of the type `said` that arrived as image, audio or embedded resource,
    next to a text that must name their type and number (MCP specification, server/tools).
    """
    kind = _MEDIA_TYPES.get(said, said if is_media_type(said) else "application/octet-stream")
    whole = f"the answer's {len(response.body)} bytes of {kind}"
    if len(blocks) != 1:
        yield f"{whole} arrived as {len(blocks)} blocks"
        return
    (block,) = blocks
    inner = block.get("resource", block)
    is_shown = kind in _IMAGES or kind.startswith("audio/")
    if block["type"] != (kind.partition("/")[0] if is_shown else "resource"):
        yield f"{whole} arrived as a block of the type {block['type']}"
    if inner.get("mimeType") != kind:
        yield f"{whole} arrived as {inner.get('mimeType')}"
    if decode_base64(get_media_data(block)) != response.body:
        yield f"{whole} did not arrive as sent"
    if kind not in text or f"{len(response.body)} bytes" not in text:
        yield f"the text beside {whole} does not tell of them: {text[:_SHOWN]!r}"
    if extract_essence(str(given.get("content_type"))) != said:
        yield f"{whole} are told to be {given.get('content_type')!r}"
    digest = hashlib.sha256(response.body).hexdigest()
    told: dict[str, Any] = {"bytes": len(response.body), "sha256": digest}
    if "base64" in given:
        told = {"base64": base64.b64encode(response.body).decode()}
    if any(given.get(name) != value for name, value in told.items()) or "body" in given:
        yield f"structuredContent does not tell {whole} rightly"


def describe_difference(sent: Any, arrived: Any, where: str = "body") -> str:
    """The first difference between two JSON values, in words."""
    if isinstance(sent, Mapping) and isinstance(arrived, Mapping):
        for key in sent:
            if key not in arrived:
                return f"{where}.{key} is lost"
            if not is_equal_json(sent[key], arrived[key]):
                return describe_difference(sent[key], arrived[key], f"{where}.{key}")
        return f"{where}.{next(key for key in arrived if key not in sent)} was never sent"
    if isinstance(sent, list) and isinstance(arrived, list) and len(sent) == len(arrived):
        for at, (left, right) in enumerate(zip(sent, arrived, strict=True)):
            if not is_equal_json(left, right):
                return describe_difference(left, right, f"{where}[{at}]")
    return f"{where} is {str(arrived)[:_SHOWN]!r}, not {str(sent)[:_SHOWN]!r}"


def _check_failure(
    expectation: Expectation, response: WireResponse | None, outcome: Outcome
) -> Iterator[str]:
    failure = outcome.failure
    if failure is None or not outcome.result.get("isError"):
        what = f"the status {response.status}" if response else f"no answer ({expectation})"
        yield f"success is claimed where the API gave {what}: {str(outcome.structured)[:_SHOWN]}"
        return
    if failure.kind not in _list_kinds(expectation, response):
        yield f"the failure is told as {failure.kind}, not {expectation}: {failure.message[:200]}"
    if response is None:
        return
    if expectation == "http":
        yield from _check_status(response, outcome)
    if response.body and not holds_body(outcome.text, response.body):
        yield f"the failure does not tell what the API said: {outcome.text[:_SHOWN]!r}"


def _list_kinds(expectation: Expectation, response: WireResponse | None) -> tuple[str, ...]:
    if expectation == "http" and response is not None and response.status == 429:
        return ("http", "rate_limited")
    return ("refused", "arguments") if expectation == "refused" else (expectation,)


def _check_status(response: WireResponse, outcome: Outcome) -> Iterator[str]:
    failure = outcome.failure
    assert failure is not None
    if failure.status != response.status:
        yield f"the status {response.status} is told as {failure.status}"
    if str(response.status) not in outcome.text:
        yield f"the text does not name the status {response.status}"
    wait = response.get_header("retry-after")
    if response.status == 429 and wait is not None and failure.retry_after != float(wait):
        yield f"Retry-After: {wait} is told as {failure.retry_after}"


def holds_body(text: str, body: bytes) -> bool:
    """Whether a text contains a body, or at least each name and value of its JSON."""
    said = body.decode("utf-8", "replace")
    if said in text or base64.b64encode(body).decode() in text:
        return True
    parsed = parse_json(body)
    if parsed is NOT_JSON:
        return False
    return all(leaf in text or json.dumps(leaf)[1:-1] in text for leaf in _iterate_leaves(parsed))


def _iterate_leaves(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield str(key)
            yield from _iterate_leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from _iterate_leaves(item)
    elif isinstance(value, str):
        yield value
    else:
        yield json.dumps(value)
