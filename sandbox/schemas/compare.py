"""Two schemas side by side: whether they say the same of types, enumerations and limits.

A tool's schemas come from its operation's document, rewritten on the way: definitions inlined,
what is too large cut to its type, answers made tolerant of what is absent. What is compared is what
no rewriting may change; where their structure differs too much to say, nothing is said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sandbox.apispec import Schema

Resolve = Callable[[str], Schema | None]
MAX_DEPTH = 12
MAX_NODES = 3_000
_LIMITS = (
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "uniqueItems",
    "multipleOf",
    "pattern",
    "const",
)
_TYPED = ("type", "properties", "items", "enum")
_COMBINED = ("allOf", "anyOf", "oneOf", "not", "if")


@dataclass(frozen=True)
class Unlike:
    """Where two schemas differ, in which keyword and how; `lost` where the given one lacks it."""

    where: str
    key: str
    reason: str
    lost: bool = False


class Likeness:
    """Compares given schemas with documented ones, each with what resolves its references."""

    def __init__(self, documented: Resolve, given: Resolve) -> None:
        self._documented, self._given = documented, given
        self._left = MAX_NODES

    def differences(
        self, documented: Schema | None, given: Schema | None, where: str = "", depth: int = 0
    ) -> Iterator[Unlike]:
        self._left -= 1
        if depth > MAX_DEPTH or self._left < 0:
            return
        wanted, own = _flat(documented, self._documented), _flat(given, self._given)
        if wanted is None or own is None or _is_open(wanted):
            return
        if _is_open(own) and any(key in wanted for key in _TYPED):
            yield _unlike(where, "type", None, _named(wanted) or "one by its parts")
            return
        if any(key in wanted or key in own for key in _COMBINED):
            yield from self._combined(wanted, own, where, depth)
            return
        yield from _types(wanted, own, where)
        yield from _limits(wanted, own, where)
        yield from self._parts(wanted, own, where, depth)

    def _combined(
        self, wanted: Mapping[str, Any], own: Mapping[str, Any], where: str, depth: int
    ) -> Iterator[Unlike]:
        for key in ("allOf", "anyOf", "oneOf"):
            branches = wanted.get(key, ())
            others = own.get(key, own.get("anyOf", ()) if key == "oneOf" else ())
            if len(others) == len(branches):
                for left, right in zip(branches, others, strict=True):
                    yield from self.differences(left, right, where, depth + 1)

    def _parts(
        self, wanted: Mapping[str, Any], own: Mapping[str, Any], where: str, depth: int
    ) -> Iterator[Unlike]:
        theirs = own.get("properties") or {}
        for name, part in (wanted.get("properties") or {}).items():
            if name in theirs:
                yield from self.differences(part, theirs[name], f"{where}/{name}", depth + 1)
        if "items" in wanted and "items" in own:
            yield from self.differences(wanted["items"], own["items"], f"{where}/0", depth + 1)
        rest, other = wanted.get("additionalProperties"), own.get("additionalProperties")
        if isinstance(rest, Mapping) and isinstance(other, Mapping):
            yield from self.differences(rest, other, f"{where}/*", depth + 1)


def _flat(schema: Schema | None, resolve: Resolve) -> Mapping[str, Any] | None:
    """The schema with its reference followed; None where it leads nowhere or is false."""
    made: dict[str, Any] = {}
    for _ in range(16):
        if schema is True:
            return made
        if not isinstance(schema, Mapping):
            return None
        made = {**schema, **made}
        reference = made.pop("$ref", None)
        if reference is None:
            return made
        schema = resolve(reference)
    return None


def _is_open(schema: Mapping[str, Any]) -> bool:
    said = ("type", "enum", "properties", "items", "additionalProperties", *_LIMITS, *_COMBINED)
    return not any(key in schema for key in said)


def _types(wanted: Mapping[str, Any], own: Mapping[str, Any], where: str) -> Iterator[Unlike]:
    documented, given = _named(wanted), _named(own)
    if documented and given != documented:
        yield _unlike(where, "type", sorted(given), sorted(documented))
    listed, others = wanted.get("enum"), own.get("enum")
    if _texts(listed) != _texts(others):
        yield _unlike(where, "enum", others, listed)


def _unlike(where: str, key: str, given: Any, documented: Any) -> Unlike:
    said = "no" if given in (None, []) else f"another ({str(given)[:60]})"
    reason = f"has {said} {key}; the document has {str(documented)[:80]}"
    return Unlike(where, key, reason, given in (None, []))


def _named(schema: Mapping[str, Any]) -> frozenset[str]:
    kind = schema.get("type", ())
    return frozenset({kind} if isinstance(kind, str) else kind)


def _texts(values: Any) -> list[str] | None:
    """An enumeration's values, in an order of their own."""
    return sorted(map(repr, values)) if isinstance(values, list) else None


def _limits(wanted: Mapping[str, Any], own: Mapping[str, Any], where: str) -> Iterator[Unlike]:
    for key in _LIMITS:
        if own.get(key) != wanted.get(key):
            yield _unlike(where, key, own.get(key), wanted.get(key))
