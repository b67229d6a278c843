"""Whether a tool's schemas say what its operation's document says. No call is made for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sandbox.apispec import Operation, Schema
from sandbox.bundle import ToolDefinition
from sandbox.contract import Place, documented_schemas
from sandbox.judge import Judge
from sandbox.likeness import Likeness, Unlike
from sandbox.validation import checker

_RESULTS: tuple[Mapping[str, Any], ...] = (
    {"status": 299},
    {"status": 299, "headers": {"etag": '"8474"'}},
    {"status": 299, "text": "text-8475", "content_type": "text/plain"},
    {"status": 299, "bytes": 8476, "sha256": "8477" * 16, "content_type": "image/png"},
)
"""What any tool that hands on an API's answers may have to give, whatever is documented."""


def input_problems(
    tool: ToolDefinition, operation: Operation, places: Mapping[str, Place], judge: Judge
) -> Iterator[str]:
    """Where the input schema takes something else than the operation documents. `judge` knows the
    document's definitions.
    """
    own = Judge(tool.input_schema.get("$defs", {}), "request")
    for name, schema in tool.input_schema.get("properties", {}).items():
        place = places.get(name)
        documented = documented_schemas(operation, place)
        found = [_inputs(each, schema, judge, own, place) for each in documented]
        if found and all(found):
            unlike = found[0][0]
            yield f"the argument {name}{unlike.where} {unlike.reason}"


def output_problems(
    tool: ToolDefinition, documented: Sequence[Schema | None], judge: Judge
) -> Iterator[str]:
    """Where the output schema says something else than the JSON of every documented success."""
    gives = checker(tool.output_schema)
    for result in _RESULTS:
        problem = gives.problem(result)
        if problem is not None:
            yield f"the output schema refuses {str(dict(result))[:80]}: {problem.reason}"
    own = Judge(tool.output_schema.get("$defs", {}), "response")
    body = tool.output_schema.get("properties", {}).get("body")
    found = [_outputs(schema, body, judge, own) for schema in documented]
    if found and all(found):
        yield f"the answer's body{found[0][0].where} {found[0][0].reason}"


def _inputs(
    documented: Schema, given: Schema, judge: Judge, own: Judge, place: Place | None
) -> list[Unlike]:
    likeness = Likeness(judge.resolve, own.resolve)
    found = list(likeness.differences(documented, given))
    if place is not None and place.location == "path":
        # An empty value would name another resource, so no path takes one.
        found = [unlike for unlike in found if unlike.key != "minLength" or unlike.where]
    return found


def _outputs(documented: Schema | None, given: Any, judge: Judge, own: Judge) -> list[Unlike]:
    """Without what is merely left out: large schemas are cut to their types."""
    likeness = Likeness(judge.resolve, own.resolve)
    found = likeness.differences(documented, given)
    return [unlike for unlike in found if unlike.key == "type" or not unlike.lost]
