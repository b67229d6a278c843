"""Token endpoints: the form of a request to one, and the tokens of its answer (RFC 6749)."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeGuard
from urllib.parse import quote_plus, urlencode

from sandbox.credentials.oauth_secret import OAuthSecret
from sandbox.errors import CredentialRefused
from sandbox.wire.exchange import WireRequest, WireResponse

MARGIN_SECONDS = 60.0
DEFAULT_SECONDS = 3600.0
MAX_TOKEN = 16 * 1024
MAX_ANSWER = 256 * 1024


@dataclass(frozen=True)
class GivenTokens:
    """The tokens of a token endpoint's answer (RFC 6749 section 5.1), of which `seconds` says how
    long the access token is to be used, None where the answer does not; missing ones are "".
    """

    access_token: str = field(repr=False)
    refresh_token: str = field(repr=False)
    id_token: str = field(repr=False)
    seconds: float | None
    scope: str = ""


def parse_token_answer(answer: WireResponse) -> GivenTokens:
    """Parse a token endpoint's answer of status 200. Raises CredentialRefused."""
    said = parse_object(answer)
    text, kind = said.get("access_token"), str(said.get("token_type") or "bearer").lower()
    if not _is_token(text):
        raise CredentialRefused("the token endpoint answered 200 without a usable access_token")
    if kind != "bearer":
        raise CredentialRefused(f"the token endpoint gave a {kind[:40]!r} token, not a bearer")
    new, identity, scope = said.get("refresh_token"), said.get("id_token"), said.get("scope")
    seconds = _parse_lifetime(said.get("expires_in"))
    return GivenTokens(
        text,
        new if _is_token(new) else "",
        identity if _is_token(identity) else "",
        None if seconds is None else subtract_margin(seconds),
        scope if isinstance(scope, str) and scope.isascii() and scope.isprintable() else "",
    )


def build_token_request(
    url: str, form: Mapping[str, str], grant: OAuthSecret, way: str
) -> WireRequest:
    """A POST of a form by this client (RFC 6749 section 2.3.1), which shows its secret by `way`:
    `basic`, else in the body.
    """
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


def is_invalid_client(answer: WireResponse) -> bool:
    """Whether an endpoint did not take the client for what it says it is."""
    return answer.status == 401 or parse_object(answer).get("error") == "invalid_client"


def parse_object(answer: WireResponse) -> Mapping[str, Any]:
    """The JSON object that an answer holds; empty for anything else, and for too much."""
    if len(answer.body) > MAX_ANSWER:
        return {}
    try:
        said = json.loads(answer.body)
    except (ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}


def subtract_margin(seconds: float) -> float:
    """How long a token of this lifetime is used."""
    return max(1.0, min(seconds, 10.0**7) - min(MARGIN_SECONDS, seconds / 10))


def _parse_lifetime(value: Any) -> float | None:
    """Parse `expires_in`, which some servers write as text; None if it is unusable."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 12:
        return float(value)
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e12:
        return float(value)
    return None


def _is_token(value: Any) -> TypeGuard[str]:
    return isinstance(value, str) and 0 < len(value) <= MAX_TOKEN and _is_visible(value)


def _is_visible(text: str) -> bool:
    return all(32 < ord(letter) < 127 for letter in text)
