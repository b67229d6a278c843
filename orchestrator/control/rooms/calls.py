"""Calls: a list that is filtered and read by pages, and one call with all that is known of it."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from orchestrator.control.markup import (
    escape_text,
    render_badge,
    render_button,
    render_empty,
    render_facts,
    render_section,
    render_table,
    render_time,
)
from orchestrator.control.rooms.exchanges import render_exchanges
from orchestrator.control.rooms.place import Place, build_address
from orchestrator.control.values import render_answer, render_data, render_json
from registry.calls.invocations import CallQuery
from registry.health.causes import find_cause
from registry.models import Invocation
from registry.store import Store

PAGE = 50
OUTCOMES = {"": "all outcomes", "ok": "succeeded", "failed": "failed", "writes": "writes"}


def render_filter(store: Store, place: Place) -> str:
    """A form that leads to the address of what it chooses."""
    names = [server.name for server in store.servers.find_summaries()]
    servers = _render_options(
        {"": "all servers", **{name: name for name in names}}, place, "server"
    )
    outcomes = _render_options(OUTCOMES, place, "outcome")
    text = escape(place.get_filter("text"))
    tool = place.get_filter("tool")
    only = (
        f'<label>Tool <input name="tool" maxlength="40" value="{escape(tool)}"></label>'
        if tool
        else ""
    )
    return (
        f'<form class="filter" method="get" action="{build_address("calls")}">'
        f"<label>Server <select name='server'>{servers}</select></label>{only}"
        f"<label>Outcome <select name='outcome'>{outcomes}</select></label>"
        f'<label>Text <input name="text" maxlength="200" value="{text}"></label>'
        "<button>Filter</button></form>"
    )


def _render_options(options: dict[str, str], place: Place, name: str) -> str:
    chosen = place.get_filter(name)
    return "".join(
        f'<option value="{escape(value)}"{" selected" if value == chosen else ""}>'
        f"{escape(told)}</option>"
        for value, told in options.items()
    )


def render_calls(store: Store, place: Place) -> str:
    """One page of the calls that pass the filters, newest first."""
    wanted = CallQuery(
        server=place.get_filter("server"),
        tool=place.get_filter("tool"),
        outcome=place.get_filter("outcome"),
        text=place.get_filter("text"),
    )
    found = store.calls.search(wanted, PAGE + 1, (place.page - 1) * PAGE)
    rows = [_render_row(call) for call in found[:PAGE]]
    heads = ("tool", "outcome", "took", "when", "task", "call")
    table = render_table(heads, rows, "calls", compact=True) if rows else _render_none(place)
    return render_section("Calls", table + _render_turning(place, len(found) > PAGE))


def _render_none(place: Place) -> str:
    if place.filters:
        return render_empty("No call passes these filters.")
    return render_empty("None yet. Call a tool:", "toolwright call SERVER.TOOL '{}'")


def _render_turning(place: Place, more: bool) -> str:
    newer = place.build_address(page=str(place.page - 1)) if place.page > 1 else ""
    older = place.build_address(page=str(place.page + 1)) if more else ""
    links = "".join(
        f'<a class="button" rel="{rel}" href="{escape(address)}">{told}</a>'
        for address, rel, told in ((newer, "prev", "Newer"), (older, "next", "Older"))
        if address
    )
    return f'<p class="turning">{links} page {place.page}</p>' if links else ""


def _render_row(call: Invocation) -> tuple[str, ...]:
    return (
        f"<code>{escape_text(f'{call.entry}.{call.tool}')}</code>",
        render_outcome(call),
        f"{call.latency_ms:.0f} ms",
        render_time(call.started),
        escape_text(call.task, 80),
        f'<a href="{escape(build_address("calls", call.id))}">{escape_text(call.id)}</a>',
    )


def render_call_list(calls: Iterable[Invocation]) -> str:
    """Calls as rows, each with a button to mark it wrong."""
    rows = [
        (
            f"<code>{escape_text(call.tool)}</code>",
            render_outcome(call),
            render_time(call.started),
            f'<a href="{escape(build_address("calls", call.id))}">{escape_text(call.id)}</a>',
            render_mark_wrong(call),
        )
        for call in calls
    ]
    heads = ("tool", "outcome", "when", "call", "")
    return (
        render_table(heads, rows, "last calls", compact=True)
        if rows
        else render_empty("No calls yet.")
    )


def render_outcome(call: Invocation) -> str:
    """What became of a call, in a word or a sentence."""
    if call.succeeded:
        return render_badge("ok")
    if call.disputed:
        return render_badge("failed") + " marked wrong"
    cause = find_cause(call)
    told = escape_text(cause.text if cause else call.state)
    return f"{render_badge('failed')} {told}" if call.state == "done" else told


def render_call(store: Store, identity: str) -> str:
    """One call: what went in, what came back, and the exchanges between. Raises RowNotFound."""
    call = store.calls.get(identity)
    tool = Place("servers", call.entry, {"tool": call.tool}).build_address()
    name = escape_text(f"{call.entry}.{call.tool}")
    facts = render_facts(
        (
            ("outcome", render_outcome(call)),
            ("tool", f'<a href="{escape(tool)}">{name}</a>, version {call.version}'),
            ("access", escape_text(call.access)),
            ("when", render_time(call.started)),
            ("took", f"{call.latency_ms:.0f} ms"),
            ("task", escape_text(call.task)),
            ("reason", escape_text(call.reason)),
            ("approval", escape_text(call.approval or "")),
            ("session", escape_text(call.session)),
        )
    )
    buttons = _render_replay(call) + render_mark_wrong(call)
    given = dict(call.arguments)
    arguments = (
        f"{render_data(given)}{render_json(given, 'arguments')}"
        if given
        else render_empty("It was called without arguments.")
    )
    return render_section(
        name,
        f'{facts}<div class="actions">{buttons}</div><h3>Arguments</h3>{arguments}'
        f"<h3>Answer</h3>{render_answer(call.result, 'result')}"
        f"<h3>Exchanges with the API</h3>{render_exchanges(call.exchanges[:PAGE])}",
    )


def _render_replay(call: Invocation) -> str:
    path, id = f"/replay/{call.id}", f"replay-{call.id}"
    return render_button("Replay offline", path, id)


def render_mark_wrong(call: Invocation) -> str:
    """The button by which a person says that a success was none."""
    if not call.succeeded:
        return ""
    path, id = f"/calls/{call.id}/wrong", f"wrong-{call.id}"
    return render_button("Mark wrong", path, id, "quiet small")
