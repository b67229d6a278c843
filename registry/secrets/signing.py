"""Ed25519 signatures (RFC 8032) over canonical JSON: signing and verifying."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import (
    Ed25519PrivateKey,
    Ed25519PublicKey,
)
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from registry.database.canonical import to_canonical_json


class Signer:
    """A private key in memory. Its repr shows no secret, and it cannot be pickled."""

    __slots__ = ("_key",)

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key

    @classmethod
    def generate(cls) -> Signer:
        return cls(Ed25519PrivateKey.generate())

    @property
    def public(self) -> str:
        """The public half, in hex."""
        return self._key.public_key().public_bytes_raw().hex()

    def sign(self, body: Mapping[str, Any]) -> str:
        """The signature over the body's canonical JSON, in hex."""
        return self._key.sign(to_canonical_json(body).encode()).hex()

    def derive_sealing_key(self, purpose: str) -> bytes:
        """Derive an AES-256 key from the private key (HKDF, RFC 5869)."""
        derivation = HKDF(SHA256(), 32, salt=None, info=f"toolwright {purpose}".encode())
        return derivation.derive(self._key.private_bytes_raw())

    def export_secret(self) -> bytes:
        """The private key's 32 bytes, to be sealed."""
        return self._key.private_bytes_raw()

    def __repr__(self) -> str:
        return f"Signer({compute_fingerprint(self.public)})"

    def __reduce__(self) -> Any:
        raise TypeError("a Signer is not pickled or copied out of the process")


def verify_signature(public: str, body: Mapping[str, Any], signature: str) -> bool:
    """Whether the signature over this body is valid for this key; False for malformed input."""
    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public))
        key.verify(bytes.fromhex(signature), to_canonical_json(body).encode())
    except (InvalidSignature, ValueError, TypeError, RecursionError):
        return False
    return True


def compute_fingerprint(public: str) -> str:
    """The short form of a public key for people: 16 hex digits of its SHA-256, in
    groups of four.
    """
    digest = hashlib.sha256(public.encode()).hexdigest()[:16]
    return "-".join(digest[at : at + 4] for at in range(0, 16, 4))
