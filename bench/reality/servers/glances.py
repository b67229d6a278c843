"""Glances, a monitor: OpenAPI 3.1 served without schemas of its answers; lists, tables of differing
columns, texts and numbers as whole answers, clearing of events.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.reality.model import Judge, RealServer, Running, Scenario, Seen
from bench.reality.packages import install_pip
from bench.reality.processes import free_port, running


@contextmanager
def _start(directory: Path) -> Iterator[Running]:
    python = install_pip("glances[web]==4.5.8")
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = [str(python), "-m", "glances", "-w", "--disable-webui", "--disable-check-update"]
    command += ["-B", "127.0.0.1", "-p", str(port)]
    with running(command, f"{url}/api/4/status", directory, {"HOME": str(directory)}):
        yield Running(url, directory, f"{url}/openapi.json")


def _same(path: str) -> Judge:
    """The answer is what the server itself says there, and that does not change by itself."""
    return lambda seen: seen.expect(path, seen.get(path), seen.body)


def _keys(path: str) -> Judge:
    return lambda seen: seen.expect("fields", sorted(seen.get(path)), sorted(seen.body))


def _total(seen: Seen) -> None:
    seen.expect("total", seen.get("/api/4/mem")["total"], seen.body["total"])


def _one(seen: Seen) -> None:
    seen.expect("total", seen.get("/api/4/mem/total"), seen.body)


def _columns(seen: Seen) -> None:
    names = {row["fs_type"] for row in seen.get("/api/4/fs")}
    seen.expect("types", sorted(names), sorted({row["fs_type"] for row in seen.body}))


def _cleared(seen: Seen) -> None:
    """A busy machine raises an event again at once; what is counted begins anew."""
    counts = [event["count"] for event in seen.get("/api/4/alert")]
    seen.expect("events that go on", [], [count for count in counts if count > 3])


SERVER = RealServer(
    name="glances",
    kind="OpenAPI 3.1 served, without schemas of answers; a table, a number, a text as an answer",
    task="watch a machine",
    start=_start,
    scenarios=(
        Scenario(
            "the list of plugins", "GET /api/4/pluginslist", {}, _same("/api/4/pluginslist"), True
        ),
        Scenario("a plugin", "GET /api/4/{plugin}", {"plugin": "mem"}, _total),
        Scenario("a table", "GET /api/4/{plugin}", {"plugin": "fs"}, _columns),
        Scenario("a field", "GET /api/4/{plugin}/{item}", {"plugin": "mem", "item": "total"}, _one),
        Scenario(
            "a unit",
            "GET /api/4/{plugin}/{item}/unit",
            {"plugin": "mem", "item": "total"},
            _same("/api/4/mem/total/unit"),
        ),
        Scenario(
            "limits",
            "GET /api/4/{plugin}/limits",
            {"plugin": "cpu"},
            _same("/api/4/cpu/limits"),
        ),
        Scenario(
            "views", "GET /api/4/{plugin}/views", {"plugin": "cpu"}, _keys("/api/4/cpu/views")
        ),
        Scenario("all limits", "GET /api/4/all/limits", {}, _keys("/api/4/all/limits")),
        Scenario("events are cleared", "POST /api/4/events/clear/all", {}, _cleared),
        Scenario(
            "a plugin that is not there is an error",
            "GET /api/4/{plugin}",
            {"plugin": "nowhere"},
            lambda seen: None,
            refused=True,
        ),
    ),
)
