"""A flame graph of warm calls through `serve`, as an SVG without scripts.

    pip install py-spy
    python -m bench.flame [--seconds 30] [--output docs/images/warm-call.svg] [--py-spy py-spy]

`call_read` calls the echo server of `bench.call`, one call after the other, while py-spy looks 500
times a second at the threads of `serve` that hold the interpreter. The width of a bar is the share
of all looks in which its function ran, the functions that it called lie on it; what takes less than
a five-hundredth is left out. Colours are those of `COLOURS`, by package.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

from bench.call import BUNDLE, Peer
from orchestrator.settings import load_settings
from registry.models import build_entry
from registry.servers.bundles import Bundles
from registry.store import Store

RATE = 500
LEAST = 1 / 500
WIDTH, ROW, LETTER = 1200, 17, 6.6
"""Pixels: of the picture, of a row's height, of a letter's width."""
COLOURS = {"orchestrator": "#f2b8a0", "registry": "#f6dc9c", "sandbox": "#b5d7a8"}
OTHER = "#d0d4da"
CALL = {"tool": "echo.echo", "arguments": {"text": "x" * 100}}
_BEGINS = {
    "Handle._run (asyncio/events.py)": "event loop: what it runs",
    "BaseEventLoop._run_once (asyncio/base_events.py)": "event loop itself",
    "_WorkItem.run (concurrent/futures/thread.py)": "threads: the record",
}
"""Frames below which every stack is alike, and what stands for all up to them."""
_LINE = re.compile(r":\d+\)$")


@dataclass
class Node:
    """A function in its callers: in how many looks it ran, and what it called."""

    name: str
    count: int = 0
    inner: dict[str, Node] = field(default_factory=dict)

    def add(self, stack: Iterable[str], count: int) -> None:
        self.count += count
        node = self
        for name in stack:
            node = node.inner.setdefault(name, Node(name))
            node.count += count


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--output", type=Path, default=Path("docs/images/warm-call.svg"))
    parser.add_argument("--py-spy", default="py-spy")
    args = parser.parse_args()
    root = build_tree(sample_calls(args.py_spy, args.seconds))
    args.output.parent.mkdir(parents=True, exist_ok=True)
    args.output.write_text(render_svg(root))
    print(f"{args.output}: {root.count} looks")


def sample_calls(py_spy: str, seconds: int) -> str:
    """What py-spy saw of `serve` meanwhile: a stack a line, with its count."""
    with tempfile.TemporaryDirectory() as scratch:
        seen = Path(scratch) / "stacks"
        environment = {**os.environ, "TOOLWRIGHT_HOME": scratch, "PYTHONPATH": os.getcwd()}
        with Store.open(load_settings(environment).database_url) as store:
            entry = build_entry(BUNDLE, time.time())
            Bundles(Path(scratch), store.servers).publish_bundle(BUNDLE, entry, (), None)
        peer = Peer([sys.executable, "-m", "orchestrator", "serve", "--no-control"], environment)
        call = {"name": "call_read", "arguments": CALL}
        peer.measure(call, 500, 1)
        peer.wait_idle()
        options = ["--gil", "--function", "--format", "raw", "--rate", str(RATE)]
        target = ["--duration", str(seconds), "--output", str(seen), "--pid", str(peer.process_id)]
        looking = subprocess.Popen([py_spy, "record", *options, *target], stdout=subprocess.DEVNULL)
        while looking.poll() is None:
            peer.measure(call, 100, 1)
        peer.close()
        return seen.read_text()


def build_tree(stacks: str) -> Node:
    root = Node("all looks")
    for line in stacks.splitlines():
        frames, _, count = line.rpartition(" ")
        # py-spy names a file as its package does: no path of this machine comes into the picture.
        stack = [_LINE.sub(")", frame) for frame in frames.split(";")]
        for begin, title in _BEGINS.items():
            if begin in stack:
                stack = [title, *stack[len(stack) - stack[::-1].index(begin) :]]
                break
        root.add(stack, int(count))
    return root


def render_svg(root: Node) -> str:
    bars = list(_place_bars(root, 0.0, 0, root.count * LEAST, WIDTH / root.count))
    height = (1 + max(level for *_, level in bars)) * ROW
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        'font-family="monospace" font-size="11">\n'
    )
    return head + "".join(_draw_bar(*bar, root.count, height) for bar in bars) + "</svg>\n"


def _place_bars(
    node: Node, left: float, level: int, least: float, scale: float
) -> Iterator[tuple[Node, float, float, int]]:
    """Each node with its left edge, its width and its level."""
    yield node, left, node.count * scale, level
    for inner in sorted(node.inner.values(), key=lambda each: -each.count):
        if inner.count >= least:
            yield from _place_bars(inner, left, level + 1, least, scale)
        left += inner.count * scale


def _draw_bar(node: Node, left: float, width: float, level: int, looks: int, height: int) -> str:
    top = height - (level + 1) * ROW
    package = node.name.partition("(")[2].partition("/")[0]
    label = node.name.partition(" (")[0][: int((width - 4) / LETTER)]
    text = f'<text x="{left + 2:.1f}" y="{top + 12}">{escape(label)}</text>' if label else ""
    return (
        f"<g><title>{escape(node.name)}: {100 * node.count / looks:.1f} %</title>"
        f'<rect x="{left:.1f}" y="{top}" width="{max(width - 0.5, 0.5):.1f}" height="{ROW - 1}" '
        f'fill="{COLOURS.get(package, OTHER)}"/>{text}</g>\n'
    )


if __name__ == "__main__":
    main()
