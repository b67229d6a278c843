"""Writes that wait for a person and have a secret among their arguments: whole in the vault until
they are made. The approval's row, the page and the terminal have `MARK` in its place.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from orchestrator.calls import Call
from orchestrator.gateway.secret_arguments import hide_arguments, list_secret_texts
from registry.approvals.approvals import ApprovalTable
from registry.errors import RowNotFound
from registry.models import Approval
from registry.secrets.vault import SEALED, Secret, Vault
from sandbox.session.recording import hide_request
from sandbox.wire.exchange import WireRequest, digest_request
from sandbox.wire.redaction import MARK, Redaction

MAX_SECRETS = 50
"""Different secrets of one write, each of which is searched for by itself."""
WAITING = frozenset({"pending", "approved", "claimed", "sending"})


@dataclass(frozen=True)
class ShownWrite:
    """A write as a person is shown it and as its row has it. `hides` says that secrets of it are
    left out. One that was sealed has all of them.
    """

    arguments: Mapping[str, Any]
    wire: WireRequest
    hides: bool = False


@dataclass(frozen=True)
class SealedArguments:
    """Keeps whole writes in the vault by the approval's id."""

    vault: Vault
    approvals: ApprovalTable

    def hide(self, call: Call, captured: WireRequest) -> ShownWrite:
        """The write as it may be stored and shown.

        Where anything else in the request would be hidden as well, or that is too much to find out,
        all of it is shown: what a person approves is never hidden by a value that a caller says is
        a secret.
        """
        if not call.secrets or not _hides_secrets_alone(call, captured):
            return ShownWrite(call.arguments, captured)
        wire = hide_request(captured, Redaction(call.secrets))
        return ShownWrite(hide_arguments(call), wire, hides=True)

    def keep(self, approval: str, call: Call, captured: WireRequest) -> None:
        """Keep a write whose row has not all of it."""
        wire = [captured.method, captured.url, captured.headers, captured.body.hex()]
        kept = {"arguments": dict(call.arguments), "wire": wire}
        self.vault.put(SEALED, approval, Secret(json.dumps(kept)))

    def open(self, approval: Approval) -> ShownWrite:
        """A write as it is to be made; as its row has it, where the vault has nothing of it."""
        held = self.vault.get(SEALED, approval.id)
        if held is None:
            return ShownWrite(approval.arguments, approval.wire)
        kept = json.loads(held.reveal())
        method, url, headers, body = kept["wire"]
        fields = tuple((str(name), str(value)) for name, value in headers)
        return ShownWrite(kept["arguments"], WireRequest(method, url, fields, bytes.fromhex(body)))

    def is_as_shown(self, call: Call, whole: WireRequest, approval: Approval) -> bool:
        """Whether a write is the one that was approved but for the text of the call's secrets, none
        of which is missing.
        """
        if MARK in call.secrets:
            return False
        same = digest_request(whole) == approval.wire_digest
        hidden = hide_request(whole, Redaction(call.secrets)) if call.secrets else whole
        return same or digest_request(hidden) == approval.wire_digest

    def discard(self, approval: str) -> None:
        """Forget what was kept for a write that has been decided for good."""
        if self.vault.get(SEALED, approval) is not None:
            self.vault.delete(SEALED, approval)

    def prune(self) -> None:
        """Forget what was kept for writes that were rejected or have expired."""
        for section, name in self.vault.list_names():
            if section == SEALED and not self._waits(name):
                self.vault.delete(section, name)

    def _waits(self, approval: str) -> bool:
        try:
            return self.approvals.get(approval).state in WAITING
        except RowNotFound:
            return False


def _hides_secrets_alone(call: Call, captured: WireRequest) -> bool:
    """Whether each secret stands in the request as often as it was given, and in nothing else.

    Each is counted by itself: of all together, one that is found less often (two of them in a row
    are one place, and so is one around a `MARK`) would make up for another that is found elsewhere.
    """
    given, told = list_secret_texts(call), hide_arguments(call)
    if len(call.secrets) > MAX_SECRETS or _count_marks(captured):
        return False
    if Redaction(call.secrets).redact_json(told) != told:
        return False
    for secret in call.secrets:
        hide = Redaction((secret,))
        places = sum(hide.redact_text(text).count(MARK) for text in given)
        if MARK in secret or _count_marks(hide_request(captured, hide)) != places:
            return False
    return True


def _count_marks(request: WireRequest) -> int:
    """How often `MARK` stands in a request, as it is or as a URL spells it."""
    values = (request.url, *(value for _, value in request.headers))
    texts = "\n".join(values).replace(quote(MARK), MARK)
    return texts.count(MARK) + request.body.count(MARK.encode())
