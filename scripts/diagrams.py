"""Draw the two diagrams of docs/architecture.md: docs/walls.svg and docs/task.svg.

python scripts/diagrams.py          # says which picture is not current
python scripts/diagrams.py --write
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / "docs"
# An <img> follows the reader's system, as the site's palette does.
STYLE = """
text { font: 14px system-ui, sans-serif; fill: #1b2a2f }
.title { font-weight: 600 }
.small { font-size: 12.5px; fill: #43575e }
.box { fill: #ffffff; stroke: #4a6670; stroke-width: 1.3 }
.person { fill: #fff3d6; stroke: #9a6b00; stroke-width: 1.3 }
.area { fill: #e9f4f2; stroke: #00796b; stroke-width: 1.3 }
.caged { fill: #fbe9e7; stroke: #b23c17; stroke-width: 1.3 }
.wall { stroke: #b23c17; stroke-width: 2.5; stroke-dasharray: 7 5 }
.arrow { stroke: #37525b; stroke-width: 1.6; fill: none; marker-end: url(#head) }
.head { fill: #37525b }
@media (prefers-color-scheme: dark) {
  text { fill: #e6eef0 }
  .small { fill: #b7c6cb }
  .box { fill: #22313a; stroke: #8fb0ba }
  .person { fill: #43360f; stroke: #e0b252 }
  .area { fill: #13302d; stroke: #4db6ac }
  .caged { fill: #40211a; stroke: #ff8a65 }
  .wall { stroke: #ff8a65 }
  .arrow { stroke: #a9c3cb }
  .head { fill: #a9c3cb }
}
"""


@dataclass(frozen=True)
class Box:
    """A rectangle with a title and lines below it."""

    x: int
    y: int
    width: int
    height: int
    title: str
    lines: tuple[str, ...] = ()
    kind: str = "box"


@dataclass(frozen=True)
class Arrow:
    """A line through points, with words at a place of their own."""

    points: tuple[tuple[int, int], ...]
    words: str = ""
    at: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class Wall:
    """A vertical line that little crosses; `words` stand below it."""

    x: int
    top: int
    bottom: int
    words: tuple[str, ...]


@dataclass(frozen=True)
class Diagram:
    """A picture: its title is what a screen reader says."""

    title: str
    width: int
    height: int
    parts: tuple[Box | Arrow | Wall, ...]


WALLS = Diagram(
    "Who talks to whom. The MCP client reaches only the front of Toolwright. The sandbox reaches "
    "only Toolwright, by one pipe. Only the broker reaches the API. Only a person with the PIN "
    "approves.",
    944,
    480,
    (
        Box(240, 20, 410, 390, "Toolwright, on your machine", kind="area"),
        Box(16, 60, 160, 74, "Your MCP client", ("its model asks",)),
        Box(16, 216, 160, 74, "You", ("terminal, page, phone",), "person"),
        Box(262, 60, 150, 74, "Front", ("seven tools; none", "of them approves")),
        Box(480, 60, 150, 74, "Gate", ("allow, ask, deny", "or frozen")),
        Box(262, 216, 150, 74, "Control plane", ("signed decisions,", "kill switch")),
        Box(480, 216, 150, 74, "Broker", ("sends only what", "is declared")),
        Box(262, 320, 150, 74, "Registry", ("versions, proofs,", "trust, audit")),
        Box(480, 320, 150, 74, "Vault", ("secrets, encrypted",)),
        Box(
            768,
            60,
            164,
            92,
            "Sandbox",
            ("one server: no network,", "no secret, read-only"),
            "caged",
        ),
        Box(768, 216, 164, 74, "The API", ("the real one",)),
        Wall(208, 20, 410, ("client's wall:", "MCP over stdio")),
        Wall(686, 20, 410, ("sandbox's wall: one pipe;", "API: declared requests")),
        Arrow(((176, 97), (262, 97))),
        Arrow(((412, 97), (480, 97)), "call", (446, 89)),
        Arrow(((630, 90), (768, 90)), "run tool", (728, 83)),
        Arrow(((790, 152), (790, 184), (600, 184), (600, 216)), "asks: GET /zones", (848, 182)),
        Arrow(((630, 246), (768, 246)), "HTTPS", (728, 239)),
        Arrow(((176, 253), (262, 253)), "PIN", (192, 245)),
        Arrow(((390, 216), (390, 176), (520, 176), (520, 134)), "approves one request", (444, 169)),
        Arrow(((337, 290), (337, 320))),
        Arrow(((555, 320), (555, 290)), "adds credential", (500, 310)),
    ),
)
TASK = Diagram(
    "The life of a task. A task is routed to a registered tool. If there is none, a server is "
    "forged: description found, code compiled or written, proved in a sandbox, registered. Then "
    "arguments are read, the gate decides, the call is made, and its outcome is recorded. A "
    "person allows hosts and approves writes. A failing server is repaired.",
    900,
    470,
    (
        Box(16, 40, 120, 62, "Task", ("in words",)),
        Box(180, 40, 130, 62, "Route", ("which tool fits?",)),
        Box(354, 40, 130, 62, "Arguments", ("read, or asked",)),
        Box(528, 40, 130, 62, "Gate", ("allow, ask, deny",)),
        Box(712, 40, 170, 62, "Call", ("in the sandbox,", "through the broker")),
        Box(712, 150, 170, 62, "Record", ("call, trust and audit,", "in one transaction")),
        Box(528, 150, 130, 62, "You approve", ("that exact write",), "person"),
        Box(16, 300, 130, 62, "You allow", ("the API's host",), "person"),
        Box(180, 300, 130, 62, "Find", ("the description",)),
        Box(
            354,
            288,
            130,
            86,
            "Make code",
            ("compiled from it,", "or a model writes", "tests, then code"),
        ),
        Box(
            528,
            276,
            150,
            110,
            "Prove",
            ("static, suite, cases,", "mock with faults,", "safe live reads,", "red team"),
            "caged",
        ),
        Box(732, 300, 150, 62, "Register", ("on probation", "at first")),
        Box(354, 408, 524, 46, "Repair", ("diagnose, remedy, prove again, replay the last calls",)),
        Arrow(((136, 71), (180, 71))),
        Arrow(((310, 71), (354, 71)), "found", (332, 62)),
        Arrow(((484, 71), (528, 71))),
        Arrow(((658, 71), (712, 71))),
        Arrow(((593, 102), (593, 150)), "a write", (622, 130)),
        Arrow(((658, 165), (686, 165), (686, 90), (712, 90))),
        Arrow(((797, 102), (797, 150))),
        Arrow(((245, 102), (245, 300)), "none fits: forge", (192, 200)),
        Arrow(((146, 331), (180, 331))),
        Arrow(((310, 331), (354, 331))),
        Arrow(((484, 331), (528, 331))),
        Arrow(((678, 331), (732, 331)), "passes", (704, 322)),
        Arrow(((807, 300), (807, 256), (290, 256), (290, 102)), "the task goes on", (420, 249)),
        Arrow(((882, 181), (892, 181), (892, 431), (878, 431))),
        Arrow(((600, 408), (600, 386))),
    ),
)
DIAGRAMS: Mapping[str, Diagram] = {"walls.svg": WALLS, "task.svg": TASK}


def render(diagram: Diagram) -> str:
    """The diagram as a SVG document."""
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" '
            f'viewBox="0 0 {diagram.width} {diagram.height}" '
            f'width="{diagram.width}" height="{diagram.height}">',
            f"<title>{escape(diagram.title)}</title>",
            f"<style>{STYLE}</style>",
            '<defs><marker id="head" markerWidth="9" markerHeight="8" refX="8" refY="4" '
            'orient="auto"><path class="head" d="M0 0 L9 4 L0 8 Z"/></marker></defs>',
            *(line for part in diagram.parts for line in _render_part(part)),
            "</svg>\n",
        )
    )


def _render_part(part: Box | Arrow | Wall) -> Iterator[str]:
    match part:
        case Box():
            yield from _render_box(part)
        case Arrow():
            points = " ".join(f"{x},{y}" for x, y in part.points)
            yield f'<polyline class="arrow" points="{points}"/>'
            if part.words:
                yield _render_text(*part.at, part.words, "small")
        case Wall():
            yield f'<path class="wall" d="M{part.x} {part.top}V{part.bottom}"/>'
            for row, words in enumerate(part.words):
                yield _render_text(part.x, part.bottom + 22 + 18 * row, words)


def _render_box(box: Box) -> Iterator[str]:
    yield (
        f'<rect class="{box.kind}" x="{box.x}" y="{box.y}" width="{box.width}" '
        f'height="{box.height}" rx="7"/>'
    )
    middle = box.x + box.width // 2
    if box.kind == "area":
        yield _render_text(middle, box.y + 24, box.title, "title")
        return
    top = box.y + (box.height - 17 * len(box.lines)) // 2 + 5
    yield _render_text(middle, top, box.title, "title")
    for row, line in enumerate(box.lines, 1):
        yield _render_text(middle, top + 17 * row, line, "small")


def _render_text(x: int, y: int, words: str, kind: str = "") -> str:
    classed = f' class="{kind}"' if kind else ""
    return f'<text{classed} x="{x}" y="{y}" text-anchor="middle">{escape(words)}</text>'


def main() -> None:
    pictures = {name: render(diagram) for name, diagram in DIAGRAMS.items()}
    if "--write" in sys.argv[1:]:
        for name, text in pictures.items():
            (DOCS / name).write_text(text, "utf-8")
        return
    stale = [n for n, t in pictures.items() if (DOCS / n).read_text("utf-8") != t]
    if stale:
        sys.exit(f"not current: {', '.join(stale)}; run scripts/diagrams.py --write")


if __name__ == "__main__":
    main()
