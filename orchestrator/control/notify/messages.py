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
    """The message about a waiting request, as plain text with the secrets redacted."""
    shown = redact_value(dict(approval.arguments), tuple(secrets))
    host = urlsplit(approval.wire.url).netloc
    lines = [
        f"{_render_caller(approval)} wants to "
        f"{'DELETE something' if background.erases else 'write'} at {_shorten_line(host)}:",
        f"{approval.wire.method} {_shorten_line(_strip_query(approval.wire.url))}",
        f"arguments: {_shorten_text(json.dumps(shown, ensure_ascii=False), MAX_ARGUMENTS)}",
        *([f"task: {_shorten_line(approval.task)}"] if approval.task else []),
        *([f"why: {_shorten_line(approval.reason)}"] if approval.reason else []),
        f"risk: {'deletes' if background.erases else 'writes'}, a {background.server.level} server",
        f"history: {_render_history(background.operation)}",
        f"approval {approval.id}, request {approval.wire_digest[:12]}",
    ]
    title = f"Approve {approval.entry}.{approval.tool}?"
    return PushMessage(strip_unprintable(title), strip_unprintable("\n".join(lines)))


def redact_value(value: Any, secrets: tuple[str, ...] = ()) -> Any:
    """A JSON value with these secrets, and all values under a secret's name, redacted."""
    if isinstance(value, Mapping):
        return {
            _redact_text(str(key), secrets): REDACTED
            if _SECRET_NAME.search(str(key))
            else redact_value(item, secrets)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [redact_value(item, secrets) for item in value]
    return _redact_text(value, secrets) if isinstance(value, str) else value


def strip_unprintable(text: str) -> str:
    """Text without control, invisible and direction-changing characters."""
    return "".join(
        letter
        for letter in text
        if letter == "\n" or unicodedata.category(letter) not in ("Cc", "Cf", "Cs", "Co", "Cn")
    )


def _render_caller(approval: Approval) -> str:
    return (
        f"A client (session {_shorten_line(approval.session)})" if approval.session else "A client"
    )


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


def _redact_text(text: str, secrets: Iterable[str]) -> str:
    for secret in secrets:
        if len(secret) >= MIN_SECRET:
            text = text.replace(secret, REDACTED)
    return text
