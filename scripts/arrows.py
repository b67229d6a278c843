"""Write the import contracts of pyproject.toml into docs/architecture.md, as a graph for people.

    python scripts/arrows.py [--check]

With `--check` nothing is written; the exit code is 1 where the page shows something else.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- arrows: begin -->", "<!-- arrows: end -->"


def render_graph(project: Any) -> str:
    """One block a contract: a line a layer, each of which may import all lines below it."""
    lines = [
        "```",
        "each line may import the lines below it; | divides neighbours that may not meet",
    ]
    for contract in project["tool"]["importlinter"]["contracts"]:
        if contract["type"] == "layers":
            lines += ["", f"{contract['name']}:", *_render_layers(contract["layers"])]
    return "\n".join([*lines, "```"])


def _render_layers(layers: list[str]) -> Iterator[str]:
    for number, layer in enumerate(layers):
        names = layer.replace("(", "").replace(")", "")
        yield f"{'  ' if number == 0 else '  ▼ '}{names}"


def insert_graph(page: str, graph: str) -> str:
    """The page with the graph between its two marks. Raises ValueError where a mark is missing."""
    head, rest = page.split(BEGIN)
    _, tail = rest.split(END)
    return f"{head}{BEGIN}\n{graph}\n{END}{tail}"


def main(check: bool) -> int:
    page = PAGE.read_text()
    wanted = insert_graph(page, render_graph(tomllib.loads((ROOT / "pyproject.toml").read_text())))
    if check:
        return int(page != wanted)
    PAGE.write_text(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv))
