"""The broker: the only way out of a sandbox.

It matches a wire request against the session's policy, adds the credential, sends it to its
upstream within the caps, and returns the exchange. It shares no code with the request's builder.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from random import random as system_random
from typing import Any

from sandbox.broker.host.local import WRITE, is_local
from sandbox.broker.host.network_requests import TALK, is_network
from sandbox.broker.host.tools import KnownCalls, ToolCalls, is_call
from sandbox.broker.redirects import Redirect, judge_redirect
from sandbox.broker.sender import Refusal, Sender, ServerPaces, build_refused_exchange
from sandbox.broker.throttle import Throttle
from sandbox.budget import CALL, DEFAULT_REQUESTS, ByteBudget
from sandbox.clock import Clock, SystemClock
from sandbox.credentials.source import CredentialSource
from sandbox.errors import AddressNotAllowed, SandboxError, UpstreamUnreachable
from sandbox.killswitch import KillSwitch
from sandbox.wire.canonical import find_request_problem
from sandbox.wire.content import redact_tool_answer
from sandbox.wire.exchange import (
    Caps,
    Capture,
    Exchange,
    Release,
    Upstream,
    WireRequest,
    WriteMode,
    WriteStep,
    digest_request,
)
from sandbox.wire.policy import SAFE_METHODS, Policy, RequestRule
from sandbox.wire.redaction import Redaction

ACTING = (
    "its query says that it does more than read, and this code's author is not believed that it "
    "does not; a person can let the tool ask for each: `toolwright classify SERVER.TOOL write`"
)
INLINE_BODY = 16 * 1024
"""Bytes of a body that are read on the event loop: each name in it may be escaped, which makes it
two microseconds a byte.
"""
HTTP = ("http://", "https://")
"""What most requests begin with; whether one may be sent is for the policy."""


class Broker:
    """Performs the requests of one session.

    `policy` may be replaced between calls. In a write session `writes` decides about the first
    writing request: captured unsent (then in `captured`), or sent if it is the approved one; any
    further write is refused. None, for mock upstreams, sends all that the policy allows. Requests
    for files, values and the network beside HTTP go to `local`, by default to the upstream. `step`
    is the tool whose session it is, with what its requests get, where it may write.
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
        kill_switch: KillSwitch | None = None,
        writes: WriteMode = None,
        local: Upstream | None = None,
        random: Callable[[], float] = system_random,
        paced: ServerPaces | None = None,
        memory: ByteBudget | None = None,
        step: WriteStep | None = None,
    ) -> None:
        self.policy = policy
        self.upstream = upstream
        self.caps = caps or Caps()
        self.kill_switch = kill_switch or KillSwitch()
        self.memory = memory
        """The budget of the process, for what is held of the calls."""
        self.captured: WireRequest | None = None
        self.captured_steps: tuple[WriteStep, ...] = ()
        """The tools that the captured write came through, this session's first."""
        self.released = False
        self.written: Exchange | None = None
        """The exchange of the one write, if a called tool made it."""
        self._lent = False
        """Whether a called tool may be making the one write at this moment."""
        self._credentials = credentials or CredentialSource()
        self._clock: Clock = clock or SystemClock()
        self._throttle = throttle
        self._writes = writes
        self._local = local or upstream
        self._random = random
        self._paced = paced
        self._own_steps = (step,) if step else ()
        self._count = 0
        self._used_credentials = False

    async def perform(self, request: WireRequest, calls: ToolCalls | None = None) -> Exchange:
        """Check and send a request; `calls` performs a call of another server's tool. A refusal is
        a value of the exchange, never an exception.
        """
        started = self._clock.now()
        exchange = await self._judge_request(request, calls)
        return exchange.replace_elapsed((self._clock.now() - started) * 1000)

    @property
    def requests_per_call(self) -> int:
        """How many requests a call may send to one host."""
        return self._paced.requests if self._paced else DEFAULT_REQUESTS

    def claim_write(self, request: WireRequest) -> Exchange | None:
        """Claim the session's one write for a request that the broker does not send itself: None,
        once, if it may be made, else the refusal. In capture mode the request is captured.
        """
        if self.kill_switch.engaged:
            return build_refused_exchange(request, "frozen", "Toolwright is frozen")
        return self._withhold_write(request) if self._writes is not None else None

    def redact_answer(self, answer: Mapping[str, Any]) -> Mapping[str, Any]:
        """The sandbox's answer without the secrets of this session's requests. Answers were
        redacted one by one, but code may have joined parts of a secret from several.
        """
        if not self._used_credentials:
            return answer
        return redact_tool_answer(answer, self._credentials.build_redaction())

    def build_redaction(self) -> Redaction | None:
        """What hides the secrets of this session's requests; None where none was signed."""
        return self._credentials.build_redaction() if self._used_credentials else None

    async def _judge_request(self, request: WireRequest, calls: ToolCalls | None) -> Exchange:
        if self.kill_switch.engaged:
            return build_refused_exchange(request, "frozen", "Toolwright is frozen")
        asked = self._count_request()
        large = len(request.body) > INLINE_BODY
        problem = (
            await asyncio.to_thread(find_request_problem, request, self.caps)
            if large
            else find_request_problem(request, self.caps)
        )
        if problem or asked > self.caps.exchanges:
            return build_refused_exchange(
                request, "refused", problem or "too many requests in one call"
            )
        if not request.url.startswith(HTTP):
            if is_call(request) or (is_network(request) and isinstance(calls, KnownCalls)):
                return await self._call_tool(request, calls)
            if is_local(request) or is_network(request):
                return await self._ask_host(request)
        if isinstance(calls, KnownCalls) and calls.answers_http:
            return calls.answer_request(request)  # A case that is proved: nothing is sent.
        find_rule = self.policy.find_rule
        rule = await asyncio.to_thread(find_rule, request) if large else find_rule(request)
        if rule is None:
            reason = f"{request.method} {request.url[:200]} is not among the declared requests"
            return build_refused_exchange(request, "refused", reason)
        if rule.refuses_act(request.url):
            return build_refused_exchange(request, "refused", ACTING)
        if self._writes is not None and self._is_write(request, rule):
            return self._withhold_write(request) or await self._send_write(request, rule)
        return await self._send_allowed(request, rule)

    def _count_request(self) -> int:
        """Count this request; how many the call, or else the session, has asked for by now."""
        call = CALL.get()
        if call is None:
            self._count += 1
            return self._count
        call.asked += 1
        return call.asked

    async def _ask_host(self, request: WireRequest) -> Exchange:
        """Ask `local` for a file or value of this machine, or the network beside HTTP."""
        held = self.claim_write(request) if request.method in (WRITE, TALK) else None
        if held is not None:
            return held
        try:
            return Exchange(request, await self._local.send(request))
        except SandboxError as error:
            refusal: Refusal = "refused"
            if isinstance(error, AddressNotAllowed):
                refusal = "not_allowed"
            elif is_network(request) and isinstance(error, UpstreamUnreachable):
                refusal = "unreachable"
            return build_refused_exchange(request, refusal, str(error))

    async def _call_tool(self, request: WireRequest, calls: ToolCalls | None) -> Exchange:
        """Perform a call of a tool, which may make this session's one write."""
        if calls is None:
            return build_refused_exchange(request, "refused", "no tool can be called from here")
        writes = None if self.released or self._lent else self._build_inner_mode()
        self._lent |= isinstance(writes, Release)
        try:
            called = await calls.perform(request, writes)
            if called.captured is not None and self.captured is None:
                self._capture_write(called.captured, called.steps)
            if called.written is not None:
                self.released, self.written = True, called.written
        finally:
            if isinstance(writes, Release):
                self._lent = False
        return called.exchange

    def _build_inner_mode(self) -> WriteMode:
        """What a called tool may write. An approved write goes on through the tools that it was
        approved to go through; any other one is captured.
        """
        writes = self._writes
        if not isinstance(writes, Release) or writes.steps is None:
            return writes
        count = len(self._own_steps)
        onward = writes.steps[count:]
        fits = writes.steps[:count] == self._own_steps
        return Release(writes.digest, onward) if fits and onward else Capture()

    def _capture_write(self, request: WireRequest, through: tuple[WriteStep, ...] = ()) -> None:
        self.captured, self.captured_steps = request, (*self._own_steps, *through)

    def _is_approved(self, request: WireRequest) -> bool:
        """Whether what was approved is this request, sent by this tool with these credentials."""
        writes = self._writes
        if not isinstance(writes, Release) or writes.digest is None:
            return True
        known = writes.steps is None or writes.steps == self._own_steps
        return known and digest_request(request) == writes.digest

    def _is_write(self, request: WireRequest, rule: RequestRule) -> bool:
        """A request with an unsafe method, or that acts by a safe one; where the session's rules
        have no unsafe method, any request.
        """
        unsafe = any(each.method not in SAFE_METHODS for each in self.policy.rules)
        return request.method not in SAFE_METHODS or rule.is_act(request.url) or not unsafe

    def _leads_to_write(self, asked: WireRequest, rule: RequestRule, onward: Redirect) -> bool:
        """Whether a redirect leads from a read to a write, or from one write to another."""
        acts = self._is_write(onward.request, onward.rule)
        return acts and (onward.rule.place != rule.place or not self._is_write(asked, rule))

    def _withhold_write(self, request: WireRequest) -> Exchange | None:
        if isinstance(self._writes, Capture):
            if self.captured is None:
                self._capture_write(request)
            return build_refused_exchange(request, "captured", "held for a person's approval")
        if self.released or self._lent:
            return build_refused_exchange(
                request, "refused", "a second write in one call was not approved"
            )
        if not self._is_approved(request):
            self._capture_write(request)
            return build_refused_exchange(
                request, "refused", "this is not the request that was approved"
            )
        self.released = True
        return None

    async def _send_write(self, request: WireRequest, rule: RequestRule) -> Exchange:
        """Send the one write. If it was not sent, another one may follow. It is never sent again by
        itself, even where the tool is one that reads: what a person was asked about may act.
        """
        exchange = await self._send_allowed(request, replace(rule, access="write"))
        self.released = exchange.attempts > 0
        return exchange

    async def _send_allowed(
        self, request: WireRequest, rule: RequestRule, hops: int = 0
    ) -> Exchange:
        self._used_credentials |= bool(rule.security)
        sender = Sender(
            self.upstream,
            self.caps,
            self._clock,
            self.kill_switch,
            self._credentials,
            self._throttle,
            self._random,
            self._paced,
        )
        return await self._follow_redirect(await sender.send(request, rule), rule, hops)

    async def _follow_redirect(self, exchange: Exchange, rule: RequestRule, hops: int) -> Exchange:
        """Follow a redirect of a safe request to a declared target, or refuse it."""
        judged = judge_redirect(exchange, self.policy, self.caps, hops)
        if not isinstance(judged, Redirect):
            return judged
        if self._writes is not None and self._leads_to_write(exchange.request, rule, judged):
            reason = "redirected to a request that may write, which nobody approved"
            return build_refused_exchange(exchange.request, "redirect", reason, exchange.attempts)
        onward = await self._send_allowed(judged.request, judged.rule, hops + 1)
        attempts = exchange.attempts + onward.attempts
        return replace(onward, request=exchange.request, attempts=attempts)
