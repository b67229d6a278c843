"""Signed JSON Web Tokens (RFC 7519) in compact form (RFC 7515): HS256/384/512, RS256, ES256."""

from __future__ import annotations

import base64
import hmac
import json
from collections.abc import Mapping
from typing import Any

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, SECP256R1, EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from sandbox.errors import CredentialRefused

MIN_RSA_BITS = 2048


def encode(claims: Mapping[str, Any], key: bytes, algorithm: str, key_id: str = "") -> str:
    """The token. `key` is the shared secret, or a private key in PEM. Raises CredentialRefused."""
    head = {"alg": algorithm, "typ": "JWT", **({"kid": key_id} if key_id else {})}
    parts = b".".join(map(_json, (head, claims)))
    return (parts + b"." + base64url(_signature(parts, key, algorithm))).decode()


def base64url(data: bytes) -> bytes:
    """Base64 with the URL-safe alphabet and without padding (RFC 7515 section 2)."""
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def _json(value: Mapping[str, Any]) -> bytes:
    return base64url(json.dumps(value, separators=(",", ":")).encode())


def _signature(message: bytes, key: bytes, algorithm: str) -> bytes:
    if algorithm.startswith("HS"):
        return hmac.new(key, message, f"sha{algorithm[2:]}").digest()
    try:
        private = load_pem_private_key(key, None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise CredentialRefused(f"the key for {algorithm} is no private key in PEM") from error
    if algorithm == "RS256" and isinstance(private, RSAPrivateKey):
        if private.key_size >= MIN_RSA_BITS:
            return private.sign(message, PKCS1v15(), SHA256())
    elif isinstance(private, EllipticCurvePrivateKey) and isinstance(private.curve, SECP256R1):
        # RFC 7518 section 3.4: the two numbers side by side, not ASN.1.
        first, second = decode_dss_signature(private.sign(message, ECDSA(SHA256())))
        return first.to_bytes(32, "big") + second.to_bytes(32, "big")
    raise CredentialRefused(f"the private key is not one for {algorithm}")
