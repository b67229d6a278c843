"""Adding secrets to a request at the broker, and taking them out of what comes back."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import quote, quote_plus

from sandbox.bundle import Credential
from sandbox.exchange import Headers, WireRequest, WireResponse

REDACTED = b"[redacted]"
MIN_REDACTED_LENGTH = 4
"""Shorter secrets are not searched for in answers: they would blot out ordinary text."""


@dataclass(frozen=True)
class CredentialSource:
    """The credentials a bundle declares and a look-up of their secrets by name (None: not set).

    A basic credential's secret is `user:password`.
    """

    declared: Mapping[str, Credential] = field(default_factory=dict)
    secret: Callable[[str], str | None] = lambda name: None

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

    def _usable(self, name: str) -> bool:
        credential = self.declared.get(name)
        return bool(credential and credential.kind != "other" and self.secret(name))

    def add(self, request: WireRequest, names: tuple[str, ...]) -> WireRequest:
        """The request with these credentials added. Raises KeyError for an undeclared name."""
        for name in names:
            credential = self.declared[name]
            request = _added(request, credential, self.secret(name) or "")
        return request

    def redact(self, response: WireResponse, names: tuple[str, ...]) -> WireResponse:
        """The response without these secrets: plain, URL-encoded or in base64."""
        forms = [form for name in names for form in _forms(self.secret(name) or "")]
        if not forms:
            return response
        headers = tuple(
            (
                key,
                _without(value.encode("utf-8", "surrogateescape"), forms).decode(
                    "utf-8", "replace"
                ),
            )
            for key, value in response.headers
        )
        return replace(response, headers=headers, body=_without(response.body, forms))


def _added(request: WireRequest, credential: Credential, secret: str) -> WireRequest:
    if credential.kind == "basic":
        value = "Basic " + base64.b64encode(secret.encode()).decode()
        return replace(request, headers=_with(request.headers, "Authorization", value))
    if credential.kind != "apiKey":
        return replace(request, headers=_with(request.headers, "Authorization", f"Bearer {secret}"))
    if credential.location == "query":
        joint = "&" if "?" in request.url else "?"
        pair = f"{quote(credential.parameter, safe='')}={quote(secret, safe='')}"
        return replace(request, url=f"{request.url}{joint}{pair}")
    if credential.location == "cookie":
        pair = f"{credential.parameter}={quote(secret, safe='')}"
        earlier = request.header("Cookie")
        value = f"{earlier}; {pair}" if earlier else pair
        return replace(request, headers=_with(request.headers, "Cookie", value))
    return replace(request, headers=_with(request.headers, credential.parameter, secret))


def _with(headers: Headers, name: str, value: str) -> Headers:
    kept = tuple((key, old) for key, old in headers if key.lower() != name.lower())
    return (*kept, (name, value))


def _forms(secret: str) -> list[bytes]:
    if len(secret) < MIN_REDACTED_LENGTH:
        return []
    raw = secret.encode()
    plain = {raw, quote(secret, safe="").encode(), quote_plus(secret).encode()}
    encoded = {base64.b64encode(raw), base64.urlsafe_b64encode(raw)}
    forms = plain | {form.rstrip(b"=") for form in encoded} | encoded
    if ":" in secret:
        forms.add(secret.split(":", 1)[1].encode())
    return sorted((form for form in forms if len(form) >= MIN_REDACTED_LENGTH), key=len)[::-1]


def _without(content: bytes, forms: list[bytes]) -> bytes:
    for form in forms:
        content = content.replace(form, REDACTED)
    return content
