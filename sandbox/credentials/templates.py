"""Credential templates: texts computed from a secret and a request, without running code."""

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

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from jwt import InvalidKeyError, PyJWS
from jwt.algorithms import HMACAlgorithm

from sandbox.bundle.credential import PLACEHOLDER, Credential, CredentialValue
from sandbox.credentials.placement import place_credential
from sandbox.credentials.sigv4 import AwsKey, sign_request
from sandbox.errors import CredentialRefused
from sandbox.wire.exchange import WireRequest


class _SharedSecret(HMACAlgorithm):
    """HMAC with a secret that an API chose. PyJWT warns where one is shorter than RFC 7518 section
    3.2 wants it; whoever has to use it cannot choose another.
    """

    def check_key_length(self, key: bytes) -> str | None:
        return None


def _make_signer() -> PyJWS:
    signer = PyJWS(["RS256", "ES256"], {"enforce_minimum_key_length": True})
    for name, digest in (
        ("HS256", hashlib.sha256),
        ("HS384", hashlib.sha384),
        ("HS512", hashlib.sha512),
    ):
        signer.register_algorithm(name, _SharedSecret(digest))
    return signer


_SIGNER = _make_signer()


def encode_jwt(claims: Mapping[str, Any], key: bytes, algorithm: str, key_id: str = "") -> str:
    """Encode a JWT. `key` is a shared secret or a private key in PEM. Raises CredentialRefused."""
    payload = json.dumps(claims, separators=(",", ":")).encode()
    signing = key if algorithm.startswith("HS") else _load_private_key(key, algorithm)
    headers = {"kid": key_id} if key_id else None
    try:
        return _SIGNER.encode(payload, signing, algorithm, headers)
    except (InvalidKeyError, TypeError) as error:
        # PyJWT raises TypeError for a private key of another kind.
        kind = "key" if signing is key else "private key"
        raise CredentialRefused(f"the {kind} is not one for {algorithm}") from error


def _load_private_key(key: bytes, algorithm: str) -> Any:
    """Load a private key. PyJWT would accept a public one too, and fail on it later."""
    try:
        return load_pem_private_key(key, None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise CredentialRefused(f"the key for {algorithm} is no private key in PEM") from error


def encode_base64url(data: bytes) -> bytes:
    """Base64 with the URL-safe alphabet and without padding (RFC 7515 section 2)."""
    return base64.urlsafe_b64encode(data).rstrip(b"=")


MAX_MADE = 64 * 1024 * 1024


@dataclass(frozen=True)
class SigningInputs:
    """Inputs that differ between requests: the time (seconds since 1970) and a nonce."""

    wall: float
    nonce: str = field(default_factory=lambda: secrets.token_hex(16))


@dataclass(frozen=True)
class SignedRequest:
    """A request with credentials added, and the derived texts in it to redact."""

    request: WireRequest
    passing: tuple[str, ...] = ()


def parse_secret_fields(secret: str) -> Mapping[str, Any]:
    """The members of a secret that is a JSON object; empty for any other."""
    try:
        found = json.loads(secret) if secret.lstrip().startswith("{") else {}
    except (ValueError, RecursionError):
        found = {}
    return found if isinstance(found, dict) else {}


def fill_template(
    request: WireRequest, credential: Credential, secret: str, moment: SigningInputs
) -> SignedRequest:
    """The request with the places of a template credential filled in order; each sees the request
    with the earlier ones filled. Raises CredentialRefused.
    """
    passing: list[str] = []
    for place in credential.places:
        maker = _TemplateEvaluator(credential, secret, request, moment)
        text = maker.render_text(place.value)
        request = place_credential(request, place.location, place.parameter, text)
        passing += [text, *maker.list_made_texts()] if maker.is_secret else []
    return SignedRequest(request, tuple(passing))


def sign_aws(
    request: WireRequest, credential: Credential, secret: str, moment: SigningInputs
) -> SignedRequest:
    """The request signed for AWS. The secret is `ACCESS_KEY_ID:SECRET_ACCESS_KEY` or a JSON object
    of access_key_id, secret_access_key and session_token. Raises CredentialRefused.
    """
    found = parse_secret_fields(secret)
    if found:
        names = ("access_key_id", "secret_access_key", "session_token")
        key = AwsKey(*(str(found.get(name) or "") for name in names))
    else:
        identity, _, own = secret.partition(":")
        key = AwsKey(identity, own)
    if not (key.identity and key.secret):
        reason = "wants ACCESS_KEY_ID:SECRET_ACCESS_KEY as its secret"
        raise CredentialRefused(f"the credential {credential.name} {reason}; set it anew")
    signed = sign_request(request, key, credential.region, credential.service, moment.wall)
    shown = signed.get_header("Authorization") or ""
    return SignedRequest(signed, (shown, shown.rpartition("=")[2], *filter(None, (key.session,))))


class _TemplateEvaluator:
    """Evaluates the template of one place. `is_secret` tells whether the secret was used."""

    def __init__(
        self, credential: Credential, secret: str, request: WireRequest, moment: SigningInputs
    ) -> None:
        self._credential, self._secret, self._moment = credential, secret, moment
        self._values = {value.name: value for value in credential.values}
        self._request = request
        self._made: dict[str, bytes] = {}
        self.is_secret = False

    def render_text(self, template: str) -> str:
        try:
            return self.render_bytes(template).decode()
        except UnicodeDecodeError as error:
            raise self._build_refusal("makes bytes that are no text") from error

    def list_made_texts(self) -> tuple[str, ...]:
        return tuple(made.decode("utf-8", "replace") for made in self._made.values())

    def render_bytes(self, template: str) -> bytes:
        """The template with its placeholders replaced."""
        parts, at, size = [], 0, 0
        for found in PLACEHOLDER.finditer(template):
            parts.append(template[at : found.start()].encode())
            inner = found[1]
            parts.append(found[0][0].encode() if inner is None else self._render_placeholder(inner))
            size += len(parts[-1])
            if size > MAX_MADE:
                raise self._build_refusal("makes too much of the request")
            at = found.end()
        return b"".join([*parts, template[at:].encode()])

    def _render_placeholder(self, name: str) -> bytes:
        if name == "secret" or name.startswith("secret."):
            self.is_secret = True
            return self._get_secret_field(name.removeprefix("secret").removeprefix("."))
        if name not in self._values:
            return _get_request_fact(name, self._request, self._moment)
        if name not in self._made:
            self._made[name] = self._compute_value(self._values[name])
        return self._made[name]

    def _get_secret_field(self, field_name: str) -> bytes:
        if not field_name:
            return self._secret.encode()
        found = parse_secret_fields(self._secret).get(field_name)
        if not isinstance(found, str | int):
            raise self._build_refusal(f"wants a JSON object with {field_name!r} as its secret")
        return str(found).encode()

    def _compute_value(self, value: CredentialValue) -> bytes:
        if value.make == "json":
            return _encode_json({name: self.render_text(text) for name, text in value.fields})
        if value.make == "jwt":
            return self._encode_token(value)
        made = self.render_bytes(value.text)
        if value.make == "hash":
            digest = hashlib.new(value.hash, made, usedforsecurity=False).digest()
            return _encode_bytes(digest, value.encoding)
        if value.make == "hmac":
            return _encode_bytes(
                hmac.new(self._decode_key(value), made, value.hash).digest(), value.encoding
            )
        if value.make in ("base64", "base64url", "hex"):
            return _encode_bytes(made, value.make)
        return made

    def _encode_token(self, value: CredentialValue) -> bytes:
        issued = int(self._moment.wall)
        claims: dict[str, Any] = {name: self.render_text(text) for name, text in value.fields}
        claims = {"iat": issued, "exp": issued + value.seconds, **claims}
        key = self._decode_key(value)
        return encode_jwt(claims, key, value.algorithm, self.render_text(value.key_id)).encode()

    def _decode_key(self, value: CredentialValue) -> bytes:
        key = self.render_bytes(value.key)
        try:
            if value.key_encoding == "hex":
                return binascii.unhexlify(key)
            if value.key_encoding in ("base64", "base64url"):
                key = key.replace(b"-", b"+").replace(b"_", b"/")
                return base64.b64decode(key + b"=" * (-len(key) % 4), validate=True)
        except binascii.Error as error:
            raise self._build_refusal(f"has a key that is not {value.key_encoding}") from error
        return key

    def _build_refusal(self, reason: str) -> CredentialRefused:
        return CredentialRefused(f"the credential {self._credential.name} {reason}; set it anew")


def _encode_bytes(data: bytes, how: str) -> bytes:
    if how == "hex":
        return binascii.hexlify(data)
    return base64.b64encode(data) if how == "base64" else encode_base64url(data)


def _get_request_fact(name: str, request: WireRequest, moment: SigningInputs) -> bytes:
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


def _encode_json(value: Mapping[str, str]) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
