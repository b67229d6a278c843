"""Preview of a write: the differences between the resource as it is and as it would be."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sandbox.wire.exchange import Exchange, WireRequest
from sandbox.wire.framing import is_deep

REPLACING = frozenset({"PUT", "PATCH", "DELETE"})
"""Methods whose target is the thing that they change (RFC 9110 section 9.3, RFC 5789)."""
MAX_PRESENT = 64 * 1024
MAX_CHANGES = 50
MAX_VALUE = 200
MAX_NESTING = 100
MAX_WRAPPED = 2
"""Objects around a resource in the answer that gives it."""
NOTHING = "nothing"
REST = "what the request leaves of it"


@dataclass(frozen=True)
class Change:
    """`where` is a JSON pointer (RFC 6901); `before` and `after` are JSON texts, shortened."""

    where: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.where or '/'}: {self.before} -> {self.after}"


def build_read_request(wire: WireRequest) -> WireRequest | None:
    """The GET of the resource that a write would change; None for other methods, such as POST."""
    if wire.method not in REPLACING:
        return None
    url = wire.url.partition("?")[0]
    return WireRequest("GET", url, (("accept", "application/json"),))


def extract_present(exchange: Exchange) -> str:
    """The JSON text of a 200 answer; "" for anything else, no JSON, or more than 64 KiB."""
    response = exchange.response
    if response is None or response.status != 200 or len(response.body) > MAX_PRESENT:
        return ""
    value = _parse_shallow(response.body)
    return "" if value is _ABSENT else response.body.decode()


def find_changes(wire: WireRequest, present: str) -> tuple[Change, ...]:
    """The first fifty differences that a write would make to `present`, JSON text or "" where it
    is not known. PUT replaces the whole resource (RFC 9110 section 9.3.4); a PATCH is read as a
    merge, which keeps the members that it does not name (RFC 7396).
    """
    before = _parse_shallow(present.encode("utf-8", "replace")) if present else _ABSENT
    if before is _ABSENT:
        return ()
    if wire.method == "DELETE":
        left = REST if _may_select(wire, before) else NOTHING
        return (Change("", _render_value(before), left),)
    after = _parse_shallow(wire.body)
    before = _unwrap(before, after)
    if after is _ABSENT or before is _ABSENT:
        return ()
    found = _find_differences(before, after, "", partial=wire.method == "PATCH")
    return tuple(change for change, _ in zip(found, range(MAX_CHANGES), strict=False))


_ABSENT = object()


def _may_select(wire: WireRequest, before: Any) -> bool:
    """Whether a query or a body may say which members of a list a DELETE removes: what either means
    there is up to each API (RFC 9110 section 9.3.5).
    """
    fields = before.values() if isinstance(before, Mapping) else (before,)
    has_list = any(isinstance(field, list) for field in fields)
    return has_list and bool(wire.body or "?" in wire.url)


def _parse_shallow(content: bytes) -> Any:
    """The JSON value of bytes; _ABSENT where they are none, or one that is nested deeper than 100,
    which is not compared: how deep a value may be to be walked through depends on who walks.
    """
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return _ABSENT
    return _ABSENT if is_deep(content, value, MAX_NESTING) else value


def _unwrap(before: Any, after: Any) -> Any:
    """What of an answer a body is compared with: the answer itself where both have a field, else
    the one object within it (`data`, or JSON:API's `data.attributes`) that shares one. _ABSENT
    where there are objects and none does: that an envelope lacks a field says nothing of what is
    in it.
    """
    if not (isinstance(before, Mapping) and isinstance(after, Mapping) and after):
        return before
    level = [before]
    for _ in range(MAX_WRAPPED + 1):
        sharing = [held for held in level if not after.keys().isdisjoint(held)]
        if sharing:
            return sharing[0] if len(sharing) == 1 else _ABSENT
        level = [part for held in level for part in held.values() if isinstance(part, Mapping)]
    return _ABSENT if any(isinstance(part, Mapping) for part in before.values()) else before


def _find_differences(before: Any, after: Any, where: str, *, partial: bool) -> Iterator[Change]:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        names = after if partial else {**before, **after}
        for name in names:
            place = f"{where}/{name.replace('~', '~0').replace('/', '~1')}"
            one, other = before.get(name, _ABSENT), after.get(name, _ABSENT)
            yield from _find_differences(one, other, place, partial=partial)
    elif before is _ABSENT or after is _ABSENT or _encode_sorted(before) != _encode_sorted(after):
        yield Change(where, _render_value(before), _render_value(after))


def _encode_sorted(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _render_value(value: Any) -> str:
    if value is _ABSENT:
        return NOTHING
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= MAX_VALUE else f"{text[:MAX_VALUE]}… ({len(text)} characters)"
