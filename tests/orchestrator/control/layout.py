"""How a room lies on a screen: what is wrong with it, and where its landmarks are.

Landmarks are compared by their boxes and not by pixels: fonts, their hinting and the colour of a
pixel's edge differ from machine to machine, while columns, widths and order come from our sheet
alone. Heights come from how texts break, so they have room.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

KEPT = Path(__file__).with_name("layout.json")
SIDEWAYS = 4
"""Pixels by which a left edge or a width may differ."""
TALLER, MORE = 1.4, 48
"""How much taller or shorter a landmark may be: this often, and so many pixels."""

Box = tuple[float, float, float]
"""A left edge, a width and a height."""

_INSPECT = Path(__file__).with_name("inspect.js").read_text("utf-8")
_MEASURE = """() => {
  const named = [["header", "header"], ["nav", "#nav"], ["main", "main"], ["h1", "h1"]];
  for (const part of document.querySelectorAll("main > section, main > form"))
    named.push([part.id, `#${part.id}`]);
  const boxes = named
    .map(([name, path]) => [name, document.querySelector(path).getBoundingClientRect()])
    .filter(([, box]) => box.height > 0);
  boxes.sort(([, one], [, other]) => one.top - other.top || one.left - other.left);
  return boxes.map(([name, box]) => [name, [box.left, box.width, box.height].map(Math.round)]);
}"""


@dataclass(frozen=True)
class Layout:
    """The boxes of a room's landmarks by their names, from top to bottom."""

    boxes: Mapping[str, Box]


def find_problems(page: Page) -> list[str]:
    """What is wrong with how a page lies there: it scrolls sideways, something is cut off, lies on
    something else, runs out of its box, or has its letters one below the other.
    """
    found: list[str] = page.evaluate(_INSPECT)
    return found


def measure_layout(page: Page) -> Layout:
    boxes: list[tuple[str, Box]] = page.evaluate(_MEASURE)
    return Layout({name: (box[0], box[1], box[2]) for name, box in boxes})


def compare_layouts(kept: Layout, found: Layout) -> Iterator[str]:
    """In what a layout differs from the kept one by more than fonts explain."""
    if list(kept.boxes) != list(found.boxes):
        yield f"the landmarks were {list(kept.boxes)} and are {list(found.boxes)}"
        return
    for name, (left, width, height) in kept.boxes.items():
        now = found.boxes[name]
        if abs(left - now[0]) > SIDEWAYS or abs(width - now[1]) > SIDEWAYS:
            yield f"{name}: left edge and width were {left, width} and are {now[:2]}"
        if now[2] > height * TALLER + MORE or now[2] < height / TALLER - MORE:
            yield f"{name}: the height was {height} and is {now[2]}"


def load_layouts() -> dict[str, Layout]:
    """The kept layouts by `look room`."""
    kept: dict[str, dict[str, Any]] = json.loads(KEPT.read_text("utf-8"))
    return {
        name: Layout({part: (box[0], box[1], box[2]) for part, box in boxes.items()})
        for name, boxes in kept.items()
    }


def save_layouts(layouts: Mapping[str, Layout]) -> None:
    lines = ",\n".join(
        f"{json.dumps(name)}: {json.dumps(layout.boxes)}" for name, layout in layouts.items()
    )
    KEPT.write_text(f"{{\n{lines}\n}}\n", "utf-8")
