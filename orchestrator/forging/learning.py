"""What a forge learns from the live probe: wider answer schemas, before anything is registered."""

from __future__ import annotations

from forge.compiler.widening import WideningRefused, apply_widenings
from sandbox.bundle.model import Bundle
from sandbox.bundle.report import Proof
from sandbox.bundle.widening import MAX_TYPES, Widening


def learn_from_probe(bundle: Bundle, proof: Proof) -> Bundle:
    """Return the bundle with what the live stage of its proof learned; as it is where nothing was,
    or where the description has no place for it.
    """
    learned = [one for report in proof.reports for one in report.learned]
    known = {(one.tool, one.where): one for one in bundle.widened}
    fitting = [one for one in learned if _fits(one, known.get((one.tool, one.where)))]
    if not proof.passed or not fitting:
        return bundle
    try:
        return apply_widenings(bundle, (*bundle.widened, *fitting))
    except WideningRefused:
        return bundle


def _fits(one: Widening, known: Widening | None) -> bool:
    return known is None or len({*known.types, *one.types}) <= MAX_TYPES
