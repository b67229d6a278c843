"""Where the log of a process goes: to its standard error, as it is when something is logged."""

from __future__ import annotations

import sys
from contextlib import suppress
from io import TextIOBase
from typing import TextIO, cast

import structlog
from structlog.dev import ConsoleRenderer, plain_traceback


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
    """Have everything that is logged from now on go there. Of an error its lines of code are told
    and no values: among these may be secrets, and large ones take minutes to write out.
    """
    to = cast(TextIO, _StandardError())
    processors = structlog.get_config()["processors"][:-1]
    console = ConsoleRenderer(exception_formatter=plain_traceback)
    structlog.configure([*processors, console], logger_factory=structlog.PrintLoggerFactory(to))
