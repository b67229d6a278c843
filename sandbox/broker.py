"""The broker: the only way out of a sandbox.

It judges a wire request against the session's policy, adds the credential, sends it to its upstream
within the caps, and logs the exchange. It shares no code with what built the request.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, replace
from typing import Literal
from urllib.parse import urljoin

from sandbox.brake import Brake
from sandbox.clock import Clock, SystemClock
from sandbox.credentials import CredentialSource
from sandbox.errors import ResponseTooLarge, UpstreamUnreachable
from sandbox.exchange import Exchange, Upstream, WireRequest, WireResponse
from sandbox.policy import SAFE_METHODS, Policy, Rule, origin_of
from sandbox.throttle import Throttle

Refusal = Literal[
    "refused", "timeout", "unreachable", "too_large", "rate_limited", "frozen", "captured"
]
RETRIED_STATUSES = frozenset({429, 503})
REDIRECTS = frozenset({301, 302, 303, 307, 308})
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+\Z")
_REFUSED_HEADERS = re.compile(
    r"(?:host|connection|proxy-.*|te|trailer|transfer-encoding|upgrade|expect|via|forwarded"
    r"|content-length|accept-encoding|authorization|keep-alive|:.*"
    r"|x-http-method(?:-override)?|x-method-override|x-original-url|x-rewrite-url"
    r"|x-forwarded-.*)\Z",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Caps:
    """What one exchange may use. Sizes are bytes after decompression, times are seconds."""

    request_bytes: int = 8 * 1024 * 1024
    response_bytes: int = 8 * 1024 * 1024
    url_bytes: int = 16 * 1024
    headers: int = 64
    header_bytes: int = 16 * 1024
    seconds: float = 30.0
    attempts: int = 3
    retry_budget_seconds: float = 20.0
    redirects: int = 3
    exchanges: int = 1000


@dataclass(frozen=True)
class Release:
    """One write may leave: the request with this digest, or, where it is None, the first one."""

    digest: str | None


@dataclass(frozen=True)
class Capture:
    """Writes are captured and not sent."""


WriteMode = Release | Capture | None


class Broker:
    """Performs the requests of one session.

    `policy` may be replaced between calls. In a write session `writes` says what becomes of the
    first writing request: captured unsent (`captured` then holds it), or sent if it is the approved
    one; any further write is refused. None, for mock upstreams, sends all that the policy allows.
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
    ) -> None:
        self.policy = policy
        self.upstream = upstream
        self.caps = caps or Caps()
        self.brake = brake or Brake()
        self.captured: WireRequest | None = None
        self.released = False
        self._credentials = credentials
        self._clock: Clock = clock or SystemClock()
        self._throttle = throttle
        self._writes = writes
        self._count = 0

    async def perform(self, request: WireRequest) -> Exchange:
        """Judge and send a request. Refusals are values of the exchange, never exceptions."""
        started = self._clock.now()
        self._count += 1
        exchange = await self._judged(request)
        return replace(exchange, elapsed_ms=(self._clock.now() - started) * 1000)

    async def _judged(self, request: WireRequest) -> Exchange:
        if self.brake.engaged:
            return _refused(request, "frozen", "Toolwright is frozen")
        problem = _malformed(request, self.caps)
        if problem or self._count > self.caps.exchanges:
            return _refused(request, "refused", problem or "too many requests in one session")
        rule = self.policy.match(request.method, request.url)
        if rule is None:
            reason = f"{request.method} {request.url[:200]} is not among the declared requests"
            return _refused(request, "refused", reason)
        if self._writes is not None and self._is_write(request):
            withheld = self._withhold(request)
            if withheld is not None:
                return withheld
        return await self._sent(request, rule)

    def _is_write(self, request: WireRequest) -> bool:
        """A request with an unsafe method; where the session's rules have none, any request."""
        unsafe = any(rule.method not in SAFE_METHODS for rule in self.policy.rules)
        return request.method not in SAFE_METHODS or not unsafe

    def _withhold(self, request: WireRequest) -> Exchange | None:
        if isinstance(self._writes, Capture):
            self.captured = self.captured or request
            return _refused(request, "captured", "held for a person's approval")
        if self.released:
            return _refused(request, "refused", "a second write in one call was not approved")
        wanted = self._writes.digest if isinstance(self._writes, Release) else None
        if wanted is not None and wire_digest(request) != wanted:
            self.captured = request
            return _refused(request, "refused", "this is not the request that was approved")
        self.released = True
        return None

    async def _sent(self, request: WireRequest, rule: Rule) -> Exchange:
        names = self._credentials.choose(rule.security) if self._credentials else ()
        if names is None:
            wanted = " or ".join("+".join(alternative) for alternative in rule.security)
            return _refused(request, "refused", f"the credential {wanted} is not set")
        attempts = 0
        try:
            async with self._clock.deadline(self.caps.seconds + self.caps.retry_budget_seconds):
                while True:
                    attempts += 1
                    response = await self._attempt(request, rule, names)
                    if not await self._retried(request, response, attempts):
                        break
        except TimeoutError:
            return _refused(request, "timeout", self._too_slow(), attempts)
        except ResponseTooLarge as error:
            return _refused(request, "too_large", str(error), attempts)
        except UpstreamUnreachable as error:
            return _refused(request, "unreachable", str(error), attempts)
        if len(response.body) > self.caps.response_bytes:
            reason = f"the answer is larger than {self.caps.response_bytes} bytes"
            return _refused(request, "too_large", reason, attempts)
        if self._credentials:
            response = self._credentials.redact(response, names)
        return await self._followed(request, response, attempts)

    def _too_slow(self) -> str:
        return f"no whole answer within {self.caps.seconds:g} s"

    async def _attempt(
        self, request: WireRequest, rule: Rule, names: tuple[str, ...]
    ) -> WireResponse:
        if self._throttle:
            await self._throttle.admit(rule.origin, self._clock)
        wire = self._credentials.add(request, names) if self._credentials else request
        async with self._clock.deadline(self.caps.seconds):
            return await self.upstream.send(wire)

    async def _retried(self, request: WireRequest, response: WireResponse, attempts: int) -> bool:
        if response.status not in RETRIED_STATUSES or request.method not in SAFE_METHODS:
            return False
        wait = retry_after(response)
        if wait is None or wait > self.caps.retry_budget_seconds or attempts >= self.caps.attempts:
            return False
        await self._clock.sleep(wait)
        return True

    async def _followed(
        self, request: WireRequest, response: WireResponse, attempts: int
    ) -> Exchange:
        """Follow a redirect of a safe request to a declared target, or refuse it."""
        target = response.header("location")
        if response.status not in REDIRECTS or not target:
            return Exchange(request, response, attempts=attempts)
        moved = replace(request, url=urljoin(request.url, target))
        rule = self.policy.match(moved.method, moved.url)
        if request.method not in SAFE_METHODS or rule is None or attempts > self.caps.redirects:
            where = str(origin_of(moved.url) or "an address without an origin")
            reason = f"redirected ({response.status}) to an undeclared target at {where}"
            return _refused(request, "refused", reason, attempts)
        onward = await self._sent(moved, rule)
        return replace(onward, request=request, attempts=attempts + onward.attempts)


def wire_digest(request: WireRequest) -> str:
    """sha256 (hex) over method, URL, headers in order with lower-case names, and body."""
    total = hashlib.sha256(f"{request.method}\n{request.url}\n".encode())
    for name, value in request.headers:
        total.update(f"{name.lower()}: {value}\n".encode())
    total.update(b"\n" + request.body)
    return total.hexdigest()


def retry_after(response: WireResponse) -> float | None:
    """Seconds of a Retry-After header in its delta form (RFC 9110 section 10.2.3), or None."""
    value = (response.header("retry-after") or "").strip()
    return float(value) if value.isascii() and value.isdigit() and len(value) < 9 else None


def _malformed(request: WireRequest, caps: Caps) -> str:
    if len(request.url) > caps.url_bytes or len(request.body) > caps.request_bytes:
        return "the request is larger than the caps allow"
    if any(not 32 < ord(letter) < 127 for letter in request.url):
        return "the URL holds a character that must be percent-encoded"
    if not _TOKEN.match(request.method):
        return "the method is not a token"
    if len(request.headers) > caps.headers:
        return "too many headers"
    for name, value in request.headers:
        if not _TOKEN.match(name) or _REFUSED_HEADERS.match(name):
            return f"the header {name[:60]!r} is not the sandbox's to set"
        if len(value) > caps.header_bytes or any(
            (ord(letter) < 32 and letter != "\t") or ord(letter) == 127 for letter in value
        ):
            return f"the value of header {name[:60]!r} is not allowed"
    return ""


def _refused(request: WireRequest, refusal: Refusal, reason: str, attempts: int = 0) -> Exchange:
    return Exchange(request, None, refusal, reason, attempts)
