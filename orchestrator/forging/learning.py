"""Learning from the live probe: wider answer schemas, before anything is registered."""

from __future__ import annotations

from collections.abc import Sequence

from forge.compiler.widening import WideningRefused, apply_widenings
from sandbox.bundle.model import Bundle
from sandbox.bundle.report import Proof
from sandbox.bundle.widening import MAX_TYPES, Widening
from sandbox.stages.probe.strictness import is_as_strict

ROUNDS = 3
"""How often what would loosen a schema is left out, and the rest tried again."""


def learn_from_probe(bundle: Bundle, proof: Proof) -> Bundle:
    """Return the bundle with what the live stage of its proof learned; as it is where nothing was,
    where the description has no place for it, or where the tool's schema would be cut by it.
    """
    learned = [one for report in proof.reports for one in report.learned]
    known = {(one.tool, one.where): one for one in bundle.widened}
    fitting = [one for one in learned if _fits(one, known.get((one.tool, one.where)))]
    if not proof.passed:
        return bundle
    for _ in range(ROUNDS):
        made = _apply(bundle, fitting)
        loose = {tool.name for tool in made.tools if not _holds(bundle, made, tool.name)}
        if not loose:
            return made
        fitting = [one for one in fitting if one.tool not in loose]
    return bundle


def _apply(bundle: Bundle, learned: Sequence[Widening]) -> Bundle:
    try:
        return apply_widenings(bundle, (*bundle.widened, *learned)) if learned else bundle
    except WideningRefused:
        return bundle


def _holds(before: Bundle, after: Bundle, tool: str) -> bool:
    """Whether a tool has the schema that it had but for types that were added."""
    old, new = before.get_tool(tool).output_schema, after.get_tool(tool).output_schema
    return old == new or is_as_strict(old, new)


def _fits(one: Widening, known: Widening | None) -> bool:
    return known is None or len({*known.types, *one.types}) <= MAX_TYPES
