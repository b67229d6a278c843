"""Recordings of calls: arguments, time, randomness and exchanges, for deterministic replay."""

from __future__ import annotations

import hashlib
import json
import math
import operator
import os
import time
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote

import orjson

from sandbox.broker.host.tools import ToolCalls
from sandbox.budget import CallUsage
from sandbox.bundle.model import Bundle
from sandbox.bundle.permissions import CLOCK, RANDOM
from sandbox.sanitize import clean_text
from sandbox.wire import exchange as exchange_json
from sandbox.wire.exchange import Exchange, WireRequest, measure_exchange
from sandbox.wire.notifications import MAX_TOLD, Hearer, LogListener, ignore_progress, read_progress
from sandbox.wire.redaction import MARK, Redaction

MAX_HEARD = 16 * 1024
"""Characters of a notice that are looked at; far fewer are told."""
MAX_BYTES = 64 * 1024 * 1024
"""Uncompressed size past which a recording is not kept."""
_SMALL_WINDOW, _SMALL_MEMORY = 12, 5
"""zlib's `wbits` and `memLevel` for texts of at most `_SMALL` bytes: they pack as well as with the
usual ones, whose 256 KB of memory the allocator fetches from the machine and gives back each time.
"""
_SMALL = 1 << _SMALL_WINDOW
FROZEN_TIME_NS = 946_684_800 * 1_000_000_000
"""2000-01-01T00:00:00Z, the time in pure tools without the permission `clock`."""


@dataclass(frozen=True)
class CallInputs:
    """Time and randomness of a call: a clock that stands still (nanoseconds since 1970) and the
    seed of all random bytes (64 hexadecimal digits).
    """

    time_ns: int
    seed: str


LOADING = CallInputs(0, "0" * 64)
"""Inputs while code is loaded: constant, so that a loaded server is the same every time."""


def create_live_inputs() -> CallInputs:
    """The present time and fresh randomness."""
    return CallInputs(time.time_ns(), os.urandom(32).hex())


def choose_inputs(
    bundle: Bundle, tool: str, arguments: Mapping[str, Any], live: CallInputs
) -> CallInputs:
    """Inputs of a call, for engines that can choose them.

    A pure tool (one that declares no requests) gets `FROZEN_TIME_NS` and a seed derived from its
    code, name and arguments; with the permission `clock` or `random` it gets that part of `live`.
    All other tools get `live`. Raises KeyError for an unknown tool.
    """
    if bundle.get_tool(tool).requests:
        return live
    return CallInputs(
        time_ns=live.time_ns if CLOCK in bundle.permissions else FROZEN_TIME_NS,
        seed=live.seed if RANDOM in bundle.permissions else _derive_seed(bundle, tool, arguments),
    )


@dataclass
class CallLog:
    """Inputs and exchanges of one call, filled while it runs. `inputs` set before the call are used
    by engines that can choose them. `heard` receives progress, `logged` the server's log messages;
    `calls` performs the tool calls that the call asks for. `usage` counts what is held of the call,
    for as long as this log is.
    """

    inputs: CallInputs | None = None
    exchanges: list[Exchange] = field(default_factory=list)
    heard: Hearer = ignore_progress
    logged: LogListener | None = None
    calls: ToolCalls | None = None
    usage: CallUsage | None = None
    hide: Redaction | None = None
    """What has to be kept out of the call's records: values that the server was given."""
    _kept_out: frozenset[str] = field(default=frozenset(), repr=False)
    _safe: tuple[Redaction, tuple[Exchange, ...], tuple[Exchange, ...]] | None = field(
        default=None, repr=False
    )
    """The exchanges that were hidden last, by what, and as they may be written down."""
    _told: int = 0
    _latest: float = -math.inf
    _shown: str = ""
    """The end of what was told meanwhile: a secret may come in parts."""

    def keep_out(self, secrets: Iterable[str]) -> None:
        """Keep these values out of the call's records, with those that were named before."""
        self._kept_out |= frozenset(secrets)
        self.hide = Redaction(self._kept_out)

    def list_safe_exchanges(self) -> tuple[Exchange, ...]:
        """The exchanges as they may be written down; found out once for the same ones."""
        hide, present = self.hide, (*self.exchanges,)
        if hide is None:
            return present
        if self._safe is None or self._safe[0] is not hide or not _are_same(self._safe[1], present):
            self._safe = hide, present, tuple(_hide_exchange(each, hide) for each in present)
        return self._safe[2]

    def hide_next(self, text: str, hides: Iterable[Redaction]) -> str:
        """The next text that is told during the call, cleaned and without secrets, nor the rest of
        one whose beginning was told before.
        """
        told = clean_text(text[:MAX_HEARD])
        for hide in hides:
            told = hide.redact_continued(self._shown, told)
        self._shown = (self._shown + told)[-MAX_HEARD:]
        return told

    def report_progress(self, said: Mapping[str, Any]) -> None:
        """Pass on a progress notice if it advances, at most `MAX_TOLD` of them."""
        progress = read_progress(said)
        if progress is None or progress.done <= self._latest or self._told >= MAX_TOLD:
            return
        self._told, self._latest = self._told + 1, progress.done
        self.heard(progress)


@dataclass(frozen=True)
class CallRecording:
    """All inputs of a call and where it ran.

    `engine` is `docker`, `wasm` or, for a plain process, `none`; `base` the id of the base image or
    the component, "" where there is neither. Without `inputs`, time and randomness were the
    machine's own. In the same component the same recording gives the same bytes.
    """

    engine: str
    base: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    inputs: CallInputs | None = None
    exchanges: tuple[Exchange, ...] = ()


class SeededRandom:
    """Random bytes that a seed determines: SHA-256 over the seed and a counter."""

    def __init__(self, seed: str) -> None:
        self._seed, self._count, self._left = seed.encode(), 0, b""

    def read_bytes(self, size: int) -> bytes:
        parts, missing = [self._left], size - len(self._left)
        while missing > 0:
            parts.append(hashlib.sha256(b"%s %d" % (self._seed, self._count)).digest())
            self._count += 1
            missing -= len(parts[-1])
        content = b"".join(parts)
        self._left = content[size:]
        return content[:size]


def pack_recording(recording: CallRecording) -> bytes | None:
    """The recording as compressed JSON; None where it takes more than `MAX_BYTES`."""
    if sum(map(measure_exchange, recording.exchanges)) > MAX_BYTES:
        return None
    value = to_json(recording)
    try:
        text = orjson.dumps(value)
    except TypeError:  # Integers beyond 64 bits, and lone surrogates.
        text = json.dumps(value, separators=(",", ":")).encode()
    if len(text) > _SMALL:
        return zlib.compress(text, 1) if len(text) <= MAX_BYTES else None
    packer = zlib.compressobj(1, zlib.DEFLATED, _SMALL_WINDOW, _SMALL_MEMORY)
    return packer.compress(text) + packer.flush()


def unpack_recording(content: bytes) -> CallRecording:
    """The inverse of `pack`. Raises ValueError on anything else."""
    stream = zlib.decompressobj()
    try:
        text = stream.decompress(content, MAX_BYTES + 1)
        if len(text) > MAX_BYTES or not stream.eof:
            raise ValueError("the recording is cut or too large")
        return from_json(json.loads(text))
    except (zlib.error, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"not a recording: {type(error).__name__}: {error}") from error


def to_json(recording: CallRecording) -> dict[str, Any]:
    return {
        "engine": recording.engine,
        "base": recording.base,
        "arguments": recording.arguments,
        "inputs": recording.inputs and vars(recording.inputs),
        "exchanges": [exchange_json.to_json(exchange) for exchange in recording.exchanges],
    }


def from_json(data: Mapping[str, Any]) -> CallRecording:
    """The inverse of `to_json`. Raises KeyError, TypeError, AttributeError or ValueError on
    anything else.
    """
    inputs = data["inputs"]
    return CallRecording(
        engine=str(data["engine"]),
        base=str(data["base"]),
        arguments=dict(data["arguments"]),
        inputs=inputs and CallInputs(int(inputs["time_ns"]), str(inputs["seed"])),
        exchanges=tuple(exchange_json.from_json(exchange) for exchange in data["exchanges"]),
    )


def _derive_seed(bundle: Bundle, tool: str, arguments: Mapping[str, Any]) -> str:
    said = json.dumps([bundle.source_code, tool, arguments], sort_keys=True)
    return hashlib.sha256(said.encode()).hexdigest()


def hide_request(request: WireRequest, hide: Redaction) -> WireRequest:
    """A request as it may be written down."""
    return WireRequest(
        request.method,
        # Brackets are no part of a URL's query (RFC 3986), and a call that is run again from its
        # record writes them so.
        hide.redact_text(request.url).replace(MARK, quote(MARK)),
        hide.redact_headers(request.headers),
        hide.redact_bytes(request.body),
    )


def _are_same(some: tuple[Exchange, ...], others: tuple[Exchange, ...]) -> bool:
    return len(some) == len(others) and all(map(operator.is_, some, others))


def _hide_exchange(exchange: Exchange, hide: Redaction) -> Exchange:
    response = exchange.response
    return replace(
        exchange,
        request=hide_request(exchange.request, hide),
        response=response and hide.redact_response(response),
        reason=hide.redact_text(exchange.reason),
    )
