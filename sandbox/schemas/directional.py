"""Judging values that travel in one direction by JSON Schema 2020-12."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from jsonschema.exceptions import ValidationError
from jsonschema.protocols import Validator

from sandbox.bundle.apispec import Schema
from sandbox.schemas.patterns import matches
from sandbox.schemas.steps import StepBudget
from sandbox.schemas.validator import SchemaViolation, find_problem, validator_type

Direction = Literal["request", "response"]
HIDDEN = {"request": "readOnly", "response": "writeOnly"}
"""The annotation of properties that do not travel in a direction (OpenAPI 3.1, section 4.8.24)."""


class DirectionalValidator:
    """Judges values that travel in one direction, by schemas that share `definitions`.

    Where OpenAPI differs from plain JSON Schema it follows OpenAPI: a required property that does
    not travel in this direction may be absent. A pattern that cannot be matched safely is ignored,
    or, where it is `certain`, matched by nothing; a value whose check takes too many steps is
    refused.
    """

    def __init__(
        self, definitions: Mapping[str, Schema], direction: Direction, *, certain: bool = False
    ) -> None:
        self.definitions = definitions
        self.direction = direction
        self._type = (_CERTAIN if certain else _VALIDATORS)[direction]
        self.effort = 0
        """How many values it has looked at and steps it has taken."""
        self._compiled: dict[int, tuple[Schema, Validator]] = {}

    def find_problem(self, schema: Schema | None, value: Any) -> str | None:
        """The first way in which the value breaks the schema, as `/pointer: reason`, or None."""
        breach = self.breach(schema, value)
        return None if breach is None else f"{breach.where}: {breach.reason}"

    def breach(self, schema: Schema | None, value: Any) -> SchemaViolation | None:
        """The first way in which the value breaks the schema, or None."""
        if schema is None or schema is True:
            return None
        budget = StepBudget(value)
        found = find_problem(self._get_validator(schema), value, budget, _first)
        self.effort += budget.effort
        return found

    def accepts(self, schema: Schema | None, value: Any) -> bool:
        return self.find_problem(schema, value) is None

    def resolve_reference(self, reference: str) -> Schema | None:
        """The definition that `#/$defs/NAME` names, or None."""
        name = reference.removeprefix("#/$defs/")
        if name == reference:
            return None
        return self.definitions.get(name.replace("~1", "/").replace("~0", "~"))

    def _get_validator(self, schema: Schema) -> Validator:
        # The schema is kept beside its validator, so its id cannot be given to another.
        known = self._compiled.get(id(schema))
        if known is None:
            root = schema
            if isinstance(schema, Mapping):
                root = {**schema, "$defs": self.definitions}
            known = self._compiled[id(schema)] = (schema, self._type(root))
        return known[1]


def _first(errors: Iterator[ValidationError]) -> ValidationError | None:
    return next(errors, None)


def _build_required_check(direction: Direction) -> Any:
    hidden = HIDDEN[direction]

    def required(
        validator: Any, names: Any, instance: Any, schema: Any
    ) -> Iterator[ValidationError]:
        if not isinstance(instance, dict) or all(name in instance for name in names):
            return
        properties = schema.get("properties") or {}
        for name in names:
            if name not in instance and not _is_flagged(validator, properties.get(name), hidden):
                yield ValidationError(f"{name!r} is a required property")

    return required


def _is_flagged(validator: Any, schema: Any, flag: str) -> bool:
    if isinstance(schema, Mapping) and "$ref" in schema and flag not in schema:
        schema = validator._resolver.lookup(schema["$ref"]).contents
    return isinstance(schema, Mapping) and schema.get(flag) is True


def _certain_pattern(
    validator: Any, wanted: Any, instance: Any, schema: Any
) -> Iterator[ValidationError]:
    if isinstance(instance, str) and not matches(wanted, instance):
        yield ValidationError(f"{instance!r} is not known to match {wanted!r}")


_VALIDATORS = {
    direction: validator_type(required=_build_required_check(direction))
    for direction in ("request", "response")
}
_CERTAIN = {
    direction: validator_type(required=_build_required_check(direction), pattern=_certain_pattern)
    for direction in ("request", "response")
}
