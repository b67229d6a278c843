"""Time from a task to a registered server, by stage: PowerDNS and specifications on disk.

    python -m bench.forge [--rounds 5] [SPEC ...]

Each round forges in a fresh home, in one process that is already running (as `serve` is), with real
containers. Nothing is left out but the base image, which is built once beforehand. `total` is the
wall time from the order to the registered server; the columns are the stages' own times in ms.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from orchestrator.app import open_app
from orchestrator.approvals.granting import add_source
from orchestrator.forging.order import ForgeOrder
from orchestrator.gateway.brokers import SOURCES
from orchestrator.settings import load_settings
from registry.models import DocumentationSource
from registry.secrets.vault import Secret, open_vault
from tests.granted import allow, person
from tests.world.cache import Unavailable
from tests.world.powerdns import PowerDNS, power_dns

STAGES = ("find", "compile", "static", "mock", "live", "register")
BASE_URL = "http://127.0.0.1:9"


async def forge_once(
    order: ForgeOrder, powerdns: PowerDNS | None
) -> tuple[int, Mapping[str, float]]:
    """The number of tools and the milliseconds per stage, with `total`."""
    with tempfile.TemporaryDirectory() as home:
        settings = load_settings(home=Path(home))
        async with open_app(settings, "forge") as app:
            allow(settings, app.store, BASE_URL)
            if powerdns:
                open_vault(settings).put(SOURCES, "key", Secret(powerdns.key))
                source = DocumentationSource(powerdns.url, "X-API-Key", "key")
                add_source(app.store.grants, source, "bench", person(settings.pin))
            started = time.perf_counter()
            forged = await app.forge.forge_server(order, lambda step: None)
            total = (time.perf_counter() - started) * 1000
            return len(forged.bundle.tools), {**forged.timings, "total": total}


def measure(name: str, order: ForgeOrder, rounds: int, powerdns: PowerDNS | None = None) -> None:
    """Print one line: the median of each stage and of the total."""
    runs = [asyncio.run(forge_once(order, powerdns)) for _ in range(rounds)]
    medians = {
        stage: statistics.median(run.get(stage, 0.0) for _, run in runs)
        for stage in (*STAGES, "total")
    }
    worst = max(run["total"] for _, run in runs)
    cells = "".join(f"{medians[stage]:10.0f}" for stage in (*STAGES, "total"))
    print(f"{name[:30]:30}{runs[0][0]:7}{cells}{worst:10.0f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("specs", nargs="*", type=Path)
    args = parser.parse_args()
    heads = "".join(f"{head:>10}" for head in (*STAGES, "total", "worst"))
    print(f"{'':30}{'tools':>7}{heads}")
    try:
        with tempfile.TemporaryDirectory() as scratch, power_dns(Path(scratch)) as powerdns:
            order = ForgeOrder(task="list the DNS zones", source=powerdns.url)
            measure("PowerDNS", order, args.rounds, powerdns)
    except Unavailable as reason:
        print(f"PowerDNS: left out ({reason})")
    for spec in args.specs:
        order = ForgeOrder(task=spec.stem, source=str(spec), base_url=BASE_URL)
        measure("/".join(spec.parts[-3::2]), order, args.rounds)


if __name__ == "__main__":
    main()
