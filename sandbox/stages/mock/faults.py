"""What goes wrong with APIs whatever their documents say: a case of each for every operation."""

from __future__ import annotations

from collections.abc import Callable

from sandbox.answers import Answers, generic_error
from sandbox.apispec import Operation
from sandbox.broker import Caps
from sandbox.contract import Expectation
from sandbox.exchange import WireResponse
from sandbox.mockapi import Scripted

FAULTS = ("401", "404", "429", "500", "malformed", "wrong_type", "empty", "slow", "oversized")
"""What every operation is tried with besides its documented answers."""

OF_DOCUMENTS = ("errors",)
"""What an operation that is a GraphQL document is tried with besides."""

_ERRORS = b'{"data": null, "errors": [{"message": "refused-7713", "path": ["refused"]}]}'
_CUT_OFF = b'{"cut_off": "malformed-3391", '
_BARE = "HEAD answers carry no content"
_NO_JSON = "the operation documents no JSON answer"
_JSON = (("content-type", "application/json"),)


def faults(operation: Operation) -> tuple[str, ...]:
    """The names of an operation's faults."""
    return (*FAULTS, *OF_DOCUMENTS) if operation.document else FAULTS


Fault = tuple[Scripted, Expectation]
"""The answer, and what must come of it."""


class Faults:
    """The faults of one operation."""

    def __init__(self, operation: Operation, answers: Answers, caps: Caps) -> None:
        self._operation, self._answers, self._caps = operation, answers, caps
        self._bare = operation.method.upper() == "HEAD"

    def made(self, name: str) -> Fault | str:
        """The fault of that name, or why there is none."""
        make: Callable[[], Fault | str] = {
            "429": self._too_many,
            "malformed": self._malformed,
            "wrong_type": self._wrong_type,
            "empty": self._empty,
            "slow": self._slow,
            "oversized": self._oversized,
            "errors": lambda: (Scripted(WireResponse(200, _JSON, _ERRORS)), "tool"),
        }.get(name, lambda: (Scripted(self._error(int(name))), "http"))
        return make()

    def _error(self, status: int) -> WireResponse:
        return WireResponse(status) if self._bare else generic_error(status)

    def _too_many(self) -> Fault:
        """As long a wait as lets every attempt of the broker's budget happen."""
        wait = max(1, int(self._caps.retry_budget_seconds / self._caps.attempts))
        refused = self._error(429)
        headers = (*refused.headers, ("retry-after", str(wait)))
        return Scripted(WireResponse(429, headers, refused.body)), "http"

    def _malformed(self) -> Fault | str:
        if self._bare:
            return _BARE
        success = self._answers.json_success(self._operation)
        status = success.status if success else 200
        return Scripted(WireResponse(status, _JSON, _CUT_OFF)), "malformed"

    def _wrong_type(self) -> Fault | str:
        if self._answers.json_success(self._operation) is None:
            return _BARE if self._bare else _NO_JSON
        response = self._answers.wrong_type(self._operation)
        if response is None:
            return "the operation documents an answer that may be any JSON"
        return Scripted(response), "schema"

    def _empty(self) -> Fault:
        status = self._answers.successes(self._operation)[0].status
        return Scripted(WireResponse(status)), "answer"

    def _slow(self) -> Fault:
        delay = 4 * (self._caps.seconds + self._caps.retry_budget_seconds)
        return Scripted(WireResponse(200), delay), "timeout"

    def _oversized(self) -> Fault | str:
        if self._bare:
            return _BARE
        body = b" " * (self._caps.response_bytes + 1)
        return Scripted(WireResponse(200, _JSON, body)), "too_large"
