"""Comparison of a tool's schemas with those of its operation's document, without a call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sandbox.bundle.apispec import Operation, Schema
from sandbox.bundle.model import ToolDefinition
from sandbox.schemas.compare import SchemaComparer, SchemaDifference
from sandbox.schemas.directional import DirectionalValidator
from sandbox.schemas.validator import get_checker
from sandbox.stages.contract.places import ArgumentPlace
from sandbox.stages.contract.request import list_documented_schemas

_RESULTS: tuple[Mapping[str, Any], ...] = (
    {"status": 299},
    {"status": 299, "headers": {"etag": '"8474"'}},
    {"status": 299, "text": "text-8475", "content_type": "text/plain"},
    {"status": 299, "bytes": 8476, "sha256": "8477" * 16, "content_type": "image/png"},
)
"""Results that any tool may have to return for an API's answer, whatever is documented."""


_LEAST = ("minLength", "minItems", "minProperties")


def find_input_problems(
    tool: ToolDefinition,
    operation: Operation,
    places: Mapping[str, ArgumentPlace],
    judge: DirectionalValidator,
) -> Iterator[str]:
    """The differences between the input schema and the operation's document. `judge` knows the
    document's definitions.
    """
    own = DirectionalValidator(tool.input_schema.get("$defs", {}), "request")
    for name, schema in tool.input_schema.get("properties", {}).items():
        place = places.get(name)
        documented = list_documented_schemas(operation, place)
        found = [_compare_input(each, schema, judge, own, place) for each in documented]
        if found and all(found):
            unlike = found[0][0]
            yield f"the argument {name}{unlike.where} {unlike.reason}"


def find_output_problems(
    tool: ToolDefinition, documented: Sequence[Schema | None], judge: DirectionalValidator
) -> Iterator[str]:
    """The differences between the output schema and the JSON of every documented success."""
    gives = get_checker(tool.output_schema)
    for result in _RESULTS:
        problem = gives.find_problem(result)
        if problem is not None:
            yield f"the output schema refuses {str(dict(result))[:80]}: {problem.reason}"
    own = DirectionalValidator(tool.output_schema.get("$defs", {}), "response")
    body = tool.output_schema.get("properties", {}).get("body")
    found = [_compare_output(schema, body, judge, own) for schema in documented]
    if found and all(found):
        yield f"the answer's body{found[0][0].where} {found[0][0].reason}"


def _compare_input(
    documented: Schema,
    given: Schema,
    judge: DirectionalValidator,
    own: DirectionalValidator,
    place: ArgumentPlace | None,
) -> list[SchemaDifference]:
    likeness = SchemaComparer(judge.resolve_reference, own.resolve_reference)
    differences = likeness.find_differences(documented, given)
    # Deep in a large schema a long enumeration or pattern may be left out.
    found = [each for each in differences if not (each.where and each.lost and each.long)]
    if place is not None and place.location == "path":
        # An empty value would name another resource, so no path takes one.
        found = [unlike for unlike in found if unlike.key not in _LEAST or unlike.where]
    return found


def _compare_output(
    documented: Schema | None, given: Any, judge: DirectionalValidator, own: DirectionalValidator
) -> list[SchemaDifference]:
    """Differences, without keywords that are merely missing: large schemas are cut to
    their types.
    """
    likeness = SchemaComparer(judge.resolve_reference, own.resolve_reference, ignores_null=True)
    found = likeness.find_differences(documented, given)
    return [unlike for unlike in found if unlike.key == "type" or not unlike.lost]
