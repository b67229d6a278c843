"""JSON Schema checks on the host, safe on schemas that strangers wrote.

One validator for all: JSON Schema 2020-12 whose keywords that go on to other schemas are counted
(`sandbox.schemas.steps`), and whose patterns are matched in linear time by
`sandbox.schemas.patterns`. A pattern of which cannot be told whether it matches is left out, and
allows whatever it might cover.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError, best_match
from jsonschema.protocols import Validator
from jsonschema.validators import extend
from referencing.exceptions import Unresolvable

from sandbox import exactjson
from sandbox.bundle.apispec import Schema
from sandbox.schemas.alternatives import find_telling
from sandbox.schemas.bounded import (
    MAX_MESSAGE,
    MAX_SHOWN,
    any_of,
    cut_message,
    drop_known,
    multiple_of,
    one_of,
    shorten_shown,
    unevaluated_items,
    unique_items,
)
from sandbox.schemas.keywords import BRANCHES, COMBINING, REFERENCES
from sandbox.schemas.patterns import compile_linear
from sandbox.schemas.quick import Acceptor, compile_acceptor
from sandbox.schemas.steps import (
    MAX_ERRORS,
    Exhausted,
    StepBudget,
    current_budget,
    spending,
)

MAX_REASON = MAX_MESSAGE
MAX_NAMES = 20
MAX_NAME = 60
_ENDLESS = "the schema refers to itself without end"
_INAPPLICABLE = (Unresolvable, SchemaError, TypeError, ValueError, ArithmeticError)
_STANDARD: Mapping[str, Any] = Draft202012Validator.VALIDATORS
_COUNTED = _STANDARD.keys() & (REFERENCES | COMBINING | {"dependentSchemas"})

Keyword = Callable[[Any, Any, Any, Any], Iterable[ValidationError]]
Choice = Callable[[Iterator[ValidationError]], ValidationError | None]


@dataclass(frozen=True)
class SchemaViolation:
    """The first thing wrong: a JSON pointer into the instance, why, and the keyword that says so;
    `many` where several alternatives of a oneOf fit, "" where the schema could not be applied.
    """

    where: str
    reason: str
    keyword: str = ""

    def __str__(self) -> str:
        """The place, but for the whole instance, and why."""
        return f"{self.where}: {self.reason}" if self.where else self.reason


class SchemaChecker:
    """A compiled schema, taken as plain JSON Schema."""

    def __init__(self, schema: Mapping[str, Any] | bool) -> None:
        self._schema, self._validator = schema, _CHECKING(schema)

    def find_problem(self, instance: Any) -> SchemaViolation | None:
        """What is wrong with the instance, or None. An inapplicable schema is a problem."""
        if self._accept is not None and self._accept(instance):
            return None
        return find_problem(self._validator, instance, StepBudget(instance), _take_best)

    def fits_plainly(self, instance: Any) -> bool:
        """Whether the instance fits a plain schema; what does not is to be looked at closely."""
        return self._accept is not None and self._accept(instance)

    @cached_property
    def weight(self) -> int:
        """How many parts the schema has that a value may have to be held against, one at least.
        Eight choices of a list count as one.
        """
        written = exactjson.dumps(self._schema)
        return 1 + written.count(b"{") + written.count(b",") // 8

    @cached_property
    def _accept(self) -> Acceptor | None:
        return compile_acceptor(self._schema)


@lru_cache(maxsize=4096)
def _compile_schema(schema: bytes) -> SchemaChecker:
    return SchemaChecker(exactjson.loads(schema))


def get_checker(schema: Mapping[str, Any] | bool) -> SchemaChecker:
    """The checker of a schema, compiled once per content."""
    return _compile_schema(exactjson.dumps(schema))


def describe_refusal(schema: Mapping[str, Any], problem: SchemaViolation) -> str:
    """What is wrong with arguments, and what a tool of that schema takes where their names are
    wrong: one too many or one too few.
    """
    if problem.where or problem.keyword not in ("additionalProperties", "required"):
        return str(problem)
    properties = schema.get("properties", {})
    names = ", ".join(_name_argument(*each) for each in islice(properties.items(), MAX_NAMES))
    more = ", …" if len(properties) > MAX_NAMES else ""
    return f"{problem}. It takes {names or 'no arguments'}{more}."


def _name_argument(name: str, schema: Schema) -> str:
    """An argument's name, and in braces those of its fields."""
    fields = schema.get("properties") if isinstance(schema, Mapping) else None
    if not isinstance(fields, Mapping) or not fields:
        return name[:MAX_NAME]
    shown = ", ".join(str(field)[:MAX_NAME] for field in islice(fields, MAX_NAMES))
    return f"{name[:MAX_NAME]} {{{shown}{', …' if len(fields) > MAX_NAMES else ''}}}"


def accepts_within(schema: Schema, instance: Any, budget: StepBudget) -> bool:
    """Whether a schema takes an instance, in the steps that are left to a larger check."""
    return find_problem(_CHECKING(schema), instance, budget, _take_first) is None


def _take_best(errors: Iterator[ValidationError]) -> ValidationError | None:
    """The most telling of the first errors: an instance may break its schema a million times."""
    best: ValidationError | None = best_match(islice(map(cut_message, errors), MAX_ERRORS))
    return find_telling(best) if best is not None else None


def _take_first(errors: Iterator[ValidationError]) -> ValidationError | None:
    return next(errors, None)


def find_problem(
    validator: Validator, instance: Any, budget: StepBudget, choose: Choice
) -> SchemaViolation | None:
    """The error that `choose` takes of all that a validator of `validator_type` finds, or None."""
    try:
        with spending(budget):
            shown = shorten_shown(instance) if budget.is_large else instance
            error = choose(validator.iter_errors(shown))
    except Exhausted:
        return SchemaViolation("", "the schema takes too many steps to check")
    except RecursionError:
        return SchemaViolation("", _ENDLESS)
    except _INAPPLICABLE as reason:
        return SchemaViolation("", f"the schema cannot be applied: {reason}"[:MAX_REASON])
    except BaseException as failure:
        # Where the recursion ends in jsonschema's maps, which are Rust's, these panic with a
        # BaseException that cannot be imported (https://pyo3.rs/main/doc/pyo3/panic).
        if type(failure).__name__ != "PanicException":
            raise
        return SchemaViolation("", _ENDLESS)
    return _locate_error(error) if error else None


def _locate_error(error: ValidationError) -> SchemaViolation:
    pointer = "".join(
        f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in error.absolute_path
    )
    # jsonschema gives the alternatives' own errors only where none of them fits.
    keyword = "many" if error.validator == "oneOf" and not error.context else str(error.validator)
    return SchemaViolation(pointer, error.message[:MAX_REASON], keyword)


def validator_type(**own: Keyword) -> Callable[[Any], Validator]:
    """A class of validators, with keywords in the place of the standard's."""
    keywords = {**_STANDARD, **_BOUNDED}
    counted = {name: _count_keyword(keywords[name]) for name in _COUNTED}
    made: Callable[[Any], Validator] = extend(  # type: ignore[no-untyped-call]
        Draft202012Validator, {**_BOUNDED, **counted, **_MATCHING, **own}
    )
    return made


def _count_keyword(check: Keyword) -> Keyword:
    def keyword(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
        current_budget().spend()
        yield from check(validator, value, instance, schema) or ()

    return keyword


def _matches(pattern: str, text: str) -> bool | None:
    """Whether the pattern is found in the text; None where the check cannot afford to tell."""
    linear = compile_linear(pattern)
    if linear is None or not current_budget().affords(linear.work(text)):
        return None
    return linear.is_in(text)


def _pattern(validator: Any, wanted: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if isinstance(instance, str) and _matches(wanted, instance) is False:
        yield ValidationError(f"{instance!r} does not match {wanted!r}")


def _pattern_properties(
    validator: Any, patterns: Any, instance: Any, schema: Any
) -> Iterator[ValidationError]:
    for pattern, part in patterns.items() if isinstance(instance, dict) else ():
        for name, value in instance.items():
            if _matches(pattern, name):
                yield from validator.descend(value, part, path=name, schema_path=pattern)


def _additional_properties(
    validator: Any, rest: Any, instance: Any, schema: Any
) -> Iterator[ValidationError]:
    if isinstance(instance, dict) and "patternProperties" in schema:
        instance = _without(instance, _covered(instance, schema))
        schema = _without(schema, {"patternProperties"})
    if rest is False and isinstance(instance, dict) and len(instance) > MAX_SHOWN:
        instance = drop_known(instance, schema)
    yield from _STANDARD["additionalProperties"](validator, rest, instance, schema)


def _unevaluated_properties(
    validator: Any, rest: Any, instance: Any, schema: Any
) -> Iterator[ValidationError]:
    if isinstance(instance, dict):
        others = _without(schema, {"unevaluatedProperties"})
        instance = _without(instance, _evaluated(validator, instance, others))
        schema = {"unevaluatedProperties": rest}
        if rest is False and len(instance) > MAX_SHOWN:
            instance = drop_known(instance, schema)
    yield from _STANDARD["unevaluatedProperties"](validator, rest, instance, schema)


_BOUNDED: Mapping[str, Keyword] = {
    "anyOf": any_of,
    "oneOf": one_of,
    "multipleOf": multiple_of,
    "uniqueItems": unique_items,
    "unevaluatedItems": unevaluated_items,
}
_MATCHING: Mapping[str, Keyword] = {
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional_properties,
    "unevaluatedProperties": _unevaluated_properties,
}
_CHECKING = validator_type()


def _without(mapping: Mapping[str, Any], names: set[str]) -> dict[str, Any]:
    return {name: value for name, value in mapping.items() if name not in names}


def _covered(instance: Mapping[str, Any], schema: Mapping[str, Any]) -> set[str]:
    """The properties that a pattern of the schema covers, or may cover."""
    patterns = schema.get("patternProperties", {})
    return {name for name in instance if any(_matches(p, name) is not False for p in patterns)}


def _evaluated(validator: Any, instance: Mapping[str, Any], schema: Any) -> set[str]:
    """The properties that a schema's keywords look at (2020-12 core, section 11.3)."""
    current_budget().spend()
    if not isinstance(schema, Mapping):
        return set()
    if "additionalProperties" in schema or "unevaluatedProperties" in schema:
        return set(instance)
    found = _covered(instance, schema) | set(schema.get("properties", ()))
    for part, resolver in _applied(validator, instance, schema):
        inner = validator.evolve(schema=part, _resolver=resolver)
        found |= _evaluated(inner, instance, part)
    return found


def _applied(
    validator: Any, instance: Mapping[str, Any], schema: Mapping[str, Any]
) -> Iterator[tuple[Any, Any]]:
    """The schemas that a schema applies to the same instance, each with its resolver."""
    here = validator._resolver
    for keyword in REFERENCES:
        if keyword in schema:
            found = here.lookup(schema[keyword])
            yield found.contents, found.resolver
    for name, part in schema.get("dependentSchemas", {}).items():
        if name in instance:
            yield part, here
    for keyword in BRANCHES:
        for part in schema.get(keyword, ()):
            if validator.evolve(schema=part).is_valid(instance):
                yield part, here
    if "if" in schema:
        is_so = validator.evolve(schema=schema["if"]).is_valid(instance)
        for keyword in ("if", "then") if is_so else ("else",):
            if keyword in schema:
                yield schema[keyword], here
