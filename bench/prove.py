"""Compile and prove every description of a directory, each whole, one after the other.

    python -m bench.prove --specs DIRECTORY [--engine docker|wasm|none] [--operations 0]
        [--only d001 …]

DIRECTORY holds descriptions, or folders with an `index.json` that names each folder's main one.
Their servers are replaced by an address that nobody answers at; the live stage is left out. With
`--operations` each is cut to so many. A line per description: tools, cells, verdict, and the
milliseconds of its stages; what fails is told below it. Ends with status 1 where anything fails.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.mutants.originals import compiled, cut
from bench.runners import opened_runner
from sandbox.bundle.model import Bundle
from sandbox.bundle.report import Proof
from sandbox.session.interface import Runner
from sandbox.stages.prove import prove_bundle

MAX_TOLD = 5
_HEAD = f"{'':24}{'tools':>7}{'cells':>8}{'skipped':>9}{'static':>9}{'mock':>9}{'wall':>9}"


async def proved_all(places: Sequence[Path], engine: str, operations: int) -> int:
    """How many do not pass; prints as it goes."""
    print(_HEAD, flush=True)
    failed = 0
    async with opened_runner(engine) as runner:
        for place in places:
            bundle = compiled(place)
            if bundle is None:
                print(f"{place.name:24} does not compile", flush=True)
                failed += 1
            else:
                whole = cut(bundle, operations) if operations else bundle
                failed += not await _proved(place.name, whole, runner)
    print(f"{len(places) - failed} of {len(places)} pass")
    return failed


async def _proved(name: str, bundle: Bundle, runner: Runner) -> bool:
    started = time.perf_counter()
    proof = await prove_bundle(bundle, runner)
    wall = (time.perf_counter() - started) * 1000
    cells = [cell for report in proof.reports for cell in report.cases]
    skipped = sum(cell.verdict == "skipped" for cell in cells)
    spent = {report.stage: report.elapsed_ms for report in proof.reports}
    times = f"{spent.get('static', 0):9.0f}{spent.get('mock', 0):9.0f}{wall:9.0f}"
    verdict = "" if proof.passed else "  FAILED"
    counts = f"{len(bundle.tools):7}{len(cells):8}{skipped:9}"
    print(f"{name} {bundle.name}"[:24].ljust(24) + counts + times + verdict, flush=True)
    for line in list(_failures(proof))[:MAX_TOLD]:
        print(f"    {line}", flush=True)
    return proof.passed


def _failures(proof: Proof) -> Iterator[str]:
    for report in proof.reports:
        for finding in report.findings:
            yield f"{report.stage}: {finding.where}: {finding.reason}"[:300]
        first = {cell.operation: cell for cell in reversed(report.list_failures())}
        for cell in first.values():
            yield f"{report.stage}: {cell.operation}: {cell.case}: {cell.evidence}"[:300]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--specs", type=Path, required=True)
    parser.add_argument("--engine", choices=("docker", "wasm", "none"), default="docker")
    parser.add_argument("--operations", type=int, default=0)
    parser.add_argument("--only", nargs="*", default=[])
    args = parser.parse_args()
    places = [p for p in sorted(args.specs.iterdir()) if not args.only or p.stem in args.only]
    if asyncio.run(proved_all(places, args.engine, args.operations)):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
