"""A command run inside the resident process: what it prints is kept instead of printed."""

from __future__ import annotations

import io
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

import click
from rich.console import Console

from orchestrator.calls import Call
from orchestrator.cli.commands.call import MadeCall
from orchestrator.cli.main import toolwright
from orchestrator.cli.resident.protocol import Request, Terminal
from orchestrator.cli.terminal import FAILED, Screen, use_screen

INTERRUPTED = 130
LINES = 25
MakeCall = Callable[[Call], MadeCall]


@dataclass(frozen=True)
class Printed:
    """What a command printed, as texts for `out` and `err` in their order, and its exit status."""

    parts: tuple[tuple[str, str], ...]
    status: int


class _TerminalStream(io.TextIOBase):
    """A stream of the command's terminal, which keeps what is written."""

    def __init__(
        self, name: str, parts: list[tuple[str, str]], is_terminal: bool, encoding: str
    ) -> None:
        self._name, self._parts, self._is_terminal = name, parts, is_terminal
        self._encoding = encoding

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._encoding

    def isatty(self) -> bool:
        return self._is_terminal

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if text:
            self._parts.append((self._name, text))
        return len(text)


def run_command(request: Request, make_call: MakeCall) -> Printed:
    """Run a command in this thread, as if it had been started at that terminal. `make_call` makes
    its calls. Whatever goes wrong in it is printed as the command itself would print it.
    """
    parts: list[tuple[str, str]] = []
    screen = _build_screen(request.terminal, parts)
    with use_screen(screen):
        status = _invoke(request.words, make_call, screen)
    groups = groupby(parts, key=itemgetter(0))
    return Printed(tuple((to, "".join(text for _, text in own)) for to, own in groups), status)


def _build_screen(terminal: Terminal, parts: list[tuple[str, str]]) -> Screen:
    out = _TerminalStream("out", parts, terminal.is_out_terminal, terminal.out_encoding)
    err = _TerminalStream("err", parts, terminal.is_err_terminal, terminal.err_encoding)
    return Screen(_build_console(out, terminal), _build_console(err, terminal))


def _build_console(stream: Any, terminal: Terminal) -> Console:
    return Console(
        file=stream,
        width=terminal.columns,
        height=LINES,
        highlight=False,
        soft_wrap=True,
        _environ=terminal.variables,
    )


def _invoke(words: Sequence[str], make_call: MakeCall, screen: Screen) -> int:
    """The exit status; the cases are those of `click.Command.main` at a terminal."""
    try:
        ended = toolwright.main(list(words), "toolwright", standalone_mode=False, obj=make_call)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else bool(end.code)
    except click.ClickException as error:
        error.show(screen.err.file)
        return error.exit_code
    except click.Abort:
        click.echo("Aborted!", screen.err.file)
        return FAILED
    except CancelledError:
        return INTERRUPTED
    except Exception:
        # The edge of a command: a process of its own would end with this on standard error.
        screen.err.file.write(traceback.format_exc())
        return FAILED
    return ended if isinstance(ended, int) else 0
