"""Progress reports of a forge: share done, duration and verdict of each stage."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from forge.text import render_count
from orchestrator.forging.order import ForgeStep, Report
from sandbox.bundle.report import Proof, StageReport
from sandbox.stages.probe.observations import RULE as DIFFERS
from sandbox.stages.prove import OnStage

PROGRESS = {
    "static": 0.4,
    "suite": 0.5,
    "cases": 0.6,
    "adequacy": 0.65,
    "mock": 0.7,
    "recorded": 0.8,
    "live": 0.9,
    "redteam": 0.95,
    "acceptance": 0.98,
}
"""How far a forge is when a stage has ended (0..1)."""
MAX_PART = 200


def build_stage_listener(report: Report, timings: dict[str, float]) -> OnStage:
    """Tells of stages as they end, and adds up their milliseconds in `timings`."""

    def on_stage(stage: StageReport | str) -> None:
        if isinstance(stage, StageReport):
            timings[stage.stage] = timings.get(stage.stage, 0) + stage.elapsed_ms
            report(ForgeStep(stage.stage, PROGRESS[stage.stage], render_stage(stage)))

    return on_stage


@contextmanager
def time_stage(timings: dict[str, float], stage: str) -> Iterator[None]:
    """Adds the milliseconds that the block takes to those of a stage or phase."""
    started = time.perf_counter()
    try:
        yield
    finally:
        timings[stage] = timings.get(stage, 0.0) + (time.perf_counter() - started) * 1000


def render_stage(report: StageReport) -> str:
    """A stage's verdict in a line."""
    ran = sum(case.verdict != "skipped" for case in report.cases)
    parts = [report.verdict, render_count(ran, "check") if ran else "", report.note]
    # The note has what practice differs in, without the places.
    found = [f for f in report.findings if f.rule != DIFFERS]
    parts += [f"{f.file}:{f.where} {f.reason}" for f in found[:1]]
    parts += [f"{c.operation} {c.case}: {c.evidence}" for c in report.list_failures()[:1]]
    return ", ".join(part[:MAX_PART] for part in parts if part)


def render_refusal(proof: Proof) -> str:
    """Why a bundle is not registered, of a proof that did not pass."""
    failed = next(report for report in proof.reports if not report.passed)
    return (
        f"stage {failed.stage} failed: {render_stage(failed)}. Nothing was registered; "
        "`toolwright jobs` keeps the report."
    )
