"""What commands share: tables and JSON for output, files and JSON for input, exit codes."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Coroutine, Iterable, Mapping
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from forge.errors import ForgeError
from orchestrator.errors import DiskUnusable, OrchestratorError
from orchestrator.settings import ENGINES
from registry.errors import RegistryError
from sandbox.cleantext import clean_text
from sandbox.errors import SandboxError

FAILED, WAITING, MISUSED = 1, 3, 2
"""Exit codes: it failed; it waits for a person; (click's own) the command line is wrong."""

OUR_ERRORS = (ForgeError, OrchestratorError, RegistryError, SandboxError)

T = TypeVar("T")

out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts.")
engine_option = click.option(
    "--engine",
    type=click.Choice(ENGINES),
    help="Where servers run; by default Docker if it answers, else the embedded WASM engine.",
)
auth_option = click.option(
    "--auth",
    multiple=True,
    metavar="PLACE=@SECRET",
    help="A credential that the description forgot: header:X-Token=@SECRET, query:…, cookie:…, "
    "bearer, basic or digest. SECRET is its name, never its value.",
)


def reported(command: Callable[..., T]) -> Callable[..., T]:
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


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a command's coroutine; Ctrl-C leaves with status 130."""
    try:
        return asyncio.run(work)
    except KeyboardInterrupt:
        raise SystemExit(130) from None


def print_json(value: Any) -> None:
    """Print JSON in which what could not be seen, or would move a terminal, is escaped."""
    written = json.dumps(value, ensure_ascii=False, indent=1)
    unseen = {letter for letter in set(written) if not clean_text(letter)}
    click.echo(written.translate({ord(each): json.dumps(each)[1:-1] for each in unseen}))


def print_table(heads: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    """A table a person can scan; cells are text, never markup."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for head in heads:
        table.add_column(head, overflow="fold")
    for row in rows:
        table.add_row(*(Text(clean_text(str(cell))) for cell in row))
    out.print(table)


def say(message: str, style: str = "") -> None:
    out.print(Text(clean_text(message), style=style))


def read_line(path: Path) -> str:
    """The first line of a file, or of standard input for `-`."""
    if str(path) == "-":
        return sys.stdin.readline().rstrip("\r\n")
    try:
        return path.read_text().partition("\n")[0].rstrip("\r")
    except (OSError, UnicodeDecodeError) as error:
        raise OrchestratorError(f"{path} cannot be read: {error}.") from error


def parse_arguments(text: str) -> Mapping[str, Any]:
    """A JSON object given on the command line. Raises click.BadParameter."""
    try:
        value = json.loads(text)
    except ValueError as error:
        raise click.BadParameter(f"not JSON: {error}") from error
    if not isinstance(value, dict):
        raise click.BadParameter("not a JSON object")
    return value
