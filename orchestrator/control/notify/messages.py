"""Text of a message about a waiting request: the tool, target, arguments, risk and history."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from orchestrator.approvals.text import (
    escape_invisible,
    escape_line,
    hash_approval,
    is_glanceable,
    render_approval,
)
from registry.models import Approval
from registry.trust import Standing
from sandbox.sanitize import strip_unprintable
from sandbox.wire.redaction import Redaction

MAX_ARGUMENTS = 900
MAX_WHOLE = 2_000
"""Characters of a text that a message has room for: ntfy takes 4,096 bytes
(https://docs.ntfy.sh/publish/#limitations)."""
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
    """`whole` says that the text holds all that is decided; else it is a summary, and the whole
    stands on the page that a link opens.
    """

    title: str
    text: str
    whole: bool = False


@dataclass(frozen=True)
class ApprovalBackground:
    """The standing of the server and of the operation; `erases` is True where it deletes."""

    erases: bool
    server: Standing
    operation: Standing


def build_approval_message(
    approval: Approval, background: ApprovalBackground, secrets: Iterable[str] = ()
) -> PushMessage:
    """The message about a waiting request, as plain text: redacted, then cut, then with what is
    invisible written out. One that is short and holds no secret has the approval's text, as every
    other channel shows it.
    """
    hide = Redaction(secret for secret in secrets if len(secret) >= MIN_SECRET)
    shown = redact_value(dict(approval.arguments), hide)
    whole = is_glanceable(approval) and _find_whole_text(approval, shown, hide)

    def show(text: str) -> str:
        return _shorten_line(_hide_text(text, hide))

    url = urlsplit(approval.wire.url)
    arguments = _hide_text(json.dumps(shown, ensure_ascii=False), hide)
    lines = [
        f"{show(_render_caller(approval))} wants to "
        f"{'DELETE something' if background.erases else 'write'} at {show(url.netloc)}:",
        f"{approval.wire.method} {show(_strip_query(approval.wire.url))}",
        f"arguments: {_shorten_text(arguments, MAX_ARGUMENTS)}",
        *([f"task: {show(approval.task)}"] if approval.task else []),
        *([f"why: {show(approval.reason)}"] if approval.reason else []),
        f"risk: {'deletes' if background.erases else 'writes'}, a {background.server.level} server",
        f"history: {show(_render_history(background.operation))}",
        f"approval {approval.id}, request {hash_approval(approval)[:12]}",
        *(["", whole] if whole else ["This is a summary: a link or the page shows the whole."]),
    ]
    title = f"Approve {approval.entry}.{approval.tool}?"
    return PushMessage(escape_line(title), escape_invisible("\n".join(lines)), bool(whole))


def _find_whole_text(approval: Approval, redacted: Any, hide: Redaction) -> str:
    """The approval's text; "" where it is too long for a message or has something to redact."""
    text, wire = render_approval(approval), approval.wire
    try:
        body = json.loads(wire.body) if wire.body else None
    except (ValueError, RecursionError):
        body = wire.body.decode("utf-8", "replace")
    named = _SECRET_NAME.search(" ".join([urlsplit(wire.url).query, *map(_get_name, wire.headers)]))
    said = isinstance(body, str) and _SECRET_NAME.search(body)
    hidden = redacted != dict(approval.arguments) or redact_value(body, hide) != body
    # As they were before invisible characters were written out between a secret's letters.
    raw = [text, wire.url, wire.body.decode("utf-8", "replace"), approval.task, approval.reason]
    raw += [value for _, value in wire.headers]
    hidden = hidden or any(_hide_text(each, hide) != each for each in raw if each)
    return "" if hidden or named or said or len(text) > MAX_WHOLE else text


def _hide_text(text: str, hide: Redaction) -> str:
    """The text without secrets, and without what is invisible where that stands in a secret."""
    redacted, bare = hide.redact_text(text), strip_unprintable(text)
    found = hide.redact_text(bare)
    return found if found != bare else redacted


def _get_name(header: tuple[str, str]) -> str:
    return header[0]


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
    if not failed:
        return done
    return f"{done}; last failure: {strip_unprintable(_shorten_line(failed))[:100]}"


def _shorten_line(text: str) -> str:
    return _shorten_text(" ".join(text.split()), MAX_LINE)


def _shorten_text(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"
