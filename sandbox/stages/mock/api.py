"""An API that is not there: an upstream that answers from the API's document, or as it is told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sandbox.answers import Answers
from sandbox.apispec import APISpec
from sandbox.clock import Clock
from sandbox.contract.url import url_template
from sandbox.exchange import WireRequest, WireResponse
from sandbox.graphql import carried
from sandbox.samples import Unsatisfiable


@dataclass(frozen=True)
class Scripted:
    """An answer, given after `delay` seconds of the mock's clock."""

    response: WireResponse
    delay: float = 0.0


class MockApi:
    """Answers requests with the scripted answers in order, the last one from then on; unscripted,
    with the first documented success of the operation that the request is for, or 404. Records what
    it was asked.
    """

    def __init__(self, spec: APISpec, clock: Clock, seed: int = 0) -> None:
        self._spec, self._clock = spec, clock
        self._answers = Answers(spec, seed)
        self._scripted: list[Scripted] = []
        self._requests: list[WireRequest] = []

    @property
    def requests(self) -> Sequence[WireRequest]:
        """Every request since the last `script`, in order."""
        return tuple(self._requests)

    def script(self, answer: Scripted | None, later: Sequence[Scripted] = ()) -> None:
        """Answer so from now on, whatever is asked (None: from the document), each of `later` once
        after the first.
        """
        self._scripted = [] if answer is None else [answer, *later]
        self._requests.clear()

    async def send(self, request: WireRequest) -> WireResponse:
        self._requests.append(request)
        answer = self._next() or Scripted(self._documented(request))
        if answer.delay:
            await self._clock.sleep(answer.delay)
        return answer.response

    def _next(self) -> Scripted | None:
        if len(self._scripted) > 1:
            return self._scripted.pop(0)
        return self._scripted[0] if self._scripted else None

    def _documented(self, request: WireRequest) -> WireResponse:
        path = request.url.partition("#")[0].partition("?")[0]
        for operation in self._spec.operations:
            if operation.method.upper() != request.method:
                continue
            if operation.document and carried(request.body) != operation.document:
                continue
            if url_template(operation.url).path.match(path):
                try:
                    return self._answers.good(self._answers.successes(operation)[0], "full")
                except Unsatisfiable as obstacle:
                    return WireResponse(
                        501, (("content-type", "text/plain"),), str(obstacle).encode()
                    )
        return WireResponse(404, (("content-type", "text/plain"),), b"no such operation")
