"""Versions of a server, and what one changed beside the version before it."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from itertools import pairwise

from orchestrator.control.markup import (
    escape_text,
    render_badge,
    render_empty,
    render_facts,
    render_section,
    render_table,
    render_time,
)
from orchestrator.control.rooms.place import Place, build_address
from registry.errors import RowNotFound
from registry.models import Entry, RegisteredTool
from registry.servers.bundles import Bundles
from registry.store import Store
from sandbox.errors import BundleInvalid

SHOWN = 50
NAMED = 8
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


def render_versions(store: Store, name: str) -> str:
    """All versions, newest first. Raises RowNotFound."""
    versions = store.servers.find_versions(name)[: SHOWN + 1]
    before = {after.version: earlier for after, earlier in pairwise(versions)}
    rows = [
        (
            _render_version(each, current=number == 0),
            render_time(each.created),
            escape_text(each.created_by),
            _render_summary(before.get(each.version), each),
            f"<code>{escape_text(each.digest[:12])}</code>",
        )
        for number, each in enumerate(versions[:SHOWN])
    ]
    heads = ("version", "made", "by", "changed", "digest")
    return render_section("Versions", render_table(heads, rows, "versions"))


def _render_version(entry: Entry, current: bool) -> str:
    address = f"{build_address('servers', entry.name)}?version={entry.version}"
    mark = " current" if current else ""
    return f'<a href="{escape(address)}">{entry.version}</a>{mark}'


def _render_summary(before: Entry | None, after: Entry) -> str:
    """What a version changed, in a few words."""
    if before is None:
        return f"first: {len(after.tools)} tools"
    found = compare_versions(before, after)
    parts = (
        _render_names("+", "ins", found.added),
        _render_names("-", "del", found.removed),
        _render_names("~", "mod", found.changed),
        _render_names("+", "ins", found.allowed),
        _render_names("-", "del", found.disallowed),
    )
    return " ".join(filter(None, parts)) or "the same tools and permissions"


def _render_names(sign: str, kind: str, names: Sequence[str]) -> str:
    shown = " ".join(
        f'<code class="{kind}">{sign}{escape_text(name, 80)}</code>' for name in names[:NAMED]
    )
    return f"{shown} and {len(names) - NAMED} more" if len(names) > NAMED else shown


def render_difference(store: Store, shelf: Bundles, place: Place) -> str:
    """One version beside the one before it: tools, permissions, code. Raises RowNotFound."""
    wanted = place.get_filter("version")
    versions = {str(each.version): each for each in store.servers.find_versions(place.name)}
    after = versions.get(wanted)
    if after is None:
        raise RowNotFound("version", wanted)
    earlier = [each for each in versions.values() if each.version < after.version]
    before = max(earlier, key=lambda each: each.version, default=None)
    made = render_facts(
        (
            ("made", render_time(after.created)),
            ("by", escape_text(after.created_by)),
            ("made of", escape_text(after.source)),
            ("digest", f"<code>{escape_text(after.digest)}</code>"),
        )
    )
    if before is None:
        first = f"It is the first version, with {len(after.tools)} tools."
        return render_section(f"Version {after.version}", made + render_empty(first))
    title = f"Version {after.version} beside version {before.version}"
    parts = (made, _render_changes(before, after), _render_code(shelf, before, after))
    return render_section(title, "".join(parts))


def _render_changes(before: Entry, after: Entry) -> str:
    found = compare_versions(before, after)
    facts = render_facts(
        (
            ("tools added", _render_names("+", "ins", found.added)),
            ("tools removed", _render_names("-", "del", found.removed)),
            ("permissions added", _render_names("+", "ins", found.allowed)),
            ("permissions removed", _render_names("-", "del", found.disallowed)),
        )
    )
    tools = "".join(
        f"<details id='tool-{escape(name)}'><summary>{render_badge('changed')} "
        f"<code>{escape_text(name)}</code></summary>"
        f"{render_lines(_print_tool(before.get_tool(name)), _print_tool(after.get_tool(name)))}"
        "</details>"
        for name in found.changed[:SHOWN]
    )
    same = render_empty("Its tools and permissions are those of the version before.")
    return f"<h3>Tools and permissions</h3>{facts + tools if vars(found) != _NOTHING else same}"


_NOTHING = vars(VersionDifference((), (), (), (), ()))


def _print_tool(tool: RegisteredTool) -> str:
    told = {**tool.definition, "access": tool.access, "operation": tool.operation_digest[:12]}
    return json.dumps(told, indent=2, ensure_ascii=False)


def _render_code(shelf: Bundles, before: Entry, after: Entry) -> str:
    try:
        old, new = (shelf.load_bundle(each).source_code for each in (before, after))
    except BundleInvalid as error:
        return f"<h3>Code</h3>{render_empty(f'It cannot be compared: {error}')}"
    return f"<h3>Code</h3>{render_lines(old, new)}"


@lru_cache(maxsize=64)
def render_lines(before: str, after: str) -> str:
    """Two texts as the lines that differ, with three lines around them."""
    lines = [*iterate_differences(before.splitlines(), after.splitlines())]
    if not lines:
        return render_empty("The same, line by line.")
    added = sum(kind == "ins" for kind, _ in lines)
    removed = sum(kind == "del" for kind, _ in lines)
    shown = "".join(
        f'<span class="{kind}">{_SIGNS[kind]}{escape_text(text, MAX_LINE)}</span>\n'
        for kind, text in lines[:MAX_LINES]
    )
    cut = f"<p>{len(lines) - MAX_LINES} more lines.</p>" if len(lines) > MAX_LINES else ""
    count = f'<p><code class="ins">+{added}</code> <code class="del">-{removed}</code> lines</p>'
    return f'{count}<pre class="diff" tabindex="0">{shown}</pre>{cut}'


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
