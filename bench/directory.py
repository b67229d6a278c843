"""Every description of the directory of public APIs: compiled, and proved by sampling.

    python -m bench.directory [--package TARBALL] [--compile 0] [--prove 40] [--operations 3]
        [--engine wasm|docker|none] [--fastmcp FASTMCP/bin/python --beside 40]

Without a tarball npm fetches the package that the index names. `--compile` of the descriptions,
spread evenly (0: all), are compiled, one line a failure: what does not compile, and what gives
fewer tools than it has operations, with the first reason. `--prove` of them, chosen likewise, then
go through the static and the mock stage with so many operations each, those that show the most.
`--beside` of them are also read by FastMCP, in a process each as ours. Ends with status 1 where
anything fails.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from bench.compile import OURS, THEIRS, Run, measured
from bench.mutants.originals import cut
from bench.runners import opened_runner
from forge.compiler.compile import Compilation, compile_document
from forge.directory.build import METHODS, read_members
from forge.directory.package import check_integrity
from forge.directory.service import load_directory
from forge.errors import ForgeError
from forge.readers.document import parse_document
from orchestrator.processes.garbage import collect_rarely
from sandbox.bundle.model import Bundle
from sandbox.session.interface import Runner
from sandbox.stages.prove import prove_bundle

NOWHERE = "http://127.0.0.1:9"
T = TypeVar("T")


@dataclass
class Totals:
    """What compiling all of them came to. Seconds are of CPU."""

    descriptions: int = 0
    empty: int = 0
    compiled: int = 0
    tools: int = 0
    megabytes: float = 0.0
    seconds: float = 0.0
    failures: int = 0


def fetch_package(directory: Path) -> Path:
    """The package's tarball, fetched by npm."""
    package = load_directory().package
    spec = f"{package.name}@{package.version}"
    npm = shutil.which("npm")
    if npm is None:
        raise SystemExit("npm is not installed. Give the tarball with --package.")
    command = [npm, "pack", "--silent", spec]
    subprocess.run(command, cwd=directory, check=True, stdout=subprocess.DEVNULL)
    return directory / f"{package.name}-{package.version}.tgz"


def compile_description(identity: str, content: bytes) -> Compilation:
    """A description compiled, its servers replaced by an address that nobody answers at."""
    return compile_document(parse_document(content, identity), name="sample", base_url=NOWHERE)


def compile_sample(tarball: Path, count: int) -> Totals:
    """Compile so many, or all for 0; a line a failure."""
    totals = Totals()
    members = read_sample(tarball, count) if count else read_members(tarball)
    for identity, content in members:
        tools, reason, made = 0, "", None
        started = time.process_time()
        try:
            made = compile_description(identity, content)
        except ForgeError as error:
            reason = str(error)[:200]
        except Exception as error:  # a crash is what this looks for
            reason = f"CRASH {type(error).__name__}: {error}"[:200]
        totals.seconds += time.process_time() - started
        if made is not None:
            tools, reason = len(made.bundle.tools), _find_loss(made, content)
        if not count_operations(content):
            totals.empty += 1
            continue
        totals.descriptions += 1
        totals.megabytes += len(content) / 1_000_000
        totals.compiled += bool(tools)
        totals.tools += tools
        totals.failures += bool(reason)
        if reason:
            print(f"{identity}: {reason}", flush=True)
    return totals


def count_operations(content: bytes) -> int:
    """The operations that a description lists."""
    paths = json.loads(content).get("paths") or {}
    return sum(method in METHODS for path in paths.values() for method in path)


def _find_loss(made: Compilation, content: bytes) -> str:
    """How many of a description's operations have no tool, and the first reason; "" for none."""
    operations = count_operations(content)
    lost = operations - len(made.bundle.tools)
    first = next((str(problem) for problem in made.problems), "no reason is told")
    return f"{lost} of {operations} operations without a tool: {first}"[:250] if lost > 0 else ""


def spread(values: Sequence[T], count: int) -> list[T]:
    """So many values from begin to end of a sequence, evenly; all of them for 0."""
    if not count or count >= len(values):
        return list(values)
    return [values[position * len(values) // count] for position in range(count)]


def read_sample(tarball: Path, count: int) -> Iterator[tuple[str, bytes]]:
    """So many descriptions of those in the index."""
    known = [row.partition("\t")[0] for row in load_directory().rows]
    wanted = set(spread(known, count))
    return (each for each in read_members(tarball) if each[0] in wanted)


async def prove_sample(tarball: Path, count: int, operations: int, engine: str) -> int:
    """How many of the sample fail a stage; a line each."""
    proved = failed = cells = 0
    async with opened_runner(engine) as runner:
        for identity, content in read_sample(tarball, count):
            try:
                bundle = compile_description(identity, content).bundle
            except ForgeError:
                continue
            told, tried = await _prove(cut(bundle, operations), runner)
            proved, failed, cells = proved + 1, failed + bool(told), cells + tried
            if told:
                print(f"{identity}: {told}"[:300], flush=True)
    print(f"proved {proved - failed} of {proved}, {cells} cells")
    return failed


async def _prove(bundle: Bundle, runner: Runner) -> tuple[str, int]:
    proof = await prove_bundle(bundle, runner)
    tried = sum(len(report.cases) for report in proof.reports)
    if proof.passed:
        return "", tried
    for report in proof.reports:
        for finding in report.findings:
            return f"{report.stage}: {finding.where}: {finding.reason}", tried
        for cell in report.list_failures():
            return f"{report.stage}: {cell.operation}: {cell.case}: {cell.evidence}", tried
    return "failed", tried


def compare_sample(tarball: Path, count: int, fastmcp: str) -> None:
    """Our CPU beside FastMCP's, over what both read."""
    ours = theirs = 0.0
    read = both = 0
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "spec.json"
        for identity, content in read_sample(tarball, count):
            path.write_bytes(content)
            own = measured(sys.executable, OURS, path, 1)
            other = measured(fastmcp, THEIRS, path, 1)
            read += 1
            if isinstance(own, Run) and isinstance(other, Run):
                ours, theirs, both = ours + own.ms, theirs + other.ms, both + 1
            else:
                print(f"{identity}: ours {_tell(own)}, FastMCP {_tell(other)}", flush=True)
    print(f"both read {both} of {read}: {ours:.0f} ms, FastMCP {theirs:.0f} ms of CPU")


def _tell(run: Run | str) -> str:
    return run if isinstance(run, str) else f"{run.tools} tools"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--package", type=Path)
    parser.add_argument("--compile", type=int, default=0)
    parser.add_argument("--prove", type=int, default=40)
    parser.add_argument("--operations", type=int, default=3)
    parser.add_argument("--engine", choices=("docker", "wasm", "none"), default="wasm")
    parser.add_argument("--fastmcp", default="", help="the interpreter of FastMCP's environment")
    parser.add_argument("--beside", type=int, default=40)
    asked = parser.parse_args()
    collect_rarely()
    with tempfile.TemporaryDirectory() as scratch:
        tarball = asked.package or fetch_package(Path(scratch))
        with tarball.open("rb") as file:
            check_integrity(file, load_directory().package)
        totals = compile_sample(tarball, asked.compile)
        print(
            f"{totals.compiled} of {totals.descriptions} descriptions with operations, "
            f"{totals.tools} tools, {totals.megabytes:.0f} MB in {totals.seconds:.0f} s of CPU; "
            f"{totals.failures} lines above; {totals.empty} list no operation",
            flush=True,
        )
        failed = asyncio.run(prove_sample(tarball, asked.prove, asked.operations, asked.engine))
        if asked.fastmcp:
            compare_sample(tarball, asked.beside, asked.fastmcp)
    if failed or totals.failures:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
