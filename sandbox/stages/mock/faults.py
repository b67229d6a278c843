"""Common faults of APIs, whatever their documents say: one case of each for every operation."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from sandbox.bundle.apispec import Operation
from sandbox.stages.contract.result import Expectation
from sandbox.stages.mock.answers import AnswerBuilder, build_generic_error
from sandbox.stages.mock.api import ScriptedAnswer
from sandbox.wire.exchange import Caps, WireResponse

FAULTS = (
    "401",
    "404",
    "429",
    "500",
    "malformed",
    "lines",
    "text",
    "wrong_type",
    "empty",
    "slow",
    "oversized",
)
"""Faults of every operation, besides its documented answers."""

OF_DECISIONS = ("text",)
"""Those of code that decides: to any other code one body that is no JSON is like the next."""

OF_DOCUMENTS = ("errors",)
"""Further faults of an operation that is a GraphQL document."""

_ERRORS = b'{"data": null, "errors": [{"message": "refused-7713", "path": ["refused"]}]}'
_NO_JSON_BODIES = {
    "malformed": b'{"cut_off": "malformed-3391", ',
    "lines": b'{"line": "first-3392"}\n{"line": "second-3393", "empty": null}\n',
    "text": b'plain-3394 words, and "quotes"\n',
}
"""Bodies that are sent as JSON and are none: they are the result, as text."""
_BARE = "HEAD answers carry no content"
_NO_JSON = "the operation documents no JSON answer"
_JSON = (("content-type", "application/json"),)


def list_faults(operation: Operation, decided: bool) -> tuple[str, ...]:
    """The names of an operation's faults."""
    faults = FAULTS if decided else tuple(name for name in FAULTS if name not in OF_DECISIONS)
    return (*faults, *OF_DOCUMENTS) if operation.document else faults


Fault = tuple[ScriptedAnswer, Expectation]
"""The answer and the expected outcome."""


class FaultBuilder:
    """The faults of one operation."""

    def __init__(self, operation: Operation, answers: AnswerBuilder, caps: Caps) -> None:
        self._operation, self._answers, self._caps = operation, answers, caps
        self._bare = operation.method.upper() == "HEAD"

    def build_fault(self, name: str) -> Fault | str:
        """The fault of that name, or why there is none."""
        makers: dict[str, Callable[[], Fault | str]] = {
            "429": self._build_too_many,
            **{told: partial(self._build_malformed, told) for told in _NO_JSON_BODIES},
            "wrong_type": self._build_wrong_type,
            "empty": self._build_empty,
            "slow": self._build_slow,
            "oversized": self._build_oversized,
            "errors": lambda: (ScriptedAnswer(WireResponse(200, _JSON, _ERRORS)), "upstream"),
        }
        make = makers.get(name)
        return make() if make else (ScriptedAnswer(self._build_error(int(name))), "http")

    def _build_error(self, status: int) -> WireResponse:
        return WireResponse(status) if self._bare else build_generic_error(status)

    def _build_too_many(self) -> Fault:
        """A 429 whose Retry-After is so short that all attempts of the broker's budget happen."""
        wait = max(1, int(self._caps.retry_budget_seconds / self._caps.attempts))
        refused = self._build_error(429)
        headers = (*refused.headers, ("retry-after", str(wait)))
        return ScriptedAnswer(WireResponse(429, headers, refused.body)), "http"

    def _build_malformed(self, name: str) -> Fault | str:
        if self._bare:
            return _BARE
        success = self._answers.find_json_success(self._operation)
        status = success.status if success else 200
        return ScriptedAnswer(WireResponse(status, _JSON, _NO_JSON_BODIES[name])), "differs"

    def _build_wrong_type(self) -> Fault | str:
        if self._answers.find_json_success(self._operation) is None:
            return _BARE if self._bare else _NO_JSON
        response = self._answers.build_wrong_type(self._operation)
        if response is None:
            return "the operation documents an answer that may be any JSON"
        return ScriptedAnswer(response), "differs"

    def _build_empty(self) -> Fault:
        status = self._answers.list_successes(self._operation)[0].status
        return ScriptedAnswer(WireResponse(status)), "answer"

    def _build_slow(self) -> Fault:
        delay = 4 * (self._caps.seconds + self._caps.retry_budget_seconds)
        return ScriptedAnswer(WireResponse(200), delay), "timeout"

    def _build_oversized(self) -> Fault | str:
        if self._bare:
            return _BARE
        body = b" " * (self._caps.response_bytes + 1)
        return ScriptedAnswer(WireResponse(200, _JSON, body)), "too_large"
