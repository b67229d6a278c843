"""Keywords of JSON Schema in time and memory that grow with the value that they look at.

The standard ones of jsonschema keep each error of each branch of an `anyOf`, write the whole value
into each message, compare each item with each other one, and look for each item in a list. That of
`multipleOf` divides doubles, and so is wrong about decimals and about large integers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from itertools import islice
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema._utils import find_evaluated_item_indexes_by_schema
from jsonschema.exceptions import ValidationError

from sandbox.schemas.steps import current_budget

MAX_MESSAGE = 300
"""Characters of an error's message that are kept, and of a large value that are shown in it."""
MAX_SHOWN = 20
"""Names of properties, or items, that a message tells."""
_STANDARD: Mapping[str, Any] = Draft202012Validator.VALIDATORS


def cut_message(error: ValidationError) -> ValidationError:
    """The error, of whose message no more is kept than is told."""
    error.message = error.message[:MAX_MESSAGE]
    return error


def shorten_shown(value: Any) -> Any:
    """The same JSON value, of which a message shows no more than the beginning."""
    try:
        return _convert(value)
    except RecursionError:
        return value


def any_of(validator: Any, branches: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    """One branch at least takes the instance."""
    errors: list[ValidationError] = []
    for place, branch in enumerate(branches):
        found = _collect(validator, branch, instance, place)
        if not found:
            return
        errors += found
    yield ValidationError(_NONE_FITS.format(instance), context=errors)


def one_of(validator: Any, branches: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    """Exactly one branch takes the instance."""
    errors: list[ValidationError] = []
    left = enumerate(branches)
    for place, branch in left:
        found = _collect(validator, branch, instance, place)
        if not found:
            break
        errors += found
    else:
        yield ValidationError(_NONE_FITS.format(instance), context=errors)
        return
    fitting = [each for _, each in left if validator.evolve(schema=each).is_valid(instance)]
    if fitting:
        shown = ", ".join(repr(each)[:MAX_MESSAGE] for each in (*fitting[:MAX_SHOWN], branch))
        yield ValidationError(f"{instance!r} is valid under each of {shown}")


def unique_items(
    validator: Any, unique: Any, instance: Any, schema: Any
) -> Iterator[ValidationError]:
    """No item is equal to another one. Found by their texts, whose hashes nobody can choose."""
    if unique and isinstance(instance, list):
        if len(set(map(_write, instance))) < len(instance):
            yield ValidationError(f"{instance!r} has non-unique elements")


def unevaluated_items(
    validator: Any, rest: Any, instance: Any, schema: Any
) -> Iterator[ValidationError]:
    """No item is left that another keyword did not look at and this one does not take."""
    if not isinstance(instance, list):
        return
    known = frozenset(find_evaluated_item_indexes_by_schema(validator, instance, schema))
    left = (each for place, each in enumerate(instance) if place not in known)
    if shown := [*islice(left, MAX_SHOWN + 1)]:
        told = ", ".join(map(repr, shown[:MAX_SHOWN])) + (", …" if len(shown) > MAX_SHOWN else "")
        verb = "was" if len(shown) == 1 else "were"
        yield ValidationError(f"Unevaluated items are not allowed ({told} {verb} unexpected)")


def multiple_of(
    validator: Any, factor: Any, instance: Any, schema: Any
) -> Iterator[ValidationError]:
    """A number is a multiple as decimals are: 19.99 is one of 0.01."""
    if validator.is_type(instance, "number") and _read_decimal(instance) % _read_decimal(factor):
        yield ValidationError(f"{instance!r} is not a multiple of {factor}")


def drop_known(instance: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """The first properties that an object has beside those that its schema names, by which a
    message tells what is wrong with all.
    """
    known = schema.get("properties", {})
    extra = (name for name in instance if name not in known)
    return {name: instance[name] for name in islice(extra, MAX_SHOWN)}


def _read_decimal(number: Any) -> Any:
    """A number as JSON has it, not as binary floating point has."""
    return Fraction(repr(number)) if isinstance(number, float) else number


_NONE_FITS = "{!r} is not valid under any of the given schemas"


def _collect(validator: Any, branch: Any, instance: Any, place: int) -> list[ValidationError]:
    """The errors of a branch, of which no more are looked for than the whole check may keep."""
    found = validator.descend(instance, branch, schema_path=place)
    return current_budget().keep(map(cut_message, found))


def _write(value: Any) -> str:
    """A text that equal JSON values alone have in common: 1 is 1.0, and no value is True."""
    if isinstance(value, dict):
        members = sorted(f"{name!r}:{_write(each)}" for name, each in value.items())
        return "{" + ",".join(members) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_write, value)) + "]"
    if isinstance(value, str):
        return str.__repr__(value)
    return repr(int(value) if isinstance(value, float) and value.is_integer() else value)


def _convert(value: Any) -> Any:
    if isinstance(value, dict):
        return _Object((name, _convert(each)) for name, each in value.items())
    if isinstance(value, list):
        return _Array(map(_convert, value))
    return _Text(value) if isinstance(value, str) and len(value) > MAX_MESSAGE else value


def _show(begin: str, parts: Iterable[str], end: str) -> str:
    shown = begin
    for part in parts:
        if len(shown) > MAX_MESSAGE:
            return f"{shown}…{end}"
        shown += part if shown == begin else f", {part}"
    return shown + end


class _Array(list[Any]):
    def __repr__(self) -> str:
        return _show("[", map(repr, self), "]")

    def __getitem__(self, place: Any) -> Any:
        found = super().__getitem__(place)
        return _Array(found) if isinstance(place, slice) else found


class _Object(dict[str, Any]):
    def __repr__(self) -> str:
        return _show("{", (f"{name!r}: {each!r}" for name, each in self.items()), "}")


class _Text(str):
    def __repr__(self) -> str:
        return repr(self[:MAX_MESSAGE])
