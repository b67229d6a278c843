"""What code in the WASM engine can reach: a way to the host, a bounded log, and a call's record.

CPython is linked against WASI; of it the clock, the randomness and the empty lists of arguments,
variables and directories are answered here. Every other import traps.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from wasmtime import StoreContext, WasmtimeError
from wasmtime.component import Linker, LinkerInstance

from sandbox.recording import Entropy, Inputs
from sandbox.wasm_component import LoadedComponent
from sandbox.wasm_fiber import Waiter

RESOLUTION_NS = 1
SECOND_NS = 1_000_000_000


class Surroundings(Protocol):
    """What one call may reach."""

    async def exchange(self, params: str) -> str:
        """The answer to a `toolwright/request`. What it raises ends the call."""
        ...

    def log(self, text: str) -> None:
        """Keep what was printed. In any thread. Raises WasmtimeError to end the call."""
        ...


class Caller(Protocol):
    """An instance, as the host sees it while it runs."""

    key: int
    surroundings: Surroundings | None
    record: Record
    asked: str | None
    """The params of a request that the instance waits for the answer to."""
    answer: str | None
    told: str | None
    """What it answered to the last line; it waits for the next one."""
    line: str | None


class Record:
    """Time and randomness of one call: nothing but its inputs."""

    def __init__(self, inputs: Inputs) -> None:
        self.time_ns = inputs.time_ns
        self.entropy = Entropy(inputs.seed)


@dataclass(frozen=True)
class Datetime:
    """`wasi:clocks/wall-clock.datetime`."""

    seconds: int
    nanoseconds: int


class Host:
    """The imports of the component. One host serves all instances, on any number of threads.

    A thread says by `enter` which instance it runs.
    """

    def __init__(self, loaded: LoadedComponent) -> None:
        self._here = threading.local()
        self._exchange = Waiter(self._ask, self._answered)
        self._next_line = Waiter(self._tell, self._told)
        names = loaded.component.type.imports(loaded.engine)
        self.linker = Linker(loaded.engine)
        with self.linker.root() as root:
            self._exchange.add_to(root, "exchange")
            self._next_line.add_to(root, "next-line")
            root.add_func("log", self._log)
            for name in names:
                functions = self._functions().get(name.partition("@")[0], {})
                if functions:
                    with root.add_instance(name) as instance:
                        _add(instance, functions)
        self.linker.define_unknown_imports_as_traps(loaded.component)

    def enter(self, caller: Caller) -> None:
        """From here on this thread runs that instance."""
        self._here.caller = caller

    def forget(self, key: int) -> None:
        """The instance with that key is over."""
        self._exchange.forget(key)
        self._next_line.forget(key)

    def _functions(self) -> dict[str, dict[str, Callable[..., Any]]]:
        return {
            "wasi:cli/environment": {
                "get-environment": _nothing,
                "get-arguments": _nothing,
                "initial-cwd": _none,
            },
            "wasi:filesystem/preopens": {"get-directories": _nothing},
            "wasi:random/random": {
                "get-random-bytes": self._random_bytes,
                "get-random-u64": self._random_u64,
            },
            "wasi:clocks/wall-clock": {"now": self._wall, "resolution": _resolution},
            "wasi:clocks/monotonic-clock": {"now": self._monotonic, "resolution": _resolution_ns},
        }

    def _ask(self, params: str) -> int:
        caller: Caller = self._here.caller
        caller.asked = params
        return caller.key

    def _answered(self, key: int) -> str | None:
        caller: Caller = self._here.caller
        answer, caller.answer = caller.answer, None
        return answer

    def _tell(self, answer: str) -> int:
        caller: Caller = self._here.caller
        caller.told = answer
        return caller.key

    def _told(self, key: int) -> str | None:
        caller: Caller = self._here.caller
        line, caller.line = caller.line, None
        return line

    def _log(self, store: StoreContext, text: str) -> None:
        surroundings = self._here.caller.surroundings
        if surroundings:
            surroundings.log(text)

    def _random_bytes(self, store: StoreContext, size: int) -> bytes:
        if size > 65536:
            raise WasmtimeError("too much randomness was asked for at once")
        content: bytes = self._here.caller.record.entropy.read(size)
        return content

    def _random_u64(self, store: StoreContext) -> int:
        return int.from_bytes(self._here.caller.record.entropy.read(8), "little")

    def _wall(self, store: StoreContext) -> Datetime:
        return Datetime(*divmod(self._here.caller.record.time_ns, SECOND_NS))

    def _monotonic(self, store: StoreContext) -> int:
        now: int = self._here.caller.record.time_ns
        return now


def _add(instance: LinkerInstance, functions: dict[str, Callable[..., Any]]) -> None:
    for name, function in functions.items():
        instance.add_func(name, function)


def _nothing(store: StoreContext) -> list[Any]:
    return []


def _none(store: StoreContext) -> None:
    return None


def _resolution(store: StoreContext) -> Datetime:
    return Datetime(0, RESOLUTION_NS)


def _resolution_ns(store: StoreContext) -> int:
    return RESOLUTION_NS
