"""Observations of the live probe on an API's answers, and what of them a bundle learns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sandbox.bundle.apispec import APISpec, Operation
from sandbox.bundle.model import ToolDefinition
from sandbox.bundle.report import Finding
from sandbox.bundle.widening import MAX_LEARNED, MAX_TYPES, Widening
from sandbox.stages.contract.body import extract_essence, is_json
from sandbox.stages.probe.differences import TypeDifference, find_differences

RULE = "differs"
MAX_NAMED = 3
MAX_FINDINGS = 100


@dataclass(frozen=True)
class TypeObservation:
    """One answer of a tool: where it differs from the document, and where the tool's own output
    schema would refuse it too.
    """

    tool: str
    differences: frozenset[TypeDifference]
    refused: frozenset[TypeDifference]

    @property
    def is_learnable(self) -> bool:
        """Whether widening by types suffices for the tool to take such answers."""
        return all(difference.is_scalar for difference in self.refused)


def observe_answer(
    spec: APISpec, tool: ToolDefinition, operation: Operation, status: int, body: Any
) -> TypeObservation:
    """Compare an answer with the document and with the tool's output schema."""
    documented = list_json_schemas(operation)
    found = [find_differences(schema, spec.schemas, body, "/body") for schema in documented]
    output = tool.output_schema
    defs = output.get("$defs", {}) if isinstance(output, Mapping) else {}
    refused = find_differences(output, defs, {"status": status, "body": body})
    return TypeObservation(tool.name, min(found, key=len, default=frozenset()), refused)


def list_json_schemas(operation: Operation) -> list[Any]:
    """The schemas of an operation's documented JSON answers to what succeeded."""
    explicit = [r for r in operation.responses if r.status.startswith("2")]
    return [
        media.schema
        for response in explicit
        for media in response.content
        if is_json(extract_essence(media.type)) or extract_essence(media.type) == "*/*"
    ]


def learn_widenings(
    observations: Iterable[TypeObservation], known: Iterable[Widening]
) -> tuple[Widening, ...]:
    """Return the widenings that observations teach, types before null; none at more than
    MAX_LEARNED places, nor of more types than a place may have, those that are `known` counted.
    """
    places: dict[tuple[str, str], list[str]] = {}
    for one in observations:
        for difference in one.differences & one.refused if one.is_learnable else ():
            places.setdefault((one.tool, difference.where), []).append(difference.type)
    had = {(one.tool, one.where): one.types for one in known}
    room = MAX_LEARNED - len(had)
    made: list[Widening] = []
    for place, types in sorted(places.items(), key=lambda item: (item[1] == ["null"], item[0])):
        kept = sorted(types, key=lambda kind: kind == "null")
        if len({*had.get(place, ()), *kept}) > MAX_TYPES or (place not in had and room <= 0):
            continue
        widening = _build_widening(place, kept)
        if widening is not None:
            room -= place not in had
            made.append(widening)
    return tuple(made)


def build_findings(observations: Iterable[TypeObservation]) -> tuple[Finding, ...]:
    """Return one finding a place that differs from the document, without any value."""
    found = [
        Finding("spec.json", f"{one.tool}: {each.where}", RULE, f"is {each.type} in practice")
        for one in observations
        for each in sorted(one.differences)
    ]
    return tuple(dict.fromkeys(found))[:MAX_FINDINGS]


def render_observations(observations: Iterable[TypeObservation]) -> str:
    """Return in a line what practice differs in; "" where it does not."""
    return "; ".join(_iterate_told(tuple(observations)))


def _iterate_told(observations: tuple[TypeObservation, ...]) -> Iterator[str]:
    places = {(one.tool, each.where, each.type) for one in observations for each in one.differences}
    nulls = len({place[:2] for place in places if place[2] == "null"})
    if nulls:
        yield f"{nulls} field{'s are' if nulls > 1 else ' is'} null in practice"
    others = sorted(place for place in places if place[2] != "null")
    for tool, where, kind in others[:MAX_NAMED]:
        article = "an" if kind[0] in "aio" else "a"
        yield f"`{_get_field(where)}` of {tool} is {article} {kind} in practice"
    if len(others) > MAX_NAMED:
        yield f"{len(others) - MAX_NAMED} more are of other types than documented"


def _get_field(where: str) -> str:
    """The last name in a place."""
    names = [token for token in where.split("/") if token not in ("", "*")]
    return names[-1].replace("~1", "/").replace("~0", "~")[:40] if names else "body"


def _build_widening(place: tuple[str, str], types: list[str]) -> Widening | None:
    """The widening of a place; None where the document's own names fit into none."""
    try:
        return Widening(*place, types=tuple(dict.fromkeys(types)))
    except ValueError:
        return None
