"""JSON Schema 2020-12, as much of it as tool schemas use; unknown keywords are ignored.

https://json-schema.org/draft/2020-12/json-schema-validation. `format` is an annotation. A schema or
a value that cannot be checked within the bounds below is a problem, not a success.

Each schema within a schema is prepared once, when a value first reaches it: the rows of a large
answer reach it thousands of times. What is malformed where no value reaches is no problem.
"""

from __future__ import annotations

import re

from .keywords import (
    ALL_TYPES,
    CHECKS,
    MAX_SHOWN,
    NO_TYPES,
    PREPARE,
    Exhausted,
    exact_types,
    refuse,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from .keywords import Check, Problem

MAX_DEPTH = 400
MAX_STEPS = 1_000_000
# KeyError is what a slice of an object raises since Python 3.12.
MALFORMED = (TypeError, ValueError, AttributeError, KeyError, RecursionError, ArithmeticError)


class Budget:
    """How many pairs of a schema and a value one check may still look at."""

    __slots__ = ("left",)

    def __init__(self, steps: int) -> None:
        self.left = steps

    def require_steps(self) -> None:
        if self.left < 0:
            raise Exhausted("takes too many steps")


class Schema:
    """A whole schema, which does not change any more, and what was prepared of it."""

    __slots__ = ("_parts", "_targets", "root")

    def __init__(self, root: Any) -> None:
        self.root = root
        self._parts: dict[int, Part] = {}
        self._targets: dict[str, Part] = {}

    def first_problem(self, value: Any, steps: int = MAX_STEPS) -> tuple[str, str] | None:
        """The first problem as a JSON pointer into the value and a reason, or None.

        `steps` is how many pairs of a schema and a value may be looked at.
        """
        budget = Budget(steps)
        try:
            found = self.part(self.root).problem(value, budget, 0)
            budget.require_steps()
        except Exhausted as bound:
            return "", f"cannot be checked: the schema {bound}"
        except MALFORMED as error:
            return "", f"cannot be checked: {type(error).__name__} in the schema"
        return (_pointer(found[0]), found[1]) if found else None

    def part(self, schema: Any) -> Part:
        """The part that is this schema: one for each, however many references lead to it.

        A part holds its schema, so no other object takes on that identity.
        """
        part = self._parts.get(id(schema))
        if part is None:
            part = self._parts[id(schema)] = Part(schema, self)
        return part

    def target(self, reference: str) -> Part:
        """The part that a `$ref` within the root schema points at."""
        part = self._targets.get(reference)
        if part is None:
            part = self._targets[reference] = self.part(self._resolve(reference))
        return part

    def _resolve(self, reference: str) -> Any:
        """What an RFC 6901 pointer as a fragment points at. Raises Exhausted for nothing."""
        target = self.root
        for token in reference.removeprefix("#").split("/")[1:]:
            name = _unescaped(token)
            if isinstance(target, dict) and name in target:
                target = target[name]
            elif isinstance(target, list) and name.isdigit() and int(name) < len(target):
                target = target[int(name)]
            else:
                raise Exhausted(f"refers to {reference[:MAX_SHOWN]}, which is not there")
        return target


class Part:
    """A schema within a whole one, or all of it.

    Every value of a type in `accepts` is without a problem. A loop over many values looks there
    first, and takes the steps for them off the budget itself.
    """

    __slots__ = ("_checks", "_checks_but_type", "_types", "accepts", "schema", "whole")

    def __init__(self, schema: Any, whole: Schema) -> None:
        self.schema, self.whole = schema, whole
        self._checks: list[tuple[Check, Any]] | None = None
        self._types = self.accepts = NO_TYPES

    def problem(self, value: Any, budget: Budget, depth: int) -> Problem | None:
        """The first problem, its path relative to the value."""
        budget.left -= 1
        if budget.left < 0 or depth > MAX_DEPTH:
            budget.require_steps()
            raise Exhausted("nests too deeply")
        checks = self._checks_but_type if type(value) in self._types else self._checks
        for check, argument in self._prepare() if checks is None else checks:
            found = check(argument, value, self, budget, depth + 1)
            if found:
                return found
        return None

    def _prepare(self) -> list[tuple[Check, Any]]:
        checks: list[tuple[Check, Any]] = [(refuse, None)] if self.schema is False else []
        but_type = checks.copy()
        types = ALL_TYPES
        for keyword, argument in self._keywords():
            check = CHECKS.get(keyword)
            if check:
                prepare = PREPARE.get(keyword)
                made = check, prepare(argument, self.whole) if prepare else argument
                checks.append(made)
                if keyword == "type":
                    types = exact_types(argument)
                else:
                    but_type.append(made)
        self._checks_but_type = but_type
        self.accepts = NO_TYPES if but_type else types
        # Last, because another thread may be in `problem`.
        self._checks, self._types = checks, types
        return checks

    def _keywords(self) -> Iterable[tuple[str, Any]]:
        if isinstance(self.schema, dict):
            return self.schema.items()
        if self.schema is True or self.schema is False:
            return ()
        raise Exhausted("holds a schema that is neither an object nor a boolean")


def first_problem(schema: Any, value: Any, steps: int = MAX_STEPS) -> tuple[str, str] | None:
    """`Schema.first_problem` for a schema that is used once."""
    return Schema(schema).first_problem(value, steps)


def _pointer(path: Iterable[str | int]) -> str:
    return "".join("/" + str(token).replace("~", "~0").replace("/", "~1") for token in path)


def _unescaped(token: str) -> str:
    text = re.sub(r"%([0-9A-Fa-f]{2})", lambda match: chr(int(match[1], 16)), token)
    return text.replace("~1", "/").replace("~0", "~")
