"""The keywords of JSON Schema 2020-12: which hold schemas, the walk over these, and named types.

Sections are those of https://json-schema.org/draft/2020-12/json-schema-core.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from sandbox.bundle.apispec import Schema

REFERENCES = frozenset({"$ref", "$dynamicRef"})
"""Name a schema that applies to the same value (8.2.3)."""
BRANCHES = ("allOf", "anyOf", "oneOf")
"""Lists of schemas that apply to the same value (10.2.1)."""
COMBINING = frozenset({*BRANCHES, "not", "if", "then", "else"})
"""What applies to the same value in place, but for `dependentSchemas` (10.2.1, 10.2.2)."""
ONE = frozenset(
    {
        *("not", "if", "then", "else"),  # 10.2
        *("items", "contains"),  # 10.3.1
        *("additionalProperties", "propertyNames"),  # 10.3.2
        *("unevaluatedItems", "unevaluatedProperties"),  # 11
        "contentSchema",  # json-schema-validation, 8.5
    }
)
"""Hold a schema."""
MANY = frozenset({*BRANCHES, "prefixItems"})
"""Hold a list of schemas (10.2.1, 10.3.1.1)."""
NAMED = frozenset({"properties", "patternProperties", "dependentSchemas"})
"""Hold schemas by name (10.3.2.1, 10.3.2.2, 10.2.2.4)."""
DEFINITIONS = frozenset({"$defs"})
"""Hold schemas by name, and apply none of them (8.2.4)."""
HOLDERS = ONE | MANY | NAMED
"""All that apply the schemas that they hold."""
_BY_NAME = NAMED | DEFINITIONS


def parts(schema: Schema) -> Sequence[Schema]:
    """The schemas that a schema applies and that stand directly inside it."""
    if not isinstance(schema, dict) or HOLDERS.isdisjoint(schema):
        return ()
    found: list[Schema] = []
    for key, value in schema.items():
        if key in ONE:
            found.append(value)
        elif key in NAMED and type(value) is dict:
            found += value.values()
        elif key in MANY and type(value) is list:
            found += value
        elif key in HOLDERS:
            found += [part for _, part in held(key, value)]
    return found


def held(key: str, value: Any) -> Iterable[tuple[str | int | None, Any]]:
    """The schemas that a keyword holds, each with its name or number in it; of one alone None.

    A value that is not of the keyword's shape holds none; one in the place of a schema is held.
    """
    if key in ONE:
        return ((None, value),)
    if key in MANY and isinstance(value, list):
        return enumerate(value)
    if key in _BY_NAME and (type(value) is dict or isinstance(value, Mapping)):
        return value.items()
    return ()


def convert_held(key: str, value: Any, convert: Callable[[Any], Any]) -> Any:
    """A keyword's value with each schema that it holds converted; any other value as it is."""
    if key in ONE:
        return convert(value)
    if key in MANY and isinstance(value, list):
        return [convert(part) for part in value]
    if key in _BY_NAME and (type(value) is dict or isinstance(value, Mapping)):
        return {name: convert(part) for name, part in value.items()}
    return value


def declared_types(schema: Any) -> frozenset[str]:
    """The types that a schema's `type` names; none where it does not say."""
    kind = schema.get("type") if isinstance(schema, Mapping) else None
    named = [kind] if isinstance(kind, str) else kind if isinstance(kind, list) else []
    return frozenset(name for name in named if isinstance(name, str))
