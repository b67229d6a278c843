"""Background work goes on after trouble with one turn of it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from forge.sources import ApiSource
from orchestrator.chores import watch_descriptions
from orchestrator.forging.forge import Forge
from orchestrator.healing.drift import Drift
from orchestrator.healing.monitor import Healing
from registry.servers.bundles import Bundles
from registry.store import Store
from sandbox.errors import Frozen
from sandbox.killswitch import KillSwitch
from tests.orchestrator.gateway.test_audit_writer import SkippingLoop
from tests.registry.samples import entry


@dataclass
class FrozenPages:
    """Descriptions of which none is answered: everything is frozen as they are asked for."""

    asked: list[str] = field(default_factory=list)
    again: asyncio.Event = field(default_factory=asyncio.Event)

    def find_place(self, source: str) -> ApiSource:
        return ApiSource(source)

    async def fetch_place(self, place: ApiSource) -> Any:
        self.asked.append(place.location)
        if len(self.asked) == 2:
            self.again.set()
        raise Frozen


def test_descriptions_are_looked_at_again_after_a_freeze_that_came_during_a_look(
    store: Store, tmp_path: Path
) -> None:
    store.servers.publish(entry(), now=10.0)

    async def work() -> None:
        pages = FrozenPages()
        given: Any = pages
        unused: Any = None
        shelf = Bundles(tmp_path, store.servers)
        forge = Forge(store.servers, unused, shelf, unused, unused, unused, given)
        healing = Healing(store, shelf, lambda: None, lambda _: False)
        drift = Drift(store, forge, healing, lambda: 1e6)
        chore = asyncio.create_task(watch_descriptions(store, healing, lambda: drift, KillSwitch()))
        again = asyncio.create_task(pages.again.wait())
        await asyncio.wait({chore, again}, return_when=asyncio.FIRST_COMPLETED)
        assert not chore.done(), chore.exception()
        assert pages.asked == [entry().source] * 2
        chore.cancel()
        await asyncio.wait({chore})

    with asyncio.Runner(loop_factory=SkippingLoop) as runner:
        runner.run(work())
