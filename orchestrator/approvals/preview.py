"""What a write would change, told from what is there before it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sandbox.exchange import Exchange, WireRequest

REPLACING = frozenset({"PUT", "PATCH", "DELETE"})
"""Methods whose target is the thing that they change (RFC 9110 section 9.3, RFC 5789)."""
MAX_PRESENT = 64 * 1024
MAX_CHANGES = 50
MAX_VALUE = 200
NOTHING = "nothing"


@dataclass(frozen=True)
class Change:
    """`where` is a JSON pointer (RFC 6901); `before` and `after` are JSON texts, shortened."""

    where: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.where or '/'}: {self.before} -> {self.after}"


def reading_of(wire: WireRequest) -> WireRequest | None:
    """The request that reads what a write would change, where its method says that there is one."""
    if wire.method not in REPLACING:
        return None
    url = wire.url.partition("?")[0]
    return WireRequest("GET", url, (("accept", "application/json"),))


def present_in(exchange: Exchange) -> str:
    """The JSON text that a reading answered, or nothing where it is none or larger than 64 KiB."""
    response = exchange.response
    if response is None or response.status != 200 or len(response.body) > MAX_PRESENT:
        return ""
    try:
        text = response.body.decode()
        json.loads(text)
    except (ValueError, RecursionError):
        return ""
    return text


def changes(wire: WireRequest, present: str) -> tuple[Change, ...]:
    """What a write would change of `present` (JSON text, or nothing where it is not known); the
    first fifty. A PATCH leaves as it is what it does not name, a PUT does not.
    """
    if not present:
        return ()
    before = json.loads(present)
    if wire.method == "DELETE":
        return (Change("", _shown(before), NOTHING),)
    try:
        after = json.loads(wire.body)
    except (ValueError, RecursionError):
        return ()
    found = _differences(before, after, "", partial=wire.method == "PATCH")
    return tuple(change for change, _ in zip(found, range(MAX_CHANGES), strict=False))


_ABSENT = object()


def _differences(before: Any, after: Any, where: str, *, partial: bool) -> Iterator[Change]:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        names = after if partial else {**before, **after}
        for name in names:
            place = f"{where}/{name.replace('~', '~0').replace('/', '~1')}"
            one, other = before.get(name, _ABSENT), after.get(name, _ABSENT)
            yield from _differences(one, other, place, partial=partial)
    elif before is _ABSENT or after is _ABSENT or _sorted(before) != _sorted(after):
        yield Change(where, _shown(before), _shown(after))


def _sorted(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _shown(value: Any) -> str:
    if value is _ABSENT:
        return NOTHING
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= MAX_VALUE else f"{text[:MAX_VALUE]}… ({len(text)} characters)"
