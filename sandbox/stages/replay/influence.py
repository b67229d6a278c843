"""Other values of a case's arguments, to see whether an argument decides anything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sandbox.schemas.validator import SchemaChecker

MAX_VALUES = 12
_NUMBERS = (0, 1, 2, 7, 100, 10_000, -1)
_TEXTS = ("zzqx", "a", "0", "")


def iterate_other_arguments(
    name: str,
    arguments: Mapping[str, Any],
    others: Sequence[Mapping[str, Any]],
    schema: Mapping[str, Any],
    judge: SchemaChecker,
) -> Iterator[Mapping[str, Any]]:
    """Arguments that differ in one of them alone and that the schema admits, at most MAX_VALUES."""
    usual = arguments.get(name)
    part = (schema.get("properties") or {}).get(name) or {}
    listed: list[Any] = [given[name] for given in others if name in given]
    listed += list(part.get("enum") or ())
    if isinstance(usual, bool):
        listed.append(not usual)
    elif isinstance(usual, int | float):
        bounds = (part.get("minimum"), part.get("maximum"))
        listed += [b for b in bounds if b is not None]
        listed += [usual + 1, usual - 1, *_NUMBERS]
    elif isinstance(usual, str):
        listed += [f"{usual}x", *_TEXTS]
    elif isinstance(usual, list):
        listed += [usual[:1], usual[::-1], [*usual, *usual], []]
    seen: list[Any] = [usual]
    for value in listed:
        if value in seen or len(seen) > MAX_VALUES:
            continue
        seen.append(value)
        given = {**arguments, name: value}
        if judge.find_problem(given) is None:
            yield given
    if name not in (schema.get("required") or ()):
        yield {key: item for key, item in arguments.items() if key != name}
