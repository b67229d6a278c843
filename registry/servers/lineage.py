"""Which bundle was made from which: the versions of all servers as trees."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from registry.records import EntryState

MAX_SHOWN = 200
"""Versions that are drawn; what has more descendants is shown as far as that."""
MAX_ANCESTORS = 50

Key = tuple[str, int]


@dataclass(frozen=True)
class Line:
    """A version of a server, and what it was made from: `name@version:digest`, or ""."""

    name: str
    version: int
    digest: str
    created: float
    created_by: str
    parent: str
    state: EntryState
    current: bool

    @property
    def key(self) -> Key:
        return self.name, self.version


@dataclass(frozen=True)
class Branch:
    """A version with what was made from it. `line` is None for a parent that is not known here."""

    label: str
    line: Line | None
    children: tuple[Branch, ...]


def family(lines: Iterable[Line], name: str) -> tuple[Branch, ...]:
    """The trees that the versions of a server stand in, each from its first ancestors, the newest
    version's first.

    A version that names no parent follows the version of its server before it.
    """
    known = {line.key: line for line in lines}
    drawing = _Drawing(known, {line.key: _before(line, known) for line in known.values()})
    mine = sorted((key for key in known if key[0] == name), reverse=True)
    trees = (drawing.tree(drawing.root(key)) for key in mine if key not in drawing.drawn)
    return tuple(trees)


@dataclass
class _Drawing:
    """Draws each version once. A circle, which only forged digests could make, is cut open."""

    known: Mapping[Key, Line]
    before: Mapping[Key, Key | str | None]
    drawn: set[Key | str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.after: dict[Key | str, list[Line]] = defaultdict(list)
        for key, parent in self.before.items():
            if parent is not None:
                self.after[parent].append(self.known[key])

    def root(self, key: Key) -> Key | str:
        """The first ancestor that is not drawn yet, at most MAX_ANCESTORS back."""
        at: Key | str = key
        seen = {at}
        while isinstance(at, tuple) and len(seen) <= MAX_ANCESTORS:
            parent = self.before[at]
            if parent is None or parent in seen or parent in self.drawn:
                break
            seen.add(parent)
            at = parent
        return at

    def tree(self, at: Key | str) -> Branch:
        """The tree below a version, in the order in which it grew."""
        self.drawn.add(at)
        grown: list[Branch] = []
        for line in sorted(self.after.get(at, ()), key=lambda line: (line.created, line.key)):
            if line.key not in self.drawn and len(self.drawn) < MAX_SHOWN:
                grown.append(self.tree(line.key))
        if isinstance(at, str):
            return Branch(at, None, tuple(grown))
        return Branch(f"{at[0]}@{at[1]}", self.known[at], tuple(grown))


def to_json(branch: Branch, name: str) -> dict[str, Any]:
    """A tree as plain JSON values; `here` marks the versions of the server it is drawn for."""
    line = branch.line
    told: dict[str, Any] = {"version": branch.label, "known": line is not None}
    if line is not None:
        told |= {
            "server": line.name,
            "author": line.created_by,
            "created": line.created,
            "digest": line.digest,
            "state": line.state,
            "current": line.current,
            "here": line.name == name,
        }
    return {**told, "children": [to_json(child, name) for child in branch.children]}


def _before(line: Line, known: Mapping[Key, Line]) -> Key | str | None:
    """What a version was made from: its key, the name of one that is not here, or None."""
    if line.parent:
        name, _, rest = line.parent.partition("@")
        version, _, digest = rest.partition(":")
        key = (name, int(version)) if version.isdigit() and len(version) < 10 else None
        found = known.get(key) if key else None
        if found is not None and found is not line and found.digest.startswith(digest):
            return found.key
        return line.parent[:60]
    earlier = [v for (n, v) in known if n == line.name and v < line.version]
    return (line.name, max(earlier)) if earlier else None
