"""Versions of a server, and what one changed beside the version before it."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from orchestrator.control.rooms.place import Place, build_address
from orchestrator.control.texts import ShownText, cut_text
from registry.errors import RowNotFound
from registry.models import Entry, RegisteredTool
from registry.servers.bundles import Bundles
from registry.store import Store
from sandbox.errors import BundleInvalid

SHOWN = 50
NAMED = 8
MAX_NAME = 80
MAX_LINES = 400
"""Lines of a difference that are shown."""
MATCHED_LINES = 600
"""Lines between the first and the last difference that are compared one by one: matching takes up
to the square of their number, and the code is a stranger's.
"""
MAX_LINE = 200
CONTEXT = 3


@dataclass(frozen=True)
class VersionDifference:
    """Names of tools and permissions that a version has and the one before has not, or the other
    way round; `changed` are tools that both have, with another definition or request.
    """

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]
    allowed: tuple[str, ...]
    disallowed: tuple[str, ...]


@dataclass(frozen=True)
class NameChange:
    """Names that came or went, with the sign and the class of that; `left` are not shown."""

    sign: str
    kind: str
    names: tuple[ShownText, ...]
    left: int


@dataclass(frozen=True)
class ShownChanges:
    """What a version changed."""

    added: NameChange
    removed: NameChange
    changed: NameChange
    allowed: NameChange
    disallowed: NameChange

    def list_changes(self) -> tuple[NameChange, ...]:
        """Those that there are."""
        every = (self.added, self.removed, self.changed, self.allowed, self.disallowed)
        return tuple(change for change in every if change.names)


@dataclass(frozen=True)
class VersionLine:
    """A version in the list. `changes` is None for the first one."""

    version: int
    address: str
    is_current: bool
    created: float
    created_by: ShownText
    tools: int
    changes: ShownChanges | None
    digest: ShownText


@dataclass(frozen=True)
class LineDifference:
    """Lines as (class, sign and text), how many came and went, and how many are not shown."""

    lines: tuple[tuple[str, ShownText], ...]
    added: int
    removed: int
    left: int


@dataclass(frozen=True)
class ToolDifference:
    name: ShownText
    difference: LineDifference


@dataclass(frozen=True)
class ShownComparison:
    """A version beside the one `before` it: what changed, the changed tools, and the code, or why
    that cannot be compared.
    """

    before: int
    changes: ShownChanges
    tools: tuple[ToolDifference, ...]
    code: LineDifference | None
    problem: ShownText


@dataclass(frozen=True)
class VersionAbout:
    """One version; it is beside none where it is the first."""

    version: int
    created: float
    created_by: ShownText
    source: ShownText
    digest: ShownText
    tools: int
    beside: ShownComparison | None


def compare_versions(before: Entry, after: Entry) -> VersionDifference:
    """What `after` changed of `before`."""
    old, new = ({tool.name: tool for tool in each.tools} for each in (before, after))
    return VersionDifference(
        added=tuple(sorted(new.keys() - old.keys())),
        removed=tuple(sorted(old.keys() - new.keys())),
        changed=tuple(name for name in sorted(old.keys() & new.keys()) if old[name] != new[name]),
        allowed=tuple(sorted({*after.permissions} - {*before.permissions})),
        disallowed=tuple(sorted({*before.permissions} - {*after.permissions})),
    )


def view_versions(store: Store, name: str) -> tuple[VersionLine, ...]:
    """All versions, newest first. Raises RowNotFound."""
    versions = store.servers.find_versions(name)[: SHOWN + 1]
    before = {after.version: earlier for after, earlier in pairwise(versions)}
    return tuple(
        VersionLine(
            each.version,
            f"{build_address('servers', each.name)}?version={each.version}",
            number == 0,
            each.created,
            cut_text(each.created_by),
            len(each.tools),
            _show_changes(before[each.version], each) if each.version in before else None,
            cut_text(each.digest[:12]),
        )
        for number, each in enumerate(versions[:SHOWN])
    )


def _show_changes(before: Entry, after: Entry) -> ShownChanges:
    found = compare_versions(before, after)
    return ShownChanges(
        _show_names("+", "ins", found.added),
        _show_names("-", "del", found.removed),
        _show_names("~", "mod", found.changed),
        _show_names("+", "ins", found.allowed),
        _show_names("-", "del", found.disallowed),
    )


def _show_names(sign: str, kind: str, names: Sequence[str]) -> NameChange:
    shown = tuple(cut_text(name, MAX_NAME) for name in names[:NAMED])
    return NameChange(sign, kind, shown, max(0, len(names) - NAMED))


def view_difference(store: Store, shelf: Bundles, place: Place) -> VersionAbout:
    """One version beside the one before it: tools, permissions, code. Raises RowNotFound."""
    wanted = place.get_filter("version")
    versions = {str(each.version): each for each in store.servers.find_versions(place.name)}
    after = versions.get(wanted)
    if after is None:
        raise RowNotFound("version", wanted)
    earlier = [each for each in versions.values() if each.version < after.version]
    before = max(earlier, key=lambda each: each.version, default=None)
    return VersionAbout(
        after.version,
        after.created,
        cut_text(after.created_by),
        cut_text(after.source),
        cut_text(after.digest),
        len(after.tools),
        _compare(shelf, before, after) if before is not None else None,
    )


def _compare(shelf: Bundles, before: Entry, after: Entry) -> ShownComparison:
    code, problem = None, cut_text("")
    try:
        code = show_lines(*(shelf.load_bundle(each).source_code for each in (before, after)))
    except BundleInvalid as error:
        problem = cut_text(f"It cannot be compared: {error}")
    tools = tuple(
        ToolDifference(
            cut_text(name),
            show_lines(_print_tool(before.get_tool(name)), _print_tool(after.get_tool(name))),
        )
        for name in compare_versions(before, after).changed[:SHOWN]
    )
    return ShownComparison(before.version, _show_changes(before, after), tools, code, problem)


def _print_tool(tool: RegisteredTool) -> str:
    told = {**tool.definition, "access": tool.access, "operation": tool.operation_digest[:12]}
    return json.dumps(told, indent=2, ensure_ascii=False)


@lru_cache(maxsize=64)
def show_lines(before: str, after: str) -> LineDifference:
    """Two texts as the lines that differ, with three lines around them."""
    lines = [*iterate_differences(before.splitlines(), after.splitlines())]
    shown = tuple(
        (kind, ShownText(_SIGNS[kind] + cut_text(text, MAX_LINE)))
        for kind, text in lines[:MAX_LINES]
    )
    added, removed = (sum(kind == each for kind, _ in lines) for each in ("ins", "del"))
    return LineDifference(shown, added, removed, max(0, len(lines) - MAX_LINES))


_SIGNS = {"ins": "+", "del": "-", "same": " ", "gap": ""}


def iterate_differences(before: list[str], after: list[str]) -> Iterator[tuple[str, str]]:
    """Lines as (`ins`, `del`, `same` or `gap`, text): what differs and what stands beside it."""
    head = _count_common(before, after)
    tail = _count_common(before[head:][::-1], after[head:][::-1])
    old, new = before[head : len(before) - tail], after[head : len(after) - tail]
    if not old and not new:
        return
    if head > CONTEXT:
        yield "gap", f"… {head - CONTEXT} lines"
    yield from (("same", line) for line in before[max(0, head - CONTEXT) : head])
    yield from _match_lines(old, new)
    rest = before[len(before) - tail :]
    yield from (("same", line) for line in rest[:CONTEXT])
    if len(rest) > CONTEXT:
        yield "gap", f"… {len(rest) - CONTEXT} lines"


def _count_common(one: Sequence[str], other: Sequence[str]) -> int:
    """How many lines are the same from the beginning on."""
    for number, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return number
    return min(len(one), len(other))


def _match_lines(old: list[str], new: list[str]) -> Iterator[tuple[str, str]]:
    if max(len(old), len(new)) > MATCHED_LINES:
        yield from (("del", line) for line in old)
        yield from (("ins", line) for line in new)
        return
    for tag, from_, to, start, end in difflib.SequenceMatcher(None, old, new).get_opcodes():
        if tag == "equal":
            yield from _shorten(old[from_:to])
        else:
            yield from (("del", line) for line in old[from_:to])
            yield from (("ins", line) for line in new[start:end])


def _shorten(lines: list[str]) -> Iterable[tuple[str, str]]:
    """Equal lines between two differences, without their middle."""
    if len(lines) <= 2 * CONTEXT + 1:
        return [("same", line) for line in lines]
    first, last = lines[:CONTEXT], lines[-CONTEXT:]
    gap = ("gap", f"… {len(lines) - 2 * CONTEXT} lines")
    return [*(("same", line) for line in first), gap, *(("same", line) for line in last)]
