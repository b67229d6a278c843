"""How far a call has come, as the code that runs it tells: bounded, since it is a stranger's."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sandbox.cleantext import clean_text

MAX_TOLD = 1000
"""So many notices of one call are passed on; the rest is not."""
MAX_MESSAGE = 200


@dataclass(frozen=True)
class Progress:
    """`done` of `total` (None: unknown), in whatever unit the tool counts."""

    done: float
    total: float | None = None
    message: str = ""


Hearer = Callable[[Progress], None]


def unheard(progress: Progress) -> None:
    """For a call whose client did not ask to be told."""


def read_progress(said: Mapping[str, Any]) -> Progress | None:
    """A notice of MCP's names (`progress`, `total`, `message`), or None where it is none."""
    done, total, message = said.get("progress"), said.get("total"), said.get("message")
    if done is None or not _is_number(done):
        return None
    told = clean_text(message[: MAX_MESSAGE * 4])[:MAX_MESSAGE] if isinstance(message, str) else ""
    return Progress(done, total if _is_number(total) else None, told)


def _is_number(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and abs(value) < 1e15 and math.isfinite(value)
