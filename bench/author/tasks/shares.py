"""An amount of money in parts."""

from __future__ import annotations

from bench.author.task import Refused, Task, checks

_TEXT = """\
A tool `split_amount(cents, weights)` that divides a whole number of cents among people by their
weights and gives {"shares": [...]}, in the order of the weights, whole cents that add up to
exactly the amount. Everybody first gets their exact share rounded down; the cents that are left
go one each to those with the largest remainders, the earlier one where remainders are equal.
`cents` is from 0 to 10**15; `weights` are 1 to 1000 whole numbers from 0 to 10**6; if all are 0
it is refused. A weight of 0 gets nothing."""


def split_amount(cents: int, weights: list[int]) -> dict[str, list[int]]:
    whole = sum(weights)
    if not weights or not whole or not 0 <= cents <= 10**15 or len(weights) > 1000:
        raise Refused
    if any(not 0 <= weight <= 10**6 for weight in weights):
        raise Refused
    shares = [cents * weight // whole for weight in weights]
    rest = [(-(cents * weight % whole), at) for at, weight in enumerate(weights)]
    for _, at in sorted(rest)[: cents - sum(shares)]:
        shares[at] += 1
    return {"shares": shares}


def _call(cents: int, *weights: int) -> tuple[str, dict[str, object]]:
    return "split_amount", {"cents": cents, "weights": list(weights)}


TASK = Task(
    "shares",
    _TEXT,
    checks(
        {"split_amount": split_amount},
        [
            _call(100, 1),
            _call(100, 1, 1),
            _call(100, 1, 1, 1),
            _call(101, 1, 1),
            _call(0, 1, 2),
            _call(1, 1, 1, 1),
            _call(2, 1, 1, 1),
            _call(10, 1, 2, 3),
            _call(1000, 3, 0, 7),
            _call(5, 0, 1, 0),
            _call(999_999_999_999_999, 1, 1, 1),
            _call(10**15, 333_333, 333_334, 333_333),
            _call(100, 7, 7, 7, 7, 7, 7, 7),
            _call(3, 5, 5, 90),
            _call(17, *range(1, 30)),
            _call(50, 2, 3, 2, 3),
            _call(100, 0, 0),
            _call(100),
            _call(-1, 1),
            _call(100, -1, 2),
            _call(10**15 + 1, 1),
            _call(10, 10**6 + 1),
            _call(7, 1, 1, 1, 1, 1, 1, 1, 1),
            _call(100, *([1] * 1000)),
            _call(892_820_010_227_069, 701, 184),
            _call(264_126_846_128_796, 132, 627, 73, 18_346, 18_523),
        ],
    ),
)
