"""Calls: a list that is filtered and read by pages, and one call with all that is known of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from orchestrator.called_tools import CalledTools
from orchestrator.control.rooms.exchanges import ShownExchange, show_exchanges
from orchestrator.control.rooms.place import Place, build_address
from orchestrator.control.texts import ShownText, cut_text
from orchestrator.control.values import (
    ShownAnswer,
    ShownData,
    ShownJson,
    show_answer,
    show_data,
    show_json,
)
from registry.calls.invocations import CallQuery
from registry.errors import RowNotFound
from registry.health.causes import find_refused_host
from registry.models import Invocation
from registry.store import Store

PAGE = 50
MAX_TASK = 80
OUTCOMES = {"": "all outcomes", "ok": "succeeded", "failed": "failed", "writes": "writes"}


@dataclass(frozen=True)
class FilterOption:
    value: str
    told: str
    is_chosen: bool


@dataclass(frozen=True)
class CallFilter:
    """What calls may be filtered by; `tool` and `text` are what was typed."""

    address: str
    servers: tuple[FilterOption, ...]
    outcomes: tuple[FilterOption, ...]
    tool: str
    text: str


@dataclass(frozen=True)
class ShownOutcome:
    """What became of a call: a coloured word ("" for none), and more in words."""

    word: str
    told: ShownText | str = ""


@dataclass(frozen=True)
class CallLine:
    """A call in a list. `can_dispute` is whether a person can say that its success was none."""

    id: str
    shown_id: ShownText
    address: str
    tool: ShownText
    outcome: ShownOutcome
    took: str
    started: float
    task: ShownText
    can_dispute: bool


@dataclass(frozen=True)
class CallPage:
    """A page of calls; addresses of newer and older ones are "" where there are none."""

    calls: tuple[CallLine, ...]
    page: int
    newer: str
    older: str
    is_filtered: bool


@dataclass(frozen=True)
class RefusedHost:
    """The `host:port` that a call did not reach, since nobody had allowed its private address, and
    whether it is allowed by now. `where` tells the places of the page apart that offer to allow it.
    """

    host: str
    is_allowed: bool
    where: str


@dataclass(frozen=True)
class ShownCall:
    """One call: what went in, what came back, and the exchanges between. `arguments` is None where
    there are none, `refused` where no host was.
    """

    id: str
    name: ShownText
    tool: str
    version: int
    outcome: ShownOutcome
    access: ShownText
    started: float
    took: str
    task: ShownText
    reason: ShownText
    approval: ShownText
    session: ShownText
    can_dispute: bool
    refused: RefusedHost | None
    arguments: ShownData | None
    arguments_json: ShownJson
    answer: ShownAnswer
    exchanges: tuple[ShownExchange, ...]


def view_filter(store: Store, place: Place) -> CallFilter:
    names = [server.name for server in store.servers.find_summaries()]
    servers = {"": "all servers", **{name: name for name in names}}
    return CallFilter(
        build_address("calls"),
        _list_options(servers, place.get_filter("server")),
        _list_options(OUTCOMES, place.get_filter("outcome")),
        place.get_filter("tool"),
        place.get_filter("text"),
    )


def _list_options(options: Mapping[str, str], chosen: str) -> tuple[FilterOption, ...]:
    return tuple(FilterOption(value, told, value == chosen) for value, told in options.items())


def view_calls(store: Store, place: Place, called: CalledTools) -> CallPage:
    """One page of the calls that pass the filters, newest first."""
    wanted = CallQuery(
        server=place.get_filter("server"),
        tool=place.get_filter("tool"),
        outcome=place.get_filter("outcome"),
        text=place.get_filter("text"),
    )
    found = store.calls.search(wanted, PAGE + 1, (place.page - 1) * PAGE)
    return CallPage(
        tuple(_show_line(call, f"{call.entry}.{call.tool}", called) for call in found[:PAGE]),
        place.page,
        place.build_address(page=str(place.page - 1)) if place.page > 1 else "",
        place.build_address(page=str(place.page + 1)) if len(found) > PAGE else "",
        bool(place.filters),
    )


def list_calls(calls: Iterable[Invocation], called: CalledTools) -> tuple[CallLine, ...]:
    """Calls of one server, by the names of its tools."""
    return tuple(_show_line(call, call.tool, called) for call in calls)


def _show_line(call: Invocation, tool: str, called: CalledTools) -> CallLine:
    return CallLine(
        call.id,
        cut_text(call.id),
        build_address("calls", call.id),
        cut_text(tool),
        show_outcome(call, called),
        f"{call.latency_ms:.0f} ms",
        call.started,
        cut_text(call.task, MAX_TASK),
        call.succeeded,
    )


def show_outcome(call: Invocation, called: CalledTools) -> ShownOutcome:
    """What became of a call, in a word or a sentence."""
    if call.succeeded:
        return ShownOutcome("ok")
    if call.disputed:
        return ShownOutcome("failed", "marked wrong")
    cause = called.find_cause(call)
    told = cut_text(cause.text if cause else call.state)
    return ShownOutcome("failed" if call.state == "done" else "", told)


def show_refused_host(call: Invocation, allowed: Collection[str], where: str) -> RefusedHost | None:
    """The host that a call was refused, given those that are `allowed` by now."""
    host = find_refused_host(call)
    return RefusedHost(host, host in allowed, where) if host else None


def _name_access(store: Store, call: Invocation) -> str:
    """How its tool is called everywhere else, where it is registered as it was called."""
    try:
        entry = store.servers.get(call.entry)
        is_destructive = entry.version == call.version and entry.get_tool(call.tool).destructive
    except (RowNotFound, KeyError):
        is_destructive = False
    return "destructive" if is_destructive else call.access


def view_call(
    store: Store, identity: str, called: CalledTools, allowed: Collection[str] = ()
) -> ShownCall:
    """A call, given the hosts that are `allowed` by now. Raises RowNotFound."""
    call = store.calls.get(identity)
    given = dict(call.arguments)
    return ShownCall(
        call.id,
        cut_text(f"{call.entry}.{call.tool}"),
        Place("servers", call.entry, {"tool": call.tool}).build_address(),
        call.version,
        show_outcome(call, called),
        cut_text(_name_access(store, call)),
        call.started,
        f"{call.latency_ms:.0f} ms",
        cut_text(call.task),
        cut_text(call.reason),
        cut_text(call.approval or ""),
        cut_text(call.session),
        call.succeeded,
        show_refused_host(call, allowed, "call"),
        show_data(given) if given else None,
        show_json(given, "arguments"),
        show_answer(call.result, "result"),
        show_exchanges(call.exchanges[:PAGE]),
    )
