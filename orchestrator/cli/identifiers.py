"""Arguments that name something stored: a beginning is enough, shells complete them, and what is
not there comes with what may have been meant.
"""

from __future__ import annotations

import difflib
import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import click
from click.shell_completion import CompletionItem
from rich.text import Text

from orchestrator.approvals.text import escape_line
from orchestrator.cli.terminal import FAILED, err
from orchestrator.cli.tools.argument_words import list_keys
from orchestrator.errors import AmbiguousId, NothingNamed, OrchestratorError, ShortId
from orchestrator.settings import load_settings
from registry.database.lookup import (
    MIN_PREFIX,
    Kind,
    find_beginning,
    find_listing,
    is_unusable,
)

OFFERED = 50
NAMED = 5
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
    """The name of a server or tool, or of either. With `new`, of one that need not be there."""

    def __init__(self, *kinds: Kind, new: bool = False) -> None:
        self.kinds, self.new, self.name = kinds, new, kinds[0]

    def convert(
        self, value: Any, param: click.Parameter | None, context: click.Context | None
    ) -> str:
        text = str(value)
        # A home without servers is told by the command itself.
        if not self.new and text not in self._find(text) and (known := self._find("")):
            if "server" not in self.kinds and text in _find_stored("server", text):
                raise NotStored(_describe_server(text))
            near = difflib.get_close_matches(text, self._find_beside(text) or known, NEAR, 0.6)
            kind = self.kinds["." in text and len(self.kinds) > 1]
            raise NotStored(str(NothingNamed(kind, _show(value), near, _find_list(kind, text))))
        return text

    def shell_complete(
        self, context: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        return [CompletionItem(each) for each in self._find(incomplete)[:OFFERED]]

    def _find_beside(self, name: str) -> list[str]:
        """The tools of the server that a tool's name begins with; none where it is no server's."""
        server, dot, _ = name.partition(".")
        return _find_stored("tool", f"{server}.") if dot and "tool" in self.kinds else []

    def _find(self, prefix: str) -> list[str]:
        return [each for kind in self.kinds for each in _find_stored(kind, prefix)]


def _find_list(kind: Kind, name: str) -> str:
    """The command that shows what may have been meant: of a tool, those of its server."""
    server = name.partition(".")[0]
    held = kind == "tool" and server in _find_stored("server", server)
    return f"toolwright show {shlex.quote(server)}" if held else _LISTED[kind]


def _describe_server(name: str) -> str:
    """What to say of a server in the place of a tool."""
    tools = _find_stored("tool", f"{name}.")
    more = ", …" if len(tools) > NAMED else ""
    named = f": {_show(', '.join(tools[:NAMED]))}{more}" if tools else " has none"
    return f"{_show(name)!r} is a server, and a tool is wanted{named}. `toolwright show {name}`"


class StoredId(click.ParamType[str]):
    """The id of something stored, or its beginning; becomes the whole id. With `others`, what is
    none stays as it is.
    """

    def __init__(self, *kinds: Kind, others: bool = False) -> None:
        self.kinds, self.others, self.name = kinds, others, kinds[0]

    def convert(
        self, value: Any, param: click.Parameter | None, context: click.Context | None
    ) -> str:
        text = str(value).rstrip("…")
        found = [each for kind in self.kinds for each in _find_stored(kind, text)] if text else []
        # The calls of a job's run have ids that begin with the job's.
        found = [each for each in found if each == text or not _is_inside(each, found)]
        if text in found or (self.others and not found):
            return text
        if len(text) < MIN_PREFIX and len(found) == 1:
            typed = f"{context.command_path if context else 'toolwright'} {_show(found[0])}"
            raise NotStored(str(ShortId(_show(text), MIN_PREFIX, typed)))
        if not found and _is_home_unusable():
            return text
        if not found:
            raise NotStored(str(NothingNamed(self.name, _show(value), [], _LISTED[self.kinds[0]])))
        if len(found) > 1:
            raise NotStored(str(AmbiguousId(_show(text), found[:5])))
        return found[0]

    def shell_complete(
        self, context: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        found = [each for kind in self.kinds for each in _find_stored(kind, incomplete)]
        return [CompletionItem(each) for each in found[:OFFERED]]


class ArgumentWord(click.ParamType[str]):
    """A `key=value` for the tool that the command names before; shells complete the keys."""

    name = "key=value"

    def shell_complete(
        self, context: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        tool = str(context.params.get("tool") or "")
        given = {word.partition("=")[0] for word in context.params.get(param.name or "") or ()}
        keys = list_keys(load_input_schema(tool) or {})
        offered = [key for key in keys if key not in given and key.startswith(incomplete)]
        return [CompletionItem(f"{key}=") for key in offered[:OFFERED]]


def load_input_schema(tool: str) -> Mapping[str, Any] | None:
    """What a registered tool (`server.tool`) takes; None where there is no such tool."""
    database = load_settings().database
    listed = find_listing(database, *tool.partition(".")[::2]) if database else ""
    schema = json.loads(listed).get("inputSchema") if listed else None
    return schema if isinstance(schema, Mapping) else None


def is_tool_missing(tool: str) -> bool:
    """Whether the home can be read and has no such tool."""
    database = load_settings().database
    if database is None or is_unusable(database):
        return False
    return not find_listing(database, *tool.partition(".")[::2])


def _find_stored(kind: Kind, prefix: str) -> list[str]:
    try:
        database = load_settings().database
        return find_beginning(database, (kind,), prefix) if database else []
    except OrchestratorError:
        # The command itself says what is the matter with the home.
        return []


def _is_inside(id: str, found: Sequence[str]) -> bool:
    whole, dash, _ = id.partition("-")
    return bool(dash) and whole in found


def _is_home_unusable() -> bool:
    """Whether no id can be looked for; the command itself says why."""
    try:
        database = load_settings().database
    except OrchestratorError:
        return True
    return database is not None and is_unusable(database)


def _show(value: Any) -> str:
    return escape_line(str(value))[:100]
