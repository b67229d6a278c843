"""The reference repair, played: an API that answers 429 above a rate, without a word of when to
come back, until its server has learned the rate.

    python -m bench.heal [--engine docker|wasm] [--limit 5] [--runs 3]

Prints the milliseconds of each phase, from the refusal that opens the repair to the answer of the
task that had failed. No model is asked; nothing but loopback is reached.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread
from typing import Any

from orchestrator.app import App, open_app
from orchestrator.approvals.granting import allow_host
from orchestrator.approvals.signing_key import open_key
from orchestrator.calls import Call, Done
from orchestrator.forging.order import ForgeOrder
from orchestrator.settings import Settings, load_settings
from registry.models import ENDED_JOBS, Job
from registry.secrets.pin import set_pin

CROWD = 20
PIN = "a bench's own"


class LimitedApi(ThreadingHTTPServer):
    """An API on loopback that takes `limit` requests a second, by its own clock's seconds."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, limit: int) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.limit, self.lock = limit, Lock()
        self.taken: list[float] = []
        self.refused = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def takes(self) -> bool:
        """Whether one more request is within the limit of the last second."""
        now = time.monotonic()
        with self.lock:
            self.taken = [at for at in self.taken if now - at < 1.0]
            if len(self.taken) >= self.limit:
                self.refused += 1
                return False
            self.taken.append(now)
            return True


class _Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        api: Any = self.server
        if self.path == "/openapi.json":
            self._send(200, _document(api.url))
        elif api.takes():
            self._send(200, {"number": 42})
        else:
            self._send(429, {"error": "too many requests"})

    def _send(self, status: int, value: Any) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Keep quiet."""


def _document(url: str) -> dict[str, Any]:
    number = {"type": "object", "properties": {"number": {"type": "integer"}}}
    content = {"application/json": {"schema": number}}
    answer = {"200": {"description": "ok", "content": content}}
    named = {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
    return {
        "openapi": "3.0.3",
        "info": {"title": "Crowded", "version": "1"},
        "servers": [{"url": url}],
        "paths": {"/numbers/{id}": {"get": {"parameters": [named], "responses": answer}}},
    }


@contextmanager
def limited_api(limit: int) -> Iterator[LimitedApi]:
    with LimitedApi(limit) as api:
        thread = Thread(target=api.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield api
        finally:
            api.shutdown()
            thread.join()


async def healed(app: App, api: LimitedApi, crowd: int = CROWD) -> tuple[Job, float]:
    """Crowd the server until it is repaired; the repair, and the seconds from its opening on."""
    forged = await app.forge.forge_server(
        ForgeOrder(source=f"{api.url}/openapi.json"), lambda step: None
    )
    tool = forged.entry.tools[0].name
    call = Call(forged.entry.name, tool, {"id": "1"}, task="the number of 1")
    while not app.store.repairs.find(forged.entry.name, time.time()):
        await asyncio.gather(*(app.dispatch.call_tool(call) for _ in range(crowd)))
    (job,) = app.store.repairs.find(forged.entry.name, time.time())
    async for _ in app.watch_changes(60.0):
        job = await asyncio.to_thread(app.store.jobs.get, job.id)
        if job.state in ENDED_JOBS:
            break
    return job, job.updated - job.created


async def _run(settings: Settings, limit: int) -> dict[str, float]:
    with limited_api(limit) as api:
        async with open_app(settings, "bench", patient=True) as app:
            allow(app, api.url)
            job, seconds = await healed(app, api)
            if job.state != "done" or not job.result["retried"].get("succeeded"):
                raise SystemExit(f"not repaired: {job.message or job.result}")
            entry = app.store.servers.get(job.result["server"])
            paces = app.forge.shelf.load_bundle(entry).paces
            print(f"{job.result['cause']} -> {', '.join(map(str, paces))}", flush=True)
            refused = api.refused
            call = Call(entry.name, entry.tools[0].name, {"id": "1"})
            replies = await asyncio.gather(
                *(app.dispatch.call_tool(call) for _ in range(2 * limit))
            )
            good = sum(isinstance(r, Done) and r.outcome.ok for r in replies)
            print(f"then {good} of {len(replies)} at once, {api.refused - refused} refused")
            return {**job.result["milliseconds"], "whole": seconds * 1000}


def allow(app: App, url: str) -> None:
    """Let the API on loopback be asked, as a person with the PIN does."""
    if not app.settings.pin.exists():
        set_pin(app.settings.pin, PIN, cost=2**4)
    signer = open_key(app.settings, PIN, time.time()).signer
    assert signer is not None
    allow_host(app.store.grants, url.removeprefix("http://"), "bench", signer)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--engine", choices=("docker", "wasm"), default="docker")
    parser.add_argument("--limit", type=int, default=5)
    parser.add_argument("--runs", type=int, default=3)
    args = parser.parse_args()
    found: list[dict[str, float]] = []
    for _ in range(args.runs):
        with tempfile.TemporaryDirectory() as directory:
            settings = load_settings(home=Path(directory), engine=args.engine)
            found.append(asyncio.run(_run(settings, args.limit)))
    for phase in found[0]:
        told = [each.get(phase, 0.0) for each in found]
        print(f"{phase:12} {statistics.median(told):8.0f} ms  (of {args.runs}: {max(told):.0f})")


if __name__ == "__main__":
    main()
