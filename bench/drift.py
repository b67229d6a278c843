"""A look at the API descriptions of many servers, for whether they changed.

    python -m bench.drift [--servers 1000]

Each server was compiled from a description of its own, served on the loopback with an ETag. The
first look gets all of them; the second is answered with 304; before the third, one in a hundred has
another description, and opens a repair. A line per look: what it took by the clock, the CPU of the
process (the serving thread's included), the requests, their statuses, and how many were answered at
the same time at most.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from forge.compiler.compile import compile_document
from forge.readers.document import parse_document
from orchestrator.app import App, open_app
from orchestrator.settings import load_settings
from registry.models import build_entry
from tests.granted import allow

CHANGED_OF = 100


@dataclass
class Sources:
    """What is served: a version by path, and what was asked since `counts` was emptied."""

    versions: dict[str, int] = field(default_factory=dict)
    counts: Counter[int] = field(default_factory=Counter)
    answering: int = 0
    most: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


def describe(path: str, version: int) -> bytes:
    """The description at a path, of the size of a small API's."""
    schema = {"type": "object", "properties": {f"v{version}": {"type": "string"}}}
    answer = {"description": "ok", "content": {"application/json": {"schema": schema}}}
    paths = {
        f"/things{number}": {
            "get": {
                "operationId": f"get_thing_{number}",
                "description": "Gives what is known of the thing. " * 10,
                "responses": {"200": answer},
            }
        }
        for number in range(10)
    }
    info = {"title": f"Source {path.strip('/')}", "version": str(version)}
    return json.dumps({"openapi": "3.0.3", "info": info, "paths": paths}).encode()


def build_handler(sources: Sources) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            with sources.lock:
                sources.answering += 1
                sources.most = max(sources.most, sources.answering)
            # What has no version is a path of the API that a repair tries.
            version = sources.versions.get(self.path, 0)
            tag = f'"{version}"'
            known = self.headers.get("If-None-Match") == tag
            body = b"" if known or not version else describe(self.path, version)
            status = 304 if known else 200 if version else 404
            with sources.lock:
                sources.answering -= 1
                sources.counts[status] += 1
            self.send_response(status)
            self.send_header("ETag", tag)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None: ...

    return Handler


def register(app: App, base: str, sources: Sources) -> None:
    """A server for each source, as its forge would have registered it."""
    for path, version in sources.versions.items():
        url = f"{base}{path}"
        document = parse_document(describe(path, version), url, url=url)
        name = f"source_{path.strip('/')}"
        bundle = compile_document(document, name=name, base_url=base).bundle
        app.forge.shelf.publish_bundle(bundle, build_entry(bundle, time.time()), (), None)


async def look(app: App, sources: Sources, label: str) -> float:
    """The seconds that one look at all of them takes."""
    sources.counts.clear()
    sources.most = 0
    started, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
    looked, begun = 0, time.time()
    while found := await app.drift.check_due(time.time() - begun):
        looked += found
    after = resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    statuses = ", ".join(f"{count} x {status}" for status, count in sorted(sources.counts.items()))
    wall = time.perf_counter() - started
    print(
        f"{label:8} {looked} sources: {wall:.1f} s, {cpu:.1f} s of CPU; {statuses}; "
        f"{sources.most} at once",
        flush=True,
    )
    return wall


async def look_thrice(servers: int, sources: Sources, base: str) -> tuple[float, ...]:
    sources.versions = {f"/{number}": 1 for number in range(servers)}
    with tempfile.TemporaryDirectory() as home:
        settings = load_settings(home=Path(home))
        async with open_app(settings, "bench") as app:
            allow(settings, app.store, base)
            await asyncio.to_thread(register, app, base, sources)
            first = await look(app, sources, "first")
            second = await look(app, sources, "second")
            for path in list(sources.versions)[::CHANGED_OF]:
                sources.versions[path] = 2
            third = await look(app, sources, "changed")
            opened = sum(
                bool(app.store.repairs.find(f"source_{path.strip('/')}", time.time()))
                for path in sources.versions
            )
            print(f"{opened} repairs were opened")
            return first, second, third


def measure(servers: int) -> tuple[float, ...]:
    """The seconds of three looks at so many descriptions on the loopback."""
    sources = Sources()
    server = ThreadingHTTPServer(("127.0.0.1", 0), build_handler(sources))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        base = f"http://127.0.0.1:{server.server_port}"
        return asyncio.run(look_thrice(servers, sources, base))
    finally:
        server.shutdown()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--servers", type=int, default=1000)
    measure(parser.parse_args().servers)


if __name__ == "__main__":
    main()
