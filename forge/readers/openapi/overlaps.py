"""Detection of `oneOf` alternatives of which one takes every value of another.

`oneOf` refuses what fits two alternatives (2020-12 core, section 10.2.1.3), so no value of the
narrower one would be left, while documents mean that one of them is enough.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from forge.readers.openapi.conflicts import find_types, find_values, list_required
from forge.schemas.projection import list_applied_schemas, merge_properties
from sandbox.bundle.apispec import Schema

MAX_BRANCHES = 64
MAX_DEPTH = 4
MAX_STEPS = 2_000
MAX_COMPARED = 10_000
"""Pairs of enumerated values that are compared."""
_SAYS_NOTHING = frozenset(
    "title description default examples deprecated readOnly writeOnly xml format "
    "type required properties items allOf $ref additionalProperties enum const nullable "
    "contentEncoding contentMediaType".split()
)
"""Annotations, and what is compared; with any other keyword an alternative may be narrower."""


def has_swallowed_branch(branches: Sequence[Schema], schemas: Mapping[str, Schema]) -> bool:
    """Whether one of the alternatives plainly takes every value of another one."""
    if len(branches) > MAX_BRANCHES:
        return False
    comparison = _BranchComparison(schemas)
    parts = [list_applied_schemas(branch, schemas) for branch in branches]
    return any(
        comparison.takes_all(wide, narrow, MAX_DEPTH)
        for at, wide in enumerate(parts)
        for other, narrow in enumerate(parts)
        if at != other
    )


class _BranchComparison:
    """Compares schemas by their parts, in at most MAX_STEPS steps."""

    def __init__(self, schemas: Mapping[str, Schema]) -> None:
        self._schemas, self._left = schemas, MAX_STEPS

    def takes_all(
        self, wide: list[Mapping[str, Any]], narrow: list[Mapping[str, Any]], depth: int
    ) -> bool:
        """Whether what fits the one certainly fits the other; False where that is not plain."""
        self._left -= len(wide) + len(narrow)
        if depth == 0 or self._left < 0 or not wide:
            return False
        if not all(_SAYS_NOTHING.issuperset(part) for part in wide):
            return False
        kinds = _join_types(narrow)
        if not kinds <= _join_types(wide) or any(_is_closed(part) for part in wide):
            return False
        listed = _list_values(wide)
        if listed is not None:
            own = _list_values(narrow)
            if own is None or len(own) * len(listed) > MAX_COMPARED:
                return False
            if not all(value in listed for value in own):
                return False
        if not {*list_required(wide)} <= {*list_required(narrow)}:
            return False
        if "array" in kinds and not self._takes_items(wide, narrow, depth):
            return False
        return "object" not in kinds or self._takes_properties(wide, narrow, depth)

    def _takes_items(
        self, wide: list[Mapping[str, Any]], narrow: list[Mapping[str, Any]], depth: int
    ) -> bool:
        items = [part["items"] for part in wide if "items" in part]
        if not items:
            return True
        own = next((part["items"] for part in narrow if "items" in part), True)
        return all(self._takes(item, own, depth) for item in items)

    def _takes_properties(
        self, wide: list[Mapping[str, Any]], narrow: list[Mapping[str, Any]], depth: int
    ) -> bool:
        """Whether no property of the one refuses what the other takes. One that the narrower does
        not know is not in its values.
        """
        own: dict[str, Schema] = {}
        for part in narrow:
            own.update(merge_properties(part, {}))
        return all(
            self._takes(schema, own[name], depth)
            for part in wide
            for name, schema in part.get("properties", {}).items()
            if name in own
        )

    def _takes(self, wide: Schema, narrow: Schema, depth: int) -> bool:
        self._left -= 1
        if wide is True or wide == {} or (wide == narrow and self._left > 0):
            return True
        parts, own = (list_applied_schemas(each, self._schemas) for each in (wide, narrow))
        return self.takes_all(parts, own, depth - 1)


def _join_types(parts: list[Mapping[str, Any]]) -> frozenset[str]:
    return frozenset.intersection(*map(find_types, parts)) if parts else find_types({})


def _is_closed(part: Mapping[str, Any]) -> bool:
    return part.get("additionalProperties", True) not in (True, {})


def _list_values(parts: list[Mapping[str, Any]]) -> list[Any] | None:
    return next((values for part in parts if (values := find_values(part)) is not None), None)
