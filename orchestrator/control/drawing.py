"""Drawings of the graph room as inline SVG: nodes in columns with curves between, and lanes.

Names are strangers' text: cut here and escaped. Each drawing stands beside a list that says the
same, which is all that a narrow screen and a reader that sees nothing get.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from orchestrator.control.markup import escape_text

WIDTH = 960
ROW, BOX = 40, 28
NODE = 210
LETTERS = 22
LANE, STEP, LABEL = 36, 64, 220
LABEL_LETTERS = 24


@dataclass(frozen=True)
class GraphNode:
    """A box with a text. `kind` is its class, `address` where it leads to ("" for nowhere)."""

    key: str
    text: str
    kind: str
    address: str = ""


@dataclass(frozen=True)
class LaneStop:
    """A circle in a lane: its text, class and, where it came of another one, that one's key."""

    key: str
    text: str
    kind: str = ""
    parent: str = ""


def render_columns(
    columns: Sequence[Sequence[GraphNode]], edges: Iterable[tuple[str, str]], told: str
) -> str:
    """Boxes in columns, each as high as its rows, and a curve for each edge (from, to)."""
    filled = [column for column in columns if column]
    height = max(map(len, filled), default=0) * ROW
    gap = (WIDTH - NODE) / max(1, len(filled) - 1)
    places: dict[str, tuple[float, float]] = {}
    boxes = []
    for number, column in enumerate(filled):
        top = (height - len(column) * ROW) / 2
        for row, node in enumerate(column):
            place = (number * gap, top + row * ROW + (ROW - BOX) / 2)
            places[node.key] = place
            boxes.append(_render_box(node, *place))
    curves = "".join(
        _render_curve(places[start], places[end])
        for start, end in edges
        if start in places and end in places
    )
    return _render_svg(WIDTH, height, told, curves + "".join(boxes))


def _render_box(node: GraphNode, left: float, top: float) -> str:
    box = (
        f'<g class="node {escape(node.kind)}"><title>{escape_text(node.text)}</title>'
        f'<rect x="{left:.0f}" y="{top:.0f}" width="{NODE}" height="{BOX}" rx="6"/>'
        f'<text x="{left + 12:.0f}" y="{top + 19:.0f}">{escape_text(node.text, LETTERS)}</text></g>'
    )
    return f'<a href="{escape(node.address)}">{box}</a>' if node.address else box


def _render_curve(start: tuple[float, float], end: tuple[float, float]) -> str:
    left, top = start[0] + NODE, start[1] + BOX / 2
    right, foot = end[0], end[1] + BOX / 2
    middle = (left + right) / 2
    path = f"M{left:.0f} {top:.0f}C{middle:.0f} {top:.0f} {middle:.0f} {foot:.0f}"
    return f'<path class="edge" d="{path} {right:.0f} {foot:.0f}"/>'


def render_lanes(lanes: Mapping[str, Sequence[LaneStop]], told: str) -> str:
    """A lane for each name, its stops joined from left to right, and a curve to each stop from its
    parent in another lane.
    """
    places = {
        stop.key: (LABEL + column * STEP, row * LANE + LANE / 2)
        for row, stops in enumerate(lanes.values())
        for column, stop in enumerate(stops)
    }
    most = max((len(stops) for stops in lanes.values()), default=0)
    drawn = []
    for row, (name, stops) in enumerate(lanes.items()):
        middle = row * LANE + LANE / 2
        end = LABEL + (len(stops) - 1) * STEP
        drawn.append(f'<text x="0" y="{middle + 5:.0f}">{escape_text(name, LABEL_LETTERS)}</text>')
        drawn.append(f'<path class="edge" d="M{LABEL} {middle:.0f}H{end}"/>')
        drawn += [
            _render_branch(places[s.parent], places[s.key]) for s in stops if s.parent in places
        ]
    stops = [stop for each in lanes.values() for stop in each]
    drawn += [_render_stop(stop, *places[stop.key]) for stop in stops]
    return _render_svg(LABEL + most * STEP, len(lanes) * LANE, told, "".join(drawn))


def _render_branch(start: tuple[float, float], end: tuple[float, float]) -> str:
    left, top = start
    right, foot = end
    path = f"M{left:.0f} {top:.0f}C{left:.0f} {foot:.0f} {left:.0f} {foot:.0f}"
    return f'<path class="edge branch" d="{path} {right:.0f} {foot:.0f}"/>'


def _render_stop(stop: LaneStop, left: float, top: float) -> str:
    return (
        f'<g class="node {escape(stop.kind)}"><title>{escape_text(stop.key)}</title>'
        f'<circle cx="{left:.0f}" cy="{top:.0f}" r="13"/>'
        f'<text class="middle" x="{left:.0f}" y="{top + 5:.0f}">{escape_text(stop.text, 4)}</text>'
        "</g>"
    )


def _render_svg(width: float, height: float, told: str, content: str) -> str:
    return (
        f'<div class="drawn"><svg viewBox="-1 -1 {width + 2:.0f} {max(height, 1) + 2:.0f}" '
        f'width="{width + 2:.0f}" height="{max(height, 1) + 2:.0f}" role="group" '
        f'aria-label="{escape(told)}">{content}</svg></div>'
    )
