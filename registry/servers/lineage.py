"""Lineage of bundles: trees of versions by the bundle that each was made from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from registry.models import EntryState

MAX_SHOWN = 200
"""Largest number of versions in all trees of one server; further descendants are left out."""
MAX_ANCESTORS = 50

Key = tuple[str, int]


@dataclass(frozen=True)
class LineageEntry:
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
class LineageNode:
    """A version with the versions made from it. `line` is None for an unknown parent."""

    label: str
    line: LineageEntry | None
    children: tuple[LineageNode, ...]


def build_family_trees(lines: Iterable[LineageEntry], name: str) -> tuple[LineageNode, ...]:
    """The trees that contain the versions of a server, each from its earliest ancestor, that of the
    newest version first.

    The parent of a version that names none is the previous version of its server.
    """
    known = {line.key: line for line in lines}
    drawing = _TreeBuilder(known, {line.key: _find_parent(line, known) for line in known.values()})
    mine = sorted((key for key in known if key[0] == name), reverse=True)
    trees = (drawing.build_tree(drawing.find_root(key)) for key in mine if key not in drawing.drawn)
    return tuple(trees)


@dataclass
class _TreeBuilder:
    """Puts each version into one tree, once. A cycle, which only forged digests can
    make, is cut.
    """

    known: Mapping[Key, LineageEntry]
    before: Mapping[Key, Key | str | None]
    drawn: set[Key | str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.after: dict[Key | str, list[LineageEntry]] = defaultdict(list)
        for key, parent in self.before.items():
            if parent is not None:
                self.after[parent].append(self.known[key])

    def find_root(self, key: Key) -> Key | str:
        """The earliest ancestor that is in no tree yet, at most MAX_ANCESTORS back."""
        at: Key | str = key
        seen = {at}
        while isinstance(at, tuple) and len(seen) <= MAX_ANCESTORS:
            parent = self.before[at]
            if parent is None or parent in seen or parent in self.drawn:
                break
            seen.add(parent)
            at = parent
        return at

    def build_tree(self, at: Key | str) -> LineageNode:
        """The tree below a version, children by time of creation."""
        self.drawn.add(at)
        grown: list[LineageNode] = []
        for line in sorted(self.after.get(at, ()), key=lambda line: (line.created, line.key)):
            if line.key not in self.drawn and len(self.drawn) < MAX_SHOWN:
                grown.append(self.build_tree(line.key))
        if isinstance(at, str):
            return LineageNode(at, None, tuple(grown))
        return LineageNode(f"{at[0]}@{at[1]}", self.known[at], tuple(grown))


def to_json(branch: LineageNode, name: str) -> dict[str, Any]:
    """A tree as plain JSON values; `here` marks the versions of the server `name`."""
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


def _find_parent(line: LineageEntry, known: Mapping[Key, LineageEntry]) -> Key | str | None:
    """The parent of a version: its key, its text where it is unknown, or None."""
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
