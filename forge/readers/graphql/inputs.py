"""The JSON Schema of what a GraphQL variable takes (GraphQL, section 6.4.1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from forge.graphql.schema import GraphqlSchema, Input, Ref, Type
from forge.prose import clean

SCALARS: Mapping[str, Mapping[str, Any]] = {
    "Int": {"type": "integer", "minimum": -(2**31), "maximum": 2**31 - 1},
    "Float": {"type": "number"},
    "String": {"type": "string"},
    "Boolean": {"type": "boolean"},
    "ID": {"type": "string"},
}
MAX_DESCRIPTION = 300


def variable_schema(schema: GraphqlSchema, given: Input) -> dict[str, Any]:
    """What a variable may be; an input object is a `$ref` into `definitions`. Left out, it is the
    schema's default or nothing.
    """
    made = _of(schema, given.type)
    told = clean(given.description, MAX_DESCRIPTION)
    if given.default is not None:
        told = f"{told} Default: {clean(given.default, 100)}.".strip()
    return {**made, "description": told} if told else made


def definitions(schema: GraphqlSchema) -> dict[str, Any]:
    """The schemas of all input objects, by name."""
    return {
        name: _object(schema, type_)
        for name, type_ in schema.types.items()
        if type_.kind == "INPUT_OBJECT"
    }


def _object(schema: GraphqlSchema, type_: Type) -> dict[str, Any]:
    needed = [field.name for field in type_.inputs if field.needed]
    return {
        "type": "object",
        "properties": {
            field.name: _nullable(variable_schema(schema, field), field.type)
            for field in type_.inputs
        },
        **({"required": needed} if needed else {}),
        "additionalProperties": False,
    }


def _of(schema: GraphqlSchema, ref: Ref) -> dict[str, Any]:
    if ref.item is not None:
        return {"type": "array", "items": _nullable(_of(schema, ref.item), ref.item)}
    if ref.name in SCALARS:
        return dict(SCALARS[ref.name])
    type_ = schema.types.get(ref.name)
    if type_ is not None and type_.kind == "ENUM" and type_.values:
        return {"type": "string", "enum": list(type_.values)}
    if type_ is not None and type_.kind == "INPUT_OBJECT":
        return {"$ref": f"#/$defs/{ref.name}"}
    return {"description": f"A {ref.name}."}


def _nullable(made: dict[str, Any], ref: Ref) -> dict[str, Any]:
    """The same or null: to say null is to clear what is there, to say nothing is to leave it."""
    if ref.required or not (made.keys() & {"type", "$ref"}):
        return made
    described = {"description": made["description"]} if "description" in made else {}
    plain = {key: value for key, value in made.items() if key != "description"}
    return {"anyOf": [plain, {"type": "null"}], **described}
