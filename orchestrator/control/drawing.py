"""Drawings of the graph room as shapes, which `templates/drawings.html` draws: nodes in columns
with curves between, and lanes. Names are strangers' text, which is cut here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from orchestrator.control.texts import ShownText, cut_text

WIDTH = 960
ROW, BOX = 40, 28
NODE = 210
LETTERS = 22
LANE, STEP, LABEL = 36, 64, 220
LABEL_LETTERS = 24
STOP_LETTERS = 4

Point = tuple[float, float]


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


@dataclass(frozen=True)
class Edge:
    start: Point
    end: Point

    @property
    def middle(self) -> float:
        """Where between both sides it bends."""
        return (self.start[0] + self.end[0]) / 2


@dataclass(frozen=True)
class Box:
    """A node in its place; `title` is its whole text."""

    title: ShownText
    text: ShownText
    kind: str
    address: str
    left: float
    top: float
    width: int = NODE
    height: int = BOX


@dataclass(frozen=True)
class ColumnDrawing:
    told: str
    width: int
    height: int
    boxes: tuple[Box, ...]
    edges: tuple[Edge, ...]


@dataclass(frozen=True)
class Lane:
    """A line from `start` to `end` below a name, with the curves that come to its stops."""

    name: ShownText
    middle: float
    start: int
    end: int
    branches: tuple[Edge, ...]


@dataclass(frozen=True)
class Stop:
    title: ShownText
    text: ShownText
    kind: str
    left: float
    top: float


@dataclass(frozen=True)
class LaneDrawing:
    told: str
    width: int
    height: int
    lanes: tuple[Lane, ...]
    stops: tuple[Stop, ...]


def draw_columns(
    columns: Sequence[Sequence[GraphNode]], edges: Iterable[tuple[str, str]], told: str
) -> ColumnDrawing:
    """Boxes in columns, each as high as its rows, and a curve for each edge (from, to)."""
    filled = [column for column in columns if column]
    height = max(map(len, filled), default=0) * ROW
    gap = (WIDTH - NODE) / max(1, len(filled) - 1)
    places: dict[str, Point] = {}
    boxes = []
    for number, column in enumerate(filled):
        top = (height - len(column) * ROW) / 2
        for row, node in enumerate(column):
            left, upper = places[node.key] = (number * gap, top + row * ROW + (ROW - BOX) / 2)
            title, text = cut_text(node.text), cut_text(node.text, LETTERS)
            boxes.append(Box(title, text, node.kind, node.address, left, upper))
    curves = tuple(
        _join_boxes(places[start], places[end])
        for start, end in edges
        if start in places and end in places
    )
    return ColumnDrawing(told, WIDTH, max(height, 1), tuple(boxes), curves)


def _join_boxes(start: Point, end: Point) -> Edge:
    return Edge((start[0] + NODE, start[1] + BOX / 2), (end[0], end[1] + BOX / 2))


def draw_lanes(lanes: Mapping[str, Sequence[LaneStop]], told: str) -> LaneDrawing:
    """A lane for each name, its stops joined from left to right, and a curve to each stop from its
    parent in another lane.
    """
    places: dict[str, Point] = {
        stop.key: (LABEL + column * STEP, row * LANE + LANE / 2)
        for row, stops in enumerate(lanes.values())
        for column, stop in enumerate(stops)
    }
    most = max((len(stops) for stops in lanes.values()), default=0)
    drawn = tuple(
        Lane(
            cut_text(name, LABEL_LETTERS),
            row * LANE + LANE / 2,
            LABEL,
            LABEL + (len(stops) - 1) * STEP,
            tuple(Edge(places[s.parent], places[s.key]) for s in stops if s.parent in places),
        )
        for row, (name, stops) in enumerate(lanes.items())
    )
    stops = tuple(
        Stop(cut_text(stop.key), cut_text(stop.text, STOP_LETTERS), stop.kind, *places[stop.key])
        for each in lanes.values()
        for stop in each
    )
    return LaneDrawing(told, LABEL + most * STEP, max(len(lanes) * LANE, 1), drawn, stops)
