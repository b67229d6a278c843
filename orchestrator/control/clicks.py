"""Buttons and links of the page in the place of the terminal's commands that a text names.

The texts are made for both. Whatever is put in leads nowhere by itself: it names a place of the
page, and what a stranger's text says after a command is shown as text, as it was before.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.control.texts import ShownText, cut_text
from orchestrator.errors import LoginInAddress

MAX_COMMAND = 400
MAX_SOURCE = 2_000
_COMMAND = re.compile(
    rf"(?:(?P<run>[Rr])un )?`toolwright (?P<words>[^`]{{1,{MAX_COMMAND}}})`"
    "(?: or the control page)?"
)
_BARE_ALLOW = re.compile(r"(?<!`)\btoolwright allow [0-9a-f]+\b(?: \(or toolwright [^()]*\))?")
"""How messages of waiting jobs end, without quotes."""
_FORGE = ": toolwright forge "
_PLACES = {
    "source allow": "“Allow a host” under Sources & secrets",
    "source add": "“Add a source” under Sources & secrets",
    "secret set": "“Secrets” under Sources & secrets",
    "allow": "“Allow” under Approvals",
    "approve": "“Approve” under Approvals",
    "approvals": "the room Approvals",
    "unfreeze": "“Unfreeze” at the top",
    "forge": "“Make a server” under Servers",
    "find": "the room Servers",
    "list": "the room Servers",
    "show": "its page under Servers",
    "logs": "the room Calls",
    "call": "“Try it” on the tool's page",
    "do": "the room Ask",
}
"""By the first words of a command. What is not here is done at the terminal alone."""
LOGIN_IN_ADDRESS = (
    "The address holds a user name or password, and it would be stored with it. Nothing was "
    "stored. Take it out of the address. Where the API asks for it, its server asks for it under "
    "Sources & secrets, “Secrets”, once it is made. Where its description does, keep it there as a "
    "secret of sources, and name it under “Add a source” for the header Authorization."
)
_NAMED = frozenset({"source allow", "secret set"})
"""Those of which the next word is what the person types there."""


@dataclass(frozen=True)
class SuggestedService:
    """A public API of which a server can be made; `source` is sent and stands in an attribute."""

    title: ShownText
    source: str


def name_clicks(text: str) -> str:
    """A text with the places of the page instead of the commands of the terminal that it quotes."""
    return _BARE_ALLOW.sub(_PLACES["allow"], _COMMAND.sub(_name_place, text))


def name_clicks_of(error: Exception) -> str:
    """What an error says to who sees it on the page."""
    return LOGIN_IN_ADDRESS if isinstance(error, LoginInAddress) else name_clicks(str(error))


def name_clicks_in(result: Mapping[str, Any], first: int = 0) -> dict[str, Any]:
    """The same for the texts of an MCP result, from the `first` on."""
    content = list(result.get("content") or ())
    for number, each in enumerate(content[first:], first):
        if isinstance(each, Mapping) and isinstance(each.get("text"), str):
            content[number] = {**each, "text": name_clicks(each["text"])}
    return {**result, "content": content}


def _name_place(found: re.Match[str]) -> str:
    words = found["words"].split()
    two = " ".join(words[:2])
    name = two if two in _PLACES else words[0] if words else ""
    place = _PLACES.get(name)
    if name == "grant" and words[2:] and words[2].startswith("network:"):
        place = "“Let it connect to a host” on its page under Servers"
    if "--cancel" in words:
        place = "“Cancel” beside it"
    if place is None:
        return found[0]
    what = f" ({words[2]})" if name in _NAMED and len(words) == 3 else ""
    use = {"R": "Use ", "r": "use "}.get(found["run"] or "", "")
    return f"{use}{place}{what}"


def split_services(lines: Iterable[str]) -> tuple[tuple[str, ...], tuple[SuggestedService, ...]]:
    """Lines without those that suggest a service by a command (as
    `orchestrator.forging.contact.suggestions` makes them), and these services.
    """
    others, services = [], []
    for line in lines:
        title, is_service, command = line.partition(_FORGE)
        source = _read_source(command) if is_service else ""
        if source:
            services.append(SuggestedService(cut_text(title), source))
        else:
            others.append(line)
    return tuple(others), tuple(services)


def _read_source(command: str) -> str:
    """The source that a `forge` command names; "" where it was cut before."""
    try:
        words = shlex.split(command[: 2 * MAX_SOURCE])
    except ValueError:
        return ""
    return words[-1][:MAX_SOURCE] if words[-2:-1] == ["--source"] else ""
