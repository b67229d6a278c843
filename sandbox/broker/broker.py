"""The broker: the only way out of a sandbox.

It judges a wire request against the session's policy, adds the credential, sends it to its upstream
within the caps, and logs the exchange. It shares no code with what built the request.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from random import random as system_random
from typing import Any
from urllib.parse import urljoin

from sandbox.brake import Brake
from sandbox.caps import Caps as Caps
from sandbox.clock import Clock, SystemClock
from sandbox.content import without_secrets
from sandbox.credentials import CredentialSource
from sandbox.errors import SandboxError, UpstreamUnreachable
from sandbox.exchange import Exchange, Upstream, WireRequest, wire_digest
from sandbox.localaccess import WRITE, is_local
from sandbox.netrequest import TALK, is_network
from sandbox.plainrequest import problem_of
from sandbox.policy import SAFE_METHODS, Policy, Rule, origin_of
from sandbox.sender import Paced, Sender, refused
from sandbox.throttle import Throttle
from sandbox.toolcall import KnownCalls, ToolCalls, is_call
from sandbox.writemode import Capture as Capture
from sandbox.writemode import Release as Release
from sandbox.writemode import WriteMode as WriteMode

REDIRECTS = frozenset({301, 302, 303, 307, 308})


class Broker:
    """Performs the requests of one session.

    `policy` may be replaced between calls. In a write session `writes` says what becomes of the
    first writing request: captured unsent (`captured` then holds it), or sent if it is the approved
    one; any further write is refused. None, for mock upstreams, sends all that the policy allows.
    Files and values of this machine are asked of `local`, or where it is not given of the upstream.
    """

    def __init__(
        self,
        policy: Policy,
        upstream: Upstream,
        *,
        credentials: CredentialSource | None = None,
        caps: Caps | None = None,
        clock: Clock | None = None,
        throttle: Throttle | None = None,
        brake: Brake | None = None,
        writes: WriteMode = None,
        local: Upstream | None = None,
        random: Callable[[], float] = system_random,
        paced: Paced | None = None,
    ) -> None:
        self.policy = policy
        self.upstream = upstream
        self.caps = caps or Caps()
        self.brake = brake or Brake()
        self.captured: WireRequest | None = None
        self.released = False
        self.written: Exchange | None = None
        """The write that a called tool made."""
        self._lent = False
        """Whether a called tool may be making the one write at this moment."""
        self._credentials = credentials or CredentialSource()
        self._clock: Clock = clock or SystemClock()
        self._throttle = throttle
        self._writes = writes
        self._local = local or upstream
        self._random = random
        self._paced = paced
        self._count = 0
        self._used_credentials = False

    async def perform(self, request: WireRequest, calls: ToolCalls | None = None) -> Exchange:
        """Judge and send a request; a call of another server's tool is made by `calls`. Refusals
        are values of the exchange, never exceptions.
        """
        started = self._clock.now()
        self._count += 1
        exchange = await self._judged(request, calls)
        return exchange.lasting((self._clock.now() - started) * 1000)

    def claim(self, request: WireRequest) -> Exchange | None:
        """Whether a write that is not the broker's to send may be made now: None, once, where it
        may, and else the refusal. It is captured as any other.
        """
        if self.brake.engaged:
            return refused(request, "frozen", "Toolwright is frozen")
        return self._withhold(request) if self._writes is not None else None

    def without_secrets(self, answer: Mapping[str, Any]) -> Mapping[str, Any]:
        """What the sandbox says, without the secrets that this session's requests carried: it may
        have put one together from answers that each gave a part of it away.
        """
        if not self._used_credentials:
            return answer
        return without_secrets(answer, self._credentials.redaction())

    async def _judged(self, request: WireRequest, calls: ToolCalls | None) -> Exchange:
        if self.brake.engaged:
            return refused(request, "frozen", "Toolwright is frozen")
        problem = problem_of(request, self.caps)
        if problem or self._count > self.caps.exchanges:
            return refused(request, "refused", problem or "too many requests in one session")
        if is_call(request) or (is_network(request) and isinstance(calls, KnownCalls)):
            return await self._called(request, calls)
        if is_local(request) or is_network(request):
            return await self._asked_here(request)
        rule = self.policy.match(request.method, request.url, request.body)
        if rule is None:
            reason = f"{request.method} {request.url[:200]} is not among the declared requests"
            return refused(request, "refused", reason)
        if self._writes is not None and self._is_write(request):
            return self._withhold(request) or await self._written(request, rule)
        return await self._sent(request, rule)

    async def _asked_here(self, request: WireRequest) -> Exchange:
        """A file or value of this machine, or the network besides HTTP, which `local` judges."""
        held = self.claim(request) if request.method in (WRITE, TALK) else None
        if held is not None:
            return held
        try:
            return Exchange(request, await self._local.send(request))
        except SandboxError as error:
            lost = is_network(request) and isinstance(error, UpstreamUnreachable)
            return refused(request, "unreachable" if lost else "refused", str(error))

    async def _called(self, request: WireRequest, calls: ToolCalls | None) -> Exchange:
        """A call of a tool, which may make this call's one write."""
        if calls is None:
            return refused(request, "refused", "no tool can be called from here")
        writes = None if self.released or self._lent else self._writes
        self._lent |= isinstance(writes, Release)
        try:
            called = await calls.perform(request, writes)
            if called.captured is not None:
                self.captured = self.captured or called.captured
            if called.written is not None:
                self.released, self.written = True, called.written
        finally:
            if isinstance(writes, Release):
                self._lent = False
        return called.exchange

    def _is_write(self, request: WireRequest) -> bool:
        """A request with an unsafe method; where the session's rules have none, any request."""
        unsafe = any(rule.method not in SAFE_METHODS for rule in self.policy.rules)
        return request.method not in SAFE_METHODS or not unsafe

    def _withhold(self, request: WireRequest) -> Exchange | None:
        if isinstance(self._writes, Capture):
            self.captured = self.captured or request
            return refused(request, "captured", "held for a person's approval")
        if self.released or self._lent:
            return refused(request, "refused", "a second write in one call was not approved")
        wanted = self._writes.digest if isinstance(self._writes, Release) else None
        if wanted is not None and wire_digest(request) != wanted:
            self.captured = request
            return refused(request, "refused", "this is not the request that was approved")
        self.released = True
        return None

    async def _written(self, request: WireRequest, rule: Rule) -> Exchange:
        """Send the one write. One that did not leave may be tried once more."""
        exchange = await self._sent(request, rule)
        self.released = exchange.attempts > 0
        return exchange

    async def _sent(self, request: WireRequest, rule: Rule, hops: int = 0) -> Exchange:
        self._used_credentials |= bool(rule.security)
        sender = Sender(
            self.upstream,
            self.caps,
            self._clock,
            self.brake,
            self._credentials,
            self._throttle,
            self._random,
            self._paced,
        )
        return await self._followed(await sender.send(request, rule), hops)

    async def _followed(self, exchange: Exchange, hops: int) -> Exchange:
        """Follow a redirect of a safe request to a declared target, or refuse it."""
        request, response, attempts = exchange.request, exchange.response, exchange.attempts
        target = response.header("location") if response else None
        if response is None or response.status not in REDIRECTS or not target:
            return exchange
        moved = replace(request, url=_joined(request.url, target))
        sound = not problem_of(moved, self.caps)
        rule = self.policy.match(moved.method, moved.url) if sound else None
        if hops >= self.caps.redirects:
            return refused(request, "refused", f"redirected more than {hops} times", attempts)
        if request.method not in SAFE_METHODS or rule is None:
            where = str(origin_of(moved.url) or "an address without an origin")
            reason = f"redirected ({response.status}) to an undeclared target at {where}"
            return refused(request, "refused", reason, attempts)
        onward = await self._sent(moved, rule, hops + 1)
        return replace(onward, request=request, attempts=attempts + onward.attempts)


def _joined(url: str, target: str) -> str:
    """Where a redirect leads; "" where that cannot be told."""
    try:
        return urljoin(url, target)
    except ValueError:
        return ""
