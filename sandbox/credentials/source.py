"""Credentials of one bundle: selection for a request, signing, renewal after 401, redaction."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import cache, partial
from shlex import quote
from urllib.parse import urlsplit

from sandbox.bundle.credential import UNUSABLE, Credential
from sandbox.clock import Clock
from sandbox.credentials import digest
from sandbox.credentials.oauth import (
    Fetch,
    TokenCache,
    TokenRequest,
)
from sandbox.credentials.oauth_secret import (
    TOKEN_KINDS,
    can_fetch_token,
    identify_account,
    sends_token,
    strip_scheme,
)
from sandbox.credentials.oauth_secret import carry_account as carry_account
from sandbox.credentials.placement import place_credential, set_header
from sandbox.credentials.templates import SignedRequest, SigningInputs, fill_template, sign_aws
from sandbox.credentials.uses import (
    TOKEN_REQUEST,
    LentRenewal,
    LentSecret,
    SecretUse,
    describe_place,
    render_origin,
)
from sandbox.errors import CredentialRefused, SandboxError
from sandbox.wire.exchange import WireRequest, WireResponse
from sandbox.wire.policy import Origin, parse_origin
from sandbox.wire.redaction import Redaction, list_sensitive_parts

_LATER = {"digest": 1, "template": 2, "aws-sigv4": 3}
"""Kinds that sign a request are applied after those that change it."""
_MAX_REDACTIONS = 64
_MAX_PATH = 500
_PORTS = {"http": 80, "https": 443}
CANCELLED = "cancelled"


@dataclass(frozen=True)
class TokenExchange:
    """The record of a broker's own request to a token endpoint, without headers and bodies.
    `status` is None if no answer came; `failure` is then the exception's
    name, or `cancelled`.
    """

    credential: str
    host: str
    method: str
    path: str
    status: int | None
    failure: str
    elapsed_ms: float


class CredentialCache:
    """In-memory caches of a process, shared by all servers: access tokens, digest nonces, and
    compiled redactions.
    """

    def __init__(self) -> None:
        self.tokens, self.nonces = TokenCache(), digest.NonceCache()
        self._redactions: dict[frozenset[str], Redaction] = {}

    def get_redaction(self, secrets: Iterable[str]) -> Redaction:
        """The redaction of these secrets, cached because compiling one takes milliseconds."""
        key = frozenset(secrets)
        found = self._redactions.pop(key, None) or Redaction(key)
        while len(self._redactions) >= _MAX_REDACTIONS:
            del self._redactions[next(iter(self._redactions))]
        self._redactions[key] = found
        return found


@dataclass(frozen=True)
class SigningContext:
    """The context of a signature: the request's origin, the clock, and a function that sends to a
    token endpoint.
    """

    origin: Origin
    clock: Clock
    fetch: Fetch


@dataclass(frozen=True)
class CredentialSource:
    """The credentials that a bundle declares, and a lookup of their secrets by name (None: not
    set).

    A basic or digest credential's secret is `user:password`, an aws-sigv4 one's
    `ACCESS_KEY_ID:SECRET_ACCESS_KEY`; that of a bearer or basic one may be the whole value of the
    `Authorization` header, as a source's is. See `sandbox.credentials.oauth.parse_oauth_secret` for
    tokens. `server` separates its entries in the wallet from other servers'. `keep` stores a secret
    that an API has replaced (a rotated refresh token); it may block. `may_ask` tells whether a
    person allowed a token endpoint's origin. `told` receives a record of each request to one.

    `find_obstacle` says why a secret may not go where a request would take it, "" where it may; it
    is asked about every request that is signed, those for tokens included. `lent` are the secrets
    of sources that fit a credential, for the origins of which it has none of its own. `is_given`
    tells whether a person gave a secret with a source of an origin, whatever place it goes into,
    `is_declared` whether a request of the bundle goes to an origin.
    """

    declared: Mapping[str, Credential] = field(default_factory=dict)
    secret: Callable[[str], str | None] = lambda name: None
    server: str = ""
    wallet: CredentialCache = field(default_factory=CredentialCache)
    keep: Callable[[str, str], None] | None = None
    may_ask: Callable[[Origin], bool] = lambda origin: True
    anew: Callable[[str], str | None] | None = None
    told: Callable[[TokenExchange], None] = lambda exchange: None
    find_obstacle: Callable[[str, SecretUse], str] = lambda name, use: ""
    lent: Callable[[str], tuple[LentSecret, ...]] = lambda name: ()
    is_given: Callable[[Origin], bool] = lambda origin: False
    is_declared: Callable[[Origin], bool] = lambda origin: True
    located: Mapping[str, str] = field(default_factory=dict)
    """The vault's names of the secrets by their credentials'; an account's differs from it."""
    hold: Callable[[str], AbstractContextManager[None]] | None = None
    """The lock that all processes share which may renew a credential's secret."""
    again: Callable[[str], str] = lambda name: ""
    """The command that logs in again."""
    origin: Origin | None = None
    """The origin of the one exchange that this copy is for (`open_exchange`)."""
    borrowed: Mapping[str, LentSecret] = field(default_factory=dict)
    """The secrets of sources that this exchange's credentials are taken from, by credential."""

    def hold_secrets(self) -> CredentialSource:
        """A copy that looks up each secret once, so that what it signs with is what
        `list_accounts` told.
        """
        if not self.declared:
            return self

        def lend(name: str) -> tuple[LentSecret, ...]:
            return tuple(replace(lent, read=cache(lent.read)) for lent in self.lent(name))

        return replace(
            self, secret=cache(self.secret), anew=self.anew or self.secret, lent=cache(lend)
        )

    def open_exchange(self, origin: Origin) -> CredentialSource:
        """A copy for one exchange with an origin. It looks up each secret once, because a vault may
        be slow: the server's own, else that of a source of this very origin. Token fetches still
        read by `anew`, because another process may have replaced the secret.
        """
        if not self.declared:
            return self
        look, borrowed = self.anew or self.secret, dict[str, LentSecret]()

        @cache
        def find(name: str) -> str | None:
            if (own := self.secret(name)) is not None:
                return own
            for lent in self.lent(name):
                if lent.origin == origin and (text := lent.read()) is not None:
                    borrowed[name] = lent
                    return text
            return None

        def find_obstacle(name: str, use: SecretUse) -> str:
            if name not in borrowed:
                return self.find_obstacle(name, use)
            fits = use == SecretUse(origin, describe_place(self.declared[name]))
            renewal = borrowed[name].renewal
            if use.place == TOKEN_REQUEST and renewal is not None:
                fits = str(use) in renewal.uses
            return "" if fits else f"the source's secret for {name} does not go to {use}"

        def find_anew(name: str) -> str | None:
            if name not in borrowed:
                return look(name)
            renewal = borrowed[name].renewal
            return renewal.read() if renewal else find(name)

        return replace(
            self,
            secret=find,
            anew=find_anew,
            find_obstacle=find_obstacle,
            origin=origin,
            borrowed=borrowed,
        )

    def choose_credentials(self, security: tuple[tuple[str, ...], ...]) -> tuple[str, ...] | None:
        """The first alternative of a security requirement (OpenAPI 3.1, Security Requirement
        Object) whose secrets are all set, preferably one whose secrets may all go to this
        exchange's origin; () if none is required; else None.

        An empty alternative allows anonymous access and is the last choice.
        """
        if not security:
            return ()
        usable = [names for names in security if names and all(map(self._is_usable, names))]
        for names in usable:
            if all(map(self._may_go, names)):
                return names
        if usable:
            # Signing refuses it, and says where the secret goes instead.
            return usable[0]
        return () if () in security else None

    def may_go_without(self, security: tuple[tuple[str, ...], ...]) -> bool:
        """Whether a request that asks for a credential may be sent without one: none of its
        alternatives has a secret that is set, here or with a source of an origin that this server
        asks, no source of this origin has any, no account was chosen, and a person could set one.

        That the API asks for it is its document's word. Where it does, its 401 says so, and leads
        to the command. A source of an origin that this server never asks is another API's: that its
        secret goes into a header of the same name says nothing about this one.
        """
        names = {name for each in security for name in each}
        if self.origin is not None and self.is_given(self.origin):
            return False
        return bool(names) and not any(
            self._get_kind(name) in UNUSABLE
            or self.located.get(name, name) != name
            or self._is_usable(name)
            or any(self.is_declared(lent.origin) for lent in self.lent(name))
            for name in names
        )

    def list_accounts(self, security: tuple[tuple[str, ...], ...]) -> dict[str, str]:
        """The secrets that a request gets by their credentials' names, without what an API renews
        by itself; "" for one that is not set.
        """
        names = self.choose_credentials(security)
        if names is None:
            names = tuple(dict.fromkeys(name for each in security for name in each))
        secrets = {name: self.secret(name) or "" for name in names}
        return {
            name: identify_account(secret) if self._sends_token(name, secret) else secret
            for name, secret in secrets.items()
        }

    def describe_missing(self, security: tuple[tuple[str, ...], ...]) -> str:
        """A message why no alternative can be used, and what a person can do."""
        told, missed = [], []
        for names in security:
            kinds = {name: self._get_kind(name) for name in names}
            unusable = [f"{name} ({kind})" for name, kind in kinds.items() if kind in UNUSABLE]
            missing = [name for name in names if not self._is_usable(name)]
            if unusable:
                told.append(f"{', '.join(unusable)} is not supported")
            else:
                told.append(f"{'+'.join(missing)} is not set")
                missed += missing
                told += filter(None, map(self._describe_lent, missing))
        wanted = "; or ".join(dict.fromkeys(told))
        if not missed:
            return f"the API wants a credential that cannot be used: {wanted}"
        where = f"{self.server}." if self.server else ""
        login = self.again(missed[0]) if self._get_kind(missed[0]) in TOKEN_KINDS else ""
        ways = f"`{login}`, or " if login else ""
        # The name is the description's: it is quoted, because somebody types this.
        secret = f"toolwright secret set {quote(where + missed[0])}"
        return f"the credential {wanted} ({ways}`{secret}`)"

    def find_blocked(self, names: Iterable[str]) -> tuple[str, ...]:
        """Those of these credentials whose secret is set and may not go to this exchange's
        origin.
        """
        return tuple(n for n in names if self._is_usable(n) and not self._may_go(n))

    def find_ready(self, names: Iterable[str]) -> tuple[str, ...]:
        """Those whose secret is set and may go to this exchange's origin."""
        return tuple(n for n in names if self._is_usable(n) and self._may_go(n))

    def _describe_lent(self, name: str) -> str:
        """Where the secret that fits a credential goes instead; "" where there is none such."""
        for lent in self.lent(name):
            if self.origin is not None:
                here = render_origin(self.origin)
                return (
                    f"the source's secret for it goes to {render_origin(lent.origin)} and this "
                    f"request to {here}; if it is to go there too: `toolwright source add {here} "
                    f"--header {lent.header}=@{lent.name}`"
                )
        return ""

    async def sign_request(
        self, request: WireRequest, names: tuple[str, ...], way: SigningContext
    ) -> SignedRequest:
        """The request with these credentials added. Raises CredentialRefused, UpstreamUnreachable,
        RateLimited or TimeoutError (of a token endpoint).
        """
        passing: list[str] = []
        moment = SigningInputs(way.clock.get_wall_time())
        for name in sorted(names, key=lambda name: _LATER.get(self._get_kind(name), 0)):
            added = await self._add_credential(request, name, way, moment)
            request = added.request
            passing += added.passing
        return SignedRequest(request, tuple(passing))

    def find_renewal(self, names: tuple[str, ...], sent: WireRequest, answer: WireResponse) -> str:
        """The renewal that a 401 calls for: "again" for a digest challenge that was not answered
        yet, "token" if a new token can be fetched, else "". Voids the token that was refused.
        """
        for name in names:
            credential, secret = self.declared[name], self.secret(name) or ""
            if credential.kind == "digest":
                return "again" if self._is_new_challenge(name, sent, answer) else ""
            if self._sends_token(name, secret):
                if not can_fetch_token(credential, secret):
                    return ""
                used = (sent.get_header("Authorization") or "").removeprefix("Bearer ")
                self.wallet.tokens.void_token(self._get_key(name), used)
                return "token"
        return ""

    def build_redaction(self, passing: Iterable[str] = ()) -> Redaction:
        """The redaction of all secrets of the bundle, its tokens, and `passing` derived texts."""
        held: list[str] = []
        for name in self.declared:
            for text in self._list_texts(name):
                held += list_sensitive_parts(text)
            held += self.wallet.tokens.list_seen_tokens(self._get_key(name))
            for lent in self.lent(name):
                if lent.renewal is not None:
                    held += self.wallet.tokens.list_seen_tokens(lent.renewal.key)
        return self.wallet.get_redaction(held).extend_with(passing)

    def _list_texts(self, name: str) -> Iterable[str]:
        """The secret that a credential has, or those that sources lend it."""
        own = self.secret(name)
        found = [own] if own is not None else [lent.read() for lent in self.lent(name)]
        return filter(None, found)

    def _may_go(self, name: str) -> bool:
        if self.origin is None:
            return True
        use = SecretUse(self.origin, describe_place(self.declared[name]))
        return not self.find_obstacle(name, use)

    def _check_use(self, name: str, request: WireRequest, place: str) -> None:
        """Raises CredentialRefused where a secret may not go where this very request goes."""
        origin = parse_origin(request.url)
        if origin is None:
            raise CredentialRefused(f"the request has no origin that {name} could go to")
        obstacle = self.find_obstacle(name, SecretUse(origin, place))
        if obstacle:
            raise CredentialRefused(obstacle)

    def _get_kind(self, name: str) -> str:
        return self.declared[name].kind if name in self.declared else "other"

    def _sends_token(self, name: str, secret: str) -> bool:
        return name in self.declared and sends_token(self.declared[name], secret)

    def _is_usable(self, name: str) -> bool:
        return self._get_kind(name) not in UNUSABLE and bool(self.secret(name))

    async def _add_credential(
        self, request: WireRequest, name: str, way: SigningContext, moment: SigningInputs
    ) -> SignedRequest:
        credential, secret = self.declared[name], self.secret(name)
        if not secret:
            raise CredentialRefused(f"the credential {name} is not set")
        self._check_use(name, request, describe_place(credential))
        if credential.kind == "template":
            return fill_template(request, credential, secret, moment)
        if credential.kind == "aws-sigv4":
            return sign_aws(request, credential, secret, moment)
        if credential.kind == "digest":
            return self._sign_digest(request, name, secret, way)
        if credential.kind in TOKEN_KINDS or (secret[0] == "{" and sends_token(credential, secret)):
            token = await self._fetch_token(name, credential, way)
            return SignedRequest(set_header(request, "Authorization", f"Bearer {token}"))
        if credential.kind == "apiKey":
            added = place_credential(request, credential.location, credential.parameter, secret)
            return SignedRequest(added)
        if credential.kind == "basic":
            whole = strip_scheme(secret, "Basic")
            made = whole or base64.b64encode(secret.encode()).decode()
            return SignedRequest(set_header(request, "Authorization", f"Basic {made}"), (made,))
        token = strip_scheme(secret, "Bearer") or secret
        return SignedRequest(set_header(request, "Authorization", f"Bearer {token}"))

    def _find_renewal(self, name: str) -> LentRenewal | None:
        lent = self.borrowed.get(name)
        return lent.renewal if lent else None

    def _get_key(self, name: str) -> tuple[str, str]:
        """What a credential's tokens are kept under in the wallet: those of a source's log-in are
        the same for all servers that it is lent to.
        """
        renewal = self._find_renewal(name)
        return renewal.key if renewal else (self.server, self.located.get(name, name))

    def _find_lock(self, name: str) -> Callable[[], AbstractContextManager[None]] | None:
        renewal, hold = self._find_renewal(name), self.hold
        if renewal is not None:
            return renewal.hold
        return partial(hold, name) if hold else None

    async def _fetch_token(self, name: str, credential: Credential, way: SigningContext) -> str:
        renewal = self._find_renewal(name)

        async def keep(secret: str) -> None:
            if renewal is not None:
                await asyncio.to_thread(renewal.keep, secret)
            elif self.keep is not None:
                await asyncio.to_thread(self.keep, name, secret)

        async def fetch(request: WireRequest) -> WireResponse:
            origin = parse_origin(request.url)
            if origin is None or not self._is_safe(origin, way.origin):
                raise CredentialRefused(f"the token endpoint {origin} is not https; not asked")
            if origin != way.origin and not self.may_ask(origin):
                host = f"{origin.host}:{origin.port}"
                raise CredentialRefused(
                    f"a token for {name} is had at {host}, which nobody allowed yet "
                    f"(`toolwright source allow {host}`)"
                )
            self._check_use(name, request, TOKEN_REQUEST)
            return await self._send_reported(name, request, way)

        asked = TokenRequest(
            key=self._get_key(name),
            credential=credential,
            secret=lambda: (self.anew or self.secret)(name) or "",
            fetch=fetch,
            now=way.clock.now(),
            keep=keep,
            wall=way.clock.get_wall_time(),
            hold=self._find_lock(name),
            again=self.again(name),
        )
        return await self.wallet.tokens.get_token(asked)

    async def _send_reported(
        self, name: str, request: WireRequest, way: SigningContext
    ) -> WireResponse:
        """Send a token request, and report it to `told` whatever its result."""
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
            self.told(self._build_token_exchange(name, request, status, failure, took))

    def _build_token_exchange(
        self, name: str, request: WireRequest, status: int | None, failure: str, took: float
    ) -> TokenExchange:
        # A discovered endpoint's path is the upstream's own text, which may repeat what it knows.
        url = urlsplit(self.build_redaction().redact_text(request.url))
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

    def _sign_digest(
        self, request: WireRequest, name: str, secret: str, way: SigningContext
    ) -> SignedRequest:
        key = (self.server, self.located.get(name, name), way.origin)
        answer = self.wallet.nonces.answer_challenge(key, request, secret)
        if answer is None:
            return SignedRequest(request)
        # The hash by itself, because an echo of the header may have its quotes escaped.
        response = answer.partition('response="')[2].partition('"')[0]
        return SignedRequest(set_header(request, "Authorization", answer), (answer, response))

    def _is_new_challenge(self, name: str, sent: WireRequest, answer: WireResponse) -> bool:
        """Whether the 401 has a challenge that was not answered yet: the first one, a stale nonce's
        successor (RFC 7616 section 3.3), or another nonce.
        """
        asked = digest.choose_challenge(answer.headers)
        key = (self.server, self.located.get(name, name), parse_origin(sent.url))
        if asked is None:
            return False
        known = self.wallet.nonces.get_challenge(key) if sent.get_header("Authorization") else None
        self.wallet.nonces.remember_challenge(key, asked)
        return known is None or asked.stale or asked.nonce != known.nonce
