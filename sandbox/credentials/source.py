"""The secrets of one bundle: which a request wants, how they are added, what must not come back."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from urllib.parse import urlsplit

from sandbox import digest
from sandbox.authscheme import UNUSABLE, Credential
from sandbox.clock import Clock
from sandbox.errors import CredentialRefused, SandboxError
from sandbox.exchange import WireRequest, WireResponse
from sandbox.oauth import Fetch, Request, Tokens, can_fetch
from sandbox.placing import in_header, put
from sandbox.policy import Origin, origin_of
from sandbox.redaction import Redaction, sensitive
from sandbox.signing import Moment, Signed, fill, sign_aws

TOKEN_KINDS = ("oauth2", "openIdConnect")
_LATER = {"digest": 1, "template": 2, "aws-sigv4": 3}
"""What signs a request comes after what changes it."""
_MAX_REDACTIONS = 64
_MAX_PATH = 500
_PORTS = {"http": 80, "https": 443}
CANCELLED = "cancelled"


@dataclass(frozen=True)
class TokenExchange:
    """A request that the broker made by itself to a token endpoint: nothing of what was sent or
    came back. `status` is None where no answer came; `failure` says why.
    """

    credential: str
    host: str
    method: str
    path: str
    status: int | None
    failure: str
    elapsed_ms: float


class Wallet:
    """What a process remembers of credentials, in memory only: access tokens, digest nonces, and
    the patterns of what it takes out of answers. All servers share one.
    """

    def __init__(self) -> None:
        self.tokens, self.nonces = Tokens(), digest.Nonces()
        self._redactions: dict[frozenset[str], Redaction] = {}

    def redaction(self, secrets: Iterable[str]) -> Redaction:
        """The redaction of these secrets; making one costs milliseconds, so it is kept."""
        key = frozenset(secrets)
        found = self._redactions.pop(key, None) or Redaction(key)
        while len(self._redactions) >= _MAX_REDACTIONS:
            del self._redactions[next(iter(self._redactions))]
        self._redactions[key] = found
        return found


@dataclass(frozen=True)
class Way:
    """How a credential gets at what it needs from outside: the request's origin, the clock, and the
    broker's own requests to a token endpoint.
    """

    origin: Origin
    clock: Clock
    fetch: Fetch


@dataclass(frozen=True)
class CredentialSource:
    """The credentials a bundle declares and a look-up of their secrets by name (None: not set).

    A basic or digest credential's secret is `user:password`, an aws-sigv4 one's
    `ACCESS_KEY_ID:SECRET_ACCESS_KEY`; see `sandbox.oauth.read_grant` for tokens. `server` tells its
    credentials from other servers' in the wallet. `keep` stores a secret that an API has replaced
    (a rotated refresh token); it may block. `may_ask` is whether a token endpoint's origin was
    allowed by a person. `told` hears of every request to a token endpoint.
    """

    declared: Mapping[str, Credential] = field(default_factory=dict)
    secret: Callable[[str], str | None] = lambda name: None
    server: str = ""
    wallet: Wallet = field(default_factory=Wallet)
    keep: Callable[[str, str], None] | None = None
    may_ask: Callable[[Origin], bool] = lambda origin: True
    anew: Callable[[str], str | None] | None = None
    told: Callable[[TokenExchange], None] = lambda exchange: None

    def for_one(self) -> CredentialSource:
        """The same for one exchange: each secret is looked up once, because that may be slow; only
        where a token is fetched `anew`, because another process may have replaced it meanwhile.
        """
        if not self.declared:
            return self
        return replace(self, secret=cache(self.secret), anew=self.anew or self.secret)

    def choose(self, security: tuple[tuple[str, ...], ...]) -> tuple[str, ...] | None:
        """The first alternative whose secrets are all set; () where none is asked for, else None.

        An empty alternative allows anonymous access and is taken when nothing better is set.
        """
        if not security:
            return ()
        for names in security:
            if names and all(self._usable(name) for name in names):
                return names
        return () if () in security else None

    def lacking(self, security: tuple[tuple[str, ...], ...]) -> str:
        """Why no alternative can be used, and what a person can do."""
        told, missed = [], []
        for names in security:
            kinds = {name: self._kind(name) for name in names}
            unusable = [f"{name} ({kind})" for name, kind in kinds.items() if kind in UNUSABLE]
            missing = [name for name in names if not self._usable(name)]
            if unusable:
                told.append(f"{', '.join(unusable)} is not supported")
            else:
                told.append(f"{'+'.join(missing)} is not set")
                missed += missing
        wanted = "; or ".join(dict.fromkeys(told))
        if not missed:
            return f"the API wants a credential that cannot be used: {wanted}"
        where = f"{self.server}." if self.server else ""
        return f"the credential {wanted} (`toolwright secret set {where}{missed[0]}`)"

    async def sign(self, request: WireRequest, names: tuple[str, ...], way: Way) -> Signed:
        """The request with these credentials added. Raises CredentialRefused, UpstreamUnreachable,
        RateLimited or TimeoutError (of a token endpoint).
        """
        passing: list[str] = []
        moment = Moment(way.clock.wall())
        for name in sorted(names, key=lambda name: _LATER.get(self._kind(name), 0)):
            added = await self._added(request, name, way, moment)
            request = added.request
            passing += added.passing
        return Signed(request, tuple(passing))

    def renewable(self, names: tuple[str, ...], sent: WireRequest, answer: WireResponse) -> str:
        """What a 401 calls for: "again" where its challenge was not answered yet, "token" where
        another token may do, else "". A token that was refused is not used again then.
        """
        for name in names:
            credential, key = self.declared[name], (self.server, name)
            if credential.kind == "digest":
                return "again" if self._challenged(name, sent, answer) else ""
            if credential.kind in TOKEN_KINDS:
                if not can_fetch(credential, self.secret(name) or ""):
                    return ""
                used = (sent.header("Authorization") or "").removeprefix("Bearer ")
                self.wallet.tokens.void(key, used)
                return "token"
        return ""

    def redaction(self, passing: Iterable[str] = ()) -> Redaction:
        """What takes every secret of the bundle, its tokens, and what was made of them, out."""
        held: list[str] = []
        for name in self.declared:
            held += sensitive(self.secret(name) or "")
            held += self.wallet.tokens.seen((self.server, name))
        return self.wallet.redaction(held).also(passing)

    def _kind(self, name: str) -> str:
        return self.declared[name].kind if name in self.declared else "other"

    def _usable(self, name: str) -> bool:
        return self._kind(name) not in UNUSABLE and bool(self.secret(name))

    async def _added(self, request: WireRequest, name: str, way: Way, moment: Moment) -> Signed:
        credential, secret = self.declared[name], self.secret(name)
        if not secret:
            raise CredentialRefused(f"the credential {name} is not set")
        if credential.kind == "template":
            return fill(request, credential, secret, moment)
        if credential.kind == "aws-sigv4":
            return sign_aws(request, credential, secret, moment)
        if credential.kind == "digest":
            return self._digested(request, name, secret, way)
        if credential.kind == "apiKey":
            added = put(request, credential.location, credential.parameter, secret)
            return Signed(added)
        if credential.kind == "basic":
            made = base64.b64encode(secret.encode()).decode()
            return Signed(in_header(request, "Authorization", f"Basic {made}"), (made,))
        if credential.kind in TOKEN_KINDS:
            secret = await self._token(name, credential, way)
        return Signed(in_header(request, "Authorization", f"Bearer {secret}"))

    async def _token(self, name: str, credential: Credential, way: Way) -> str:
        async def keep(secret: str) -> None:
            if self.keep is not None:
                await asyncio.to_thread(self.keep, name, secret)

        async def fetch(request: WireRequest) -> WireResponse:
            origin = origin_of(request.url)
            if origin is None or not self._is_safe(origin, way.origin):
                raise CredentialRefused(f"the token endpoint {origin} is not https; not asked")
            if origin != way.origin and not self.may_ask(origin):
                host = f"{origin.host}:{origin.port}"
                raise CredentialRefused(
                    f"a token for {name} is had at {host}, which nobody allowed yet "
                    f"(`toolwright source allow {host}`)"
                )
            return await self._told(name, request, way)

        asked = Request(
            key=(self.server, name),
            credential=credential,
            secret=lambda: (self.anew or self.secret)(name) or "",
            fetch=fetch,
            now=way.clock.now(),
            keep=keep,
        )
        return await self.wallet.tokens.token(asked)

    async def _told(self, name: str, request: WireRequest, way: Way) -> WireResponse:
        """Send a request for a token, and say so whatever becomes of it."""
        started, status, failure = way.clock.now(), None, CANCELLED
        try:
            response = await way.fetch(request)
            status, failure = response.status, ""
            return response
        except (SandboxError, TimeoutError) as error:
            failure = type(error).__name__
            raise
        finally:
            took = (way.clock.now() - started) * 1000
            self.told(self._token_exchange(name, request, status, failure, took))

    def _token_exchange(
        self, name: str, request: WireRequest, status: int | None, failure: str, took: float
    ) -> TokenExchange:
        # A discovered endpoint's path is the upstream's own text, which may repeat what it knows.
        url = urlsplit(self.redaction().text(request.url))
        return TokenExchange(
            credential=name,
            host=f"{url.hostname}:{url.port or _PORTS[url.scheme]}",
            method=request.method,
            path=url.path[:_MAX_PATH],
            status=status,
            failure=failure,
            elapsed_ms=round(took, 3),
        )

    def _is_safe(self, endpoint: Origin, api: Origin) -> bool:
        """RFC 6749 section 3.2 wants TLS; without it only where the API itself does without."""
        return endpoint.scheme == "https" or api.scheme == "http"

    def _digested(self, request: WireRequest, name: str, secret: str, way: Way) -> Signed:
        key = (self.server, name, way.origin)
        answer = self.wallet.nonces.answer(key, request, secret)
        if answer is None:
            return Signed(request)
        # The hash by itself, because an echo of the header may have its quotes escaped.
        response = answer.partition('response="')[2].partition('"')[0]
        return Signed(in_header(request, "Authorization", answer), (answer, response))

    def _challenged(self, name: str, sent: WireRequest, answer: WireResponse) -> bool:
        """Whether the 401 asks for something that was not tried: the first challenge, or a new
        nonce in place of one that was used before.
        """
        asked = digest.challenge(answer.headers)
        key = (self.server, name, origin_of(sent.url))
        if asked is None:
            return False
        known = self.wallet.nonces.known(key) if sent.header("Authorization") else None
        self.wallet.nonces.learn(key, asked)
        return known is None or asked.stale or asked.nonce != known.nonce
