"""Charts of the control page as shapes, which `templates/drawings.html` draws. They hold numbers
and our own words, no stranger's text.

A curve is drawn without text, since it is stretched to the page's width: labels are HTML beside it.
The times below it part it evenly: that many stand at the left ends of equal parts, one at its end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from registry.calls.invocations import CallCount

WIDTH, HEIGHT = 640, 160
FLOOR = 0.5
"""The lowest share that the curve shows; what is below it runs along the foot."""
DAY_WIDTH, DAY_HEIGHT = 480, 96
PARTS = 4
"""Into how many parts the times below a chart part it, at most."""


@dataclass(frozen=True)
class Mark:
    """An upright line of a class."""

    left: float
    kind: str


@dataclass(frozen=True)
class ShareCurve:
    """A line through points (left, top), with ticks at the foot, marks, horizontal levels, and the
    times (epoch seconds) that stand below it.
    """

    told: str
    points: tuple[tuple[float, float], ...]
    ticks: tuple[float, ...]
    marks: tuple[Mark, ...]
    levels: tuple[float, ...]
    times: tuple[float, ...] = ()
    width: int = WIDTH
    height: int = HEIGHT


@dataclass(frozen=True)
class Bar:
    kind: str
    left: float
    top: float
    width: float
    height: float


@dataclass(frozen=True)
class HourChart:
    """Bars of calls by the hour, failed ones at the foot, and the times that stand below them."""

    told: str
    bars: tuple[Bar, ...]
    times: tuple[float, ...] = ()
    width: int = DAY_WIDTH
    height: int = DAY_HEIGHT


def draw_share_curve(
    shares: Sequence[float],
    failures: Iterable[int],
    marks: Iterable[tuple[int, str]],
    levels: Iterable[float],
    told: str,
    moments: Sequence[float] = (),
) -> ShareCurve:
    """A line of shares (0..1), one for each outcome, with a tick below for each failure and an
    upright line at each mark, which are (number of the outcome, class). `levels` are horizontal,
    `moments` those of the outcomes.
    """
    step = WIDTH / max(1, len(shares) - 1)
    return ShareCurve(
        told,
        tuple((number * step, _place_share(share)) for number, share in enumerate(shares)),
        tuple(number * step for number in failures),
        tuple(Mark(number * step, kind) for number, kind in marks),
        tuple(map(_place_share, levels)),
        _choose_moments(moments),
    )


def _choose_moments(moments: Sequence[float]) -> tuple[float, ...]:
    """The moments at the ends of equal parts of them all: of so many that each stands in another
    minute, as they are shown; none where they all stand in one.
    """
    last = len(moments) - 1
    for parts in range(min(PARTS, last), 0, -1):
        chosen = tuple(moments[round(part * last / parts)] for part in range(parts + 1))
        if len({each // 60 for each in chosen}) == len(chosen):
            return chosen
    return ()


def _place_share(share: float) -> float:
    return HEIGHT * (1 - max(0.0, share - FLOOR) / (1 - FLOOR))


def draw_hours(counts: Sequence[CallCount], since: float, hours: int) -> HourChart:
    """Calls by the hour, of as many hours since a moment (epoch seconds)."""
    highest = max(each.succeeded + each.failed for each in counts)
    step = DAY_WIDTH / hours
    bars = (
        bar
        for each in counts
        for bar in _stack_bars(each, (each.hour - since) / 3600 * step + 1, step - 2, highest)
    )
    return HourChart(
        f"Calls by the hour, at most {highest} in one; red: failed",
        tuple(bar for bar in bars if bar.height),
        tuple(since + part * hours * 3600 / PARTS for part in range(PARTS + 1)),
    )


def _stack_bars(count: CallCount, left: float, width: float, highest: int) -> Iterator[Bar]:
    foot, top = (number * DAY_HEIGHT / highest for number in (count.failed, count.succeeded))
    yield Bar("bad", left, DAY_HEIGHT - foot, width, foot)
    yield Bar("good", left, DAY_HEIGHT - foot - top, width, top)
