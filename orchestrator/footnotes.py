"""Audit rows for what happens beside a call: written soon, and all of them before the end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import structlog

from registry.errors import RegistryError
from registry.store import Store

log = structlog.get_logger()


@dataclass
class Footnotes:
    """Writes audit rows without holding up whoever asks for one."""

    store: Store
    _writing: set[asyncio.Task[None]] = field(default_factory=set)

    def add(self, kind: str, subject: str, payload: Mapping[str, Any]) -> None:
        """A row of that kind, of this moment. Needs a running event loop."""
        task = asyncio.get_running_loop().create_task(
            self._add(kind, subject, payload, time.time())
        )
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)

    async def close(self) -> None:
        """Return when every row is in the audit, or was logged because it could not be."""
        while self._writing:
            await asyncio.gather(*self._writing)

    async def _add(self, kind: str, subject: str, payload: Mapping[str, Any], now: float) -> None:
        try:
            await asyncio.to_thread(self.store.note, kind, subject, payload, now)
        except RegistryError as error:
            log.error(
                "not in the audit", row=kind, subject=subject, reason=str(error), payload=payload
            )
