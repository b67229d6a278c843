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
import types
import zoneinfo
from typing import Any

import chance  # type: ignore[import-not-found]
import engine_data  # type: ignore[import-not-found]
import event_loop  # type: ignore[import-not-found]
import wit_world  # type: ignore[import-not-found]
from toolwright.broker import BrokerTransport  # type: ignore[import-not-found]
from toolwright.bundle import Bundle  # type: ignore[import-not-found]
from toolwright.protocol import Connection, PendingCall  # type: ignore[import-not-found]
from toolwright.rehearsal import rehearse  # type: ignore[import-not-found]
from toolwright.wire import encode, outcome, parse  # type: ignore[import-not-found]

MAX_JSON_NESTING = 1000
ORDINARY_NESTING = 12
BROUGHT = ("socket", "subprocess")
"""Modules that asyncio brings and that do nothing here: their import is told as what it is."""
REHEARSALS = 100
"""By then the interpreter has specialised the code that every call runs (PEP 659)."""
SETTLE, LIST = "settle", "list objects"
"""Lines that are no messages: the first ends `run` after `_settle`, the answer to the other is what
`_list_objects` returns."""
HOLES = (*range(8, 513, 8), *(512 << n for n in range(1, 8)))
"""Sizes of memory blocks: those of CPython's own allocator where pointers have 32 bits, and larger
ones."""
FRESH_BYTES = 32 * 1024
"""So much in one row lies in no hole."""
_STRINGS_AND_SCALARS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[^"\[\]{}]+', re.DOTALL)
_RUNS = re.compile(r"[\[{]+|[\]}]+")
_raw_decode = json.JSONDecoder.raw_decode


class WitWorld(wit_world.WitWorld):  # type: ignore[misc]
    """The component's export."""

    def run(self) -> None:
        """Serve until the host has an empty line. Called again, it goes on from there: the host has
        kept the memory, and begins others with it (sandbox/engines/wasm/memory.py).
        """
        if not STARTED:
            random.seed = CHANCE.seed
            _rehearse()
            STARTED.append(True)
        answer = ""
        while line := wit_world.next_line(answer):
            if line == SETTLE:
                _settle()
                return
            answer = _list_objects() if line == LIST else _answered(CONNECTION, line)


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
    """At build time this fills caches, in an instance the memory that is written to."""
    rehearse(lambda connection, line: _answered(connection, line.decode()).encode())


def _fill_block(size: int) -> object:
    """A new object of so many bytes."""
    empty = sys.getsizeof(b"")
    if size > empty:
        return bytes(size - empty)
    return object() if size <= sys.getsizeof(object()) else float(size)


def _filled() -> list[object]:
    """What fills the holes that building left in the interpreter's memory.

    New values then lie on pages of their own. In holes they would lie on hundreds of pages, each of
    which an instance has to copy first.
    """
    kept: list[object] = []
    for size in HOLES:
        in_row, last = 0, 0
        while in_row * size < FRESH_BYTES:
            kept.append(_fill_block(size))
            in_row = in_row + 1 if 0 < id(kept[-1]) - last <= size + 16 else 0
            last = id(kept[-1])
    return kept


def _settle() -> None:
    """Leave no holes, and keep all objects out of later collections. Called once more after the
    first run, which frees some of what it needs.
    """
    gc.collect()
    FILLING.extend(_filled())
    gc.freeze()


def _list_objects() -> str:
    """The version of Python, and the addresses of all objects that modules lead to.

    The host makes them immortal once (sandbox/engines/wasm/settling.py), so that an instance does
    not have to copy the pages on which they lie to count references.
    """
    seen: set[int] = set()
    found: list[Any] = list(sys.modules.values())
    while found:
        fresh = [o for o in {id(o): o for o in found}.values() if id(o) not in seen]
        seen.update(map(id, fresh))
        found = gc.get_referents(*fresh)
        for code in fresh:
            if isinstance(code, types.CodeType):
                # No attribute that is made when it is read: its value would be there only here.
                found += (code.co_consts, code.co_names, code.co_linetable, code.co_exceptiontable)
                found += (code.co_name, code.co_qualname, code.co_filename)
    return " ".join(map(str, [*sys.version_info[:2], *sorted(seen)]))


CONNECTION = Connection(None, _transport)
STARTED: list[bool] = []
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
FILLING: list[object] = []
_settle()
