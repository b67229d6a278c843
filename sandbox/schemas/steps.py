"""How long a check of a value against a schema may take: a budget of steps, the same everywhere.

A step is going on to another schema of the same value. Schemas that refer to each other twice take
exponential time without.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any

from jsonschema.exceptions import ValidationError

from sandbox import exactjson

STEPS, STEPS_PER_VALUE = 10_000, 100
"""In all, and more for each value that the instance holds."""
_COMPOSING = ("$ref", "allOf", "anyOf", "oneOf", "if", "not", "dependentSchemas")
_LEFT: ContextVar[list[int]] = ContextVar("steps left")

Keyword = Callable[..., Any]


class Exhausted(Exception):
    """A check has taken all its steps."""


def begin(instance: Any) -> Callable[[], int]:
    """Start the budget of a check of this JSON value; what is returned tells what it has taken:
    steps, and one for each value.
    """
    values = _values(instance)
    left = [STEPS + STEPS_PER_VALUE * values]
    allowed = left[0]
    _LEFT.set(left)
    return lambda: allowed - left[0] + values


def are_needed(schema: Any) -> bool:
    """Whether a schema says anything of going on to another, and so has to be counted."""
    written = exactjson.dumps(schema)
    return any(b'"%s"' % name.encode() in written for name in _COMPOSING)


def counted(keywords: Mapping[str, Keyword]) -> dict[str, Keyword]:
    """The keywords of a jsonschema validator that go on to other schemas, each use a step.

    They raise Exhausted where `begin` allowed no more.
    """
    return {name: _counted(keywords[name]) for name in _COMPOSING}


def _counted(check: Keyword) -> Callable[..., Iterator[ValidationError]]:
    def keyword(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
        left = _LEFT.get()
        left[0] -= 1
        if left[0] < 0:
            raise Exhausted
        yield from check(validator, value, instance, schema) or ()

    return keyword


def _values(instance: Any) -> int:
    """How many values a JSON value holds, itself included."""
    count, pending = 0, [instance]
    while pending:
        value = pending.pop()
        count += 1
        if isinstance(value, dict):
            pending += value.values()
        elif isinstance(value, list):
            pending += value
    return count
