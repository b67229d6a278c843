"""Tools of a server as a list, and one tool: what it takes, a form that calls it, its schema."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from orchestrator.called_tools import CalledTools
from orchestrator.control.arguments import open_arguments
from orchestrator.control.asking import explain_asking, explain_press, name_press, read_asking
from orchestrator.control.rooms.calls import CallLine, list_calls
from orchestrator.control.rooms.fields import FormField, build_field
from orchestrator.control.rooms.place import Place
from orchestrator.control.texts import ShownText, cut_text, show_value
from registry.calls.invocations import CallQuery
from registry.errors import RowNotFound
from registry.models import Entry, RegisteredTool
from registry.store import Store
from registry.trust import Standing

MAX_TOOLS = 500
SHOWN_FIELDS = 12
"""Fields of a form that are not folded; required ones never are."""
HISTORY = 10
MAX_LINE, MAX_DESCRIPTION = 160, 2000


@dataclass(frozen=True)
class ToolFigures:
    """How often a tool was called, the share of right ones among the last that count, with how many
    these are, and how long they took; "" where nothing is known.
    """

    calls: str
    right: str
    average: str
    counted: int = 0


@dataclass(frozen=True)
class ToolLine:
    name: ShownText
    address: str
    kind: str
    description: ShownText
    figures: ToolFigures


@dataclass(frozen=True)
class ToolList:
    """The tools of a server, of which there may be more than are listed."""

    count: int
    tools: tuple[ToolLine, ...]


@dataclass(frozen=True)
class ToolAbout:
    """What a tool does and how it did; `sends` is the request that it makes, where it makes one
    alone, and `asks` when a person is asked.
    """

    title: ShownText
    kind: str
    description: ShownText
    sends: ShownText
    figures: ToolFigures
    asks: str


@dataclass(frozen=True)
class TryForm:
    """The form that calls a tool. `more` are optional fields that are folded."""

    path: str
    fields: tuple[FormField, ...]
    more: tuple[FormField, ...]
    word: str
    told: str

    @property
    def folded(self) -> int:
        return len(self.more)


@dataclass(frozen=True)
class ToolHistory:
    """The tool's last calls, and the address of all of them."""

    calls: tuple[CallLine, ...]
    every: str


def view_tools(store: Store, name: str) -> ToolList:
    """The tools of a server with what came of their calls. Raises RowNotFound."""
    entry = store.servers.get(name)
    standings = store.standings.find_operations(name)
    return ToolList(
        len(entry.tools),
        tuple(
            ToolLine(
                cut_text(tool.name),
                Place("servers", entry.name, {"tool": tool.name}).build_address(),
                _name_kind(tool),
                cut_text(str(tool.definition.get("description", "")), MAX_LINE),
                _list_figures(standings.get(tool.name)),
            )
            for tool in entry.tools[:MAX_TOOLS]
        ),
    )


def _list_figures(standing: Standing | None) -> ToolFigures:
    if standing is None or not standing.total:
        return ToolFigures("0", "", "")
    right = f"{standing.ratio:.0%}" if standing.ratio is not None else ""
    average = standing.average_latency_ms
    took = f"{average:.0f} ms" if average is not None else ""
    return ToolFigures(str(standing.total), right, took, standing.window)


def _name_kind(tool: RegisteredTool) -> str:
    return "destructive" if tool.destructive else tool.access


def find_tool(store: Store, place: Place) -> tuple[Entry, RegisteredTool]:
    """The tool that an address names. Raises RowNotFound."""
    entry, name = store.servers.get(place.name), place.get_filter("tool")
    try:
        return entry, entry.get_tool(name)
    except KeyError:
        raise RowNotFound("tool", f"{place.name}.{name}") from None


def view_tool(store: Store, place: Place) -> ToolAbout:
    """Raises RowNotFound."""
    entry, tool = find_tool(store, place)
    standing = store.standings.get_operation(entry.name, tool.name)
    return ToolAbout(
        cut_text(str(tool.definition.get("title") or tool.name)),
        _name_kind(tool),
        cut_text(str(tool.definition.get("description", "")), MAX_DESCRIPTION),
        cut_text(_describe_request(tool)),
        _list_figures(standing),
        explain_asking(read_asking(store, entry.name, tool, time.time())),
    )


def _describe_request(tool: RegisteredTool) -> str:
    meta = tool.definition.get("_meta")
    ours = meta.get("toolwright") if isinstance(meta, Mapping) else None
    if not isinstance(ours, Mapping) or not ours.get("method"):
        return ""
    return f"{ours['method']} {ours.get('path', '')}"


def view_try_form(store: Store, place: Place) -> TryForm:
    """A form with a field for each argument. Raises RowNotFound."""
    entry, tool = find_tool(store, place)
    fields = tuple(map(build_field, open_arguments(tool.definition.get("inputSchema"))))
    shown = max(SHOWN_FIELDS, sum(each.required for each in fields))
    path = f"/servers/{entry.name}/tools/{tool.name}/call"
    facts = read_asking(store, entry.name, tool, time.time())
    return TryForm(path, fields[:shown], fields[shown:], name_press(facts), explain_press(facts))


def view_schema(store: Store, place: Place) -> ShownText:
    """The tool as `tools/list` shows it. Raises RowNotFound."""
    _, tool = find_tool(store, place)
    return show_value(tool.definition)


def view_tool_history(store: Store, place: Place, called: CalledTools) -> ToolHistory:
    """The tool's last calls. Raises RowNotFound."""
    find_tool(store, place)
    wanted = CallQuery(server=place.name, tool=place.get_filter("tool"))
    every = Place("calls", "", {"server": wanted.server, "tool": wanted.tool}).build_address()
    return ToolHistory(list_calls(store.calls.search(wanted, HISTORY), called), every)
