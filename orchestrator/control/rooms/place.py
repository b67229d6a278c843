"""Rooms of the control page and where a browser is among them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, urlencode

ROOMS: Mapping[str, str] = {
    "home": "Home",
    "approvals": "Approvals",
    "ask": "Ask",
    "servers": "Servers",
    "graph": "Graph",
    "calls": "Calls",
    "jobs": "Jobs",
    "sources": "Sources & secrets",
    "audit": "Audit",
    "settings": "Settings",
}
"""The rooms' names in addresses and their titles, in the order of the navigation."""
FILTERS = ("server", "tool", "version", "outcome", "text", "page")
"""What an address may ask for besides its room and the name of one thing."""
MAX_FILTER = 200
MAX_PAGE = 100_000


@dataclass(frozen=True)
class Place:
    """A room, the name or id of the one thing in it that is shown ("" for all), and filters."""

    room: str = "home"
    name: str = ""
    filters: Mapping[str, str] = field(default_factory=dict)

    @property
    def page(self) -> int:
        """The number of the page of a list, from 1."""
        text = self.filters.get("page", "")
        number = int(text) if text.isascii() and text.isdigit() and len(text) < 9 else 1
        return min(max(number, 1), MAX_PAGE)

    def get_filter(self, name: str) -> str:
        return self.filters.get(name, "")

    def build_address(self, **filters: str) -> str:
        """The address of this place with other filters."""
        asked = {**self.filters, **filters}
        query = urlencode({name: text for name, text in asked.items() if text})
        return build_address(self.room, self.name) + (f"?{query}" if query else "")


def build_address(room: str, name: str = "") -> str:
    """The path of a room, or of one thing in it."""
    if room == "home":
        return "/"
    return f"/rooms/{room}" + (f"/{quote(name, safe='')}" if name else "")


def parse_place(room: str, name: str, given: Mapping[str, str]) -> Place | None:
    """The place that an address names; None where there is no such room."""
    if room not in ROOMS:
        return None
    wanted = {each: given[each][:MAX_FILTER] for each in FILTERS if given.get(each)}
    return Place(room, name[:MAX_FILTER], wanted)
