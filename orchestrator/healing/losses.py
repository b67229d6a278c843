"""The tools that a next version of a server would lose, or has under another name."""

from __future__ import annotations

from collections.abc import Iterator

from registry.health.likeness import find_renamed_fields, pair_names, pair_paths
from sandbox.bundle.model import Bundle, ToolDefinition

MOST = 20
"""Lines that are told."""


def describe_changes(before: Bundle, after: Bundle) -> tuple[str, ...]:
    """Tools that are gone, each with the new one that is most like it, and paths and fields of an
    answer that are called otherwise. At most MOST, those that are lost first.
    """
    lines = [*_describe_gone(before, after), *_describe_renamed(before, after)]
    return tuple(lines[:MOST])


def find_gone(before: Bundle, after: Bundle) -> frozenset[str]:
    """The names of the tools that the next version does not have."""
    return frozenset(tool.name for tool in before.tools) - {tool.name for tool in after.tools}


def _describe_gone(before: Bundle, after: Bundle) -> Iterator[str]:
    lost = find_gone(before, after)
    gone = [tool for tool in before.tools if tool.name in lost]
    known = {tool.name for tool in before.tools}
    new = [tool for tool in after.tools if tool.name not in known]
    places = {_render_place(tool): tool.name for tool in new}
    moved = {p.old: p.new for p in pair_paths(map(_render_place, gone), places)}
    named = {p.old: p.new for p in pair_names((t.name for t in gone), (t.name for t in new))}
    for tool in gone:
        place = _render_place(tool)
        if like := moved.get(place):
            yield f"{tool.name} is gone: the API moved {place} to {like}, which is {places[like]}"
        elif like := named.get(tool.name):
            yield f"{tool.name} ({place}) is gone; {like} is most like it"
        else:
            yield f"{tool.name} ({place}) is gone, and nothing is like it"


def _describe_renamed(before: Bundle, after: Bundle) -> Iterator[str]:
    tools = {tool.name: tool for tool in after.tools}
    for old in before.tools:
        new = tools.get(old.name)
        if new is None or new == old:
            continue
        if _render_place(old) != _render_place(new):
            yield f"the API moved {_render_place(old)} to {_render_place(new)} ({old.name})"
        for each in find_renamed_fields(old.output_schema, new.output_schema):
            yield f"{old.name} gives {each.old} as {each.new}"


def _render_place(tool: ToolDefinition) -> str:
    method = tool.requests[0].method if tool.requests else ""
    return f"{method} {tool.path or tool.name}".strip()
