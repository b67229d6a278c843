"""What a call depends on besides its server's code, kept so that it can be run again."""

from __future__ import annotations

import hashlib
import json
import math
import os
import time
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from sandbox import exchange as exchange_json
from sandbox.bundle import Bundle
from sandbox.exchange import Exchange
from sandbox.notices import LogEar
from sandbox.progress import MAX_TOLD, Hearer, read_progress, unheard
from sandbox.toolcall import ToolCalls

MAX_BYTES = 64 * 1024 * 1024
"""A recording that takes more, written out, is not kept."""
FROZEN_TIME_NS = 946_684_800 * 1_000_000_000
"""2000-01-01T00:00:00Z, the time in tools that have no right to the present one."""
CLOCK, RANDOM = "clock", "random"
"""Permissions of a bundle: what its pure tools get of the present time and of fresh randomness."""


@dataclass(frozen=True)
class Inputs:
    """The time that stands still during a call (nanoseconds since 1970) and the source of all its
    randomness (64 hexadecimal digits).
    """

    time_ns: int
    seed: str


LOADING = Inputs(0, "0" * 64)
"""What code sees while it is loaded, so that a loaded server is the same every time."""


def live_inputs() -> Inputs:
    """The present time and fresh randomness."""
    return Inputs(time.time_ns(), os.urandom(32).hex())


def inputs_for(bundle: Bundle, tool: str, arguments: Mapping[str, Any], live: Inputs) -> Inputs:
    """What a call is given, where the engine can choose it.

    A pure tool, one that may ask the host for nothing, has a time that never changes and
    randomness made of its code, its name and its arguments, unless the bundle's permissions say
    `clock` or `random`: then, like any other tool, those of `live`. Raises KeyError.
    """
    if bundle.tool(tool).requests:
        return live
    return Inputs(
        time_ns=live.time_ns if CLOCK in bundle.permissions else FROZEN_TIME_NS,
        seed=live.seed if RANDOM in bundle.permissions else _seed(bundle, tool, arguments),
    )


@dataclass
class Tape:
    """What one call takes in, as it happens. Inputs that are on it before the call are those that
    the call gets, in an engine that can give them. `heard` is told how far the call has come,
    `logged` what its server logs meanwhile. `calls` makes the calls of tools that it asks for.
    """

    inputs: Inputs | None = None
    exchanges: list[Exchange] = field(default_factory=list)
    heard: Hearer = unheard
    logged: LogEar | None = None
    calls: ToolCalls | None = None
    _told: int = 0
    _latest: float = -math.inf

    def tell(self, said: Mapping[str, Any]) -> None:
        """Pass on what a sandbox said of its progress: what goes forward, up to a limit."""
        progress = read_progress(said)
        if progress is None or progress.done <= self._latest or self._told >= MAX_TOLD:
            return
        self._told, self._latest = self._told + 1, progress.done
        self.heard(progress)


@dataclass(frozen=True)
class Recording:
    """All that a call took in: where it ran, and what it was given there.

    `engine` is `docker`, `wasm` or, for a plain process, `none`; `base` the id of the base image or
    the component, "" where there is neither. Without `inputs`, time and randomness were the
    machine's own. In the same component the same recording gives the same bytes.
    """

    engine: str
    base: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    inputs: Inputs | None = None
    exchanges: tuple[Exchange, ...] = ()


class Entropy:
    """Random bytes that a seed determines: SHA-256 over the seed and a counter."""

    def __init__(self, seed: str) -> None:
        self._seed, self._count, self._left = seed.encode(), 0, b""

    def read(self, size: int) -> bytes:
        parts, missing = [self._left], size - len(self._left)
        while missing > 0:
            parts.append(hashlib.sha256(b"%s %d" % (self._seed, self._count)).digest())
            self._count += 1
            missing -= len(parts[-1])
        content = b"".join(parts)
        self._left = content[size:]
        return content[:size]


def pack(recording: Recording) -> bytes | None:
    """The recording as compressed JSON; None where it takes more than `MAX_BYTES`."""
    if sum(map(_size, recording.exchanges)) > MAX_BYTES:
        return None
    value = to_json(recording)
    try:
        text = orjson.dumps(value)
    except TypeError:  # Integers beyond 64 bits, and lone surrogates.
        text = json.dumps(value, separators=(",", ":")).encode()
    return zlib.compress(text, 1) if len(text) <= MAX_BYTES else None


def unpack(content: bytes) -> Recording:
    """The inverse of `pack`. Raises ValueError on anything else."""
    stream = zlib.decompressobj()
    try:
        text = stream.decompress(content, MAX_BYTES + 1)
        if len(text) > MAX_BYTES or not stream.eof:
            raise ValueError("the recording is cut or too large")
        return from_json(json.loads(text))
    except (zlib.error, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"not a recording: {type(error).__name__}: {error}") from error


def to_json(recording: Recording) -> dict[str, Any]:
    return {
        "engine": recording.engine,
        "base": recording.base,
        "arguments": recording.arguments,
        "inputs": recording.inputs and vars(recording.inputs),
        "exchanges": [exchange_json.to_json(exchange) for exchange in recording.exchanges],
    }


def from_json(data: Mapping[str, Any]) -> Recording:
    """The inverse of `to_json`. Raises KeyError, TypeError, AttributeError or ValueError on
    anything else.
    """
    inputs = data["inputs"]
    return Recording(
        engine=str(data["engine"]),
        base=str(data["base"]),
        arguments=dict(data["arguments"]),
        inputs=inputs and Inputs(int(inputs["time_ns"]), str(inputs["seed"])),
        exchanges=tuple(exchange_json.from_json(exchange) for exchange in data["exchanges"]),
    )


def _seed(bundle: Bundle, tool: str, arguments: Mapping[str, Any]) -> str:
    said = json.dumps([bundle.source_code, tool, arguments], sort_keys=True)
    return hashlib.sha256(said.encode()).hexdigest()


def _size(exchange: Exchange) -> int:
    answered = len(exchange.response.body) if exchange.response else 0
    return len(exchange.request.url) + len(exchange.request.body) + answered
