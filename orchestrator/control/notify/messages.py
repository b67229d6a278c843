"""What a message says of a request that waits: who wants what, where, with what, at what risk."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from registry.records import Approval
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
class Message:
    title: str
    text: str


@dataclass(frozen=True)
class Background:
    """What is known of the server and of the operation; `erases`: it deletes something."""

    erases: bool
    server: Standing
    operation: Standing


def approval_message(
    approval: Approval, background: Background, secrets: Iterable[str] = ()
) -> Message:
    """The message about a request that waits. Nothing in it is markup; secrets are taken out."""
    shown = redacted(dict(approval.arguments), tuple(secrets))
    host = urlsplit(approval.wire.url).netloc
    lines = [
        f"{_who(approval)} wants to {'DELETE something' if background.erases else 'write'} "
        f"at {_line(host)}:",
        f"{approval.wire.method} {_line(_path(approval.wire.url))}",
        f"arguments: {_bounded(json.dumps(shown, ensure_ascii=False), MAX_ARGUMENTS)}",
        *([f"task: {_line(approval.task)}"] if approval.task else []),
        *([f"why: {_line(approval.reason)}"] if approval.reason else []),
        f"risk: {'deletes' if background.erases else 'writes'}, a {background.server.level} server",
        f"history: {_history(background.operation)}",
        f"approval {approval.id}, request {approval.wire_digest[:12]}",
    ]
    title = f"Approve {approval.entry}.{approval.tool}?"
    return Message(plain(title), plain("\n".join(lines)))


def redacted(value: Any, secrets: tuple[str, ...] = ()) -> Any:
    """A JSON value without what is under a secret's name and without the secrets themselves."""
    if isinstance(value, Mapping):
        return {
            _without(str(key), secrets): REDACTED
            if _SECRET_NAME.search(str(key))
            else redacted(item, secrets)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [redacted(item, secrets) for item in value]
    return _without(value, secrets) if isinstance(value, str) else value


def plain(text: str) -> str:
    """Text without control, invisible and direction-changing characters."""
    return "".join(
        letter
        for letter in text
        if letter == "\n" or unicodedata.category(letter) not in ("Cc", "Cf", "Cs", "Co", "Cn")
    )


def _who(approval: Approval) -> str:
    return f"A client (session {_line(approval.session)})" if approval.session else "A client"


def _path(url: str) -> str:
    """The path without the query, whose values are among the arguments."""
    return urlsplit(url).path or "/"


def _history(operation: Standing) -> str:
    if not operation.total:
        return "never done before"
    done = f"{operation.successful} of {operation.total} calls succeeded"
    failed = operation.last_failure_reason
    return f"{done}; last failure: {_line(failed)[:100]}" if failed else done


def _line(text: str) -> str:
    return _bounded(" ".join(text.split()), MAX_LINE)


def _bounded(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"


def _without(text: str, secrets: Iterable[str]) -> str:
    for secret in secrets:
        if len(secret) >= MIN_SECRET:
            text = text.replace(secret, REDACTED)
    return text
