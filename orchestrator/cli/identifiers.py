"""Arguments that name something stored: a beginning is enough, shells complete them, and what is
not there comes with what may have been meant.
"""

from __future__ import annotations

import difflib
from typing import Any

import click
from click.shell_completion import CompletionItem
from rich.text import Text

from orchestrator.approvals.text import escape_line
from orchestrator.cli.terminal import FAILED, err
from orchestrator.errors import AmbiguousId, NothingNamed, OrchestratorError
from orchestrator.settings import load_settings
from registry.database.lookup import Kind, find_beginning

MIN_PREFIX = 4
"""Letters of an id that have to be given: fewer are a slip."""
OFFERED = 50
NEAR = 3
_LISTED: dict[Kind, str] = {
    "approval": "toolwright approvals --all",
    "job": "toolwright jobs",
    "call": "toolwright logs",
    "rule": "toolwright rules --all",
    "server": "toolwright list",
    "tool": "toolwright list",
}


class NotStored(click.ClickException):
    """An argument names nothing that is stored, or several things."""

    exit_code = FAILED

    def show(self, file: Any = None) -> None:
        err.print(Text(self.message, style="red"))


class StoredName(click.ParamType[str]):
    """The name of a server or tool. With `new`, of one that need not be there."""

    def __init__(self, kind: Kind, *, new: bool = False) -> None:
        self.kind, self.new, self.name = kind, new, kind

    def convert(
        self, value: Any, param: click.Parameter | None, context: click.Context | None
    ) -> str:
        if not self.new and value not in (known := self._find("")) and known:
            near = difflib.get_close_matches(str(value), known, NEAR, 0.6)
            raise NotStored(str(NothingNamed(self.kind, _show(value), near, _LISTED[self.kind])))
        return str(value)

    def shell_complete(
        self, context: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        return [CompletionItem(each) for each in self._find(incomplete)[:OFFERED]]

    def _find(self, prefix: str) -> list[str]:
        return _find_stored(self.kind, prefix)


class StoredId(click.ParamType[str]):
    """The id of something stored, or its beginning; becomes the whole id."""

    def __init__(self, *kinds: Kind) -> None:
        self.kinds, self.name = kinds, kinds[0]

    def convert(
        self, value: Any, param: click.Parameter | None, context: click.Context | None
    ) -> str:
        text = str(value).rstrip("…")
        found = [each for kind in self.kinds for each in _find_stored(kind, text)] if text else []
        if text in found:
            return text
        if len(text) < MIN_PREFIX or not found:
            raise NotStored(str(NothingNamed(self.name, _show(value), [], _LISTED[self.kinds[0]])))
        if len(found) > 1:
            raise NotStored(str(AmbiguousId(_show(text), found[:5])))
        return found[0]

    def shell_complete(
        self, context: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        found = [each for kind in self.kinds for each in _find_stored(kind, incomplete)]
        return [CompletionItem(each) for each in found[:OFFERED]]


def _find_stored(kind: Kind, prefix: str) -> list[str]:
    try:
        database = load_settings().database
        return find_beginning(database, (kind,), prefix) if database else []
    except OrchestratorError:
        # The command itself says what is the matter with the home.
        return []


def _show(value: Any) -> str:
    return escape_line(str(value))[:100]
