"""The control page: a frame for each room, and the room's changing parts.
Text of servers, models and APIs is escaped and cut where it is rendered, and shown as text only.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import escape, unescape

from orchestrator.approvals.grants import Grants, open_grants
from orchestrator.approvals.signed_policy import SignedPolicy
from orchestrator.approvals.signing_key import build_authority
from orchestrator.control.logins import LoginSession
from orchestrator.control.markup import escape_text, render_empty, render_section
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
from orchestrator.control.runs import render_runs
from orchestrator.settings import Settings
from registry.approvals.approvals import UNREADABLE
from registry.errors import RegistryError, RowNotFound
from registry.servers.bundles import Bundles
from registry.store import Store

_POSTING = re.compile(r'data-post="([^"]*)"')

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

Render = Callable[[], str]


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


def render_panels(
    store: Store,
    place: Place | None = None,
    settings: Settings | None = None,
    readers: RoomReaders | None = None,
    wanted: tuple[str, ...] = (),
) -> dict[str, str]:
    """The HTML of every part of a room by its element's id; it depends on the stored state and the
    hour. Without `settings` what only they lead to is not shown. `readers` keep what they
    read. With `wanted`, only those parts.
    """
    where = place or Place()
    # The room's own title stands above all of its parts.
    titled = render_section(escape(ROOMS[where.room]), "")
    known = _list_renderers(store, where) | _list_own_renderers(store, where, settings, readers)
    return {
        name: _render_safely(where, name, known[name]).removeprefix(titled)
        for name in wanted or (*FRAME, *list_parts(where))
        if name in known
    }


def _list_renderers(store: Store, place: Place) -> dict[str, Render]:
    return {
        "nav": lambda: home.render_navigation(store, place),
        "freeze": lambda: home.render_freeze(store.processes),
        "waiting": lambda: approvals.render_waiting(store),
        "running": lambda: home.render_running(store),
        "day": lambda: home.render_day(store, time.time()),
        "rules": lambda: approvals.render_rules(store.rules),
        "decided": lambda: approvals.render_decided(store.approvals.find()),
        "runs": lambda: render_runs(store),
        "servers": lambda: servers.render_servers(store),
        "about": lambda: servers.render_about(store, place.name),
        "trust": lambda: server_trust.render_trust(store, place.name),
        "tools": lambda: server_tools.render_tools(store, place.name),
        "proofs": lambda: servers.render_proofs(store, place.name),
        "versions": lambda: server_versions.render_versions(store, place.name),
        "history": lambda: servers.render_history(store, place.name),
        "tool": lambda: server_tools.render_tool(store, place),
        "try": lambda: server_tools.render_try_form(store, place),
        "schema": lambda: server_tools.render_schema(store, place),
        "uses": lambda: server_tools.render_tool_history(store, place),
        "filter": lambda: "" if place.name else calls.render_filter(store, place),
        "calls": lambda: (
            calls.render_call(store, place.name) if place.name else calls.render_calls(store, place)
        ),
        "graph": lambda: graph.render_graph(store),
        "lineage": lambda: graph.render_lineage(store),
        "jobs": lambda: jobs.render_jobs(store),
        "find": lambda: records.render_audit_filter(place),
        "audit": lambda: records.render_audit(store, place),
    }


def _list_own_renderers(
    store: Store, place: Place, settings: Settings | None, readers: RoomReaders | None
) -> dict[str, Render]:
    if settings is None:
        return {}
    own, read = settings, readers or open_readers(settings, store)
    return {
        "health": lambda: server_health.render_health(store, read.shelf, place.name),
        "difference": lambda: server_versions.render_difference(store, read.shelf, place),
        "sources": lambda: sources.render_sources(read.consents),
        "secrets": lambda: sources.render_secrets(own, store, read.shelf, read.consents),
        "settings": lambda: configuration.render_settings(own, store),
    }


def _render_safely(place: Place, name: str, render: Render) -> str:
    """A part, or what is the matter with it: a row that our code did not write hides that part
    only. That there is no such thing says the first part.
    """
    try:
        return render()
    except RowNotFound as error:
        told = str(error)
        return render_empty(told[0].upper() + told[1:]) if name == list_parts(place)[0] else ""
    except (*UNREADABLE, RegistryError) as error:
        told = escape_text(f"This part cannot be shown: {type(error).__name__}: {error}")
        return render_section(_name_part(name), f'<p role="alert">{told}</p>')


def _name_part(name: str) -> str:
    return TITLES.get(name, name.capitalize())


def sign_forms(html: str, session: LoginSession | None) -> str:
    """The same HTML with a token in each thing that can be done, for one session's page.

    All text in it is escaped, so a quoted attribute is one of ours.
    """
    if session is None:
        return html
    return _POSTING.sub(
        lambda found: f'{found[0]} data-form="{session.sign_form(unescape(found[1]))}"', html
    )


def render_page(session: LoginSession, place: Place) -> str:
    """A room without its changing parts, which come as events of `/events`. It holds nothing of
    the user's: a browser that is led to it sends its cookie and no key.
    """
    parts = "".join(
        f'<section id="{name}" aria-label="{_name_part(name)}"></section>'
        for name in list_parts(place)
    )
    task = render_task_form(session) if place.room == "ask" else ""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Toolwright: {escape(ROOMS[place.room])}</title>
<link rel="stylesheet" href="/page.css">
<script src="/page.js" defer></script>
</head>
<body data-room="{escape(place.room)}" data-name="{escape(place.name)}">
<a class="skip" href="#main">To the content</a>
<header>
<p class="brand"><a href="/">Toolwright</a> <small id="link" role="status">connecting</small></p>
<label>PIN <input id="pin" type="password" autocomplete="off" inputmode="text"></label>
<div id="freeze"></div>
<p id="told" role="status" aria-live="polite"></p>
</header>
<nav id="nav" aria-label="Rooms">{_render_bare_navigation(place)}</nav>
<main id="main" tabindex="-1">
{_render_heading(place)}
<noscript><p class="empty">This browser runs no script. A page that needs none is behind the link of
<code>toolwright control --url --plain</code></p></noscript>
{task}{parts}
</main>
</body>
</html>
"""


def _render_heading(place: Place) -> str:
    """Where one is, with the way back: it is made of the address alone."""
    steps = [(ROOMS[place.room], Place(place.room))]
    if place.name:
        steps.append((place.name, Place(place.room, place.name)))
    for step in ("tool", "version"):
        if place.name and place.get_filter(step):
            told = f"version {place.get_filter(step)}" if step == "version" else place.filters[step]
            steps.append((told, place))
            break
    *before, (last, _) = steps
    links = "".join(
        f'<a href="{escape(each.build_address())}">{escape_text(told, 60)}</a> '
        '<span aria-hidden="true">/</span> '
        for told, each in before
    )
    return f"<h1>{links}{escape_text(last, 60)}</h1>"


def _render_bare_navigation(place: Place) -> str:
    return "".join(home.render_room_link(room, title, place) for room, title in ROOMS.items())


def render_task_form(session: LoginSession) -> str:
    return f"""<form id="do" autocomplete="off" data-form="{session.sign_form("/do")}">
<label for="task">What is to be done?</label>
<div class="row"><input id="task" name="task" required maxlength="4000"
placeholder="list the DNS zones"><button class="primary">Do it</button></div>
<details class="raw"><summary>Choose the tool yourself</summary>
<label>Tool <input name="tool" placeholder="server.tool, or none to forge"></label>
<label>Arguments <input name="arguments" placeholder='{{"server_id": "localhost"}}'></label>
<label>Source <input name="source" placeholder="where the API is, to forge"></label>
</details>
<output id="done"></output>
</form>
"""


def render_notice(title: str, text: str) -> str:
    """A page of one notice, such as that of a browser that is not logged in."""
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Toolwright</title><link rel="stylesheet" href="/page.css"></head>
<body class="notice"><main><p class="brand">Toolwright</p><h1>{escape(title)}</h1>{text}</main>
</body></html>
"""


LOGGED_OUT = """<p>Open this page with <code>toolwright control --open</code>: its link works
once.</p>
<p>A log-in lasts twelve hours and ends with the control plane. Without a browser,
<code>toolwright approvals</code> and <code>toolwright approve</code> do the same.</p>"""
