"""JSON Schema checks on the host, safe to run on schemas that strangers wrote."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError, best_match
from jsonschema.validators import extend
from referencing.exceptions import Unresolvable

from sandbox import exactjson, steps

MAX_REASON = 300
MAX_PATTERN = 500
# A quantified group that holds a quantifier or an alternative can take exponential time in
# Python's engine, which has no time limit; the sandbox, which has one, checks these patterns too.
_RISKY = re.compile(r"\([^)]*[*+|}][^)]*\)\s*[*+{]|\\[1-9]|\(\?P?[=<(]")


@dataclass(frozen=True)
class Problem:
    """The first thing wrong: a JSON pointer into the instance, and why."""

    where: str
    reason: str


_Validator = extend(  # type: ignore[no-untyped-call]
    Draft202012Validator, steps.counted(Draft202012Validator.VALIDATORS)
)


_INAPPLICABLE = (Unresolvable, SchemaError, re.error, TypeError, ValueError, OverflowError)


class Checker:
    """A compiled schema."""

    def __init__(self, schema: Mapping[str, Any] | bool) -> None:
        tame = _tame(schema)
        self._validator, self._is_counted = _Validator(tame), steps.are_needed(tame)

    def problem(self, instance: Any) -> Problem | None:
        """What is wrong with the instance, or None. An inapplicable schema is a problem."""
        if self._is_counted:
            steps.begin(instance)
        try:
            if self._validator.is_valid(instance):
                return None
            error = best_match(self._validator.iter_errors(instance))
        except steps.Exhausted:
            return Problem("", "the schema takes too many steps to check")
        except RecursionError:
            return Problem("", "the schema refers to itself without end")
        except _INAPPLICABLE as reason:
            return Problem("", f"the schema cannot be applied: {reason}"[:MAX_REASON])
        return _located(error) if error else None


@lru_cache(maxsize=4096)
def _compiled(schema: bytes) -> Checker:
    return Checker(exactjson.loads(schema))


def checker(schema: Mapping[str, Any] | bool) -> Checker:
    """The checker of a schema, compiled once per content."""
    return _compiled(exactjson.dumps(schema))


def _located(error: ValidationError) -> Problem:
    pointer = "".join(
        f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in error.absolute_path
    )
    return Problem(pointer, error.message[:MAX_REASON])


def _tame(schema: Any) -> Any:
    """The schema without patterns that may take exponential time."""
    if isinstance(schema, list):
        return [_tame(item) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    tamed = {key: _tame(value) for key, value in schema.items()}
    pattern = tamed.get("pattern")
    if isinstance(pattern, str) and _risky(pattern):
        del tamed["pattern"]
    keyed = tamed.get("patternProperties")
    if isinstance(keyed, dict):
        tamed["patternProperties"] = {p: s for p, s in keyed.items() if not _risky(p)}
        if len(tamed["patternProperties"]) < len(keyed):
            tamed.pop("additionalProperties", None)
            tamed.pop("unevaluatedProperties", None)
    return tamed


def _risky(pattern: str) -> bool:
    if len(pattern) > MAX_PATTERN or _RISKY.search(pattern):
        return True
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError):
        return True
    return False
