"""Secrets of oauth2 and openIdConnect credentials: those that a person set, and of log-ins."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass

from sandbox.bundle.credential import Credential, TokenEndpoint
from sandbox.credentials.templates import parse_secret_fields

LOGIN_GRANTS = frozenset({"authorization_code", "device_code"})
"""Values of the field `grant` of a secret that a log-in left (RFC 6749 section 4.1, RFC 8628)."""
TOKEN_KINDS = ("oauth2", "openIdConnect")
_EXTRAS = ("scope", "audience", "resource")
_FIRST = "first_token"
"""The field of a secret that says which refresh token its present one goes back to."""
_RENEWED = ("refresh_token", "access_token", "expires_at", _FIRST)
_WHOLE_HEADER = re.compile(r"([A-Za-z]+) +([A-Za-z0-9._~+/-]+=*)")
"""The whole value of an `Authorization` header (RFC 9110, section 11.4)."""


@dataclass(frozen=True)
class OAuthSecret:
    """The parsed secret of an oauth2 or openIdConnect credential; missing parts are "".

    A secret that a log-in left has `grant`, the endpoint `token_url` that renews its tokens, the
    one that revokes them, how the client shows itself there (`client_auth`), and `expires_at`: the
    time (seconds since 1970) from which its access token is not used, 0.0 where that is not known.
    `registered` says that its client was registered for it alone.
    """

    access_token: str = ""
    refresh_token: str = ""
    client_id: str = ""
    client_secret: str = ""
    username: str = ""
    password: str = ""
    token_url: str = ""
    revocation_url: str = ""
    client_auth: str = ""
    grant: str = ""
    expires_at: float = 0.0
    registered: bool = False
    extras: tuple[tuple[str, str], ...] = ()

    @property
    def is_login(self) -> bool:
        """Whether a log-in left it, so that only its own endpoint renews it."""
        return self.grant in LOGIN_GRANTS and bool(self.token_url)


def parse_oauth_secret(secret: str, endpoint: TokenEndpoint | None) -> OAuthSecret:
    """Parse a secret as people set it: a JSON object of access_token, refresh_token, client_id,
    client_secret, username, password, scope, audience and resource; `CLIENT_ID:CLIENT_SECRET`
    (tokens hold no colon, RFC 6750 section 2.1); or an access token. Or as `toolwright login` does.
    """
    given = parse_secret_fields(secret)
    if given:
        texts = {key: item for key, item in given.items() if isinstance(item, str)}
        texts.setdefault("access_token", texts.get("token", ""))
        known = [key for key, kind in OAuthSecret.__annotations__.items() if kind == "str"]
        extras = tuple((key, texts[key]) for key in _EXTRAS if texts.get(key))
        until = given.get("expires_at")
        return OAuthSecret(
            **{key: texts.get(key, "") for key in known},
            registered=given.get("registered") is True,
            expires_at=float(until) if isinstance(until, int | float) else 0.0,
            extras=extras,
        )
    if endpoint and ":" in secret and " " not in secret:
        client, _, own = secret.partition(":")
        return OAuthSecret(client_id=client, client_secret=own)
    return OAuthSecret(access_token=strip_scheme(secret, "Bearer") or secret)


def strip_scheme(secret: str, scheme: str) -> str:
    """What comes after the scheme where a secret is the whole value of an `Authorization` header,
    as a source's is; else "". Neither a token (RFC 6750, section 2.1) nor `user:password` without a
    colon can be meant by it.
    """
    whole = _WHOLE_HEADER.fullmatch(secret.strip())
    return whole[2] if whole and whole[1].lower() == scheme.lower() else ""


def is_login(secret: str) -> bool:
    """Whether a log-in left this secret."""
    return parse_oauth_secret(secret, None).is_login


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
    fields = {k: v for k, v in parse_secret_fields(secret).items() if k not in _RENEWED}
    return json.dumps([first, fields], sort_keys=True)


def sends_token(credential: Credential, secret: str) -> bool:
    """Whether a request gets an access token of this secret, rather than the secret itself: that
    of an OAuth scheme, and that of a log-in where the API's document has another name for
    `Authorization: Bearer`.
    """
    if credential.kind in TOKEN_KINDS:
        return True
    plain = credential.kind == "apiKey" and credential.location == "header"
    bearer = credential.kind == "bearer" or (
        plain and credential.parameter.lower() == "authorization"
    )
    return bearer and parse_oauth_secret(secret, None).is_login


def can_fetch_token(credential: Credential, secret: str) -> bool:
    """Whether a new token can be fetched after one was refused."""
    grant = parse_oauth_secret(secret, credential.tokens)
    if grant.is_login:
        return bool(grant.refresh_token)
    known = credential.tokens is not None and credential.tokens.is_known
    return known and bool(grant.refresh_token or grant.client_id or grant.username)
