"""The arguments that a compiled tool accepts and lists: those that can be put on the wire.

A compiled tool's input schema is what its document says, and documents are wrong: they require what
no server needs, and list, limit and pattern values that servers do not mind. So that schema is kept
as a claim. Refused is only what has no place or form in a request: a path value that is missing, an
argument of no place, a value of another JSON type. Two types are claims too: generators write an
object of which nothing is told for what they do not know, and a number for any id in a path.
Schemas of tools that somebody wrote are theirs, and hold as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sandbox.bundle.apispec import Schema
from sandbox.bundle.model import Bundle, ToolDefinition
from sandbox.schemas.keywords import convert_held

COMPILER = "compiler"
PAGES = "pages"
_CLAIMS = frozenset(
    "enum const pattern format minimum maximum exclusiveMinimum exclusiveMaximum multipleOf "
    "minLength maxLength minItems maxItems uniqueItems minProperties maxProperties required "
    "dependentRequired dependentSchemas propertyNames contains minContains maxContains "
    "not if then else".split()
)
"""Keywords that refuse values which a request could carry all the same."""
_CLOSED = frozenset(
    {"additionalProperties", "unevaluatedProperties", "unevaluatedItems", "items", "prefixItems"}
)
_PLAIN_FORMATS = frozenset({"int32", "int64", "float", "double", "binary", "byte", "password"})
"""Formats that no validator refuses a value for."""
_FILE_FIELDS = frozenset({"base64", "filename", "content_type"})
"""The form in which the runtime takes a file; it is ours, and no claim of the document."""
_SILENT = frozenset(
    "type title description default example examples deprecated nullable readOnly writeOnly".split()
)
"""Keywords that say nothing of what is in an object. `additionalProperties` does, also where it
is true: a generator that writes it knows that this is an object."""
_OTHER_VALUES: Schema = {
    "type": ["string", "number", "boolean", "array"],
    "pattern": r"^(?!\s*\{)",
}
"""What an object may be instead. A text that begins as an object in JSON is left to be read as
the object that it stands for."""
_NO_NUMBER: Schema = {"type": "string", "pattern": r"[^-+0-9.,_\s]"}
"""A text that is no way to write a number, which would be read as one."""
_NEEDING = ("required", "minProperties", "allOf", "anyOf", "oneOf", "not", "if", "$ref")
_JSON_TYPES = (
    (bool, "boolean"),
    (int, "integer"),
    (float, "number"),
    (str, "string"),
    (list, "array"),
    (dict, "object"),
)


def is_claim(bundle: Bundle, tool: ToolDefinition) -> bool:
    """Whether the tool's input schema is a document's word and not its author's."""
    by_compiler = bundle.provenance.author == COMPILER and bundle.launch is None
    return by_compiler and bool(tool.operation)


def build_accepted_schema(bundle: Bundle, tool: ToolDefinition) -> Mapping[str, Any]:
    """The schema that the tool's arguments are held to."""
    if not is_claim(bundle, tool):
        return tool.input_schema
    return relax_arguments(tool.input_schema)


def build_listed_schema(bundle: Bundle, tool: ToolDefinition) -> Mapping[str, Any]:
    """The schema that clients are shown: `soften_arguments` of a claim, else the tool's own."""
    if not is_claim(bundle, tool):
        return tool.input_schema
    return soften_arguments(tool.input_schema)


def build_tool_listing(bundle: Bundle, tool: ToolDefinition) -> dict[str, Any]:
    """The tool as `tools/list` shows it."""
    listing = tool.build_listing(bundle.base_url)
    return {**listing, "inputSchema": dict(build_listed_schema(bundle, tool))}


def relax_arguments(claimed: Mapping[str, Any]) -> dict[str, Any]:
    """The schema without what a request could carry all the same. Types stay, since few values of
    another type have a known form on the wire: any value may stand for an object of which nothing
    is told, and a text for a number in a path. Inside an argument null is of every type, because
    documents seldom say where it is.
    """
    properties = claimed.get("properties", {})
    made: dict[str, Any] = {
        "type": "object",
        "properties": {name: _relax_argument(part) for name, part in properties.items()},
        "additionalProperties": False,
    }
    needed = [name for name in claimed.get("required", ()) if _is_path(properties.get(name))]
    if needed:
        made["required"] = needed
    if "$defs" in claimed:
        made["$defs"] = {name: _relax_part(part) for name, part in claimed["$defs"].items()}
    return made


def soften_arguments(claimed: Mapping[str, Any]) -> dict[str, Any]:
    """A schema that says what the document says and refuses nothing for it: each claim about a
    value stands as the first of two alternatives, the second of which takes any value of the type.

    The names that are required at the top stay as they are. A schema has no word for "better
    given", alternatives at the top are refused by the APIs of models, and a model that did not see
    which arguments are needed would leave them out. Calls without them are accepted.
    """
    made = dict(claimed)
    made["properties"] = {
        name: _soften_argument(part) for name, part in claimed.get("properties", {}).items()
    }
    if "$defs" in claimed:
        made["$defs"] = {name: _soften_part(part) for name, part in claimed["$defs"].items()}
    return made


def list_empty_bodies(
    claimed: Mapping[str, Any], arguments: Mapping[str, Any]
) -> Mapping[str, Any]:
    """The body that is required, is not given, and may be an object of nothing: what is sent then
    is that, so that the request has its media type.
    """
    properties = claimed.get("properties", {})
    missing = [name for name in claimed.get("required", ()) if name not in arguments]
    return {
        name: {}
        for name in missing
        if get_place(properties.get(name, True))[0] == "body"
        and _takes_nothing(properties[name], claimed.get("$defs", {}))
    }


def _takes_nothing(schema: Schema, definitions: Mapping[str, Schema]) -> bool:
    """Whether an object without fields is as the schema says, as far as its own words go."""
    for _ in range(16):
        if not isinstance(schema, Mapping) or "$ref" not in schema:
            break
        schema = definitions.get(str(schema["$ref"]).removeprefix("#/$defs/"), True)
    if not isinstance(schema, Mapping) or schema.get("type") != "object":
        return False
    return not any(schema.get(key) for key in _NEEDING)


def get_place(argument: Schema) -> tuple[str, str]:
    """Where in a request an argument goes: the location, and the name that it has there."""
    place = str(argument.get("x-in", "")) if isinstance(argument, Mapping) else ""
    location, _, name = place.partition(":")
    return location, name


def _is_path(argument: Schema | None) -> bool:
    return argument is not None and get_place(argument)[0] == "path"


def _is_ours(schema: Mapping[str, Any]) -> bool:
    """Whether a schema is the runtime's and not the document's."""
    fields = schema.get("properties")
    is_file = isinstance(fields, Mapping) and fields.keys() == _FILE_FIELDS
    return is_file or schema.get("x-in") == PAGES


def _relax_argument(schema: Schema) -> Schema:
    if not isinstance(schema, Mapping):
        return True
    if _is_ours(schema):
        return schema
    made = _relax_part(schema)
    assert isinstance(made, dict)
    if "type" in made and "null" not in _list_types(schema):
        made["type"] = _list_types(made)[:-1] if made["type"] != ["null"] else made["type"]
    if _is_path(schema) and "string" in _list_types(made):
        made["minLength"] = 1
    elif _is_path(schema) and {*_list_types(made)} <= {"integer", "number"} and "type" in made:
        _add_alternative(made, {"type": made.pop("type")}, _NO_NUMBER)
    if schema.get("additionalProperties") is False and get_place(schema)[0] != "body":
        # Its fields may be parameters by themselves, and these have no place.
        made["additionalProperties"] = False
    return made


def _relax_part(schema: Schema) -> Schema:
    if not isinstance(schema, Mapping):
        return True
    if _is_ours(schema):
        return schema
    made = _convert_parts(schema, _relax_part)
    types = _list_types(schema) or _find_listed_types(schema)
    if types:
        made["type"] = list(dict.fromkeys([*types, "null"]))
    if _is_untold_object(schema):
        _add_alternative(made, {"type": made.pop("type")}, _OTHER_VALUES)
    return made


def _is_untold_object(schema: Mapping[str, Any]) -> bool:
    """Whether a schema says `object` and nothing of what is in it. A body is one all the same: no
    form or XML document could be made of another value.
    """
    if set(_list_types(schema)) | {"null"} != {"object", "null"} or get_place(schema)[0] == "body":
        return False
    return all(key in _SILENT or key.startswith("x-") for key in schema)


def _add_alternative(made: dict[str, Any], *branches: Schema) -> None:
    """Hold a schema to one of some alternatives, beside those that it has."""
    if "anyOf" in made:
        made["allOf"] = [*made.get("allOf", ()), {"anyOf": list(branches)}]
    else:
        made["anyOf"] = list(branches)


def _soften_argument(schema: Schema) -> Schema:
    made = _soften_part(schema)
    if isinstance(schema, Mapping) and isinstance(made, dict) and _is_path(schema):
        if "minLength" in schema:
            made["minLength"] = 1
    return made


def _soften_part(schema: Schema) -> Schema:
    if not isinstance(schema, Mapping):
        return True
    if _is_ours(schema):
        return dict(schema)
    made = _convert_parts(schema, _soften_part)
    claims = {key: value for key, value in schema.items() if _is_refusing(key, value)}
    if claims == {"minLength": 1} and _is_path(schema):
        claims = {}
    if _is_untold_object(schema):
        claims["type"] = made.pop("type")
    if claims:
        _add_alternative(made, claims, {})
    return made


def _is_refusing(key: str, value: Any) -> bool:
    return key in _CLAIMS and not (key == "format" and value in _PLAIN_FORMATS)


def _convert_parts(schema: Mapping[str, Any], convert: Any) -> dict[str, Any]:
    """The schema without its claims, its parts converted. Of looser alternatives several may fit,
    so `oneOf` becomes `anyOf`.
    """
    made: dict[str, Any] = {}
    for key, value in schema.items():
        if _is_refusing(key, value) or (key in _CLOSED and value is False) or key == "oneOf":
            continue
        if not key.startswith("unevaluated"):
            made[key] = convert_held(key, value, convert)
    if "oneOf" in schema:
        branches = convert_held("oneOf", schema["oneOf"], convert)
        _add_alternative(made, *branches)
    return made


def _list_types(schema: Mapping[str, Any]) -> list[str]:
    named = schema.get("type")
    return [named] if isinstance(named, str) else list(named) if isinstance(named, list) else []


def _find_listed_types(schema: Mapping[str, Any]) -> list[str]:
    """The types of the values that a schema without a `type` lists."""
    listed = schema.get("enum", [schema["const"]] if "const" in schema else [])
    found: dict[str, None] = {}
    for value in listed if isinstance(listed, list) else ():
        found[next((name for kind, name in _JSON_TYPES if isinstance(value, kind)), "null")] = None
    return list(found)
