"""Mock of an API: an upstream that answers from the API's document, or as scripted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sandbox.bundle.apispec import APISpec
from sandbox.clock import Clock
from sandbox.schemas.samples import Unsatisfiable
from sandbox.stages.contract.request import parse_url_template
from sandbox.stages.mock.answers import AnswerBuilder
from sandbox.wire.exchange import WireRequest, WireResponse
from sandbox.wire.graphql import extract_document


@dataclass(frozen=True)
class ScriptedAnswer:
    """An answer, given after `delay` seconds of the mock's clock."""

    response: WireResponse
    delay: float = 0.0


class MockApi:
    """Answers requests with the scripted answers in order, the last one from then on; unscripted,
    with the first documented success of the operation that the request is for, or 404. Records the
    requests.
    """

    def __init__(self, spec: APISpec, clock: Clock, seed: int = 0) -> None:
        self._spec, self._clock = spec, clock
        self._answers = AnswerBuilder(spec, seed)
        self._scripted: list[ScriptedAnswer] = []
        self._requests: list[WireRequest] = []

    @property
    def requests(self) -> Sequence[WireRequest]:
        """Every request since the last `script`, in order."""
        return tuple(self._requests)

    def script_answers(
        self, answer: ScriptedAnswer | None, later: Sequence[ScriptedAnswer] = ()
    ) -> None:
        """Set the answers from now on, whatever the request (None: from the document): first
        `answer`, then each of `later`.
        """
        self._scripted = [] if answer is None else [answer, *later]
        self._requests.clear()

    async def send(self, request: WireRequest) -> WireResponse:
        self._requests.append(request)
        answer = self._take_next() or ScriptedAnswer(self._answer_documented(request))
        if answer.delay:
            await self._clock.sleep(answer.delay)
        return answer.response

    def _take_next(self) -> ScriptedAnswer | None:
        if len(self._scripted) > 1:
            return self._scripted.pop(0)
        return self._scripted[0] if self._scripted else None

    def _answer_documented(self, request: WireRequest) -> WireResponse:
        path = request.url.partition("#")[0].partition("?")[0]
        for operation in self._spec.operations:
            if operation.method.upper() != request.method:
                continue
            if operation.document and extract_document(request.body) != operation.document:
                continue
            if parse_url_template(operation.url).path.match(path):
                try:
                    return self._answers.build_answer(
                        self._answers.list_successes(operation)[0], "full"
                    )
                except Unsatisfiable as obstacle:
                    return WireResponse(
                        501, (("content-type", "text/plain"),), str(obstacle).encode()
                    )
        return WireResponse(404, (("content-type", "text/plain"),), b"no such operation")
