"""Requests to an authorization server: codes, tokens, devices, registration and revocation.

Answers are hostile text: bounded, cleaned, and without what was sent where they are told.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode, urlsplit

from orchestrator.errors import LoginFailed
from orchestrator.logins.metadata import AuthorizationServer, Fetch, is_safe_url
from sandbox.clock import Clock
from sandbox.credentials.oauth_secret import OAuthSecret
from sandbox.credentials.token_endpoint import (
    GivenTokens,
    build_token_request,
    is_invalid_client,
    parse_object,
    parse_token_answer,
)
from sandbox.errors import CredentialRefused, ResponseTooLarge, UpstreamUnreachable
from sandbox.sanitize import clean_text
from sandbox.wire.exchange import WireRequest, WireResponse
from sandbox.wire.redaction import Redaction

MAX_TOLD = 300
MAX_CODE = 4096
DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
INTERVAL_SECONDS = 5.0
SLOWER_SECONDS = 5.0
DEVICE_SECONDS = 1800.0
OWN_PARAMETERS = frozenset(
    {
        "client_id",
        "client_secret",
        "code_challenge",
        "code_challenge_method",
        "redirect_uri",
        "request",
        "request_uri",
        "resource",
        "response_mode",
        "response_type",
        "scope",
        "state",
    }
)


@dataclass(frozen=True)
class Client:
    """A client of an authorization server; `auth` is how it shows its secret: `basic` or `body`."""

    id: str
    secret: str = field(default="", repr=False)
    auth: str = "basic"


@dataclass(frozen=True)
class Wanted:
    """What a log-in asks for: scopes, the resource (RFC 8707), and further parameters of the
    authorization request that a person gave.
    """

    scopes: tuple[str, ...] = ()
    resource: str = ""
    parameters: tuple[tuple[str, str], ...] = ()

    def to_form(self) -> dict[str, str]:
        """The parameters that all flows share."""
        scope = {"scope": " ".join(self.scopes)} if self.scopes else {}
        return scope | ({"resource": self.resource} if self.resource else {})


@dataclass(frozen=True)
class DeviceCode:
    """What a person is shown, and by which the token is asked for (RFC 8628 section 3.2)."""

    user_code: str
    page: str
    device_code: str = field(repr=False)
    interval: float = INTERVAL_SECONDS
    seconds: float = DEVICE_SECONDS


@dataclass(frozen=True)
class Pkce:
    """A verifier (RFC 7636 section 4.1) and its challenge by S256."""

    verifier: str = field(repr=False)

    @property
    def challenge(self) -> str:
        digest = hashlib.sha256(self.verifier.encode("ascii")).digest()
        return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def generate_pkce() -> Pkce:
    return Pkce(secrets.token_urlsafe(48))


def choose_client_auth(server: AuthorizationServer) -> str:
    """How a client shows its secret: by the header, unless the server only takes it in the body."""
    methods = server.auth_methods
    only_body = "client_secret_post" in methods and "client_secret_basic" not in methods
    return "body" if only_body else "basic"


def build_authorization_url(
    server: AuthorizationServer,
    client: Client,
    wanted: Wanted,
    redirect: str,
    state: str,
    pkce: Pkce,
) -> str:
    """The URL that a person opens to log in (RFC 6749 section 4.1.1)."""
    own = {
        "response_type": "code",
        "client_id": client.id,
        "redirect_uri": redirect,
        "state": state,
        "code_challenge": pkce.challenge,
        "code_challenge_method": "S256",
        **wanted.to_form(),
        **dict(wanted.parameters),
    }
    page = server.authorization_url
    return f"{page}{'&' if urlsplit(page).query else '?'}{urlencode(own)}"


@dataclass(frozen=True)
class TokenClient:
    """Asks one server's endpoints for tokens, as one client."""

    server: AuthorizationServer
    client: Client
    fetch: Fetch

    async def exchange_code(self, code: str, redirect: str, pkce: Pkce) -> GivenTokens:
        """The tokens for a code (RFC 6749 section 4.1.3, RFC 7636 section 4.5)."""
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect,
            "code_verifier": pkce.verifier,
        }
        answer = await self._post(self.server.token_url, form)
        return self._accept(answer, (code, pkce.verifier))

    async def request_device_code(self, wanted: Wanted) -> DeviceCode:
        """A code for a person to type in elsewhere (RFC 8628 section 3.1)."""
        answer = await self._post(self.server.device_url, wanted.to_form())
        said = parse_object(answer)
        if answer.status != 200 or "device_code" not in said:
            raise self._refuse("the device endpoint", answer, ())
        return _parse_device_code(said)

    async def poll_device(self, device: DeviceCode, clock: Clock) -> GivenTokens:
        """The tokens once the person has typed the code in (RFC 8628 section 3.5)."""
        interval, until = device.interval, clock.now() + device.seconds
        form = {"grant_type": DEVICE_GRANT, "device_code": device.device_code}
        while clock.now() + interval < until:
            await clock.sleep(interval)
            try:
                answer = await self._post(self.server.token_url, form)
            except LoginFailed:
                # RFC 8628 section 3.5: after a timeout of the connection, ask less often.
                interval *= 2
                continue
            error = parse_object(answer).get("error")
            if error == "slow_down":
                interval += SLOWER_SECONDS
            elif error != "authorization_pending":
                return self._accept(answer, (device.device_code,))
        raise LoginFailed("the code has expired before anybody typed it in. Run the command again")

    async def revoke_token(self, token: str, kind: str) -> None:
        """Revoke a token (RFC 7009). Raises LoginFailed where the server did not."""
        form = {"token": token, "token_type_hint": kind}
        answer = await self._post(self.server.revocation_url, form)
        if answer.status != 200:
            raise self._refuse("the revocation endpoint", answer, (token,))

    async def _post(self, url: str, form: Mapping[str, str]) -> WireResponse:
        own = OAuthSecret(client_id=self.client.id, client_secret=self.client.secret)
        request = build_token_request(url, form, own, self.client.auth)
        if self.client.auth == "basic" and self.client.secret:
            answer = await _send(request, self.fetch)
            if not is_invalid_client(answer):
                return answer
            request = build_token_request(url, form, own, "body")
        return await _send(request, self.fetch)

    def _accept(self, answer: WireResponse, sent: Iterable[str]) -> GivenTokens:
        # Some servers give errors with status 200.
        if answer.status != 200 or "error" in parse_object(answer):
            raise self._refuse("the token endpoint", answer, sent)
        try:
            return parse_token_answer(answer)
        except CredentialRefused as error:
            raise LoginFailed(str(error)) from error

    def _refuse(self, who: str, answer: WireResponse, sent: Iterable[str]) -> LoginFailed:
        hide = Redaction(filter(None, (*sent, self.client.secret)))
        return LoginFailed(hide.redact_text(f"{who} answered {describe_answer(answer)}"))


async def register_client(
    server: AuthorizationServer, redirect: str, scopes: Iterable[str], fetch: Fetch
) -> Client:
    """Register a public client for this machine (RFC 7591 section 3.1). Raises LoginFailed."""
    flows = ["authorization_code", "refresh_token", *([DEVICE_GRANT] if server.device_url else [])]
    asked = {
        "client_name": "Toolwright",
        "application_type": "native",
        "redirect_uris": [redirect],
        "grant_types": flows,
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
    }
    if words := " ".join(scopes):
        asked["scope"] = words
    headers = (("Content-Type", "application/json"), ("Accept", "application/json"))
    body = json.dumps(asked).encode()
    answer = await _send(WireRequest("POST", server.registration_url, headers, body), fetch)
    said = parse_object(answer)
    name, secret = said.get("client_id"), said.get("client_secret") or ""
    if answer.status not in (200, 201) or not _is_plain(name) or (secret and not _is_plain(secret)):
        raise LoginFailed(f"the registration endpoint answered {describe_answer(answer)}")
    body_only = said.get("token_endpoint_auth_method") == "client_secret_post"
    return Client(str(name), str(secret), "body" if body_only else "basic")


def describe_answer(answer: WireResponse) -> str:
    """The status of an answer and the error that it gives (RFC 6749 section 5.2), bounded and in
    one visible line.
    """
    said = parse_object(answer)
    parts = [said[key] for key in ("error", "error_description") if isinstance(said.get(key), str)]
    told = " ".join(clean_text(": ".join(parts)).split())[:MAX_TOLD]
    return f"{answer.status} {told or 'with nothing that can be read'}"


def _parse_device_code(said: Mapping[str, Any]) -> DeviceCode:
    device, shown = said["device_code"], said.get("user_code")
    page = said.get("verification_uri") or said.get("verification_url")
    if not _is_plain(device) or not _is_plain(shown) or len(str(shown)) > 100:
        raise LoginFailed("the device endpoint gave no code that a person could type in")
    if not is_safe_url(page):
        raise LoginFailed(f"the device endpoint names no https page: {str(page)[:120]!r}")
    interval = _parse_seconds(said.get("interval"), INTERVAL_SECONDS, 1.0, 60.0)
    seconds = _parse_seconds(said.get("expires_in"), DEVICE_SECONDS, 1.0, DEVICE_SECONDS)
    return DeviceCode(str(shown), str(page), str(device), interval, seconds)


def _parse_seconds(value: object, default: float, least: float, most: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return default
    return min(max(float(value), least), most)


def _is_plain(value: object) -> bool:
    if not isinstance(value, str) or not 0 < len(value) <= MAX_CODE:
        return False
    return all(32 <= ord(letter) < 127 for letter in value)


async def _send(request: WireRequest, fetch: Fetch) -> WireResponse:
    try:
        return await fetch(request)
    except (UpstreamUnreachable, ResponseTooLarge) as error:
        raise LoginFailed(str(error)) from error
    except TimeoutError as error:
        host = urlsplit(request.url).hostname
        raise LoginFailed(f"{host} gave no whole answer in time") from error


Show = Callable[[str], None]
"""Shows a line to the person who logs in."""
