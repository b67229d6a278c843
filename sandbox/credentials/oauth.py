"""OAuth access tokens (RFC 6749): given as such, refreshed, or by client credentials."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeGuard
from urllib.parse import quote_plus, urlencode

from sandbox.bundle.credential import Credential, TokenEndpoint
from sandbox.credentials.templates import parse_secret_fields
from sandbox.errors import CredentialRefused
from sandbox.wire.exchange import WireRequest, WireResponse
from sandbox.wire.policy import parse_origin
from sandbox.wire.redaction import Redaction, list_sensitive_parts

MARGIN_SECONDS = 60.0
DEFAULT_SECONDS = 3600.0
MAX_TOKEN = 16 * 1024
MAX_ANSWER = 256 * 1024
MAX_REMEMBERED = 8
_EXTRAS = ("scope", "audience", "resource")
_FIRST = "first_token"
"""The field of a secret that says which refresh token its present one goes back to."""

Fetch = Callable[[WireRequest], Awaitable[WireResponse]]
"""Sends a request of the broker's own to a token endpoint that the credential declares."""


@dataclass(frozen=True)
class OAuthSecret:
    """The parsed secret of an oauth2 or openIdConnect credential; missing parts are ""."""

    access_token: str = ""
    refresh_token: str = ""
    client_id: str = ""
    client_secret: str = ""
    username: str = ""
    password: str = ""
    extras: tuple[tuple[str, str], ...] = ()


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
    """

    key: tuple[str, str]
    credential: Credential
    secret: Callable[[], str]
    fetch: Fetch
    now: float
    keep: Callable[[str], Awaitable[None]]


def parse_oauth_secret(secret: str, endpoint: TokenEndpoint | None) -> OAuthSecret:
    """Parse a secret as people set it: a JSON object of access_token, refresh_token, client_id,
    client_secret, username, password, scope, audience and resource; `CLIENT_ID:CLIENT_SECRET`
    (tokens hold no colon, RFC 6750 section 2.1); or an access token.
    """
    given = parse_secret_fields(secret)
    if given:
        texts = {key: item for key, item in given.items() if isinstance(item, str)}
        texts.setdefault("access_token", texts.get("token", ""))
        known = [key for key in OAuthSecret.__dataclass_fields__ if key != "extras"]
        extras = tuple((key, texts[key]) for key in _EXTRAS if texts.get(key))
        return OAuthSecret(**{key: texts.get(key, "") for key in known}, extras=extras)
    if endpoint and ":" in secret and " " not in secret:
        client, _, own = secret.partition(":")
        return OAuthSecret(client_id=client, client_secret=own)
    return OAuthSecret(access_token=secret)


def carry_account(before: str, renewed: str) -> str:
    """A renewed secret, as it is to be kept: it says of which one it is the successor."""
    first, fields = _identify_first_token(before), parse_secret_fields(renewed)
    return json.dumps({**fields, _FIRST: first}) if first and fields else renewed


def _identify_first_token(secret: str) -> str:
    """A digest of the refresh token that a person set, whatever it has been replaced by since; ""
    where there is none.
    """
    fields = parse_secret_fields(secret)
    first, token = fields.get(_FIRST), fields.get("refresh_token")
    if isinstance(first, str) and first:
        return first
    return hashlib.sha256(token.encode()).hexdigest() if isinstance(token, str) else ""


def identify_account(secret: str) -> str:
    """What tells a secret of another account from this one: all of it but tokens that an API
    replaces by itself, of which the first counts.
    """
    first = _identify_first_token(secret)
    if not first:
        return secret
    renewed = ("refresh_token", "access_token", _FIRST)
    fields = {k: v for k, v in parse_secret_fields(secret).items() if k not in renewed}
    return json.dumps([first, fields], sort_keys=True)


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
            secret = asked.secret()
            if secret != state.secret:
                fresh = _TokenState(state.lock, secret, seen=state.seen)
                self._states[asked.key] = state = fresh
            if state.token and not _is_expired(state.token, asked.now):
                return state.token.text
            grant = parse_oauth_secret(secret, asked.credential.tokens)
            if grant.access_token and state.token is None and grant.access_token not in state.void:
                return grant.access_token
            state.token = await _TokenFetch(asked, state).fetch_token(grant)
            return state.token.text

    def void_token(self, key: tuple[str, str], token: str) -> None:
        """Never return this token again: the API refused it."""
        state = self._states.setdefault(key, _TokenState())
        state.void = (*state.void, token)[-MAX_REMEMBERED:]
        if state.token and state.token.text == token:
            state.token = AccessToken("", 0.0)

    def list_seen_tokens(self, key: tuple[str, str]) -> tuple[str, ...]:
        """The latest tokens of a credential, for redaction."""
        return self._states[key].seen if key in self._states else ()


def can_fetch_token(credential: Credential, secret: str) -> bool:
    """Whether a new token can be fetched after one was refused."""
    grant = parse_oauth_secret(secret, credential.tokens)
    return bool(credential.tokens and (grant.refresh_token or grant.client_id or grant.username))


def _is_expired(token: AccessToken, now: float) -> bool:
    return token.until is not None and now >= token.until


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
        if endpoint is None:
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

    def _is_refresh_only(self, endpoint: TokenEndpoint, grant: OAuthSecret) -> bool:
        """Whether the API's document excludes the client credentials grant for this client."""
        given = bool(endpoint.grants) and "client_credentials" not in endpoint.grants
        return given and bool(grant.refresh_token)

    async def _send_form(self, form: Mapping[str, str], grant: OAuthSecret) -> WireResponse:
        url = await self._find_endpoint()
        configured = self._asked.credential.tokens
        way = self._state.client_auth or (configured.client_auth if configured else "basic")
        answer = await self._asked.fetch(_build_request(url, form, grant, way))
        if way == "basic" and grant.client_secret and _is_invalid_client(answer):
            answer = await self._asked.fetch(_build_request(url, form, grant, "body"))
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
        found = _parse_object(answer).get("token_endpoint") if answer.status == 200 else None
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
        said = _parse_object(answer)
        text, kind = said.get("access_token"), str(said.get("token_type") or "bearer").lower()
        if not isinstance(text, str) or not 0 < len(text) <= MAX_TOKEN or not _is_visible(text):
            raise CredentialRefused("the token endpoint answered 200 without a usable access_token")
        if kind != "bearer":
            raise CredentialRefused(f"the token endpoint gave a {kind[:40]!r} token, not a bearer")
        new = said.get("refresh_token")
        others = (new, said.get("id_token"))
        remembered = [text, *(other for other in others if _is_token(other))]
        self._state.seen = (*self._state.seen, *remembered)[-MAX_REMEMBERED:]
        if _is_token(new):
            self._state.refresh_token = new
            if grant.refresh_token and new != grant.refresh_token:
                await self._store_refresh_token(new)
        seconds = _parse_lifetime(said.get("expires_in"))
        margin = min(MARGIN_SECONDS, seconds / 10)
        return AccessToken(text, self._asked.now + max(1.0, min(seconds, 10.0**7) - margin))

    async def _store_refresh_token(self, refresh_token: str) -> None:
        kept = dict(parse_secret_fields(self._asked.secret()))
        kept["refresh_token"] = refresh_token
        kept.pop("access_token", None)
        secret = json.dumps(kept)
        await self._asked.keep(secret)
        self._state.secret = self._asked.secret()

    def _describe_failure(self, answer: WireResponse) -> str:
        said = _parse_object(answer)
        parts = [str(said[key]) for key in ("error", "error_description") if said.get(key)]
        told = ": ".join(parts) or "with no reason that can be read"
        told = "".join(letter if letter.isprintable() else " " for letter in told)[:300]
        name = self._asked.credential.name
        return self._hide.redact_text(
            f"the token endpoint answered {answer.status} {told}; check the credential {name}"
        )


def _build_request(url: str, form: Mapping[str, str], grant: OAuthSecret, way: str) -> WireRequest:
    fields = dict(form)
    headers = [
        ("Content-Type", "application/x-www-form-urlencoded"),
        ("Accept", "application/json"),
    ]
    if way == "basic" and grant.client_id and grant.client_secret:
        # RFC 6749 section 2.3.1: form-encoded first, then put together.
        pair = f"{quote_plus(grant.client_id)}:{quote_plus(grant.client_secret)}"
        headers.append(("Authorization", "Basic " + base64.b64encode(pair.encode()).decode()))
    elif grant.client_id:
        fields["client_id"] = grant.client_id
        if grant.client_secret:
            fields["client_secret"] = grant.client_secret
    return WireRequest("POST", url, tuple(headers), urlencode(fields).encode())


def _is_invalid_client(answer: WireResponse) -> bool:
    return answer.status == 401 or _parse_object(answer).get("error") == "invalid_client"


def _parse_object(answer: WireResponse) -> Mapping[str, Any]:
    if len(answer.body) > MAX_ANSWER:
        return {}
    try:
        said = json.loads(answer.body)
    except (ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}


def _parse_lifetime(value: Any) -> float:
    """Parse `expires_in`, which some servers write as text; an hour if it is unusable."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 12:
        return float(value)
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e12:
        return float(value)
    return DEFAULT_SECONDS


def _is_token(value: Any) -> TypeGuard[str]:
    return isinstance(value, str) and 0 < len(value) <= MAX_TOKEN and _is_visible(value)


def _is_visible(text: str) -> bool:
    return all(32 < ord(letter) < 127 for letter in text)
