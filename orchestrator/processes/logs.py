"""Where the log of a process goes: to its standard error, as it is when something is logged."""

from __future__ import annotations

import sys
from contextlib import suppress
from io import TextIOBase
from typing import TextIO, cast

import structlog


class _StandardError(TextIOBase):
    """What cannot be written is left out: a client that closed its end of it ends none of the work
    that something is logged of.
    """

    def write(self, text: str) -> int:
        if sys.stderr is not None:
            with suppress(OSError, ValueError):
                sys.stderr.write(text)
        return len(text)

    def flush(self) -> None:
        if sys.stderr is not None:
            with suppress(OSError, ValueError):
                sys.stderr.flush()


def configure_logs() -> None:
    """Have everything that is logged from now on go there."""
    to = cast(TextIO, _StandardError())
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(to))
