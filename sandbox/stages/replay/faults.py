"""Faults of one exchange of a case: what an API or another server's tool may answer instead."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from sandbox.broker.host.network_requests import is_network
from sandbox.broker.host.tools import build_failure, build_success, is_call
from sandbox.stages.replay.calls import read_value
from sandbox.wire.exchange import Exchange, WireRequest, WireResponse

_JSON = (("content-type", "application/json"),)
_TOLD = {"error": "unavailable"}
_PAGE = b"<html><title>Sign in</title></html>"
LIMITED = "429: too many requests"


@dataclass(frozen=True)
class ExchangeFault:
    """One way in which an exchange goes wrong. `acted` is whether a write may be done all the
    same.
    """

    name: str
    answer: Callable[[WireRequest], Exchange]
    acted: bool = False


def list_faults(exchange: Exchange) -> tuple[ExchangeFault, ...]:
    """The faults of an exchange of a good case, in a fixed order."""
    request = exchange.request
    if is_network(request):
        return tuple(_iterate_lost())
    if is_call(request):
        return (*_iterate_failed_calls(), *_iterate_other_results(exchange))
    return (*_iterate_statuses(), *_iterate_lost(), *_iterate_other_bodies(exchange))


def _iterate_lost() -> Iterator[ExchangeFault]:
    yield _refusing("timeout", "no answer within 30 s", acted=True)
    yield _refusing("unreachable", "the connection was refused")


def _refusing(kind: str, reason: str, acted: bool = False) -> ExchangeFault:
    return ExchangeFault(kind, lambda asked: Exchange(asked, None, kind, reason), acted)


def _answering(name: str, response: WireResponse, acted: bool = False) -> ExchangeFault:
    return ExchangeFault(name, lambda asked: Exchange(asked, response), acted)


def _iterate_statuses() -> Iterator[ExchangeFault]:
    told = json.dumps(_TOLD).encode()
    patient = (*_JSON, ("retry-after", "30"))
    yield _answering("429 with Retry-After", WireResponse(429, patient, told))
    yield _answering("429", WireResponse(429, _JSON, told))
    yield _answering("500 before it acts", WireResponse(500, _JSON, told))
    yield _answering("500 after it acted", WireResponse(500, _JSON, told), acted=True)


def _iterate_other_bodies(exchange: Exchange) -> Iterator[ExchangeFault]:
    response = exchange.response
    if response is None or not 200 <= response.status < 300:
        return
    status, headers, value = response.status, response.headers, read_value(exchange)
    if len(response.body) > 1:
        cut = response.body[: len(response.body) // 2]
        if not _is_json(cut):
            yield _answering("a cut body", WireResponse(status, headers, cut), acted=True)
    if value is not None:
        other = json.dumps(_get_other_type(value)).encode()
        yield _answering("another type", WireResponse(status, headers, other), acted=True)
        yield _answering("an empty body", WireResponse(status, (), b""), acted=True)
        page = WireResponse(status, (("content-type", "text/html"),), _PAGE)
        yield _answering("a page to sign in at", page)


def _iterate_failed_calls() -> Iterator[ExchangeFault]:
    yield _answering("429 with Retry-After", build_failure("http", f"{LIMITED} (retry after 30 s)"))
    yield _answering("429", build_failure("rate_limited", LIMITED))
    yield _answering("500 before it acts", build_failure("http", "500: internal error"))
    yield _answering("500 after it acted", build_failure("http", "500: internal error"), acted=True)
    yield _answering("timeout", build_failure("timeout", "no answer within 30 s"), acted=True)


def _iterate_other_results(exchange: Exchange) -> Iterator[ExchangeFault]:
    value = read_value(exchange)
    if not isinstance(value, dict) or exchange.response is None or exchange.response.status != 200:
        return
    if not is_api_result(value):
        yield _answering("another type", build_success({"result": "unavailable"}), acted=True)
        return
    text = json.dumps(value["body"])
    rest = {key: part for key, part in value.items() if key != "body"}
    if not _is_json(cut := text[: len(text) // 2].encode()):
        told = {**rest, "content_type": "application/json", "text": cut.decode("utf-8", "replace")}
        yield _answering("a cut body", build_success(told), acted=True)
    other = build_success({**rest, "body": _get_other_type(value["body"])})
    yield _answering("another type", other, acted=True)
    yield _answering("an empty body", build_success(rest), acted=True)


def is_api_result(value: Any) -> bool:
    """Whether a result is that of a tool which calls an API: its status and the answer's body."""
    return isinstance(value, dict) and {"status", "body"} <= value.keys()


def _get_other_type(value: Any) -> Any:
    """A value of a type that nobody who reads the usual one can read."""
    return ["unavailable"] if isinstance(value, dict) else dict(_TOLD)


def _is_json(text: bytes) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
