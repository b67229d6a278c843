"""Signing a person's decision on one stored request, and verifying it.

The signature covers everything that is carried out: the approval's id, server, version and tool,
the digests of the arguments and of the wire request, and until when. It is checked against the row
as it lies in the database at that moment, so a row that was written or changed by hand is no
approval. A decision is signed by the person's key, or by a key that it delegated for some time.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from registry.database.canonical import clean_text, hash_text, to_canonical_json
from registry.models import Approval
from registry.secrets.signing import Signer, verify_signature
from sandbox.wire.exchange import digest_request

TEXT = 20_000
MAX_SIGNED = 64 * 1024


@dataclass(frozen=True)
class Delegation:
    """A statement, signed by the person's key, that another key may sign decisions until a time
    (epoch seconds).
    """

    body: Mapping[str, Any]
    signature: str


def sign_delegation(signer: Signer, public: str, now: float, until: float) -> Delegation:
    """Sign that the key `public` may sign decisions, and nothing else, before `until`."""
    body = {"kind": "delegation", "key": public, "made": now, "until": until}
    return Delegation(body, signer.sign(body))


def build_request_digests(approval: Approval) -> dict[str, Any]:
    """The part of a decision that names the request, with the digests of what is carried out."""
    return {
        "approval": approval.id,
        "server": approval.entry,
        "version": approval.version,
        "tool": approval.tool,
        "arguments": hash_text(to_canonical_json(dict(approval.arguments))),
        "wire": digest_request(approval.wire),
        "digest": approval.wire_digest,
        "expires": approval.expires,
    }


def sign_decision(
    approval: Approval,
    approve: bool,
    by: str,
    now: float,
    signer: Signer,
    delegation: Delegation | None = None,
) -> str:
    """Sign a decision on the request as it was shown. Returns JSON text for the approval's row."""
    body = {
        "kind": "decision",
        "decision": "approve" if approve else "reject",
        **build_request_digests(approval),
        "by": clean_text(by, TEXT),
        "decided_at": now,
        "nonce": secrets.token_hex(16),
    }
    signed: dict[str, Any] = {"body": body, "signature": signer.sign(body)}
    if delegation is not None:
        signed["delegation"] = {"body": dict(delegation.body), "signature": delegation.signature}
    return to_canonical_json(signed)


def find_decision_problem(approval: Approval, public: str, now: float) -> str:
    """The reason why the owner of this key did not approve the stored request; "" where
    they did.
    """
    read = _parse_decision(approval.decision)
    if read is None:
        return "nobody signed it"
    body, signature, delegation = read
    key = public if delegation is None else _find_delegated_key(delegation, public, body)
    if not key:
        return "it was signed by a key that may not decide"
    if not verify_signature(key, body, signature):
        return "the signature does not fit"
    if body.get("kind") != "decision" or body.get("decision") != "approve":
        return "what was signed is no approval"
    for name, value in build_request_digests(approval).items():
        if body.get(name) != value:
            return f"what was signed is another request: its {name} differs"
    if approval.wire_digest != body["wire"]:
        return "the request is not the one of its digest"
    if approval.decided_by != body.get("by") or approval.decided_at != body.get("decided_at"):
        return "who decided it, or when, was changed"
    decided_at = body["decided_at"]
    if not isinstance(decided_at, int | float) or not decided_at <= now < approval.expires:
        return "it has expired"
    return ""


def build_forgery_check(public: str) -> Callable[[Approval, float], str]:
    """Build the check for one key that claiming an approval takes."""
    return lambda approval, now: find_decision_problem(approval, public, now)


def _find_delegated_key(delegation: Mapping[str, Any], public: str, body: Mapping[str, Any]) -> str:
    """The delegated key; "" unless the person's key signed the delegation and it covers the time of
    the decision.
    """
    named = delegation["body"]
    if named.get("kind") != "delegation" or not verify_signature(
        public, named, delegation["signature"]
    ):
        return ""
    made, until, decided = named.get("made"), named.get("until"), body.get("decided_at")
    times = (made, decided, until)
    if not all(isinstance(moment, int | float) for moment in times):
        return ""
    return str(named.get("key")) if made <= decided < until else ""


def _parse_decision(text: str) -> tuple[dict[str, Any], str, dict[str, Any] | None] | None:
    """Body, signature and delegation of a signed decision; None for malformed text."""
    if not 0 < len(text) <= MAX_SIGNED:
        return None
    try:
        value = json.loads(text)
        body, signature, delegation = value["body"], value["signature"], value.get("delegation")
        told = [body] if delegation is None else [body, delegation["body"], delegation]
        if not all(isinstance(part, dict) for part in told) or not isinstance(signature, str):
            return None
        if delegation is not None and not isinstance(delegation["signature"], str):
            return None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return body, signature, delegation
