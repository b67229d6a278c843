"""Recording calls: reads by group commit, everything else at once."""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import structlog

from orchestrator.calls import Call
from registry.errors import DatabaseUnusable
from registry.records import Invocation
from registry.store import Store
from registry.trust import Standing
from sandbox.exchange import Exchange, WireRequest

GROUP_SECONDS = 0.02
RETRY_SECONDS = 1.0
CLOSE_SECONDS = 5.0
MAX_WAITING = 10_000
MAX_LOGGED_BODY = 64 * 1024

log = structlog.get_logger()


@dataclass
class Ledger:
    """Writes finished reads in groups, at most 20 ms late; a SIGKILL may lose those.

    `recorded` is told each server's new standing, `stored` each call once it is on disk.
    """

    store: Store
    recorded: Callable[[str, Standing], None]
    stored: Callable[[Invocation], None] = lambda invocation: None
    _waiting: list[Invocation] = field(default_factory=list)
    _flush: asyncio.Task[None] | None = None

    def record_soon(self, invocation: Invocation) -> None:
        self._waiting.append(invocation)
        if self._flush is None or self._flush.done():
            self._flush = asyncio.get_running_loop().create_task(self._flushed())

    def note(self, kind: str, call: Call, reason: str) -> None:
        """An audit row for a call that did not run."""
        payload = {"tool": call.name, "reason": reason, "task": call.task, "session": call.session}
        self.store.note(kind, call.name, payload, time.time())

    async def close(self) -> None:
        """Return when everything is written, or could not be for a while."""
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                while self._flush and not self._flush.done():
                    await self._flush
        except TimeoutError:
            log.error("calls were not recorded", calls=len(self._waiting))

    async def _flushed(self) -> None:
        while self._waiting:
            await asyncio.sleep(GROUP_SECONDS)
            group, self._waiting = self._waiting, []
            try:
                standings = await asyncio.to_thread(self.store.record_many, group, time.time())
            except DatabaseUnusable as error:
                # A full disk may have room again; what was called must not be lost meanwhile. What
                # the calls took in is too much to hold in memory for so long.
                log.error("calls not recorded yet", reason=str(error), calls=len(group))
                lightened = (replace(invocation, recording=None) for invocation in group)
                self._waiting = [*lightened, *self._waiting][:MAX_WAITING]
                await asyncio.sleep(RETRY_SECONDS)
                continue
            for invocation, standing in zip(group, standings, strict=True):
                self.recorded(invocation.entry, standing)
                self.stored(invocation)


def exchange_json(exchange: Exchange) -> dict[str, Any]:
    """An exchange as the audit keeps it: bodies as text or base64, cut at 64 kB."""
    response = exchange.response
    return {
        "request": request_json(exchange.request),
        "response": response
        and {
            "status": response.status,
            "headers": [list(pair) for pair in response.headers],
            **_body_json(response.body),
        },
        "refusal": exchange.refusal,
        "reason": exchange.reason,
        "attempts": exchange.attempts,
        "elapsed_ms": round(exchange.elapsed_ms, 3),
        "sent_at": [round(at, 3) for at in exchange.sent_at],
    }


def request_json(request: WireRequest) -> dict[str, Any]:
    """A wire request as people and the audit see it."""
    return {
        "method": request.method,
        "url": request.url,
        "headers": [list(pair) for pair in request.headers],
        **_body_json(request.body),
    }


def _body_json(body: bytes) -> dict[str, Any]:
    kept = body[:MAX_LOGGED_BODY]
    cut = {"cut_at": MAX_LOGGED_BODY, "bytes": len(body)} if len(body) > MAX_LOGGED_BODY else {}
    try:
        return {"body": kept.decode(), **cut}
    except UnicodeDecodeError:
        return {"body_base64": base64.b64encode(kept).decode(), **cut}
