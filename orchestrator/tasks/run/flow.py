"""Data flow between steps: references to results, and values that would leave their origin."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from orchestrator.errors import UnknownTool
from orchestrator.gateway.catalog import Catalog
from orchestrator.tasks.model import REF
from orchestrator.tasks.run.state import RunState, StepState, extract_value, get_server
from registry.errors import RegistryError
from sandbox.errors import BundleInvalid
from sandbox.wire.policy import parse_origin

MAX_LEAVES = 20_000
MIN_TEXT = 3
"""Shorter values are in every answer, and say nothing of where they come from."""


def holds_reference(value: Any) -> bool:
    """Whether a value is, or holds, a reference to a step's result."""
    if isinstance(value, Mapping):
        return REF in value or any(map(holds_reference, value.values()))
    return isinstance(value, list) and any(map(holds_reference, value))


def merge_arguments(known: Mapping[str, Any], told: Mapping[str, Any]) -> dict[str, Any]:
    """Known arguments with those that somebody told; objects are merged, all else is replaced."""
    merged = dict(known)
    for name, value in told.items():
        before = merged.get(name)
        if isinstance(value, Mapping) and isinstance(before, Mapping):
            merged[name] = merge_arguments(before, value)
        else:
            merged[name] = value
    return merged


def find_foreign_values(
    roster: Catalog, state: RunState, step: StepState, resolved: Mapping[str, Any], said: str
) -> dict[str, str]:
    """The arguments of a step that come from the answer of another origin than its own, each with
    the server that gave it: by reference, or because the very value stands in that answer and
    nobody said it. `said` are the words of whoever asked.
    """
    own = _find_origin(roster, get_server(step["tool"]))
    foreign: dict[str, str] = {}
    for before in state["steps"].values():
        server = get_server(before.get("tool", ""))
        if before.get("end") != "done" or _find_origin(roster, server) == own:
            continue
        referred = {
            name
            for name, value in (step.get("arguments") or {}).items()
            if before["id"] in _list_references(value)
        }
        answer = extract_value((before.get("reply") or {}).get("result") or {})
        leaves = {_render_leaf(leaf) for leaf in _iterate_leaves(answer)}
        for name, value in resolved.items():
            taken = any(
                _render_leaf(leaf) in leaves
                and len(_render_leaf(leaf)) >= MIN_TEXT
                and _render_leaf(leaf) not in said
                for leaf in _iterate_leaves(value)
            )
            if name in referred or taken:
                foreign.setdefault(name, server)
    return foreign


def _find_origin(roster: Catalog, server: str) -> str:
    """Where a server's requests go: its API's origin, or itself where it has none."""
    try:
        base = roster.get_server(server).entry.base_url
    except (UnknownTool, BundleInvalid, RegistryError):
        return server
    origin = parse_origin(base)
    return str(origin) if origin else server


def _list_references(value: Any) -> frozenset[str]:
    if isinstance(value, Mapping):
        own = frozenset({str(value[REF])}) if REF in value else frozenset()
        return own.union(*map(_list_references, value.values()))
    if isinstance(value, list):
        return frozenset().union(*map(_list_references, value))
    return frozenset()


def _iterate_leaves(value: Any) -> Iterator[Any]:
    """The scalars in a value, in order, not more than are looked at."""
    stack, left = [value], MAX_LEAVES
    while stack and left:
        each = stack.pop()
        if isinstance(each, Mapping):
            stack.extend(each.values())
        elif isinstance(each, list):
            stack.extend(each)
        elif each is not None and not isinstance(each, bool):
            left -= 1
            yield each


def _render_leaf(leaf: Any) -> str:
    return leaf if isinstance(leaf, str) else json.dumps(leaf)
