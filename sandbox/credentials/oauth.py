"""OAuth access tokens (RFC 6749): given as such, refreshed, or by client credentials."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass, field

from sandbox.bundle.credential import Credential, TokenEndpoint
from sandbox.credentials.oauth_secret import OAuthSecret, parse_oauth_secret
from sandbox.credentials.templates import parse_secret_fields
from sandbox.credentials.token_endpoint import (
    DEFAULT_SECONDS,
    GivenTokens,
    build_token_request,
    is_invalid_client,
    parse_object,
    parse_token_answer,
    subtract_margin,
)
from sandbox.errors import CredentialRefused
from sandbox.wire.exchange import WireRequest, WireResponse
from sandbox.wire.policy import parse_origin
from sandbox.wire.redaction import Redaction, list_sensitive_parts

MAX_REMEMBERED = 8

Fetch = Callable[[WireRequest], Awaitable[WireResponse]]
"""Sends a request of the broker's own to a token endpoint that the credential declares."""


@dataclass(frozen=True)
class AccessToken:
    """An access token and the time (`Clock.now`) from which it is not used; None: unknown."""

    text: str
    until: float | None = None


@dataclass
class _TokenState:
    """The token state of one credential. `void` are the tokens that the API refused."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    secret: str = ""
    token: AccessToken | None = None
    refresh_token: str = ""
    seen: tuple[str, ...] = ()
    void: tuple[str, ...] = ()
    endpoint: str = ""
    client_auth: str = ""


@dataclass(frozen=True)
class TokenRequest:
    """A request for a token: the credential, a function that reads its secret anew, one that sends
    to its token endpoint, the present time, and one that stores a rotated refresh token.

    `wall` is the present time in seconds since 1970, `hold` makes the lock that all processes share
    which may renew this secret, `again` is the command that logs in again.
    """

    key: tuple[str, str]
    credential: Credential
    secret: Callable[[], str]
    fetch: Fetch
    now: float
    keep: Callable[[str], Awaitable[None]]
    wall: float = 0.0
    hold: Callable[[], AbstractContextManager[None]] | None = None
    again: str = ""


class TokenCache:
    """The access tokens of a process, in memory, by server and credential. Concurrent requests for
    one credential's token wait for one fetch.
    """

    def __init__(self) -> None:
        self._states: dict[tuple[str, str], _TokenState] = {}

    async def get_token(self, asked: TokenRequest) -> str:
        """An access token that is not about to expire. Raises CredentialRefused with the reason, in
        which there is no secret.
        """
        state = self._states.setdefault(asked.key, _TokenState())
        async with state.lock:
            held = self._find_held_token(asked)
            if held:
                return held
            # Whoever waits for it may be cut off; a token that was replaced has to be kept.
            renewal = asyncio.ensure_future(self._renew_token(asked))
            renewal.add_done_callback(lambda done: done.cancelled() or done.exception())
            return await asyncio.shield(renewal)

    async def _renew_token(self, asked: TokenRequest) -> str:
        async with _hold_lock(asked.hold):
            # Another process may have renewed it in the meantime.
            held = self._find_held_token(asked)
            if held:
                return held
            state = self._states[asked.key]
            grant = parse_oauth_secret(state.secret, asked.credential.tokens)
            state.token = await _TokenFetch(asked, state).fetch_token(grant)
            return state.token.text

    def _find_held_token(self, asked: TokenRequest) -> str:
        """A token that is there and may be used; "" where there is none. What is remembered of an
        earlier secret is forgotten.
        """
        state, secret = self._states[asked.key], asked.secret()
        if secret != state.secret:
            fresh = _TokenState(state.lock, secret, seen=state.seen)
            self._states[asked.key] = state = fresh
        if state.token and not _is_expired(state.token, asked.now):
            return state.token.text
        grant = parse_oauth_secret(secret, asked.credential.tokens)
        lasts = not grant.expires_at or asked.wall < grant.expires_at
        fits = state.token is None and grant.access_token not in state.void
        return grant.access_token if lasts and fits else ""

    def void_token(self, key: tuple[str, str], token: str) -> None:
        """Never return this token again: the API refused it."""
        state = self._states.setdefault(key, _TokenState())
        state.void = (*state.void, token)[-MAX_REMEMBERED:]
        if state.token and state.token.text == token:
            state.token = AccessToken("", 0.0)

    def list_seen_tokens(self, key: tuple[str, str]) -> tuple[str, ...]:
        """The latest tokens of a credential, for redaction."""
        return self._states[key].seen if key in self._states else ()


def _is_expired(token: AccessToken, now: float) -> bool:
    return token.until is not None and now >= token.until


@asynccontextmanager
async def _hold_lock(
    hold: Callable[[], AbstractContextManager[None]] | None,
) -> AsyncIterator[None]:
    """Hold a lock that blocks while it is taken, beside the event loop: in a thread of its own,
    since whoever holds it needs the loop's threads to let it go.
    """
    if hold is None:
        yield
        return
    lock, waiting = hold(), ThreadPoolExecutor(1)
    taking = asyncio.get_running_loop().run_in_executor(waiting, lock.__enter__)
    waiting.shutdown(wait=False)
    try:
        await asyncio.shield(taking)
    except asyncio.CancelledError:
        taking.add_done_callback(lambda done: done.exception() or lock.__exit__(None, None, None))
        raise
    try:
        yield
    finally:
        lock.__exit__(None, None, None)


class _TokenFetch:
    """One fetch of a token."""

    def __init__(self, asked: TokenRequest, state: _TokenState) -> None:
        self._asked, self._state = asked, state
        self._hide = Redaction(list_sensitive_parts(asked.secret()))

    async def fetch_token(self, grant: OAuthSecret) -> AccessToken:
        for form in self._build_forms(grant):
            answer = await self._send_form(form, grant)
            if answer.status == 200:
                return await self._accept_token(answer, grant)
            failure = self._describe_failure(answer)
            if form["grant_type"] != "refresh_token" or answer.status >= 500:
                break
            again = parse_oauth_secret(self._asked.secret(), self._asked.credential.tokens)
            if again.refresh_token not in ("", form["refresh_token"]):
                # Another process was quicker and has kept the token that came after ours.
                answer = await self._send_form(
                    {**form, "refresh_token": again.refresh_token}, again
                )
                if answer.status == 200:
                    return await self._accept_token(answer, again)
        raise CredentialRefused(failure)

    def _build_forms(self, grant: OAuthSecret) -> list[dict[str, str]]:
        """The request bodies to try, in order. Raises CredentialRefused if there is none."""
        name, endpoint = self._asked.credential.name, self._asked.credential.tokens
        if grant.is_login:
            return [self._build_login_form(grant)]
        if endpoint is None or not endpoint.is_known:
            raise CredentialRefused(
                f"the token {name} was refused or has expired, and no token endpoint is known; "
                "set a new one"
            )
        extras = dict(grant.extras)
        if endpoint.scopes:
            extras.setdefault("scope", " ".join(endpoint.scopes))
        forms = []
        refresh = self._state.refresh_token or grant.refresh_token
        if refresh:
            forms.append({"grant_type": "refresh_token", "refresh_token": refresh})
        if grant.username:
            own = {"username": grant.username, "password": grant.password}
            forms.append({"grant_type": "password", **own, **extras})
        elif grant.client_id and grant.client_secret and not self._is_refresh_only(endpoint, grant):
            forms.append({"grant_type": "client_credentials", **extras})
        if not forms:
            raise CredentialRefused(
                f"the token {name} was refused or has expired; set a new one, or a JSON object "
                "with client_id and client_secret or refresh_token"
            )
        return forms

    def _build_login_form(self, grant: OAuthSecret) -> dict[str, str]:
        """What renews a log-in (RFC 6749 section 6, RFC 8707 section 2.2): nothing but its refresh
        token does.
        """
        token = self._state.refresh_token or grant.refresh_token
        if not token:
            name = self._asked.credential.name
            raise CredentialRefused(
                f"the log-in of {name} has expired or was refused{self._render_again()}"
            )
        resource = {key: text for key, text in grant.extras if key == "resource"}
        return {"grant_type": "refresh_token", "refresh_token": token, **resource}

    def _render_again(self) -> str:
        return f"; log in again: `{self._asked.again}`" if self._asked.again else ""

    def _is_refresh_only(self, endpoint: TokenEndpoint, grant: OAuthSecret) -> bool:
        """Whether the API's document excludes the client credentials grant for this client."""
        given = bool(endpoint.grants) and "client_credentials" not in endpoint.grants
        return given and bool(grant.refresh_token)

    async def _send_form(self, form: Mapping[str, str], grant: OAuthSecret) -> WireResponse:
        url = grant.token_url if grant.is_login else await self._find_endpoint()
        configured = self._asked.credential.tokens
        declared = configured.client_auth if configured else "basic"
        way = self._state.client_auth or grant.client_auth or declared
        answer = await self._asked.fetch(build_token_request(url, form, grant, way))
        if way == "basic" and grant.client_secret and is_invalid_client(answer):
            answer = await self._asked.fetch(build_token_request(url, form, grant, "body"))
            way = "body"
        if answer.status == 200:
            self._state.client_auth = way
        return answer

    async def _find_endpoint(self) -> str:
        declared = self._asked.credential.tokens
        assert declared is not None
        if declared.url or self._state.endpoint:
            return declared.url or self._state.endpoint
        answer = await self._asked.fetch(
            WireRequest("GET", declared.discovery, (("Accept", "application/json"),))
        )
        found = parse_object(answer).get("token_endpoint") if answer.status == 200 else None
        if not isinstance(found, str) or not found.isascii() or len(found) > 2000:
            status = answer.status
            raise CredentialRefused(
                f"the discovery document answered {status} and names no token endpoint; write it "
                "as `url` under [credentials.tokens] in bundle.toml"
            )
        if parse_origin(found) is None or parse_origin(found) != parse_origin(declared.discovery):
            raise CredentialRefused(
                f"the discovery document names a token endpoint at {parse_origin(found)}, which is "
                "not declared; if that is right, write it as `url` under [credentials.tokens]"
            )
        self._state.endpoint = found
        return found

    async def _accept_token(self, answer: WireResponse, grant: OAuthSecret) -> AccessToken:
        """The token of an answer; a rotated refresh token is stored before it is used."""
        given = parse_token_answer(answer)
        new = given.refresh_token
        remembered = filter(None, (given.access_token, new, given.id_token))
        self._state.seen = (*self._state.seen, *remembered)[-MAX_REMEMBERED:]
        self._state.refresh_token = new or self._state.refresh_token
        if grant.is_login or (grant.refresh_token and new and new != grant.refresh_token):
            await self._store_tokens(given, grant)
        lasts = subtract_margin(DEFAULT_SECONDS) if given.seconds is None else given.seconds
        return AccessToken(given.access_token, self._asked.now + lasts)

    async def _store_tokens(self, given: GivenTokens, grant: OAuthSecret) -> None:
        """Store the refresh token that follows; of a log-in also the access token, so that other
        processes need not ask for one of their own.
        """
        kept = dict(parse_secret_fields(self._asked.secret()))
        kept["refresh_token"] = given.refresh_token or grant.refresh_token
        kept.pop("access_token", None)
        if grant.is_login:
            kept["access_token"] = given.access_token
            kept.pop("expires_at", None)
            if given.seconds is not None:
                kept["expires_at"] = self._asked.wall + given.seconds
        await self._asked.keep(json.dumps(kept))
        self._state.secret = self._asked.secret()

    def _describe_failure(self, answer: WireResponse) -> str:
        said = parse_object(answer)
        parts = [str(said[key]) for key in ("error", "error_description") if said.get(key)]
        told = ": ".join(parts) or "with no reason that can be read"
        told = "".join(letter if letter.isprintable() else " " for letter in told)[:300]
        name = self._asked.credential.name
        # RFC 6749 section 5.2: the grant is invalid, expired or revoked.
        gone = self._asked.again and said.get("error") in ("invalid_grant", "unauthorized_client")
        advice = self._render_again() if gone else f"; check the credential {name}"
        return self._hide.redact_text(f"the token endpoint answered {answer.status} {told}{advice}")
