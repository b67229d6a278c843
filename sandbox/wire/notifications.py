"""Log messages and progress notifications of a server: parsed, sanitized and bounded.

https://modelcontextprotocol.io/specification/2025-11-25/server/utilities/logging
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sandbox.sanitize import clean_json, clean_text

LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
DEFAULT_LEVEL = "info"
"""For a client of the 2025-11-25 protocol that sent no `logging/setLevel`."""
MAX_LOGGED = 200
"""Messages of one request that are passed on; the rest is counted."""
MAX_DATA = 4000
MAX_LOGGER = 100


@dataclass(frozen=True)
class LogMessage:
    """One log message; `data` is any JSON value, at most `MAX_DATA` characters when written."""

    level: str
    data: Any
    logger: str = ""


@dataclass
class LogListener:
    """Passes the log messages of one request to `hear`, from a level on; `dropped` counts those
    past `MAX_LOGGED`.
    """

    hear: Callable[[LogMessage], None]
    level: str = DEFAULT_LEVEL
    dropped: int = 0
    _told: int = field(default=0, repr=False)

    def passes(self, level: Any) -> bool:
        """Whether a message of that level is passed on."""
        return self._told < MAX_LOGGED and level in LEVELS and self._is_wanted(level)

    def deliver_message(self, message: LogMessage) -> None:
        if not self._is_wanted(message.level):
            return
        if self._told >= MAX_LOGGED:
            self.dropped += 1
            return
        self._told += 1
        self.hear(message)

    def _is_wanted(self, level: str) -> bool:
        return LEVELS.index(level) >= LEVELS.index(self.level)


def read_log_message(said: Any) -> LogMessage | None:
    """Parse and sanitize the params of a `notifications/message`; None if they are malformed."""
    if not isinstance(said, Mapping) or said.get("level") not in LEVELS or "data" not in said:
        return None
    logger = said.get("logger")
    name = clean_text(logger[: MAX_LOGGER * 4])[:MAX_LOGGER] if isinstance(logger, str) else ""
    return LogMessage(said["level"], _bound_data(clean_json(said["data"])), name)


def _bound_data(data: Any) -> Any:
    written = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    if len(written) <= MAX_DATA:
        return data
    return f"{written[:MAX_DATA]} [cut: {len(written)} characters]"


MAX_TOLD = 1000
"""Progress notices of one call that are passed on; the rest is dropped."""
MAX_MESSAGE = 200


@dataclass(frozen=True)
class ProgressNotice:
    """Progress of a call: `done` of `total` (None: unknown), in the tool's own unit."""

    done: float
    total: float | None = None
    message: str = ""


Hearer = Callable[[ProgressNotice], None]


def ignore_progress(progress: ProgressNotice) -> None:
    """Ignore progress: for a call whose client sent no progress token."""


def read_progress(said: Mapping[str, Any]) -> ProgressNotice | None:
    """Parse a progress notice (`progress`, `total`, `message`, as MCP names them); None if it is
    malformed.
    """
    done, total, message = said.get("progress"), said.get("total"), said.get("message")
    if done is None or not _is_number(done):
        return None
    told = clean_text(message[: MAX_MESSAGE * 4])[:MAX_MESSAGE] if isinstance(message, str) else ""
    return ProgressNotice(done, total if _is_number(total) else None, told)


def _is_number(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and abs(value) < 1e15 and math.isfinite(value)
