"""Two schemas side by side: whether they say the same of types, enumerations and limits.

A tool's schemas come from its operation's document, rewritten on the way: definitions inlined,
what is too large cut to its type, answers made tolerant of what is absent or null. What is compared
is what no rewriting may change; where their structure differs too much to say, nothing is said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sandbox.bundle.apispec import Schema
from sandbox.schemas.keywords import BRANCHES, COMBINING, declared_types

Resolve = Callable[[str], Schema | None]
MAX_DEPTH = 12
MAX_NODES = 3_000
MAX_SHORT = 150
"""Characters up to which a keyword's value is no reason to leave it out of a large schema."""
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
_DEFAULTS = {"minLength": 0, "minItems": 0, "uniqueItems": False}
"""What holds where a keyword is absent (JSON Schema 2020-12, validation, section 6)."""
_TYPED = ("type", "properties", "items", "enum")


@dataclass(frozen=True)
class SchemaDifference:
    """Where two schemas differ, in which keyword and how; `lost` where the given one lacks it,
    `long` where the documented one takes much space.
    """

    where: str
    key: str
    reason: str
    lost: bool = False
    long: bool = False


class SchemaComparer:
    """Compares given schemas with documented ones, each with what resolves its references. With
    `ignores_null`, whether a value may be null is no difference.
    """

    def __init__(self, documented: Resolve, given: Resolve, ignores_null: bool = False) -> None:
        self._documented, self._given, self._ignores_null = documented, given, ignores_null
        self._left = MAX_NODES

    def find_differences(
        self, documented: Schema | None, given: Schema | None, where: str = "", depth: int = 0
    ) -> Iterator[SchemaDifference]:
        self._left -= 1
        if depth > MAX_DEPTH or self._left < 0:
            return
        wanted, own = (
            _resolve_schema(documented, self._documented),
            _resolve_schema(given, self._given),
        )
        if wanted is None or own is None or _is_open(wanted):
            return
        if self._ignores_null:
            wanted, own = _without_null(wanted), _without_null(own)
        if _is_open(own) and any(key in wanted for key in _TYPED):
            types = " or ".join(sorted(declared_types(wanted))) or "one by its parts"
            yield _build_difference(where, "type", None, types)
            return
        if any(key in wanted or key in own for key in COMBINING):
            # A file is given in another form than it is sent, with a name and a type beside it.
            if not (_takes_file(own) and self._describes_bytes(wanted)):
                yield from self._compare_branches(wanted, own, where, depth)
            return
        yield from _compare_types(wanted, own, where)
        yield from _compare_limits(wanted, own, where)
        yield from self._compare_parts(wanted, own, where, depth)

    def _describes_bytes(self, wanted: Mapping[str, Any]) -> bool:
        """Whether the documented schema, or an alternative of it, is of bytes."""
        branches = [
            _resolve_schema(branch, self._documented)
            for key in BRANCHES
            for branch in wanted.get(key, ())
        ]
        return any(
            part.get("format") == "binary"
            or ("contentMediaType" in part and "contentEncoding" not in part)
            for part in (wanted, *filter(None, branches))
        )

    def _compare_branches(
        self, wanted: Mapping[str, Any], own: Mapping[str, Any], where: str, depth: int
    ) -> Iterator[SchemaDifference]:
        for key in BRANCHES:
            branches = wanted.get(key, ())
            others = own.get(key, own.get("anyOf", ()) if key == "oneOf" else ())
            if len(others) == len(branches):
                for left, right in zip(branches, others, strict=True):
                    yield from self.find_differences(left, right, where, depth + 1)

    def _compare_parts(
        self, wanted: Mapping[str, Any], own: Mapping[str, Any], where: str, depth: int
    ) -> Iterator[SchemaDifference]:
        theirs = own.get("properties") or {}
        for name, part in (wanted.get("properties") or {}).items():
            if name in theirs:
                yield from self.find_differences(part, theirs[name], f"{where}/{name}", depth + 1)
        if "items" in wanted and "items" in own:
            yield from self.find_differences(wanted["items"], own["items"], f"{where}/0", depth + 1)
        rest, other = wanted.get("additionalProperties"), own.get("additionalProperties")
        if isinstance(rest, Mapping) and isinstance(other, Mapping):
            yield from self.find_differences(rest, other, f"{where}/*", depth + 1)


def _resolve_schema(schema: Schema | None, resolve: Resolve) -> Mapping[str, Any] | None:
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


def _without_null(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema without what it says of null; an enumeration of one value is that constant."""
    made = dict(schema)
    types = declared_types(made)
    if "null" in types:
        made["type"] = sorted(types - {"null"})
    if isinstance(made.get("enum"), list):
        made["enum"] = [value for value in made["enum"] if value is not None]
        if len(made["enum"]) == 1:
            made["const"] = made.pop("enum")[0]
    return made


def _takes_file(schema: Mapping[str, Any]) -> bool:
    """Whether a given schema takes a file as the runtime does: `{"base64": …}` is one of its
    forms.
    """
    branches = [part for part in schema.get("anyOf", ()) if isinstance(part, Mapping)]
    return any("base64" in part.get("properties", {}) for part in branches)


def _is_open(schema: Mapping[str, Any]) -> bool:
    said = ("type", "enum", "properties", "items", "additionalProperties", *_LIMITS, *COMBINING)
    return not any(key in schema for key in said)


def _compare_types(
    wanted: Mapping[str, Any], own: Mapping[str, Any], where: str
) -> Iterator[SchemaDifference]:
    documented, given = declared_types(wanted), declared_types(own)
    if documented and given != documented:
        yield _build_difference(where, "type", sorted(given), sorted(documented))
    listed, others = wanted.get("enum"), own.get("enum")
    if _sort_values(listed) != _sort_values(others):
        yield _build_difference(where, "enum", others, listed)


def _build_difference(where: str, key: str, given: Any, documented: Any) -> SchemaDifference:
    said = "no" if given in (None, []) else f"another ({str(given)[:60]})"
    reason = f"has {said} {key}; the document has {str(documented)[:80]}"
    is_long = len(str(documented)) > MAX_SHORT
    return SchemaDifference(where, key, reason, given in (None, []), is_long)


def _sort_values(values: Any) -> list[str] | None:
    """An enumeration's values, in an order of their own."""
    return sorted(map(repr, values)) if isinstance(values, list) else None


def _compare_limits(
    wanted: Mapping[str, Any], own: Mapping[str, Any], where: str
) -> Iterator[SchemaDifference]:
    for key in _LIMITS:
        default = _DEFAULTS.get(key)
        if own.get(key, default) != wanted.get(key, default):
            yield _build_difference(where, key, own.get(key), wanted.get(key))
