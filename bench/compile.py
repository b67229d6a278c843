"""Time and memory of compiling API descriptions against their size, beside FastMCP in the same run.

    python -m venv FASTMCP && FASTMCP/bin/pip install 'fastmcp>=4'
    python -m bench.compile --fastmcp FASTMCP/bin/python [--sizes 0.1,1,10] [SPEC…]

Each document is compiled in a fresh process, `--rounds` times; milliseconds of CPU are the median,
memory the largest resident size. Imports are not in the time, and garbage is collected as rarely as
in Toolwright's processes. The synthetic documents have an operation per 1.8 kB and schemas that
refer to each other in circles of three; in `linked` all are one circle.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SECONDS = 300
COLUMNS = ("ms", "MB/s", "peak MB", "tools of bytes")
OURS = """
import json, resource, sys, time
from pathlib import Path
from forge.compiler.compile import compile_document
from forge.readers.document import load_document
from orchestrator.processes.garbage import collect_rarely
from sandbox.bundle.model import render_files
collect_rarely()
started = time.process_time()
made = compile_document(load_document(Path(sys.argv[1])), base_url="http://127.0.0.1:9/v1")
render_files(made.bundle)
taken = time.process_time() - started
listed = [len(json.dumps(tool.build_listing(made.bundle.base_url))) for tool in made.bundle.tools]
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({"ms": taken * 1000, "mb": peak, "tools": len(listed), "listed": sum(listed)}))
"""
THEIRS = """
import asyncio, json, resource, sys, time
import httpx2, yaml
from fastmcp import FastMCP
from fastmcp.client import Client
loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
started = time.process_time()
text = open(sys.argv[1], encoding="utf-8-sig").read()
spec = json.loads(text) if text.lstrip()[:1] == "{" else yaml.load(text, loader)
server = FastMCP.from_openapi(spec, httpx2.AsyncClient(base_url="http://127.0.0.1:9"))
taken = time.process_time() - started
async def tools():
    async with Client(server) as client:
        return await client.list_tools()
listed = [len(tool.model_dump_json(exclude_none=True)) for tool in asyncio.run(tools())]
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({"ms": taken * 1000, "mb": peak, "tools": len(listed), "listed": sum(listed)}))
"""


@dataclass(frozen=True)
class Run:
    """One document by one compiler; `listed` is the bytes of the tools as clients see them."""

    ms: float
    mb: float
    tools: int
    listed: int


def synthetic(megabytes: float, chain: int = 3) -> dict[str, Any]:
    """An OpenAPI 3.0 document of about that size, its schemas in circles of `chain` (0: in one)."""
    count = max(1, int(megabytes * 1_000_000 / 3_530))
    paths = {f"/things{n}/{{id}}": {"get": _reading(n), "put": _writing(n)} for n in range(count)}
    return {
        "openapi": "3.0.3",
        "info": {"title": f"Synthetic {megabytes}", "version": "1"},
        "servers": [{"url": "https://api.example.com/v1"}],
        "paths": paths,
        "components": {"schemas": {f"S{n}": _schema(n, count, chain) for n in range(count)}},
    }


def _schema(number: int, count: int, chain: int) -> dict[str, Any]:
    fields = {
        f"field{n}": {
            "type": ["string", "integer", "boolean"][n % 3],
            "description": f"What field {n} of the things of kind {number} says of each of them.",
        }
        for n in range(14)
    }
    last = chain and number % chain == chain - 1
    following = number + 1 - chain if last else (number + 1) % count
    link = {"$ref": f"#/components/schemas/S{following}"}
    kinds = {"type": "string", "enum": ["small", "medium", "large"], "default": "small"}
    return {
        "type": "object",
        "required": ["id"],
        "description": f"Things of kind {number}.",
        "properties": {"id": {"type": "integer"}, "kind": kinds, "next": link, **fields},
    }


def _reading(number: int) -> dict[str, Any]:
    names = ("filter", "sort", "fields", "locale")
    return {
        "operationId": f"getThing{number}",
        "summary": f"Get a thing of kind {number}",
        "description": "Gives the thing as it was when it was last seen. " * 6,
        "tags": [f"group {number % 20}"],
        "parameters": [_identity(), *(_query(name) for name in names)],
        "responses": {"200": {"description": "ok", "content": _content(number)}},
    }


def _writing(number: int) -> dict[str, Any]:
    return {
        "operationId": f"putThing{number}",
        "summary": f"Replace a thing of kind {number}",
        "tags": [f"group {number % 20}"],
        "parameters": [_identity()],
        "requestBody": {"required": True, "content": _content(number)},
        "responses": {"200": {"description": "ok", "content": _content(number)}},
    }


def _identity() -> dict[str, Any]:
    return {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}


def _query(name: str) -> dict[str, Any]:
    text = f"How the answer's {name} are chosen, as a comma-separated list of names."
    return {"name": name, "in": "query", "description": text, "schema": {"type": "string"}}


def _content(number: int) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/S{number}"}}}


def measured(interpreter: str, program: str, document: Path, rounds: int) -> Run | str:
    """The median run, or in a word why there is none."""
    runs = []
    for _ in range(rounds):
        command = [interpreter, "-W", "ignore", "-c", program, str(document)]
        try:
            ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            return f"over {SECONDS} s"
        if ran.returncode != 0:
            last = ran.stderr.strip().splitlines()[-1:] or ["?"]
            return f"fails ({last[0].partition(':')[0].rpartition('.')[2][:40]})"
        runs.append(Run(**json.loads(ran.stdout.splitlines()[-1])))
    middle = sorted(runs, key=lambda run: run.ms)[len(runs) // 2]
    return Run(middle.ms, max(run.mb for run in runs), middle.tools, middle.listed)


def cells(run: Run | str, megabytes: float) -> list[str]:
    if isinstance(run, str):
        return [run, "", "", ""]
    speed = megabytes / run.ms * 1000
    listed = run.listed / max(1, run.tools)
    return [f"{run.ms:.0f}", f"{speed:.2f}", f"{run.mb:.0f}", f"{run.tools} of {listed:.0f} B"]


def documents(sizes: Iterable[float], given: Iterable[Path], scratch: Path) -> Iterable[Path]:
    for size in sizes:
        path = scratch / f"synthetic-{size:g}.json"
        path.write_text(json.dumps(synthetic(size)))
        yield path
    linked = scratch / "linked.json"
    linked.write_text(json.dumps(synthetic(1, chain=0)))
    yield linked
    yield from given


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("specs", nargs="*", type=Path, metavar="SPEC")
    parser.add_argument(
        "--sizes", default="0.1,0.3,1,3,10", help="megabytes of synthetic documents"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--fastmcp", default="", help="the interpreter of FastMCP's environment")
    asked = parser.parse_args()
    sizes = [float(size) for size in asked.sizes.split(",") if size]
    print(f"| document | MB | {' | '.join([*COLUMNS, *(f'FastMCP {c}' for c in COLUMNS)])} |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    speeds = []
    with tempfile.TemporaryDirectory() as scratch:
        for path in documents(sizes, asked.specs, Path(scratch)):
            size = path.stat().st_size / 1_000_000
            ours = measured(sys.executable, OURS, path, asked.rounds)
            theirs = measured(asked.fastmcp, THEIRS, path, asked.rounds) if asked.fastmcp else ""
            row = [path.stem[:40], f"{size:.2f}", *cells(ours, size), *cells(theirs, size)]
            print(f"| {' | '.join(row)} |", flush=True)
            if isinstance(ours, Run):
                speeds.append(size / ours.ms * 1000)
    print(f"\nmedian {statistics.median(speeds):.2f} MB/s")


if __name__ == "__main__":
    main()
