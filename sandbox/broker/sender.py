"""Sending of one allowed request: credentials, rate limits and retries."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from sandbox.broker.retries import LIMITED, add_retry_hint, compute_backoff, read_advised_wait
from sandbox.broker.throttle import Throttle, find_overrun, find_pace
from sandbox.budget import CALL, DEFAULT_REQUESTS
from sandbox.bundle.ratelimit import Pace
from sandbox.clock import Clock
from sandbox.credentials.source import CredentialSource, SigningContext
from sandbox.errors import (
    AddressNotAllowed,
    BytesExhausted,
    CredentialRefused,
    Frozen,
    RateLimited,
    ResponseTooLarge,
    TurnTooLate,
    UpstreamUnreachable,
)
from sandbox.killswitch import KillSwitch
from sandbox.offload import INLINE_BYTES
from sandbox.wire.exchange import (
    Caps,
    Exchange,
    Upstream,
    WireRequest,
    WireResponse,
    measure_response,
)
from sandbox.wire.policy import SAFE_METHODS, RequestRule, parse_origin
from sandbox.wire.redaction import SHORT, may_unpack

Refusal = Literal[
    "refused",
    "redirect",
    "credential",
    "not_allowed",
    "timeout",
    "unreachable",
    "too_large",
    "rate_limited",
    "frozen",
    "captured",
]
"""Codes of requests without an answer: `redirect` to an undeclared target, a `credential` that
cannot be obtained, a private address that is `not_allowed`, `refused` for any other reason of
the broker's own.
"""
_LESS = (
    "Ask for less where an argument allows it: one page, a filter, fewer fields, a range. What has "
    "to be had whole is fetched outside of this conversation"
)


def build_refused_exchange(
    request: WireRequest,
    refusal: Refusal,
    reason: str,
    attempts: int = 0,
    retry_after: float | None = None,
) -> Exchange:
    """The exchange of a request that got no answer."""
    return Exchange(request, None, refusal, reason, attempts, retry_after=retry_after)


def build_cut_exchange(
    request: WireRequest, reason: str, status: int, attempts: int = 0
) -> Exchange:
    """The exchange of an answer that a limit cut; of a write it says that the write happened, of a
    read what to ask for instead.
    """
    if request.method in SAFE_METHODS:
        reason = f"{reason}. {_LESS}"
    elif 200 <= status < 300:
        reason = (
            f"the API answered {status}, so what was asked for is done and must not be repeated; "
            f"only its answer cannot be given: {reason}"
        )
    return Exchange(request, None, "too_large", reason, attempts, answered=status)


@dataclass(frozen=True)
class ServerPaces:
    """The rate limits that a server is held to, and its name; `requests` is what one call of it may
    send to one host.
    """

    server: str
    paces: tuple[Pace, ...]
    requests: int = DEFAULT_REQUESTS


@dataclass(frozen=True)
class Sender:
    """Sends the requests of one broker. `random` gives numbers in 0..1, for the waits."""

    upstream: Upstream
    caps: Caps
    clock: Clock
    kill_switch: KillSwitch
    credentials: CredentialSource
    throttle: Throttle | None
    random: Callable[[], float]
    paced: ServerPaces | None = None

    async def send(self, request: WireRequest, rule: RequestRule) -> Exchange:
        """Send and return the exchange, redacted. A request that cannot be sent is a refusal."""
        credentials = self.credentials.open_exchange(rule.origin)
        names = credentials.choose_credentials(rule.security)
        if names is None and credentials.may_go_without(rule.security):
            names = ()
        if names is None:
            return build_refused_exchange(
                request, "credential", credentials.describe_missing(rule.security)
            )
        call = CALL.get() if self.throttle else None
        held = find_overrun(call, rule.origin.host)
        if held:
            return build_refused_exchange(request, "refused", held)
        delivery = _Delivery(self, request, rule, credentials, names)
        exchange = await self._deliver_request(delivery)
        hide = credentials.build_redaction(delivery.passing)
        response = exchange.response
        if response is not None:
            redact = hide.redact_response
            large = measure_response(response) > SHORT and _takes_long(response)
            response = await asyncio.to_thread(redact, response) if large else redact(response)
        if response and response is exchange.response:
            return exchange
        return Exchange(
            request,
            response,
            exchange.refusal,
            hide.redact_text(exchange.reason),
            exchange.attempts,
            retry_after=exchange.retry_after,
            sent_at=tuple(delivery.sent_at),
            answered=exchange.answered,
        )

    async def _deliver_request(self, delivery: _Delivery) -> Exchange:
        request = delivery.request
        whole = self.caps.seconds + self.caps.retry_budget_seconds
        try:
            async with self.clock.set_deadline(whole):
                response = await delivery.obtain_answer()
        except TimeoutError:
            reason = (
                f"no whole answer within {self.caps.seconds:g} s, which is what an API has for one"
            )
            if request.method in SAFE_METHODS:
                reason += "; ask for less where an argument allows it (a page, a filter, a range)"
            return build_refused_exchange(request, "timeout", reason, delivery.sent)
        except (ResponseTooLarge, BytesExhausted) as error:
            return build_cut_exchange(request, str(error), error.status, delivery.sent)
        except AddressNotAllowed as error:
            return build_refused_exchange(request, "not_allowed", str(error), delivery.sent)
        except UpstreamUnreachable as error:
            sent = delivery.sent - error.unsent
            return build_refused_exchange(request, "unreachable", str(error), sent)
        except CredentialRefused as error:
            return build_refused_exchange(request, "credential", str(error), delivery.sent)
        except Frozen as error:
            return build_refused_exchange(request, "frozen", str(error), delivery.sent)
        except TurnTooLate as error:
            # Nothing was refused by the API: it is the caller who asks for more than there is.
            return build_refused_exchange(
                request, "timeout", str(error), delivery.sent, error.seconds
            )
        except RateLimited as error:
            return build_refused_exchange(
                request, "rate_limited", str(error), delivery.sent, error.seconds
            )
        if len(response.body) > self.caps.response_bytes:
            cut = ResponseTooLarge(self.caps.response_bytes, size=len(response.body))
            return build_cut_exchange(request, str(cut), response.status, delivery.sent)
        sent_at = tuple(delivery.sent_at)
        return Exchange(request, response, attempts=delivery.sent, sent_at=sent_at)

    async def send_token_request(self, request: WireRequest) -> WireResponse:
        """Send a request of the broker's own to a token endpoint. Raises RateLimited, Frozen,
        TimeoutError, and what an upstream raises.
        """
        self.kill_switch.raise_if_engaged()
        origin = parse_origin(request.url)
        if self.throttle and origin:
            patience = self.caps.retry_budget_seconds
            await self.throttle.admit_request(origin, self.clock, patience)
        try:
            async with self.clock.set_deadline(self.caps.seconds):
                response = await self.upstream.send(request)
        except AddressNotAllowed:
            raise
        except UpstreamUnreachable as error:
            raise UpstreamUnreachable(f"no token could be had: {error}") from error
        wait = read_advised_wait(response, self.clock.get_wall_time())
        if self.throttle and origin and response.status in LIMITED and wait is not None:
            self.throttle.pause_origin(origin, self.clock, wait)
        return response


def _takes_long(response: WireResponse) -> bool:
    """Whether to search a response for secrets takes long."""
    texts = (response.body, *(value.encode("utf-8", "replace") for _, value in response.headers))
    return len(response.body) > INLINE_BYTES or any(map(may_unpack, texts))


class _Delivery:
    """One request while it is sent. `sent_at` holds the time of each attempt (seconds since 1970),
    `passing` the texts to redact in the answer.
    """

    def __init__(
        self,
        sender: Sender,
        request: WireRequest,
        rule: RequestRule,
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
        """The number of attempts sent."""
        return len(self.sent_at)

    async def obtain_answer(self) -> WireResponse:
        """Send until an answer calls for no retry, and return it."""
        renewed, tries = False, 0
        while True:
            wire = await self._sign_request()
            response = await self._send_once(wire)
            if response.status == 401 and not renewed and self._should_renew(wire, response):
                renewed = True
                continue
            if response.status not in LIMITED:
                return response
            tries += 1
            advised = read_advised_wait(response, self._sender.clock.get_wall_time())
            wait = self._choose_wait(response, tries, advised)
            if wait is None:
                return add_retry_hint(response, advised)
            self.waited += wait
            await self._sender.clock.sleep(wait)

    async def _sign_request(self) -> WireRequest:
        if not self._names:
            return self.request
        sender = self._sender
        way = SigningContext(self._rule.origin, sender.clock, sender.send_token_request)
        signed = await self._credentials.sign_request(self.request, self._names, way)
        self.passing += signed.passing
        return signed.request

    async def _send_once(self, wire: WireRequest) -> WireResponse:
        sender = self._sender
        if sender.throttle:
            patience = max(0.0, sender.caps.retry_budget_seconds - self.waited)
            await sender.throttle.wait_call_turn(self._rule.origin.host, sender.clock)
            await self._wait_turn(sender.throttle)
            await sender.throttle.admit_request(self._rule.origin, sender.clock, patience)
        sender.kill_switch.raise_if_engaged()
        self.sent_at.append(sender.clock.get_wall_time())
        async with sender.clock.set_deadline(sender.caps.seconds):
            return await sender.upstream.send(wire)

    async def _wait_turn(self, throttle: Throttle) -> None:
        """Wait for the server's turn, if a rate limit holds it at this origin."""
        sender = self._sender
        pace = find_pace(sender.paced.paces, self._rule.origin) if sender.paced else None
        if sender.paced and pace:
            patience = sender.caps.seconds + sender.caps.retry_budget_seconds
            await throttle.wait_turn(
                sender.paced.server, self._rule.origin, pace, sender.clock, patience
            )

    def _should_renew(self, wire: WireRequest, response: WireResponse) -> bool:
        """Whether to retry after a 401. A digest challenge has to be answered; another token is
        tried for reads only, because an API may have acted before it refused.
        """
        how = self._credentials.find_renewal(self._names, wire, response)
        return how == "again" or (how == "token" and self._rule.repeatable)

    def _choose_wait(
        self, response: WireResponse, tries: int, advised: float | None
    ) -> float | None:
        """Seconds to wait before the next try, or None where there is none."""
        sender = self._sender
        wait = compute_backoff(tries, sender.random()) if advised is None else advised
        if sender.throttle and (response.status == 429 or advised is not None):
            sender.throttle.pause_origin(self._rule.origin, sender.clock, wait)
        spent = self.waited + wait > sender.caps.retry_budget_seconds
        again = self._rule.repeatable and not spent and tries < sender.caps.attempts
        return wait if again else None
