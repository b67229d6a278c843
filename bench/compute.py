"""Tools that only compute, on Docker's CPython and on the WASM engine, beside this interpreter.

    python -m bench.compute [--rounds 5]

Five tools that keep a CPU busy, each called in turns on both engines with a whole CPU (a server has
half of one by default). Seconds are the median wall time of a call; `ratio` is WASM's to Docker's.
`here` is the same function in this process, without any engine.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

from bench.engines import BUNDLE, CACHE, broker, open_docker
from sandbox.bundle.model import ToolDefinition
from sandbox.engines.wasm.component import build_component
from sandbox.engines.wasm.engine import WasmRunner
from sandbox.session.interface import Limits

WORK = """
def count_primes(n):
    sieve = bytearray([1]) * (n + 1)
    for number in range(2, int(n ** 0.5) + 1):
        if sieve[number]:
            sieve[number * number :: number] = bytes(len(range(number * number, n + 1, number)))
    return {"value": sum(sieve) - 2}


def multiply_matrices(n):
    left = [[(row * column) % 7 for column in range(n)] for row in range(n)]
    right = list(zip(*left))
    rows = [[sum(map(lambda a, b: a * b, row, column)) for column in right] for row in left]
    return {"value": sum(map(sum, rows))}


def count_words(n):
    found = {}
    for word in re.findall(r"[a-z]+", "the berth of a boat is where the boat lies; " * n):
        found[word] = found.get(word, 0) + 1
    return {"value": found["boat"]}


def copy_json(n):
    rows = [{"id": number, "name": f"boat {number}", "tags": ["a", "b"]} for number in range(n)]
    for _ in range(5):
        rows = json.loads(json.dumps(rows))
    return {"value": len(rows)}


def chain_digests(n):
    value = b"harbour"
    for _ in range(n):
        value = hashlib.sha256(value).digest()
    return {"value": value[0]}
"""
IMPORTS = "import hashlib\nimport json\nimport re\n"
SIZES = {
    "count_primes": 1_500_000,
    "multiply_matrices": 130,
    "count_words": 40_000,
    "copy_json": 12_000,
    "chain_digests": 300_000,
}
"""By tool: how much it has to do, some tenths of a second in CPython."""
LIMITS = Limits(cpus=1.0)


def _build_source() -> str:
    marked = WORK.replace("\ndef ", "\n@tool\ndef ")
    return f"{IMPORTS}\nfrom toolwright import tool\n{marked}"


def _define(name: str) -> ToolDefinition:
    takes = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    gives = {"type": "object", "properties": {"value": {"type": "integer"}}}
    return ToolDefinition(name, "Computes.", takes, gives, "read")


async def measure(rounds: int) -> dict[str, dict[str, float]]:
    """Seconds of a call, by tool and place. Raises AssertionError where two places disagree."""
    here: dict[str, Any] = {}
    exec(compile(IMPORTS + WORK, "work", "exec"), here)  # nosec B102
    tools = tuple(map(_define, SIZES))
    bundle = replace(BUNDLE, source_code=_build_source(), tools=tools, permissions=())
    taken: dict[str, dict[str, list[float]]] = {}
    async with AsyncExitStack() as stack:
        docker = await stack.enter_async_context(open_docker(limits=LIMITS))
        wasm = await stack.enter_async_context(
            WasmRunner(build_component(CACHE, print), limits=LIMITS)
        )
        sessions = {
            "docker": await stack.enter_async_context(docker.open(bundle, broker())),
            "wasm": await stack.enter_async_context(wasm.open(bundle, broker())),
        }
        for name, size in SIZES.items():
            places = taken.setdefault(name, {})
            for _ in range(rounds):
                started = time.perf_counter()
                value = here[name](size)
                places.setdefault("here", []).append(time.perf_counter() - started)
                for place, session in sessions.items():
                    started = time.perf_counter()
                    outcome = await session.call(name, {"n": size})
                    places.setdefault(place, []).append(time.perf_counter() - started)
                    assert outcome.structured == value, (place, outcome)
    middle: Callable[[list[float]], float] = statistics.median
    return {name: {p: middle(s) for p, s in places.items()} for name, places in taken.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    found = asyncio.run(measure(parser.parse_args().rounds))
    print(f"{'load ' + str(os.getloadavg()[0])[:4]:20}{'here':>9}{'docker':>9}{'wasm':>9}  ratio")
    for name, places in found.items():
        here, docker, wasm = (places[place] for place in ("here", "docker", "wasm"))
        print(f"{name:20}{here:9.3f}{docker:9.3f}{wasm:9.3f}  {wasm / docker:5.1f}")


if __name__ == "__main__":
    main()
