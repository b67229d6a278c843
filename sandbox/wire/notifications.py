"""What a server's log tells the client that called it: filtered, bounded, without what is hidden.

https://modelcontextprotocol.io/specification/2025-11-25/server/utilities/logging
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sandbox.cleantext import clean_json, clean_text

LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
DEFAULT_LEVEL = "info"
"""Where a client of the older era set none."""
MAX_LOGGED = 200
"""So many messages of one request are passed on; the rest is counted."""
MAX_DATA = 4000
MAX_LOGGER = 100


@dataclass(frozen=True)
class LogMessage:
    """`data` is any JSON value, in at most `MAX_DATA` characters."""

    level: str
    data: Any
    logger: str = ""


@dataclass
class LogEar:
    """Who hears what is logged for one request, from a level on; `dropped` counts what was too
    much.
    """

    hear: Callable[[LogMessage], None]
    level: str = DEFAULT_LEVEL
    dropped: int = 0
    _told: int = field(default=0, repr=False)

    def tell(self, message: LogMessage) -> None:
        if LEVELS.index(message.level) < LEVELS.index(self.level):
            return
        if self._told >= MAX_LOGGED:
            self.dropped += 1
            return
        self._told += 1
        self.hear(message)


def read_message(said: Any) -> LogMessage | None:
    """A `notifications/message` that a stranger sent, or None where it is none."""
    if not isinstance(said, Mapping) or said.get("level") not in LEVELS or "data" not in said:
        return None
    logger = said.get("logger")
    name = clean_text(logger[: MAX_LOGGER * 4])[:MAX_LOGGER] if isinstance(logger, str) else ""
    return LogMessage(said["level"], _bounded(clean_json(said["data"])), name)


def _bounded(data: Any) -> Any:
    written = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    if len(written) <= MAX_DATA:
        return data
    return f"{written[:MAX_DATA]} [cut: {len(written)} characters]"
