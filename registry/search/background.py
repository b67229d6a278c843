"""The frequency of words in tools and tasks at large.

A registry of fifty tools says little about that: there "location" is as rare as "horoscope". The
table lies beside this module: stems, and the part of public tools and of public tasks that have
each, added up. It is made by `python -m bench.background`, and is read once, when the first task is
searched for.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files

TABLE = "background.txt"
"""A line for each stem: the stem, and its share in thousandths."""
LEAST = 10
"""The least share in the table, in thousandths."""


@cache
def load_background() -> Mapping[str, float]:
    """The shares of the usual stems, from 0 to 1; a stem that is not there is a rare one."""
    lines = files("registry.search").joinpath(TABLE).read_text("ascii").splitlines()
    pairs = (line.split() for line in lines)
    return {stem: min(int(share) / 1000, 1.0) for stem, share in pairs}
