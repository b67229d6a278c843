"""Ed25519 signatures (RFC 8032) over canonical JSON: who signs, and whether a signature fits."""

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

from registry.jsontext import canonical


class Signer:
    """A private key in memory. It does not show itself and is not copied out of the process."""

    __slots__ = ("_key",)

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key

    @classmethod
    def fresh(cls) -> Signer:
        return cls(Ed25519PrivateKey.generate())

    @property
    def public(self) -> str:
        """The public half, in hex."""
        return self._key.public_key().public_bytes_raw().hex()

    def sign(self, body: Mapping[str, Any]) -> str:
        """The signature over the body's canonical JSON, in hex."""
        return self._key.sign(canonical(body).encode()).hex()

    def sealing_key(self, purpose: str) -> bytes:
        """An AES-256 key that only who has this key can derive (HKDF, RFC 5869)."""
        derivation = HKDF(SHA256(), 32, salt=None, info=f"toolwright {purpose}".encode())
        return derivation.derive(self._key.private_bytes_raw())

    def secret(self) -> bytes:
        """The private key's 32 bytes, to be sealed."""
        return self._key.private_bytes_raw()

    def __repr__(self) -> str:
        return f"Signer({fingerprint(self.public)})"

    def __reduce__(self) -> Any:
        raise TypeError("a Signer is not pickled or copied out of the process")


def fits(public: str, body: Mapping[str, Any], signature: str) -> bool:
    """Whether the signature is this key's over this body; False for whatever is malformed."""
    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public))
        key.verify(bytes.fromhex(signature), canonical(body).encode())
    except (InvalidSignature, ValueError, TypeError, RecursionError):
        return False
    return True


def fingerprint(public: str) -> str:
    """How people name a public key: 16 hex digits of its SHA-256, in groups of four."""
    digest = hashlib.sha256(public.encode()).hexdigest()[:16]
    return "-".join(digest[at : at + 4] for at in range(0, 16, 4))
