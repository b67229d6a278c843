"""The runtime inside the WASM engine: a message in, its answer out.

componentize-py runs this module once, at build time, and keeps the interpreter as it is afterwards:
whatever a server may import is imported here, and what is called here is warm in every instance.
`engine_data` is written by the build (sandbox/engines/wasm/component.py).
"""

from __future__ import annotations

import encodings
import gc
import importlib
import io
import json
import pkgutil
import random
import re
import sys
import time
import zoneinfo
from typing import Any

import chance  # type: ignore[import-not-found]
import engine_data  # type: ignore[import-not-found]
import event_loop  # type: ignore[import-not-found]
import wit_world  # type: ignore[import-not-found]
from toolwright.broker import BrokerTransport  # type: ignore[import-not-found]
from toolwright.bundle import Bundle  # type: ignore[import-not-found]
from toolwright.protocol import Connection, PendingCall  # type: ignore[import-not-found]
from toolwright.wire import encode, outcome, parse  # type: ignore[import-not-found]

MAX_JSON_NESTING = 1000
ORDINARY_NESTING = 12
BROUGHT = ("socket", "subprocess")
"""Modules that asyncio brings and that do nothing here: their import is told as what it is."""
REHEARSALS = 100
"""By then the interpreter has specialised the code that every call runs (PEP 659)."""
HOLES = (*range(32, 513, 16), *(512 << n for n in range(1, 8)))
"""Sizes of memory blocks: those of CPython's own allocator, and larger ones."""
FRESH_BYTES = 32 * 1024
"""So much in one row lies in no hole."""
SAMPLE = """
from toolwright import http, tool

@tool
def fetch(key):
    return http.request("GET", "/items/{key}", path={"key": key}, query={"a": "b"})
"""
_STRINGS_AND_SCALARS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[^"\[\]{}]+', re.DOTALL)
_RUNS = re.compile(r"[\[{]+|[\]}]+")
_raw_decode = json.JSONDecoder.raw_decode


class WitWorld(wit_world.WitWorld):  # type: ignore[misc]
    """The component's export."""

    def run(self) -> None:
        random.seed = CHANCE.seed
        _rehearse()
        answer = ""
        while True:
            answer = _answered(CONNECTION, wit_world.next_line(answer))


class Printed:
    """Standard output and error."""

    encoding = "utf-8"

    def write(self, text: str) -> int:
        wit_world.log(text.encode("utf-8", "replace").decode())
        return len(text)

    def flush(self) -> None:
        return


class Absent:
    """The last finder of modules."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        """Raises ModuleNotFoundError: what is not loaded yet cannot be had."""
        raise ModuleNotFoundError(
            f"{name} is not in the WASM engine, which has {', '.join(engine_data.MODULES)}. "
            "Leave it out, or run this server with --engine docker.",
            name=name,
        )


def _answered(connection: Connection, line: str) -> str:
    received = connection.receive(parse(line))
    if isinstance(received, PendingCall):
        CHANCE.expect()
        answer: bytes = outcome(received)
        return answer.decode()
    return "" if received is None else str(encode(received), "utf-8")


def _exchange(params: dict[str, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = parse(wit_world.exchange(encode(params).decode()))
    return answer


def _transport(bundle: Bundle, brokered: bool) -> BrokerTransport:
    return BrokerTransport(bundle.base_url, _exchange)


def _bounded_decode(self: json.JSONDecoder, s: str, idx: int = 0) -> tuple[Any, int]:
    """`raw_decode`, raising RecursionError where CPython's parser would run out of stack.

    Compiled to WASM the parser cannot notice; the instance would be lost.
    """
    if s.count("[") + s.count("{") > MAX_JSON_NESTING:
        _check_nesting(s)
    return _raw_decode(self, s, idx)


def _check_nesting(text: str) -> None:
    brackets = _STRINGS_AND_SCALARS.sub("", text)
    for _ in range(ORDINARY_NESTING):
        brackets = brackets.replace("[]", "").replace("{}", "")
    depth = 0
    for run in _RUNS.finditer(brackets):
        depth += len(run[0]) if run[0][0] in "[{" else -len(run[0])
        if depth > MAX_JSON_NESTING:
            raise RecursionError("JSON is nested too deeply")


def _load_tzdata(key: str) -> io.BytesIO:
    """In place of `zoneinfo._common.load_tzdata`, which reads files."""
    try:
        return io.BytesIO(engine_data.ZONES[key])
    except KeyError:
        raise zoneinfo.ZoneInfoNotFoundError(f"No time zone found with key {key}") from None


def _available_timezones() -> set[str]:
    return set(engine_data.ZONES)


def _sleep(seconds: Any) -> None:
    raise RuntimeError("time stands still during a call in the WASM engine; nothing can wait")


def _import_all() -> None:
    for name in engine_data.MODULES:
        importlib.import_module(name)
    importlib.import_module("_strptime")
    importlib.import_module("toolwright.suite")
    for module in pkgutil.iter_modules(encodings.__path__):
        try:
            importlib.import_module(f"encodings.{module.name}")
        except ImportError:
            continue  # The code pages of Windows.


def _rehearse() -> None:
    """Load a server and call it, so that nothing is done for the first time when it counts.

    At build time this fills caches, in an instance the memory that is written to.
    """
    answer = {"status": 200, "headers": [["content-type", "application/json"]], "body": '{"n": 1}'}
    connection = Connection(
        None, lambda bundle, _: BrokerTransport(bundle.base_url, lambda params: {"result": answer})
    )
    tool = {"name": "fetch", "description": "", "access": "read", "input_schema": {}}
    tools = [{**tool, "output_schema": {"type": "object"}, "requests": [], "security": []}]
    manifest = {"name": "sample", "version": 1, "base_url": "https://sample.invalid/v1"}
    messages: tuple[tuple[str, dict[str, Any]], ...] = (
        ("toolwright/load", {"manifest": manifest, "tools": tools, "source": SAMPLE}),
        ("initialize", {"capabilities": {"experimental": {"toolwright/request": {}}}}),
        ("tools/call", {"name": "fetch", "arguments": {"key": "a"}}),
    )
    for method, params in messages:
        message = {"jsonrpc": "2.0", "id": "1", "method": method, "params": params}
        if "error" in json.loads(_answered(connection, encode(message).decode())):
            raise RuntimeError(f"the rehearsal failed at {method}")


def _filled() -> list[bytes]:
    """What fills the holes that building left in the interpreter's memory.

    New values then lie on pages of their own. In holes they would lie on hundreds of pages, each of
    which an instance has to copy first.
    """
    empty, kept = sys.getsizeof(b""), []
    for size in HOLES:
        in_row, last = 0, 0
        while in_row * size < FRESH_BYTES:
            kept.append(bytes(size - empty))
            in_row = in_row + 1 if 0 < id(kept[-1]) - last <= size + 16 else 0
            last = id(kept[-1])
    return kept


CONNECTION = Connection(None, _transport)
CHANCE = chance.install()
_import_all()
event_loop.install()
json.JSONDecoder.raw_decode = _bounded_decode  # type: ignore[method-assign]
time.sleep = _sleep
zoneinfo._common.load_tzdata = _load_tzdata  # type: ignore[assignment]
zoneinfo.available_timezones = _available_timezones
zoneinfo.reset_tzpath(to=())
for _ in range(REHEARSALS):
    _rehearse()
# componentize-py seeds `random` at an instance's first call, from 2.5 kB of the host's randomness.
random.seed = lambda *_: None
for brought in BROUGHT:
    sys.modules.pop(brought, None)
sys.stdin, sys.stdout, sys.stderr = None, Printed(), Printed()
sys.meta_path = [Absent()]
sys.path_hooks, sys.path = [], []
gc.collect()
FILLING = _filled()
gc.freeze()
