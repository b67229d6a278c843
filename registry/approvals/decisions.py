"""Signing a person's decision on one stored request, and verifying it.

The signature covers the approval's terms (`registry.approvals.terms`): all that was shown and all
that is carried out. It is checked against the row as it lies in the database at that moment, so a
row that was written or changed by hand is no approval. A decision is signed by the person's key, or
by a key that it delegated for some time.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from registry.approvals.terms import ApprovalTerms, build_terms, find_difference
from registry.database.canonical import clean_text, to_canonical_json
from registry.models import Approval
from registry.secrets.signing import Signer, verify_signature

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


def sign_decision(
    approval: Approval,
    approve: bool,
    by: str,
    now: float,
    signer: Signer,
    delegation: Delegation | None = None,
    text: str = "",
) -> str:
    """Sign a decision on the request as it was shown, by that text. Returns JSON text for the
    approval's row.
    """
    terms = build_terms(approval, text)
    body = {
        "kind": "decision",
        "decision": "approve" if approve else "reject",
        **terms.to_json(),
        "terms": terms.digest,
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
    different = find_difference(body, build_terms(approval))
    if different:
        return f"what was signed is another request: its {different} differs"
    if approval.wire_digest != body["wire"]:
        return "the request is not the one of its digest"
    if approval.decided_by != body.get("by") or approval.decided_at != body.get("decided_at"):
        return "who decided it, or when, was changed"
    decided_at = body["decided_at"]
    if not isinstance(decided_at, int | float) or not decided_at <= now < approval.expires:
        return "it has expired"
    return ""


def find_broken_term(approval: Approval, terms: ApprovalTerms) -> str:
    """The part of these terms, which are about to be carried out, that is not what was signed; ""
    where all is. The signature itself was checked when the approval was claimed.
    """
    read = _parse_decision(approval.decision)
    return "decision" if read is None else find_difference(read[0], terms)


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
