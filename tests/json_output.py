"""What commands print with `--json`, held against the schemas in docs/json."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from jsonschema import Draft202012Validator

from scripts.json_schemas import build_schema, find_command


def check_output(words: Sequence[str], printed: str, *, closed: bool = False) -> None:
    """Fail where a command's JSON is not what its schema says. With `closed` it has no property
    that the schema does not name. Nothing printed is no answer.
    """
    if "--json" not in words or not printed:
        return
    command = find_command(list(words))
    assert command, f"{words} prints JSON and has no schema"
    schema = build_schema(command)
    validator = Draft202012Validator(close_schema(schema) if closed else schema)
    problems = [f"{each.json_path}: {each.message}"[:400] for each in _flatten(validator, printed)]
    assert not problems, f"{command}: {problems}"


def _flatten(validator: Draft202012Validator, printed: str) -> list[Any]:
    """The errors; of alternatives those of each."""
    found = list(validator.iter_errors(json.loads(printed)))
    return [below for each in found for below in (each.context or [each])]


def close_schema(schema: Any) -> Any:
    """The same, with no other properties than those it names."""
    if isinstance(schema, list):
        return [close_schema(each) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    below = {name: close_schema(each) for name, each in schema.items()}
    return {**below, "additionalProperties": False} if "properties" in schema else below
