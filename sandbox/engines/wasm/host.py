"""Imports of the component: requests to the host, the log, and deterministic WASI functions.

CPython is linked against WASI. Clocks and randomness come from the call's inputs; arguments,
environment variables and directories are empty lists. Every other import traps.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from wasmtime import Engine, StoreContext, WasmtimeError
from wasmtime.component import Component, Linker, LinkerInstance

from sandbox.engines.wasm.fiber import AsyncImport, TextSink
from sandbox.session.recording import CallInputs, SeededRandom

MAX_PRINT = 64 * 1024
"""Bytes of one printed text; the rest of it is not looked at."""
REST = ""
RESOLUTION_NS = 1
SECOND_NS = 1_000_000_000


class HostServices(Protocol):
    """Services of the host for one call."""

    async def exchange_request(self, params: str) -> str:
        """Answer a `toolwright/request`. An exception ends the call."""
        ...

    def log_text(self, text: str) -> bool:
        """Keep printed text and return whether the call may go on. In any thread."""
        ...


class GuestState(Protocol):
    """The state of an instance that the host reads and writes while it runs."""

    key: int
    surroundings: HostServices | None
    record: DeterministicInputs
    asked: str | None
    """The params of the request whose answer the instance waits for."""
    answer: str | None
    told: str | None
    """Its answer to the last line; it waits for the next one."""
    line: str | None
    """The next one. `REST` ends the call of its export, and another may go on from there."""
    refused: str
    """Why it is not to go on, where the host will not answer what it asked for; else ""."""
    line_bytes: int
    """The longest text that it may tell or ask for."""


class DeterministicInputs:
    """Time and randomness of one call, derived from its inputs alone."""

    def __init__(self, inputs: CallInputs) -> None:
        self.time_ns = inputs.time_ns
        self.entropy = SeededRandom(inputs.seed)


@dataclass(frozen=True)
class Datetime:
    """`wasi:clocks/wall-clock.datetime`."""

    seconds: int
    nanoseconds: int


class ImportHost:
    """The imports of the component. One host serves all instances, on any number of threads.

    A thread sets by `enter` which instance it runs.
    """

    def __init__(self, engine: Engine, component: Component) -> None:
        self._here = threading.local()
        self._exchange = AsyncImport(self._begin_exchange, self._take_answer, self._get_limit)
        self._next_line = AsyncImport(self._begin_next_line, self._take_line, self._get_limit)
        self._log = TextSink(self._log_text, MAX_PRINT)
        names = component.type.imports(engine)
        self.linker = Linker(engine)
        with self.linker.root() as root:
            self._exchange.add_to_linker(root, "exchange")
            self._next_line.add_to_linker(root, "next-line")
            self._log.add_to_linker(root, "log")
            for name in names:
                functions = self._list_functions().get(name.partition("@")[0], {})
                if functions:
                    with root.add_instance(name) as instance:
                        _add_functions(instance, functions)
        self.linker.define_unknown_imports_as_traps(component)

    def enter_instance(self, caller: GuestState) -> None:
        """Set the instance that this thread runs."""
        self._here.caller = caller

    def forget_instance(self, key: int) -> None:
        """Forget the pending results of an instance that has ended."""
        self._exchange.forget_call(key)
        self._next_line.forget_call(key)

    def _list_functions(self) -> dict[str, dict[str, Callable[..., Any]]]:
        return {
            "wasi:cli/environment": {
                "get-environment": _return_empty,
                "get-arguments": _return_empty,
                "initial-cwd": _return_none,
            },
            "wasi:filesystem/preopens": {"get-directories": _return_empty},
            "wasi:random/random": {
                "get-random-bytes": self._get_random_bytes,
                "get-random-u64": self._get_random_u64,
            },
            "wasi:clocks/wall-clock": {"now": self._get_wall_time, "resolution": _get_resolution},
            "wasi:clocks/monotonic-clock": {
                "now": self._get_monotonic_time,
                "resolution": _get_resolution_ns,
            },
        }

    def _get_caller(self) -> GuestState:
        """The state of the instance that this thread runs."""
        caller: GuestState = self._here.caller
        return caller

    def _get_limit(self) -> int:
        return self._get_caller().line_bytes

    def _begin_exchange(self, params: str | None) -> int:
        caller = self._get_caller()
        caller.asked = params
        if params is None:
            caller.refused = "the code asked for something longer than a line may be"
        return caller.key

    def _take_answer(self, key: int) -> str | None:
        caller = self._get_caller()
        answer, caller.answer = caller.answer, None
        return answer

    def _begin_next_line(self, answer: str | None) -> int:
        caller = self._get_caller()
        caller.told = answer
        if answer is None:
            caller.refused = "the code answered with more than a line may hold"
        return caller.key

    def _take_line(self, key: int) -> str | None:
        caller = self._get_caller()
        line, caller.line = caller.line, None
        return line

    def _log_text(self, text: str) -> bool:
        caller = self._get_caller()
        surroundings = caller.surroundings
        if surroundings and not surroundings.log_text(text):
            caller.refused = "the code printed too often"
        return not caller.refused

    def _get_random_bytes(self, store: StoreContext, size: int) -> bytes:
        if size > 65536:
            raise WasmtimeError("too much randomness was asked for at once")
        return self._get_caller().record.entropy.read_bytes(size)

    def _get_random_u64(self, store: StoreContext) -> int:
        return int.from_bytes(self._get_caller().record.entropy.read_bytes(8), "little")

    def _get_wall_time(self, store: StoreContext) -> Datetime:
        return Datetime(*divmod(self._get_caller().record.time_ns, SECOND_NS))

    def _get_monotonic_time(self, store: StoreContext) -> int:
        return self._get_caller().record.time_ns


def _add_functions(instance: LinkerInstance, functions: dict[str, Callable[..., Any]]) -> None:
    for name, function in functions.items():
        instance.add_func(name, function)


def _return_empty(store: StoreContext) -> list[Any]:
    return []


def _return_none(store: StoreContext) -> None:
    return None


def _get_resolution(store: StoreContext) -> Datetime:
    return Datetime(0, RESOLUTION_NS)


def _get_resolution_ns(store: StoreContext) -> int:
    return RESOLUTION_NS
