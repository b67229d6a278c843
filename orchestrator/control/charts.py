"""Charts of the control page as inline SVG. It holds numbers and our own words, no stranger's text.

A curve is drawn without text, since it is stretched to the page's width: labels are HTML beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

WIDTH, HEIGHT = 640, 160
FLOOR = 0.5
"""The lowest share that the curve shows; what is below it runs along the foot."""


def render_share_curve(
    shares: Sequence[float],
    failures: Iterable[int],
    marks: Iterable[tuple[int, str]],
    levels: Iterable[float],
    told: str,
) -> str:
    """A line of shares (0..1), one for each outcome, with a tick below for each failure and an
    upright line at each mark, which are (number of the outcome, class). `levels` are horizontal.
    """
    step = WIDTH / max(1, len(shares) - 1)
    lines = "".join(_render_level(level) for level in levels)
    uprights = "".join(_render_upright(number * step, kind) for number, kind in marks)
    ticks = "".join(
        f'<path class="tick" d="M{number * step:.1f} {HEIGHT}v-9"/>' for number in failures
    )
    points = " ".join(
        f"{number * step:.1f},{_place_share(share):.1f}" for number, share in enumerate(shares)
    )
    return (
        f'<svg viewBox="0 -3 {WIDTH} {HEIGHT + 3}" role="img" aria-label="{told}" '
        f'preserveAspectRatio="none">{lines}{uprights}{ticks}'
        f'<polyline class="share" points="{points}"/></svg>'
    )


def _place_share(share: float) -> float:
    return HEIGHT * (1 - max(0.0, share - FLOOR) / (1 - FLOOR))


def _render_level(level: float) -> str:
    return f'<path class="level" d="M0 {_place_share(level):.1f}h{WIDTH}"/>'


def _render_upright(left: float, kind: str) -> str:
    return f'<path class="mark {kind}" d="M{left:.1f} 0v{HEIGHT}"/>'
