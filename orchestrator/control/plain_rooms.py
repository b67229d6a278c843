"""Rooms of the control page for browsers without script: what they show, with links and filters as
buttons of forms, since each request has to carry the key of the log-in.

The HTML of rooms is ours: attributes are quoted and every text in it is escaped, so the tags that
are looked for here are no stranger's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import escape, unescape
from urllib.parse import parse_qsl, unquote, urlsplit

from orchestrator.control.page import RoomReaders, list_parts, render_panels
from orchestrator.control.rooms.place import FILTERS, ROOMS, Place, build_address, parse_place
from orchestrator.settings import Settings
from registry.store import Store

GO = "go"
"""The id of the form that leads to another place."""
_DRAWN = re.compile(r'<div class="drawn">.*?</svg></div>', re.DOTALL)
_FOLDED = re.compile(r'<details class="(?:removal|adding)".*?</details>', re.DOTALL)
_FORM = re.compile(r"<form [^>]*data-post=.*?</form>", re.DOTALL)
_BUTTON = re.compile(r"<button [^>]*data-(?:post|copy)=[^>]*>.*?</button>", re.DOTALL)
_LINK = re.compile(r'<a (?P<more>[^>]*?)href="(?P<to>/[^"]*)"[^>]*>(?P<text>.*?)</a>', re.DOTALL)
_FILTER = re.compile(r'<form class="filter" method="get" action="(?P<to>[^"]*)">')
_BUTTONLIKE = 'class="button"'


def find_place(fields: Mapping[str, str]) -> Place:
    """The place that a form leads to; the first room where it names none."""
    parts = urlsplit(fields.get("place", "/"))
    _, _, rest = parts.path.partition("/rooms/")
    room, _, name = rest.partition("/")
    asked = dict(parse_qsl(parts.query))
    typed = {each: fields[each] for each in FILTERS if fields.get(each)}
    return parse_place(room or "home", unquote(name), {**asked, **typed}) or Place()


def render_room(
    store: Store, settings: Settings, readers: RoomReaders, place: Place, hidden: str
) -> str:
    """What a room shows. `hidden` are the fields that a form which leads on has to have."""
    parts = render_panels(store, place, settings, readers, list_parts(place))
    return "".join(f"<section>{strip_script(html, hidden)}</section>" for html in parts.values())


def strip_script(html: str, hidden: str) -> str:
    """A part without what only a script can do, its links as buttons and its filters as posts."""
    for pattern in (_DRAWN, _FOLDED, _FORM, _BUTTON):
        html = pattern.sub("", html)
    html = _FILTER.sub(lambda found: _open_filter(found["to"], hidden), html)
    return _LINK.sub(_render_way, html)


def _open_filter(address: str, hidden: str) -> str:
    to = f'<input type="hidden" name="place" value="{address}">'
    return f'<form class="filter" method="post" action="/plain">{hidden}{to}'


def _render_way(link: re.Match[str]) -> str:
    kind = "" if _BUTTONLIKE in link[0] else "way"
    return render_way(unescape(link["to"]), link["text"], kind)


def render_way(address: str, told: str, kind: str = "way") -> str:
    """A button that leads to a place; `told` is HTML."""
    return (
        f'<button form="{GO}" class="{kind}" name="place" value="{escape(address)}">{told}</button>'
    )


def render_ways(place: Place) -> str:
    """Buttons to all rooms."""
    return "".join(
        f"<li{' aria-current=page' if room == place.room else ''}>"
        f"{render_way(build_address(room), escape(title))}</li>"
        for room, title in ROOMS.items()
        if room != "ask"
    )
