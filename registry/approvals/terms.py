"""The terms of an approval: everything that a person is shown of a waiting write and everything
that is used to carry it out, as one value with one digest.

The digest is what a person signs, what a link or a page names when it decides, and what execution
computes again from what it is about to use. Whatever differs is no longer what was approved.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from registry.database.canonical import hash_text, to_canonical_json
from registry.models import Approval
from sandbox.wire.exchange import (
    CredentialUse,
    WireRequest,
    WriteStep,
    digest_request,
)


@dataclass(frozen=True)
class ApprovalTerms:
    """`steps` are the tools that the write goes through, the outermost first and the one that sends
    it last, each with its version, files and credentials; `uses` all that the outermost may call.
    `task`, `session` and `reason` say who asked and why, `present` what the write would change, and
    `text` is what was shown, "" where nobody has been shown anything yet.
    """

    approval: str
    server: str
    version: int
    tool: str
    steps: tuple[WriteStep, ...]
    uses: tuple[WriteStep, ...]
    arguments: Mapping[str, Any]
    wire: WireRequest
    wire_digest: str
    created: float
    expires: float
    task: str
    session: str
    reason: str
    present: str
    text: str = ""

    def to_json(self) -> dict[str, Any]:
        """The canonical form, in which what may be long stands as its sha256."""
        head = (self.wire.method, self.wire.url, self.wire.headers)
        return {
            "approval": self.approval,
            "server": self.server,
            "version": self.version,
            "tool": self.tool,
            "steps": encode_steps(self.steps),
            "uses": encode_steps(self.uses),
            "arguments": hash_text(to_canonical_json(dict(self.arguments))),
            "wire": digest_request(self.wire),
            "request": hash_text(to_canonical_json([*head, self.wire.body.hex()])),
            "digest": self.wire_digest,
            "created": self.created,
            "expires": self.expires,
            **{name: hash_text(getattr(self, name)) for name in ("task", "session", "reason")},
            "present": hash_text(self.present),
            "text": hash_text(self.text) if self.text else "",
        }

    @property
    def digest(self) -> str:
        """sha256 (hex) of the canonical form."""
        return hash_text(to_canonical_json(self.to_json()))


def build_terms(approval: Approval, text: str = "") -> ApprovalTerms:
    """The terms of an approval as its row holds them, with the text that is shown of it."""
    same = ("version", "tool", "steps", "uses", "arguments", "wire", "wire_digest", "created")
    said = ("expires", "task", "session", "reason", "present")
    fields = {name: getattr(approval, name) for name in (*same, *said)}
    return ApprovalTerms(approval=approval.id, server=approval.entry, text=text, **fields)


def encode_steps(steps: Iterable[WriteStep]) -> list[dict[str, Any]]:
    """Steps as JSON values."""
    return [
        {**asdict(step), "credentials": [asdict(use) for use in step.credentials]} for step in steps
    ]


def parse_steps(value: Any) -> tuple[WriteStep, ...]:
    """The inverse of `encode_steps`. Raises ValueError, TypeError or KeyError on anything else."""
    return tuple(
        WriteStep(
            str(step["server"]),
            int(step["version"]),
            str(step["digest"]),
            str(step["tool"]),
            tuple(CredentialUse(**use) for use in step["credentials"]),
        )
        for step in value
    )


def find_difference(signed: Mapping[str, Any], terms: ApprovalTerms) -> str:
    """The first part of the terms that is not the one in a signed body; "" where all are. A text is
    compared where the terms have one.
    """
    for name, value in terms.to_json().items():
        if signed.get(name) != value and not (name == "text" and not terms.text):
            return name
    return ""
