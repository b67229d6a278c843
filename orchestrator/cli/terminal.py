"""Shared parts of the commands: options, output as tables and JSON, input, PIN, exit codes."""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import shlex
import sys
import textwrap
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar, cast

import click
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from forge.errors import ForgeError
from orchestrator.approvals.signing_key import open_key
from orchestrator.approvals.text import is_invisible
from orchestrator.cli.options import engine_option as engine_option
from orchestrator.errors import TOLD_ERRORS, OrchestratorError, PinNotGiven, WrongPin
from orchestrator.processes.watchdog import WatchedLoop
from orchestrator.settings import Settings
from registry.errors import DiskUnusable
from registry.secrets.signing import Signer
from sandbox.sanitize import clean_text

FAILED, WAITING, MISUSED = 1, 3, 2
"""Exit codes: failed, waiting for a person, and click's own for a wrong command line."""

OUR_ERRORS = (ForgeError, *TOLD_ERRORS)

WHOLE = frozenset({"approval", "job", "rule", "call", "server", "tool", "argument"})
"""Columns of what people copy from a table into the next command."""
GAP = 1
"""Blanks that stand on each side of a column but at the ends of a line."""

NOTE = "  "
"""What a note below a row of a table is indented by."""
MIN_NOTE = 40
MAX_WORD = 20
"""What a column of a narrow terminal is as wide as at least, where it has words so long."""
MIN_CELL = 20

T = TypeVar("T")


@dataclass(frozen=True)
class Screen:
    """Where a command prints: its answer, and what is told beside it."""

    out: Console
    err: Console


_OWN = Screen(
    Console(highlight=False, soft_wrap=True),
    Console(stderr=True, highlight=False, soft_wrap=True),
)
_SCREEN = ContextVar("screen", default=_OWN)


class _ScreenConsole:
    """A console of the present screen: the process's own, or that of the command which the resident
    process answers in this context.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(getattr(_SCREEN.get(), self._name), name)


out, err = (cast(Console, _ScreenConsole(name)) for name in ("out", "err"))


@contextmanager
def use_screen(screen: Screen) -> Iterator[None]:
    """Print there, within the block and this context."""
    token = _SCREEN.set(screen)
    try:
        yield
    finally:
        _SCREEN.reset(token)


def get_screen() -> Screen:
    """Where this context prints."""
    return _SCREEN.get()


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts.")
auth_option = click.option(
    "--auth",
    multiple=True,
    metavar="PLACE=@SECRET",
    help="A credential that the description forgot: header:X-Token=@SECRET, "
    "header:Authorization:token=@SECRET, query:…, cookie:…, bearer, basic or digest. SECRET is its "
    "name, never its value.",
)


def report_errors(command: Callable[..., T]) -> Callable[..., T]:
    """Print our own errors as one line on stderr and leave with status 1."""

    @wraps(command)
    def guarded(*args: Any, **kwargs: Any) -> T:
        try:
            return command(*args, **kwargs)
        except OUR_ERRORS as error:
            err.print(Text(clean_text(str(error)), style="red"))
            raise SystemExit(FAILED) from error
        except BrokenPipeError:
            raise
        except OSError as error:
            err.print(Text(str(DiskUnusable(error)), style="red"))
            raise SystemExit(FAILED) from error

    return guarded


def run_coroutine(work: Coroutine[Any, Any, T]) -> T:
    """Run a command's coroutine; Ctrl-C leaves with status 130."""
    try:
        with asyncio.Runner(loop_factory=WatchedLoop) as runner:
            return runner.run(work)
    except KeyboardInterrupt:
        raise SystemExit(130) from None


def print_json(value: Any) -> None:
    """Print JSON with invisible and terminal control characters escaped, and those that the output
    has no bytes for.
    """
    written = json.dumps(value, ensure_ascii=False, indent=1)
    letters, encoding = set(written) - {"\n"}, getattr(out.file, "encoding", None) or "utf-8"
    unseen = {each for each in letters if is_invisible(each) or not _can_encode(each, encoding)}
    shown = written.translate({ord(each): json.dumps(each)[1:-1] for each in unseen})
    click.echo(shown, file=out.file)


def _can_encode(letter: str, encoding: str) -> bool:
    try:
        letter.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


def print_table(heads: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    """Print a table; cells are text, never markup. Ids and names are never broken over lines, other
    words only where they are very long, and nothing is where no terminal shows it. Where a
    terminal is too narrow for the columns, each row is a block with a line for each of its cells.
    """
    heads, told = tuple(heads), [tuple(map(str, row)) for row in rows]
    if not out.is_terminal:
        _print_wide_table(heads, told)
        return
    shown = [[clean_text(cell) for cell in row] for row in told]
    widths = _share_width(heads, shown, out.width)
    if widths is None:
        _print_blocks(heads, shown)
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for head, width in zip(heads, widths, strict=True):
        table.add_column(head, overflow="fold", no_wrap=head in WHOLE, width=width)
    for row in shown:
        table.add_row(*map(Text, row))
    out.print(table)


def _share_width(
    heads: Sequence[str], rows: Sequence[Sequence[str]], room: int
) -> Sequence[int] | None:
    """Widths of columns, each as wide as its longest word at least; what is left goes to the
    columns that need least of it. Words such as addresses are broken only where else nothing has
    room. None where even that is not enough.
    """
    columns = [*zip(heads, *rows, strict=True)]
    lines = [[line for cell in column for line in cell.splitlines()] for column in columns]
    whole = [max(map(cell_len, column), default=0) for column in lines]
    longest = [
        full
        if head in WHOLE
        else max((cell_len(w) for line in column for w in line.split()), default=0)
        for head, full, column in zip(heads, whole, lines, strict=True)
    ]
    shortest = [
        word if head in WHOLE else min(word, max(MAX_WORD, cell_len(head)))
        for head, word in zip(heads, longest, strict=True)
    ]
    room -= 2 * GAP * (len(heads) - 1)
    widths = longest if sum(longest) <= room else shortest
    left = room - sum(widths)
    if left < 0:
        return None
    widths = [*widths]
    for at in sorted(range(len(heads)), key=lambda at: whole[at] - widths[at]):
        more = min(whole[at] - widths[at], left)
        widths[at] += more
        left -= more
    return widths


def _print_blocks(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Each row as lines of a column's name and its cell, without empty cells; a blank line stands
    between rows.
    """
    indent = max(map(cell_len, heads), default=0) + 2 * GAP
    for number, cells in enumerate(rows):
        if number:
            out.print()
        for head, cell in zip(heads, cells, strict=True):
            lines = [cell] * bool(cell) if head in WHOLE else _wrap_cell(cell, out.width - indent)
            for at, line in enumerate(lines):
                label = Text((head if at == 0 else "").ljust(indent), style="bold")
                out.print(label.append(line, style="not bold"), soft_wrap=True)


def _wrap_cell(cell: str, width: int) -> Sequence[str]:
    room = max(width, MIN_CELL)
    return [part for line in cell.splitlines() for part in textwrap.wrap(line, room)]


def _print_wide_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A line for each row, however long, for who searches them."""
    shown = [[" ".join(clean_text(cell).splitlines()) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(heads, *shown, strict=True)]
    for cells in (heads, *shown):
        out.print(Text("  ".join(map(str.ljust, cells, widths)).rstrip()), soft_wrap=True)


def print_noted_table(
    heads: Sequence[str], rows: Sequence[Sequence[object]], notes: Sequence[str]
) -> None:
    """Print a table of short cells; the note of a row, a sentence or nothing, stands below it."""
    shown = [[clean_text(str(cell)) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(heads, *shown, strict=True)]

    def align(cells: Sequence[str]) -> str:
        return "  ".join(map(str.ljust, cells, widths)).rstrip()

    out.print(Text(align(heads), style="bold"))
    for cells, note in zip(shown, notes, strict=True):
        out.print(Text(align(cells)), soft_wrap=True)
        words = " ".join(clean_text(note).split())
        wide = textwrap.wrap(words, max(out.width - len(NOTE), MIN_NOTE))
        for line in wide if out.is_terminal else [words] * bool(words):
            out.print(Text(f"{NOTE}{line}", style="dim"), soft_wrap=True)


def print_text(message: str, style: str = "") -> None:
    out.print(Text(clean_text(message), style=style))


@contextmanager
def tell_beside(as_json: bool) -> Iterator[None]:
    """Print on standard error what the block tells, where standard output is for JSON."""
    screen = _SCREEN.get()
    with use_screen(Screen(screen.err, screen.err) if as_json else screen):
        yield


def print_done(as_json: bool, message: str, **facts: Any) -> None:
    """Print what a command has done, for a person or as a JSON object."""
    if as_json:
        print_json(facts)
    else:
        print_text(message)


def print_note(message: str) -> None:
    """Print on standard error what is told beside an answer."""
    err.print(Text(clean_text(message)))


def is_terminal(quiet: bool) -> bool:
    """Whether a person can be asked: not a script that reads JSON, and not a pipe."""
    return not quiet and sys.stdin.isatty() and sys.stderr.isatty()


def read_line(path: Path) -> str:
    """The first line of a file, or of standard input for `-`."""
    if str(path) == "-":
        return sys.stdin.readline().rstrip("\r\n")
    try:
        return path.read_text().partition("\n")[0].rstrip("\r")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", "") or error
        raise OrchestratorError(f"{path} cannot be read: {reason}.") from error


_OBJECT = 'Give the arguments as one, in single quotes: \'{"name": "example.org"}\''


def parse_arguments(text: str) -> Mapping[str, Any]:
    """Parse a JSON object of the command line. Raises click.BadParameter."""
    try:
        value = json.loads(text)
    except ValueError as error:
        raise click.BadParameter(f"{text[:60]!r} is not JSON: {error}. {_OBJECT}") from error
    if not isinstance(value, dict):
        raise click.BadParameter(f"{text[:60]!r} is not a JSON object. {_OBJECT}")
    return value


def check_secret_set(settings: Settings, name: str, server: str = "") -> None:
    """Raises OrchestratorError where the vault has no such secret, of a server or of sources. Asked
    for before any work is done.
    """
    # Opening a vault loads cryptography, which most commands do without.
    vault = importlib.import_module("registry.secrets.vault").open_vault(settings)
    if (server and vault.get(server, name)) or vault.get("sources", name):
        return
    whole = shlex.quote(f"{server}.{name}" if server else name)
    raise OrchestratorError(
        f"there is no secret {name}; nothing was changed. `toolwright secret set {whole}` sets it."
    )


pin_option = click.option(
    "--pin-file",
    type=click.Path(path_type=Path, allow_dash=True),
    help="Read the PIN from a file, or from standard input with `-`, instead of asking for it.",
)


def prompt_hidden(what: str) -> str:
    """Ask for what nobody is to see; without a terminal it is the next line of standard input.
    Raises click.Abort where there is none.
    """
    if not _has_terminal():
        line = sys.stdin.readline()
        if not line:
            raise click.Abort
        return line.rstrip("\r\n")
    typed: str = click.prompt(what, hide_input=True, err=True)
    return typed


def _has_terminal() -> bool:
    """Whether `getpass` finds a terminal, at standard input or as the process's own. It warns where
    it does not.
    """
    if sys.stdin.isatty():
        return True
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True


def read_pin(pin_file: Path | None) -> str:
    """The PIN, from a file or asked for. Raises PinNotGiven where nobody can be asked."""
    if pin_file:
        return read_line(pin_file)
    try:
        asked = prompt_hidden("PIN")
    except click.Abort as error:
        if sys.stdin.isatty():
            raise
        raise PinNotGiven() from error
    return asked


def check_pin_set(settings: Settings) -> None:
    """Raises PinUnusable where the home has no PIN that could be asked for."""
    # Loading it loads cryptography, which most commands do without.
    importlib.import_module("registry.secrets.pin").check_set(settings.pin)


def ask_pin(settings: Settings, pin_file: Path | None) -> Signer:
    """Ask for the PIN and open the person's key. Raises WrongPin, OrchestratorError, or PinUnusable
    before anything is asked.
    """
    check_pin_set(settings)
    pin = read_pin(pin_file)
    opened = open_key(settings, pin, time.time())
    if opened.signer is None:
        raise WrongPin(opened.refused)
    return opened.signer
