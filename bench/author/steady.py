"""The same drafts several times over: whether the stages say the same of each, on a busy machine.

    python -m bench.author.steady [--engine none|wasm|docker] [--runs N] [--busy N]

`--busy` processes work beside it. The sample is what models wrote, good and bad, and tools that ask
by HTTP and through other servers, right and broken.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from bench.author.__main__ import DRAFTS, stored
from bench.author.asking.__main__ import AS_IT_IS, build_server, run_worlds, try_variant
from bench.author.asking.services import SERVICES
from bench.author.readings import READINGS, Recorded
from bench.author.trial import LIVE, WRITTEN, Forgery, tried
from bench.runners import opened_runner

WRITTEN_DRAFTS, BAD_DRAFTS, BROKEN_TOOLS = 8, 6, 2
"""Drafts of each kind; the tools that ask are taken from every second service."""


def _work(parent: int) -> None:
    # One that is killed ends no children.
    while os.getppid() == parent:
        sum(range(1_000_000))


@contextmanager
def busy(count: int) -> Iterator[None]:
    """So many processes that work until the block ends."""
    made = [
        multiprocessing.Process(target=_work, args=(os.getpid(),), daemon=True)
        for _ in range(count)
    ]
    for process in made:
        process.start()
    try:
        yield
    finally:
        for process in made:
            process.terminate()
            process.join()


async def run_once(engine: str) -> dict[str, str]:
    """The verdict of each draft: the stage that refused it, "" where none did."""
    found: dict[str, str] = {}
    drafts = [*stored(DRAFTS)]
    written = [each for each in drafts if "wrong" not in each[2]][:WRITTEN_DRAFTS]
    bad = [each for each in drafts if "wrong" in each[2]][:BAD_DRAFTS]
    async with opened_runner(engine, spares=2) as runner:
        forgery = Forgery(runner, Recorded(READINGS))
        for source, task, given in (*written, *bad):
            trial, _ = await tried(forgery, task, source, WRITTEN, LIVE, given)
            found[source] = trial.caught
        for service in SERVICES[::2]:
            right = await run_worlds(runner, build_server(service, service.code), service.hidden)
            for variant in (AS_IT_IS, *service.bad[:BROKEN_TOOLS]):
                tested = await try_variant(runner, service, variant, right)
                found[f"{service.name}: {variant.name}"] = tested.caught
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--engine", default="wasm", choices=("wasm", "docker", "none"))
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--busy", type=int, default=6)
    given = parser.parse_args()
    runs = []
    with busy(given.busy):
        for number in range(given.runs):
            runs.append(asyncio.run(run_once(given.engine)))
            caught = Counter(stage or "not refused" for stage in runs[-1].values())
            told = ", ".join(f"{stage} {n}" for stage, n in caught.most_common())
            print(f"run {number + 1}, load {os.getloadavg()[0]:.1f}: {told}", flush=True)
    different = {name for run in runs for name in run if run[name] != runs[0][name]}
    for name in sorted(different):
        print(f"{name}: {', '.join(run[name] or 'not refused' for run in runs)}")
    print(f"{len(runs[0])} drafts, {len(runs)} runs: {len(different)} with different verdicts")


if __name__ == "__main__":
    main()
