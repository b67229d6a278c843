"""Text of a message about a waiting request: the tool, target, arguments, risk and history."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from registry.models import Approval
from registry.trust import Standing
from sandbox.wire.redaction import Redaction

MAX_ARGUMENTS = 900
MAX_LINE = 300
MIN_SECRET = 4
REDACTED = "[redacted]"
_SECRET_NAME = re.compile(
    r"pass(word|wd|phrase|code)?|pwd|secret|token|api[_-]?key|authorization|credential|cookie"
    r"|private|signature|(?:^|[_-])(pin|key|auth)(?:$|[_-])",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class PushMessage:
    title: str
    text: str


@dataclass(frozen=True)
class ApprovalBackground:
    """The standing of the server and of the operation; `erases` is True where it deletes."""

    erases: bool
    server: Standing
    operation: Standing


def build_approval_message(
    approval: Approval, background: ApprovalBackground, secrets: Iterable[str] = ()
) -> PushMessage:
    """The message about a waiting request, as plain text: cleaned, then redacted, then cut."""
    hide = Redaction(secret for secret in secrets if len(secret) >= MIN_SECRET)
    shown = redact_value(dict(approval.arguments), hide)

    def show(text: str) -> str:
        return _shorten_line(hide.redact_text(strip_unprintable(text)))

    url = urlsplit(approval.wire.url)
    arguments = hide.redact_text(strip_unprintable(json.dumps(shown, ensure_ascii=False)))
    lines = [
        f"{show(_render_caller(approval))} wants to "
        f"{'DELETE something' if background.erases else 'write'} at {show(url.netloc)}:",
        f"{approval.wire.method} {show(_strip_query(approval.wire.url))}",
        f"arguments: {_shorten_text(arguments, MAX_ARGUMENTS)}",
        *([f"task: {show(approval.task)}"] if approval.task else []),
        *([f"why: {show(approval.reason)}"] if approval.reason else []),
        f"risk: {'deletes' if background.erases else 'writes'}, a {background.server.level} server",
        f"history: {show(_render_history(background.operation))}",
        f"approval {approval.id}, request {approval.wire_digest[:12]}",
    ]
    title = f"Approve {approval.entry}.{approval.tool}?"
    return PushMessage(strip_unprintable(title), "\n".join(lines))


def redact_value(value: Any, hide: Redaction | None = None) -> Any:
    """A JSON value with the secrets, and all values under a secret's name, redacted."""
    hide = hide or Redaction(())
    if isinstance(value, Mapping):
        return {
            hide.redact_text(str(key)): REDACTED
            if _SECRET_NAME.search(strip_unprintable(str(key)))
            else redact_value(item, hide)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [redact_value(item, hide) for item in value]
    return hide.redact_json(value)


def strip_unprintable(text: str) -> str:
    """Text without control, invisible and direction-changing characters."""
    return "".join(
        letter
        for letter in text
        if letter == "\n" or unicodedata.category(letter) not in ("Cc", "Cf", "Cs", "Co", "Cn")
    )


def _render_caller(approval: Approval) -> str:
    return f"A client (session {approval.session})" if approval.session else "A client"


def _strip_query(url: str) -> str:
    """The URL's path without the query, whose values are among the arguments."""
    return urlsplit(url).path or "/"


def _render_history(operation: Standing) -> str:
    if not operation.total:
        return "never done before"
    done = f"{operation.successful} of {operation.total} calls succeeded"
    failed = operation.last_failure_reason
    return f"{done}; last failure: {_shorten_line(failed)[:100]}" if failed else done


def _shorten_line(text: str) -> str:
    return _shorten_text(" ".join(text.split()), MAX_LINE)


def _shorten_text(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"
