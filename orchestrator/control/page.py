"""The control page: a frame for each room, and the room's changing parts."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from markupsafe import Markup

from orchestrator.approvals.grants import Grants, open_grants
from orchestrator.approvals.signed_policy import SignedPolicy
from orchestrator.approvals.signing_key import build_authority
from orchestrator.called_tools import CalledTools
from orchestrator.control import runs
from orchestrator.control.logins import LoginSession
from orchestrator.control.rendering import NOBODY, PartRenderer, Viewer, render_template
from orchestrator.control.rooms import (
    approvals,
    calls,
    configuration,
    graph,
    home,
    jobs,
    records,
    server_health,
    server_tools,
    server_trust,
    server_versions,
    servers,
    sources,
)
from orchestrator.control.rooms.place import ROOMS, Place
from orchestrator.control.texts import ShownText, cut_text
from orchestrator.settings import Settings
from registry.approvals.approvals import UNREADABLE
from registry.errors import RegistryError, RowNotFound
from registry.servers.bundles import Bundles
from registry.store import Store

MAX_STEP = 60
FRAME = ("nav", "freeze")
"""The parts that every room has."""
PARTS: Mapping[str, tuple[str, ...]] = {
    "home": ("waiting", "running", "day"),
    "approvals": ("waiting", "rules", "decided"),
    "ask": ("runs",),
    "servers": ("servers",),
    "graph": ("graph", "lineage"),
    "calls": ("filter", "calls"),
    "jobs": ("jobs",),
    "sources": ("sources", "secrets"),
    "audit": ("find", "audit"),
    "settings": ("settings",),
}
"""The ids of the parts of each room, in their order."""
PANELS = (*FRAME, *PARTS["home"])
SERVER = ("about", "trust", "tools", "health", "proofs", "versions", "history")
TOOL = ("tool", "try", "schema", "uses")
"""The parts of one server, and of one tool of it."""
TITLES = {
    "find": "Search",
    "day": "Last 24 hours",
    "waiting": "Waiting for you",
    "rules": "Always allowed",
    "runs": "Thread",
    "about": "Server",
    "try": "Try it",
    "uses": "Last calls",
    "history": "Last calls",
    "difference": "What changed",
    "health": "Health and cost",
}


@dataclass(frozen=True)
class Part:
    """A part of a room: the template of the room, its macro for this part, and what makes the value
    that the macro takes.
    """

    room: str
    macro: str
    view: Callable[[], object]


@dataclass(frozen=True)
class PartProblem:
    """Why a part cannot be shown."""

    title: str
    told: ShownText


@dataclass(frozen=True)
class PathStep:
    """A step of the way to where one is."""

    address: str
    told: ShownText


@dataclass(frozen=True)
class RoomReaders:
    """What reads files and the whole audit once, and then what is new. Threads may share it."""

    shelf: Bundles
    consents: Grants


def open_readers(settings: Settings, store: Store) -> RoomReaders:
    """The readers of an installation. Nothing is read yet."""
    consents = open_grants(SignedPolicy(store, build_authority(settings)))
    return RoomReaders(Bundles(settings.home, store.servers), consents)


def list_parts(place: Place) -> tuple[str, ...]:
    """The ids of the parts of a place, in their order."""
    if place.room != "servers" or not place.name:
        return PARTS[place.room]
    if place.get_filter("tool"):
        return TOOL
    return ("difference",) if place.get_filter("version") else SERVER


def open_renderer(place: Place, viewer: Viewer = NOBODY) -> PartRenderer:
    """What renders the parts of a place for one viewer."""
    return PartRenderer(viewer, ROOMS[place.room])


def render_panels(
    store: Store,
    place: Place | None = None,
    settings: Settings | None = None,
    readers: RoomReaders | None = None,
    renderer: PartRenderer | None = None,
    wanted: tuple[str, ...] = (),
) -> dict[str, Markup]:
    """The HTML of every part of a room by its element's id; it depends on the stored state, the
    hour and the viewer. Without `settings` what only they lead to is not shown. `readers` keep what
    they read, and the `renderer` what it loaded. A viewer without script gets no frame. With
    `wanted`, only those parts.
    """
    where = place or Place()
    made = renderer or open_renderer(where)
    read = readers or (open_readers(settings, store) if settings else None)
    called = CalledTools(store.servers, read.shelf if read else None)
    known = _list_parts(store, where, called)
    if settings and read:
        known |= _list_own_parts(store, where, settings, read, called)
    names = list_parts(where) if made.viewer.plain else (*FRAME, *list_parts(where))
    return {
        name: _render_safely(made, where, name, known[name])
        for name in wanted or names
        if name in known
    }


def _list_parts(store: Store, place: Place, called: CalledTools) -> dict[str, Part]:
    name = place.name
    call = Part("calls", "call", lambda: calls.view_call(store, name, called))
    every = Part("calls", "calls", lambda: calls.view_calls(store, place, called))
    find = Part("calls", "filter", lambda: calls.view_filter(store, place))
    return {
        "nav": Part("home", "nav", lambda: home.view_navigation(store, place)),
        "freeze": Part("home", "freeze", lambda: home.view_freeze(store.processes)),
        "waiting": Part("approvals", "waiting", lambda: approvals.view_waiting(store)),
        "running": Part("home", "running", lambda: home.view_activity(store)),
        "day": Part("home", "day", lambda: home.view_day(store, time.time())),
        "rules": Part("approvals", "rules", lambda: approvals.view_rules(store.rules)),
        "decided": Part(
            "approvals", "decided", lambda: approvals.view_decided(store.approvals.find())
        ),
        "runs": Part("runs", "runs", lambda: runs.view_runs(store)),
        "servers": Part("servers", "servers", lambda: servers.view_servers(store)),
        "about": Part("servers", "about", lambda: servers.view_about(store, name)),
        "trust": Part("server_trust", "trust", lambda: server_trust.view_trust(store, name)),
        "tools": Part("server_tools", "tools", lambda: server_tools.view_tools(store, name)),
        "proofs": Part("servers", "proofs", lambda: servers.view_proofs(store, name)),
        "versions": Part(
            "server_versions", "versions", lambda: server_versions.view_versions(store, name)
        ),
        "history": Part("servers", "history", lambda: servers.view_history(store, name, called)),
        "tool": Part("server_tools", "tool", lambda: server_tools.view_tool(store, place)),
        "try": Part("server_tools", "try", lambda: server_tools.view_try_form(store, place)),
        "schema": Part("server_tools", "schema", lambda: server_tools.view_schema(store, place)),
        "uses": Part(
            "server_tools", "uses", lambda: server_tools.view_tool_history(store, place, called)
        ),
        "filter": Part("calls", "no_filter", lambda: None) if name else find,
        "calls": call if name else every,
        "graph": Part("graph", "graph", lambda: graph.view_graph(store)),
        "lineage": Part("graph", "lineage", lambda: graph.view_lineage(store)),
        "jobs": Part("jobs", "jobs", lambda: jobs.view_jobs(store)),
        "find": Part("records", "find", lambda: records.view_audit_filter(place)),
        "audit": Part("records", "audit", lambda: records.view_audit(store, place)),
    }


def _list_own_parts(
    store: Store, place: Place, own: Settings, read: RoomReaders, called: CalledTools
) -> dict[str, Part]:
    allowed = read.consents.find_private_hosts
    call = Part("calls", "call", lambda: calls.view_call(store, place.name, called, allowed()))
    return {
        "freeze": Part(
            "home", "freeze", lambda: home.view_freeze(store.processes, not own.pin.exists())
        ),
        "health": Part(
            "server_health",
            "health",
            lambda: server_health.view_health(store, read.shelf, place.name),
        ),
        "difference": Part(
            "server_versions",
            "difference",
            lambda: server_versions.view_difference(store, read.shelf, place),
        ),
        **({"calls": call} if place.name else {}),
        "runs": Part("runs", "runs", lambda: runs.view_runs(store, allowed())),
        "sources": Part("sources", "sources", lambda: sources.view_sources(read.consents)),
        "secrets": Part(
            "sources",
            "secrets",
            lambda: sources.view_secrets(own, store, read.shelf, read.consents),
        ),
        "settings": Part(
            "configuration", "settings", lambda: configuration.view_settings(own, store)
        ),
    }


def _render_safely(renderer: PartRenderer, place: Place, name: str, part: Part) -> Markup:
    """A part, or what is the matter with it: a row that our code did not write hides that part
    only. That there is no such thing says the first part.
    """
    try:
        return renderer.render(part.room, part.macro, part.view())
    except RowNotFound as error:
        told = str(error) if name == list_parts(place)[0] else ""
        return renderer.render("problems", "missing", cut_text(told[:1].upper() + told[1:]))
    except (*UNREADABLE, RegistryError) as error:
        told = f"This part cannot be shown: {type(error).__name__}: {error}"
        problem = PartProblem(_name_part(name), cut_text(told))
        return renderer.render("problems", "broken", problem)


def _name_part(name: str) -> str:
    return TITLES.get(name, name.capitalize())


def render_page(session: LoginSession, place: Place) -> str:
    """A room without its changing parts, which come as events of `/events`. It holds nothing of
    the user's: a browser that is led to it sends its cookie and no key.
    """
    return render_template(
        "page",
        place=place,
        room=ROOMS[place.room],
        links=home.list_room_links(place),
        steps=_list_steps(place),
        parts=[(name, _name_part(name)) for name in list_parts(place)],
        do=session.sign_form("/do") if place.room == "ask" else "",
    )


def _list_steps(place: Place) -> list[PathStep]:
    """Where one is, with the way back: it is made of the address alone."""
    steps = [(Place(place.room), ROOMS[place.room])]
    if place.name:
        steps.append((Place(place.room, place.name), place.name))
    for step in ("tool", "version"):
        if place.name and (wanted := place.get_filter(step)):
            steps.append((place, f"version {wanted}" if step == "version" else wanted))
            break
    return [PathStep(each.build_address(), cut_text(told, MAX_STEP)) for each, told in steps]
