"""Whether a value is an instance of a schema (JSON Schema 2020-12), compiled once per schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import extend
from referencing.exceptions import Unresolvable

from sandbox import pattern, steps
from sandbox.apispec import Schema

Direction = Literal["request", "response"]
HIDDEN = {"request": "readOnly", "response": "writeOnly"}
"""The annotation of properties that do not travel in a direction (OpenAPI 3.1, section 4.8.24)."""


class Judge:
    """Judges values that travel in one direction, by schemas that share `definitions`.

    Where OpenAPI differs from plain JSON Schema it follows OpenAPI: a required property that does
    not travel in this direction may be absent. A pattern that cannot be matched safely is ignored;
    a value whose check takes too many steps is refused.
    """

    def __init__(self, definitions: Mapping[str, Schema], direction: Direction) -> None:
        self.definitions = definitions
        self.direction = direction
        self._type = _VALIDATORS[direction]
        self.effort = 0
        """How many values it has looked at and steps it has taken."""
        self._compiled: dict[int, tuple[Schema, Validator]] = {}

    def problem(self, schema: Schema | None, value: Any) -> str | None:
        """The first way in which the value breaks the schema, as `/pointer: reason`, or None."""
        if schema is None or schema is True:
            return None
        taken = steps.begin(value)
        try:
            error = next(self._validator(schema).iter_errors(value), None)
        except steps.Exhausted:
            return ": the schema takes too many steps to check"
        except (Unresolvable, RecursionError, ArithmeticError) as broken:
            return f": the schema cannot be used: {type(broken).__name__}: {str(broken)[:200]}"
        finally:
            self.effort += taken()
        if error is None:
            return None
        pointer = "".join(f"/{step}" for step in error.absolute_path)
        return f"{pointer}: {error.message[:200]}"

    def accepts(self, schema: Schema | None, value: Any) -> bool:
        return self.problem(schema, value) is None

    def resolve(self, reference: str) -> Schema | None:
        """The definition that `#/$defs/NAME` names, or None."""
        name = reference.removeprefix("#/$defs/")
        if name == reference:
            return None
        return self.definitions.get(name.replace("~1", "/").replace("~0", "~"))

    def _validator(self, schema: Schema) -> Validator:
        # The schema is kept beside its validator, so its id cannot be given to another.
        known = self._compiled.get(id(schema))
        if known is None:
            root = schema
            if isinstance(schema, Mapping):
                root = {**schema, "$defs": self.definitions}
            known = self._compiled[id(schema)] = (schema, self._type(root))
        return known[1]


def _pattern(validator: Any, wanted: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if isinstance(instance, str) and isinstance(wanted, str):
        if pattern.matches(wanted, instance) is False:
            yield ValidationError(f"{instance[:80]!r} does not match {wanted[:80]!r}")


def _required(direction: Direction) -> Any:
    hidden = HIDDEN[direction]

    def required(
        validator: Any, names: Any, instance: Any, schema: Any
    ) -> Iterator[ValidationError]:
        if not isinstance(instance, dict) or all(name in instance for name in names):
            return
        properties = schema.get("properties") or {}
        for name in names:
            if name not in instance and not _flagged(validator, properties.get(name), hidden):
                yield ValidationError(f"{name!r} is a required property")

    return required


def _flagged(validator: Any, schema: Any, flag: str) -> bool:
    if isinstance(schema, Mapping) and "$ref" in schema and flag not in schema:
        schema = validator._resolver.lookup(schema["$ref"]).contents
    return isinstance(schema, Mapping) and schema.get(flag) is True


_VALIDATORS = {
    direction: extend(  # type: ignore[no-untyped-call]
        Draft202012Validator,
        {
            **steps.counted(Draft202012Validator.VALIDATORS),
            "pattern": _pattern,
            "required": _required(direction),
        },
    )
    for direction in ("request", "response")
}
