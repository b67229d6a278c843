"""Tools of a server as a list, and one tool: what it takes, a form that calls it, its schema."""

from __future__ import annotations

import time
from collections.abc import Mapping
from html import escape

from orchestrator.control.arguments import list_arguments
from orchestrator.control.asking import explain_asking, explain_press, read_asking
from orchestrator.control.markup import (
    escape_text,
    render_badge,
    render_empty,
    render_facts,
    render_section,
    render_table,
    render_value,
)
from orchestrator.control.rooms.calls import render_call_list
from orchestrator.control.rooms.fields import render_field
from orchestrator.control.rooms.place import Place
from registry.calls.invocations import CallQuery
from registry.errors import RowNotFound
from registry.models import Entry, RegisteredTool
from registry.store import Store
from registry.trust import Standing

MAX_TOOLS = 500
HISTORY = 10


def render_tools(store: Store, name: str) -> str:
    """The tools of a server with what came of their calls. Raises RowNotFound."""
    entry = store.servers.get(name)
    standings = store.standings.find_operations(name)
    rows = [
        (
            f'<a href="{_build_tool_address(entry.name, tool.name)}">'
            f"<code>{escape_text(tool.name)}</code></a>",
            render_badge(_name_kind(tool)),
            escape_text(str(tool.definition.get("description", "")), 160),
            *_list_figures(standings.get(tool.name)),
        )
        for tool in entry.tools[:MAX_TOOLS]
    ]
    heads = ("tool", "kind", "does", "calls", "right", "average")
    listed = render_table(heads, rows, "tools") if rows else render_empty("It lists no tools.")
    return render_section(f"Tools ({len(entry.tools)})", listed)


def _list_figures(standing: Standing | None) -> tuple[str, str, str]:
    if standing is None or not standing.total:
        return "0", "", ""
    right = f"{standing.ratio:.0%}" if standing.ratio is not None else ""
    average = standing.average_latency_ms
    return str(standing.total), right, f"{average:.0f} ms" if average is not None else ""


def _name_kind(tool: RegisteredTool) -> str:
    return "destructive" if tool.destructive else tool.access


def _build_tool_address(server: str, tool: str) -> str:
    return escape(Place("servers", server, {"tool": tool}).build_address())


def find_tool(store: Store, place: Place) -> tuple[Entry, RegisteredTool]:
    """The tool that an address names. Raises RowNotFound."""
    entry, name = store.servers.get(place.name), place.get_filter("tool")
    try:
        return entry, entry.get_tool(name)
    except KeyError:
        raise RowNotFound("tool", f"{place.name}.{name}") from None


def render_tool(store: Store, place: Place) -> str:
    """What a tool does and how it did. Raises RowNotFound."""
    entry, tool = find_tool(store, place)
    standing = store.standings.get_operation(entry.name, tool.name)
    meta = tool.definition.get("_meta")
    ours = meta.get("toolwright") if isinstance(meta, Mapping) else None
    sends = ours if isinstance(ours, Mapping) else {}
    calls, right, average = _list_figures(standing)
    facts = render_facts(
        (
            ("sends", _render_request(sends) if sends.get("method") else ""),
            ("calls", f"{calls}{f', {right} right' if right else ''}"),
            ("took", f"{average} on average" if average else ""),
            ("asks you", explain_asking(read_asking(store, entry.name, tool, time.time()))),
        )
    )
    named = str(tool.definition.get("title") or tool.name)
    title = f"{escape_text(named)} {render_badge(_name_kind(tool))}"
    described = escape_text(str(tool.definition.get("description", "")), 2000)
    return render_section(title, f"<p>{described}</p>{facts}")


def _render_request(sends: Mapping[str, object]) -> str:
    method, path = sends["method"], sends.get("path", "")
    return f"<code>{escape_text(f'{method} {path}')}</code>"


def render_try_form(store: Store, place: Place) -> str:
    """A form with a field for each argument. Raises RowNotFound."""
    entry, tool = find_tool(store, place)
    arguments = list_arguments(tool.definition.get("inputSchema"))
    fields = "".join(map(render_field, arguments)) or "<p>It takes no arguments.</p>"
    read = tool.access == "read"
    word = "Call it" if read else "Prepare the request"
    told = explain_press(read_asking(store, entry.name, tool, time.time()))
    path = f"/servers/{entry.name}/tools/{tool.name}/call"
    form = (
        f'<form class="fields" data-post="{escape(path)}" autocomplete="off">{fields}'
        '<details id="whole"><summary>All arguments as one JSON object</summary>'
        '<label>JSON <textarea name="whole" rows="4" spellcheck="false"></textarea></label>'
        "<p><small>It is taken instead of the fields above.</small></p></details>"
        f'<div class="actions"><button class="primary">{word}</button>'
        f"<small>{told}</small></div><output></output></form>"
    )
    return render_section("Try it", form)


def render_schema(store: Store, place: Place) -> str:
    """The tool as `tools/list` shows it. Raises RowNotFound."""
    _, tool = find_tool(store, place)
    whole = (
        '<details id="definition"><summary>The tool as clients are told of it</summary>'
        f"{render_value(tool.definition)}</details>"
    )
    return render_section("Schema", whole)


def render_tool_history(store: Store, place: Place) -> str:
    """The tool's last calls. Raises RowNotFound."""
    find_tool(store, place)
    wanted = CallQuery(server=place.name, tool=place.get_filter("tool"))
    calls = store.calls.search(wanted, HISTORY)
    every = Place("calls", "", {"server": wanted.server, "tool": wanted.tool}).build_address()
    more = f'<p><a href="{escape(every)}">All calls of this tool</a></p>' if calls else ""
    return render_section("Last calls", render_call_list(calls) + more)
