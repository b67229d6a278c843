"""Handing a bundle to an instance: what every session says first, and what came of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from wasmtime import WasmtimeError

from sandbox import exactjson
from sandbox.recording import LOADING
from sandbox.runner import Limits
from sandbox.wasm_guest import Guest

MAX_PRINTS = 10_000
Lines = tuple[str, ...]
"""`toolwright/load` and `initialize`, as the host writes them."""
_REFUSAL = {"code": -32010, "message": "no such call", "data": {"kind": "unsupported"}}
_NO_CALL = exactjson.dumps({"error": _REFUSAL}).decode()


@dataclass(frozen=True)
class Opened:
    """A guest that has heard a server's first lines, and what it answered and printed."""

    guest: Guest
    answers: tuple[str, ...]
    printed: tuple[str, ...]


class Loading:
    """What code may reach while it is loaded: nothing, because nobody has called it."""

    def __init__(self, log: Callable[[str], None]) -> None:
        self._log, self._prints = log, 0

    async def exchange(self, params: str) -> str:
        return _NO_CALL

    def log(self, text: str) -> None:
        self._prints += 1
        if self._prints > MAX_PRINTS:
            raise WasmtimeError("the code printed too often")
        self._log(text)


async def hear(guest: Guest, lines: Lines, log: Callable[[str], None]) -> tuple[str, ...]:
    """The guest's answers to a server's first lines. Raises GuestTrapped.

    A guest that did not hear them all is closed.
    """
    loading = Loading(log)
    try:
        return tuple([await guest.call(line, LOADING, loading) for line in lines])
    except BaseException:
        guest.close()
        raise


def went_well(answers: tuple[str, ...]) -> bool:
    """Whether these answers to a server's first lines say that it can be called."""
    try:
        return all("result" in exactjson.loads(answer.encode()) for answer in answers)
    except (ValueError, TypeError, RecursionError):
        return False


async def opened(guest: Guest, lines: Lines, limits: Limits) -> Opened:
    """The guest with the bundle, for a session to come. Raises GuestTrapped."""
    printed: list[str] = []
    left = limits.stderr_bytes

    def keep(text: str) -> None:
        nonlocal left
        if left > 0:
            printed.append(text[:left])
            left -= len(text)

    return Opened(guest, await hear(guest, lines, keep), tuple(printed))
