"""Programs that the static gate admits for the cages hold them: the same code, in each engine."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from sandbox.bundle.model import Bundle
from sandbox.session.interface import Outcome
from sandbox.stages.static.stage import prove_static
from tests.engine.conftest import Engine
from tests.engine.samples import Api, body, broker, bundle

CLASSES = """
from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields, replace
from enum import Enum, auto

from toolwright import tool


class Kind(Enum):
    SMALL = auto()
    LARGE = auto()

    @property
    def label(self) -> str:
        return self.name.lower()


@dataclass(frozen=True, order=True)
class Box:
    width: int
    parts: list[str] = field(default_factory=list)
    kind: Kind = Kind.SMALL

    def __post_init__(self) -> None:
        if self.width < 0:
            raise ValueError("too small")

    @property
    def area(self) -> int:
        return self._square()

    def _square(self) -> int:
        return self.width * self.width


class Odd(ValueError):
    def __init__(self, width: int) -> None:
        super().__init__(f"{width} is odd")
        self.width = width


@tool
def run():
    box = replace(Box(2, ["a"]), kind=Kind.LARGE)
    try:
        raise Odd(3)
    except Odd as error:
        told = f"{error.__class__.__name__}: {error}"
    return {
        "box": {**asdict(box), "kind": box.kind.label},
        "fields": [one.name for one in fields(box)],
        "area": box.area,
        "told": told,
        "kind": type(box).__name__,
    }
"""
CLASSES_GIVE = {
    "box": {"width": 2, "parts": ["a"], "kind": "large"},
    "fields": ["width", "parts", "kind"],
    "area": 4,
    "told": "Odd: 3 is odd",
    "kind": "Box",
}
COMPRESSION = """
import zlib

from toolwright import ToolError, tool


@tool
def run():
    packed = zlib.compress(b"abc" * 1000)
    bomb = zlib.compress(b"0" * 1_000_000)
    part = zlib.decompressobj()
    first = part.decompress(bomb, 100)
    try:
        zlib.decompress(b"no such data")
    except zlib.error as error:
        told = type(error).__name__
    return {
        "length": len(zlib.decompress(packed)),
        "first": len(first),
        "more": bool(part.unconsumed_tail),
        "sum": zlib.crc32(b"abc"),
        "told": told,
    }
"""
COMPRESSION_GIVES = {"length": 3000, "first": 100, "more": True, "sum": 891568578, "told": "error"}
LOOP = """
import asyncio

from toolwright import http, tool


async def one(number, limit):
    async with limit:
        await asyncio.sleep(0.01 * number)
        return http.request("GET", "/items/{key}", path={"key": number}).status


async def late(event):
    try:
        await asyncio.wait_for(event.wait(), 0.01)
    except asyncio.TimeoutError:
        return "late"


async def every():
    limit, queue = asyncio.Semaphore(2), asyncio.Queue()
    task = asyncio.create_task(one(2, limit))
    await queue.put("x")
    statuses = await asyncio.gather(*(one(number, limit) for number in range(3)), task)
    return {"statuses": statuses, "got": await queue.get(), "late": await late(asyncio.Event())}


@tool
def run():
    return asyncio.run(every())
"""
LOOP_GIVES = {"statuses": [200, 200, 200, 200], "got": "x", "late": "late"}
DATABASE = """
import sqlite3

from toolwright import ToolError, tool


@tool
def run():
    database = sqlite3.connect(":memory:")
    database.row_factory = sqlite3.Row
    database.execute("CREATE TABLE prices (name TEXT, cents INTEGER)")
    database.executemany("INSERT INTO prices VALUES (?, ?)", [("a", 5), ("b", 7), ("a", 8)])
    rows = database.execute("SELECT name, sum(cents) AS whole FROM prices GROUP BY name")
    found = {row["name"]: row["whole"] for row in rows.fetchall()}
    try:
        database.execute("SELECT x FROM nowhere")
    except sqlite3.OperationalError as error:
        told = str(error)
    database.close()
    return {"found": found, "told": told}
"""
DATABASE_GIVES = {"found": {"a": 13, "b": 7}, "told": "no such table: nowhere"}
PROGRAMS = {
    "data classes": (CLASSES, CLASSES_GIVE),
    "compression": (COMPRESSION, COMPRESSION_GIVES),
    "an event loop": (LOOP, LOOP_GIVES),
    "a database in memory": (DATABASE, DATABASE_GIVES),
}


def build_program(code: str) -> Bundle:
    made = bundle(code, "run")
    (tool,) = made.tools
    return replace(made, tools=(replace(tool, input_schema={"type": "object"}),))


def call_twice(engine: Engine, of: Bundle) -> list[Outcome]:
    async def run() -> list[Outcome]:
        upstream: Api = body(b"{}")
        async with engine() as runner, runner.open(of, broker(of, upstream)) as session:
            return [await session.call("run", {}) for _ in range(2)]

    return asyncio.run(run())


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_the_static_gate_admits_it(name: str) -> None:
    found = prove_static(build_program(PROGRAMS[name][0])).findings
    assert [finding for finding in found if finding.file == "server.py"] == []


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_it_runs_and_gives_the_same_in_every_engine(engine: Engine, name: str) -> None:
    code, wanted = PROGRAMS[name]
    for outcome in call_twice(engine, build_program(code)):
        assert outcome.ok, outcome.failure
        got: Any = outcome.structured
        assert got == wanted
