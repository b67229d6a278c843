"""Rate limits for requests to a host, learned from its refusals and stored in the bundle."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sandbox.budget import DEFAULT_REQUESTS
from sandbox.bundle.credential import quote_toml

MAX_REQUESTS = 200
MAX_CALL_REQUESTS = 10_000
_ALLOWED = re.compile(r"requests:([1-9][0-9]{0,4})\Z")
MAX_PER = 3600.0
SLOWEST = 1 / 40
"""Requests per second. A caller waits for its turn, at most as long as a request may take."""
MAX_PACES = 16


@dataclass(frozen=True)
class Pace:
    """At most `requests` in `per` seconds, spread evenly, to a `host` or `host:port` as the
    bundle's permissions name it. Raises ValueError for values out of range.
    """

    host: str
    requests: int
    per: float = 1.0

    def __post_init__(self) -> None:
        if not self.host or len(self.host) > 300 or not self.host.isascii():
            raise ValueError(f"{self.host[:60]!r} is no host")
        if not 1 <= self.requests <= MAX_REQUESTS or not 0.1 <= self.per <= MAX_PER:
            raise ValueError(
                f"{self.requests} in {self.per:g} s is no rate: 1 to {MAX_REQUESTS} requests in "
                f"0.1 to {MAX_PER:g} s"
            )
        if self.per_second < SLOWEST * 0.999:
            raise ValueError(f"{self.requests} in {self.per:g} s is slower than one in 40 s")

    @property
    def per_second(self) -> float:
        return self.requests / self.per

    def __str__(self) -> str:
        return f"{self.requests} requests in {self.per:g} s to {self.host}"


def parse_allowed_requests(text: str) -> int | None:
    """The number of a grant `requests:NUMBER`, which is what one call may send to one host; None
    for anything else.
    """
    found = _ALLOWED.match(text)
    number = int(found[1]) if found else 0
    return number if DEFAULT_REQUESTS < number <= MAX_CALL_REQUESTS else None


def find_allowed_requests(granted: Iterable[str]) -> int:
    """What one call may send to one host, by what a person granted its server."""
    return max([DEFAULT_REQUESTS, *filter(None, map(parse_allowed_requests, granted))])


def add_slower_pace(paces: Iterable[Pace], learned: Pace) -> tuple[Pace, ...]:
    """Add a learned pace; of two for the same host the slower one is kept."""
    others = [pace for pace in paces if pace.host != learned.host]
    same = [pace for pace in paces if pace.host == learned.host]
    slowest = min((learned, *same), key=lambda pace: pace.per_second)
    return tuple(sorted((*others, slowest), key=lambda pace: pace.host))


def render_paces(paces: Iterable[Pace]) -> list[str]:
    """The tables `[rate."HOST"]` of a bundle.toml, line by line."""
    lines = []
    for pace in paces:
        lines += ["", f"[rate.{quote_toml(pace.host)}]"]
        lines += [f"requests = {pace.requests}", f"per = {float(pace.per)!r}"]
    return lines


def parse_paces(tables: Any) -> tuple[Pace, ...]:
    """The inverse, of the parsed tables by host. Raises ValueError."""
    if not isinstance(tables, Mapping) or len(tables) > MAX_PACES:
        raise ValueError(f"rate is no table of at most {MAX_PACES} hosts")
    return tuple(_parse_pace(host, table) for host, table in sorted(tables.items()))


def _parse_pace(host: str, table: Any) -> Pace:
    if not isinstance(table, Mapping) or not set(table) <= {"requests", "per"}:
        raise ValueError(f"rate.{host[:60]}: wants requests and per")
    requests, per = table.get("requests"), table.get("per", 1.0)
    if type(requests) is not int or type(per) not in (int, float):
        raise ValueError(f"rate.{host[:60]}: requests is a whole number and per one of seconds")
    try:
        return Pace(host, requests, float(per))
    except ValueError as error:
        raise ValueError(f"rate.{host[:60]}: {error}") from error
