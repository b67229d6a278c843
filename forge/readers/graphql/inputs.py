"""JSON Schemas of GraphQL variables and input objects (GraphQL, section 6.4.1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from forge.readers.graphql.schema import GraphqlSchema, GraphqlType, InputValue, TypeRef
from forge.text import sanitize_prose

SCALARS: Mapping[str, Mapping[str, Any]] = {
    "Int": {"type": "integer", "minimum": -(2**31), "maximum": 2**31 - 1},
    "Float": {"type": "number"},
    "String": {"type": "string"},
    "Boolean": {"type": "boolean"},
    "ID": {"type": "string"},
}
MAX_DESCRIPTION = 300


def build_variable_schema(schema: GraphqlSchema, given: InputValue) -> dict[str, Any]:
    """Build the schema of a variable; an input object is a `$ref` into the definitions. A default
    is mentioned in the description.
    """
    made = _build_type_schema(schema, given.type)
    told = sanitize_prose(given.description, MAX_DESCRIPTION)
    if given.default is not None:
        told = f"{told} Default: {sanitize_prose(given.default, 100)}.".strip()
    return {**made, "description": told} if told else made


def build_definitions(schema: GraphqlSchema) -> dict[str, Any]:
    """Build the schemas of all input objects, by name."""
    return {
        name: _build_object_schema(schema, type_)
        for name, type_ in schema.types.items()
        if type_.kind == "INPUT_OBJECT"
    }


def _build_object_schema(schema: GraphqlSchema, type_: GraphqlType) -> dict[str, Any]:
    needed = [field.name for field in type_.inputs if field.is_needed]
    return {
        "type": "object",
        "properties": {
            field.name: _allow_null(build_variable_schema(schema, field), field.type)
            for field in type_.inputs
        },
        **({"required": needed} if needed else {}),
        "additionalProperties": False,
    }


def _build_type_schema(schema: GraphqlSchema, ref: TypeRef) -> dict[str, Any]:
    if ref.item is not None:
        return {
            "type": "array",
            "items": _allow_null(_build_type_schema(schema, ref.item), ref.item),
        }
    if ref.name in SCALARS:
        return dict(SCALARS[ref.name])
    type_ = schema.types.get(ref.name)
    if type_ is not None and type_.kind == "ENUM" and type_.values:
        return {"type": "string", "enum": list(type_.values)}
    if type_ is not None and type_.kind == "INPUT_OBJECT":
        return {"$ref": f"#/$defs/{ref.name}"}
    return {"description": f"A {ref.name}."}


def _allow_null(made: dict[str, Any], ref: TypeRef) -> dict[str, Any]:
    """Allow null beside the value: null clears a field, while an absent one is left as it is."""
    if ref.required or not (made.keys() & {"type", "$ref"}):
        return made
    described = {"description": made["description"]} if "description" in made else {}
    plain = {key: value for key, value in made.items() if key != "description"}
    return {"anyOf": [plain, {"type": "null"}], **described}
