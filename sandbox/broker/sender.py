"""Sending one allowed request: its credentials, the upstream's pace, and other tries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from sandbox.brake import Brake
from sandbox.caps import Caps
from sandbox.clock import Clock
from sandbox.credentials import CredentialSource, Way
from sandbox.errors import (
    CredentialRefused,
    Frozen,
    RateLimited,
    ResponseTooLarge,
    TurnTooLate,
    UpstreamUnreachable,
)
from sandbox.exchange import Exchange, Upstream, WireRequest, WireResponse
from sandbox.pace import Pace
from sandbox.policy import Rule, origin_of
from sandbox.retries import LIMITED, advised_wait, backoff, with_hint
from sandbox.throttle import Throttle
from sandbox.turns import pace_of

Refusal = Literal[
    "refused", "timeout", "unreachable", "too_large", "rate_limited", "frozen", "captured"
]


def refused(
    request: WireRequest,
    refusal: Refusal,
    reason: str,
    attempts: int = 0,
    retry_after: float | None = None,
) -> Exchange:
    """The exchange of a request without an answer."""
    return Exchange(request, None, refusal, reason, attempts, retry_after=retry_after)


@dataclass(frozen=True)
class Paced:
    """The paces that a server is held to, and its name."""

    server: str
    paces: tuple[Pace, ...]


@dataclass(frozen=True)
class Sender:
    """Sends the requests of one broker. `random` gives numbers in 0..1, for the waits."""

    upstream: Upstream
    caps: Caps
    clock: Clock
    brake: Brake
    credentials: CredentialSource
    throttle: Throttle | None
    random: Callable[[], float]
    paced: Paced | None = None

    async def send(self, request: WireRequest, rule: Rule) -> Exchange:
        """The exchange, its answer without secrets. What cannot be sent is a refusal."""
        credentials = self.credentials.for_one()
        names = credentials.choose(rule.security)
        if names is None:
            return refused(request, "refused", credentials.lacking(rule.security))
        delivery = _Delivery(self, request, rule, credentials, names)
        exchange = await self._delivered(delivery)
        hide = credentials.redaction(delivery.passing)
        response = exchange.response and hide.response(exchange.response)
        if response and response is exchange.response:
            return exchange
        return Exchange(
            request,
            response,
            exchange.refusal,
            hide.text(exchange.reason),
            exchange.attempts,
            retry_after=exchange.retry_after,
            sent_at=tuple(delivery.sent_at),
        )

    async def _delivered(self, delivery: _Delivery) -> Exchange:
        request = delivery.request
        whole = self.caps.seconds + self.caps.retry_budget_seconds
        try:
            async with self.clock.deadline(whole):
                response = await delivery.answer()
        except TimeoutError:
            reason = f"no whole answer within {self.caps.seconds:g} s"
            return refused(request, "timeout", reason, delivery.sent)
        except ResponseTooLarge as error:
            return refused(request, "too_large", str(error), delivery.sent)
        except UpstreamUnreachable as error:
            return refused(request, "unreachable", str(error), delivery.sent)
        except CredentialRefused as error:
            return refused(request, "refused", str(error), delivery.sent)
        except Frozen as error:
            return refused(request, "frozen", str(error), delivery.sent)
        except TurnTooLate as error:
            # Nothing was refused by the API: it is the caller who asks for more than there is.
            return refused(request, "timeout", str(error), delivery.sent, error.seconds)
        except RateLimited as error:
            return refused(request, "rate_limited", str(error), delivery.sent, error.seconds)
        if len(response.body) > self.caps.response_bytes:
            reason = f"the answer is larger than {self.caps.response_bytes} bytes"
            return refused(request, "too_large", reason, delivery.sent)
        sent_at = tuple(delivery.sent_at)
        return Exchange(request, response, attempts=delivery.sent, sent_at=sent_at)

    async def fetch(self, request: WireRequest) -> WireResponse:
        """Send a request of our own, for a token. Raises what an upstream raises, RateLimited and
        Frozen; its message tells that it is about the token.
        """
        self.brake.check()
        origin = origin_of(request.url)
        if self.throttle and origin:
            patience = self.caps.retry_budget_seconds
            await self.throttle.admit(origin, self.clock, patience)
        try:
            async with self.clock.deadline(self.caps.seconds):
                response = await self.upstream.send(request)
        except UpstreamUnreachable as error:
            raise UpstreamUnreachable(f"no token could be had: {error}") from error
        wait = advised_wait(response, self.clock.wall())
        if self.throttle and origin and response.status in LIMITED and wait is not None:
            self.throttle.pause(origin, self.clock, wait)
        return response


class _Delivery:
    """One request on its way. `sent_at` is when it left, `passing` what must not be shown."""

    def __init__(
        self,
        sender: Sender,
        request: WireRequest,
        rule: Rule,
        credentials: CredentialSource,
        names: tuple[str, ...],
    ) -> None:
        self.request, self.waited = request, 0.0
        self.sent_at: list[float] = []
        self.passing: list[str] = []
        self._sender, self._rule = sender, rule
        self._credentials, self._names = credentials, names

    @property
    def sent(self) -> int:
        """How often it left."""
        return len(self.sent_at)

    async def answer(self) -> WireResponse:
        """The answer that is final: the first that calls for no other try."""
        renewed, tries = False, 0
        while True:
            wire = await self._signed()
            response = await self._sent(wire)
            if response.status == 401 and not renewed and self._renewed(wire, response):
                renewed = True
                continue
            if response.status not in LIMITED:
                return response
            tries += 1
            advised = advised_wait(response, self._sender.clock.wall())
            wait = self._next(response, tries, advised)
            if wait is None:
                return with_hint(response, advised)
            self.waited += wait
            await self._sender.clock.sleep(wait)

    async def _signed(self) -> WireRequest:
        if not self._names:
            return self.request
        sender = self._sender
        way = Way(self._rule.origin, sender.clock, sender.fetch)
        signed = await self._credentials.sign(self.request, self._names, way)
        self.passing += signed.passing
        return signed.request

    async def _sent(self, wire: WireRequest) -> WireResponse:
        sender = self._sender
        if sender.throttle:
            patience = max(0.0, sender.caps.retry_budget_seconds - self.waited)
            await self._turn(sender.throttle)
            await sender.throttle.admit(self._rule.origin, sender.clock, patience)
        sender.brake.check()
        self.sent_at.append(sender.clock.wall())
        async with sender.clock.deadline(sender.caps.seconds):
            return await sender.upstream.send(wire)

    async def _turn(self, throttle: Throttle) -> None:
        """Wait for the server's turn, where it is held to a pace at this origin."""
        sender = self._sender
        pace = pace_of(sender.paced.paces, self._rule.origin) if sender.paced else None
        if sender.paced and pace:
            patience = sender.caps.seconds + sender.caps.retry_budget_seconds
            await throttle.turns.wait(
                sender.paced.server, self._rule.origin, pace, sender.clock, patience
            )

    def _renewed(self, wire: WireRequest, response: WireResponse) -> bool:
        """Whether to answer a 401. A challenge has to be; another token is for reads only, because
        nobody knows what an API did before it refused.
        """
        how = self._credentials.renewable(self._names, wire, response)
        return how == "again" or (how == "token" and self._rule.repeatable)

    def _next(self, response: WireResponse, tries: int, advised: float | None) -> float | None:
        """Seconds to wait before the next try, or None where there is none."""
        sender = self._sender
        wait = backoff(tries, sender.random()) if advised is None else advised
        if sender.throttle and (response.status == 429 or advised is not None):
            sender.throttle.pause(self._rule.origin, sender.clock, wait)
        spent = self.waited + wait > sender.caps.retry_budget_seconds
        again = self._rule.repeatable and not spent and tries < sender.caps.attempts
        return wait if again else None
