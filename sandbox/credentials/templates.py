"""What a credential's template makes of a secret for one request. It can compute, not run code."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import formatdate
from typing import Any
from urllib.parse import urlsplit

from sandbox import jwt
from sandbox.authscheme import PLACEHOLDER, Credential, Value
from sandbox.errors import CredentialRefused
from sandbox.exchange import WireRequest
from sandbox.placing import put
from sandbox.sigv4 import AwsKey, sign

MAX_MADE = 64 * 1024 * 1024


@dataclass(frozen=True)
class Moment:
    """What differs from one request to the next: the time, in seconds since 1970, and a number used
    once.
    """

    wall: float
    nonce: str = field(default_factory=lambda: secrets.token_hex(16))


@dataclass(frozen=True)
class Signed:
    """A request with a credential added, and the texts in it that must not be shown."""

    request: WireRequest
    passing: tuple[str, ...] = ()


def secret_fields(secret: str) -> Mapping[str, Any]:
    """The fields of a secret that is a JSON object; none of any other."""
    try:
        found = json.loads(secret) if secret.lstrip().startswith("{") else {}
    except (ValueError, RecursionError):
        found = {}
    return found if isinstance(found, dict) else {}


def fill(request: WireRequest, credential: Credential, secret: str, moment: Moment) -> Signed:
    """The request with the places of a template credential filled, in order: a later one sees the
    request as the earlier ones have left it. Raises CredentialRefused.
    """
    passing: list[str] = []
    for place in credential.places:
        maker = _Maker(credential, secret, request, moment)
        text = maker.text(place.value)
        request = put(request, place.location, place.parameter, text)
        passing += [text, *maker.shown()] if maker.is_secret else []
    return Signed(request, tuple(passing))


def sign_aws(request: WireRequest, credential: Credential, secret: str, moment: Moment) -> Signed:
    """The request signed for AWS. The secret is `ACCESS_KEY_ID:SECRET_ACCESS_KEY` or a JSON object
    of access_key_id, secret_access_key and session_token. Raises CredentialRefused.
    """
    found = secret_fields(secret)
    if found:
        names = ("access_key_id", "secret_access_key", "session_token")
        key = AwsKey(*(str(found.get(name) or "") for name in names))
    else:
        identity, _, own = secret.partition(":")
        key = AwsKey(identity, own)
    if not (key.identity and key.secret):
        reason = "wants ACCESS_KEY_ID:SECRET_ACCESS_KEY as its secret"
        raise CredentialRefused(f"the credential {credential.name} {reason}; set it anew")
    signed = sign(request, key, credential.region, credential.service, moment.wall)
    shown = signed.header("Authorization") or ""
    return Signed(signed, (shown, shown.rpartition("=")[2], *filter(None, (key.session,))))


class _Maker:
    """Evaluates one place's template. `is_secret` tells whether the secret went into it."""

    def __init__(
        self, credential: Credential, secret: str, request: WireRequest, moment: Moment
    ) -> None:
        self._credential, self._secret, self._moment = credential, secret, moment
        self._values = {value.name: value for value in credential.values}
        self._request = request
        self._made: dict[str, bytes] = {}
        self.is_secret = False

    def text(self, template: str) -> str:
        try:
            return self.data(template).decode()
        except UnicodeDecodeError as error:
            raise self._refused("makes bytes that are no text") from error

    def shown(self) -> tuple[str, ...]:
        return tuple(made.decode("utf-8", "replace") for made in self._made.values())

    def data(self, template: str) -> bytes:
        """The template with its placeholders replaced."""
        parts, at, size = [], 0, 0
        for found in PLACEHOLDER.finditer(template):
            parts.append(template[at : found.start()].encode())
            inner = found[1]
            parts.append(found[0][0].encode() if inner is None else self._named(inner))
            size += len(parts[-1])
            if size > MAX_MADE:
                raise self._refused("makes too much of the request")
            at = found.end()
        return b"".join([*parts, template[at:].encode()])

    def _named(self, name: str) -> bytes:
        if name == "secret" or name.startswith("secret."):
            self.is_secret = True
            return self._of_secret(name.removeprefix("secret").removeprefix("."))
        if name not in self._values:
            return _fact(name, self._request, self._moment)
        if name not in self._made:
            self._made[name] = self._valued(self._values[name])
        return self._made[name]

    def _of_secret(self, field_name: str) -> bytes:
        if not field_name:
            return self._secret.encode()
        found = secret_fields(self._secret).get(field_name)
        if not isinstance(found, str | int):
            raise self._refused(f"wants a JSON object with {field_name!r} as its secret")
        return str(found).encode()

    def _valued(self, value: Value) -> bytes:
        if value.make == "json":
            return _json({name: self.text(text) for name, text in value.fields})
        if value.make == "jwt":
            return self._token(value)
        made = self.data(value.text)
        if value.make == "hash":
            digest = hashlib.new(value.hash, made, usedforsecurity=False).digest()
            return _written(digest, value.encoding)
        if value.make == "hmac":
            return _written(hmac.new(self._key(value), made, value.hash).digest(), value.encoding)
        if value.make in ("base64", "base64url", "hex"):
            return _written(made, value.make)
        return made

    def _token(self, value: Value) -> bytes:
        issued = int(self._moment.wall)
        claims: dict[str, Any] = {name: self.text(text) for name, text in value.fields}
        claims = {"iat": issued, "exp": issued + value.seconds, **claims}
        key = self._key(value)
        return jwt.encode(claims, key, value.algorithm, self.text(value.key_id)).encode()

    def _key(self, value: Value) -> bytes:
        key = self.data(value.key)
        try:
            if value.key_encoding == "hex":
                return binascii.unhexlify(key)
            if value.key_encoding in ("base64", "base64url"):
                key = key.replace(b"-", b"+").replace(b"_", b"/")
                return base64.b64decode(key + b"=" * (-len(key) % 4), validate=True)
        except binascii.Error as error:
            raise self._refused(f"has a key that is not {value.key_encoding}") from error
        return key

    def _refused(self, reason: str) -> CredentialRefused:
        return CredentialRefused(f"the credential {self._credential.name} {reason}; set it anew")


def _written(data: bytes, how: str) -> bytes:
    if how == "hex":
        return binascii.hexlify(data)
    return base64.b64encode(data) if how == "base64" else jwt.base64url(data)


def _fact(name: str, request: WireRequest, moment: Moment) -> bytes:
    if name == "body":
        return request.body
    parts = urlsplit(request.url)
    facts = {
        "method": request.method,
        "host": parts.netloc.lower(),
        "path": parts.path or "/",
        "query": parts.query,
        "url": request.url,
        "timestamp": str(int(moment.wall)),
        "timestamp_ms": str(int(moment.wall * 1000)),
        "timestamp_iso": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(moment.wall)),
        "timestamp_http": formatdate(moment.wall, usegmt=True),
        "nonce": moment.nonce,
    }
    return facts[name].encode()


def _json(value: Mapping[str, str]) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
