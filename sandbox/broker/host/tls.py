"""Inspection of a TLS peer's certificate: a handshake and nothing after it."""

from __future__ import annotations

import asyncio
import hashlib
import ssl
from collections.abc import Sequence
from typing import Any

from cryptography import x509

from sandbox.bundle.target import NetworkTarget
from sandbox.errors import UpstreamUnreachable
from sandbox.sanitize import clean_text

MAX_NAMES = 200
MAX_TEXT = 500
_UNREADABLE = (
    x509.InvalidVersion,
    x509.DuplicateExtension,
    x509.UnsupportedGeneralNameType,
    ValueError,
    TypeError,
)
"""Exceptions that parsing a certificate raises."""


async def inspect_peer(target: NetworkTarget, addresses: Sequence[str]) -> dict[str, Any]:
    """The certificate at the first of these addresses, and whether it is valid for the host.

    Raises UpstreamUnreachable if the handshake fails for any reason but the certificate.
    """
    try:
        try:
            shown, protocol = await _shake_hands(target, addresses[0], ssl.create_default_context())
            problem = ""
        except ssl.SSLCertVerificationError as error:
            problem = (error.verify_message or str(error) or "not verified")[:MAX_TEXT]
            shown, protocol = await _shake_hands(target, addresses[0], _create_trusting_context())
        told = parse_certificate(shown)
    except (OSError, ValueError) as error:
        reason = str(error)[:MAX_TEXT] or type(error).__name__
        raise UpstreamUnreachable(f"no TLS handshake with {target}: {reason}") from error
    return {**told, "verified": not problem, "problem": problem, "protocol": protocol}


async def _shake_hands(
    target: NetworkTarget, address: str, context: ssl.SSLContext
) -> tuple[bytes, str]:
    """Connect and return the certificate in DER and the protocol's version."""
    _, writer = await asyncio.open_connection(
        address, target.port, ssl=context, server_hostname=target.host
    )
    try:
        shaken = writer.get_extra_info("ssl_object")
        shown = shaken.getpeercert(binary_form=True)
        if not shown:
            raise ValueError("the peer showed no certificate")
        return bytes(shown), str(shaken.version())
    finally:
        # No farewell: some peers never answer one.
        writer.transport.abort()


def _create_trusting_context() -> ssl.SSLContext:
    """A context that accepts any certificate: it is only read, and no data is sent."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def parse_certificate(shown: bytes) -> dict[str, Any]:
    """The fields of an untrusted certificate. Raises ValueError."""
    try:
        return _describe_certificate(x509.load_der_x509_certificate(shown), shown)
    except _UNREADABLE as error:
        raise ValueError(f"its certificate cannot be read: {error}") from error


def _describe_certificate(made: x509.Certificate, shown: bytes) -> dict[str, Any]:
    return {
        "subject": clean_text(made.subject.rfc4514_string())[:MAX_TEXT],
        "issuer": clean_text(made.issuer.rfc4514_string())[:MAX_TEXT],
        "not_before": made.not_valid_before_utc.isoformat(),
        "not_after": made.not_valid_after_utc.isoformat(),
        "names": _list_names(made),
        "serial": f"{made.serial_number:x}",
        "fingerprint_sha256": hashlib.sha256(shown).hexdigest(),
    }


def _list_names(made: x509.Certificate) -> list[str]:
    try:
        found = made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, ValueError):
        return []
    names = [str(name) for name in found.get_values_for_type(x509.DNSName)]
    names += [str(address) for address in found.get_values_for_type(x509.IPAddress)]
    return [clean_text(name)[:MAX_TEXT] for name in names[:MAX_NAMES]]
