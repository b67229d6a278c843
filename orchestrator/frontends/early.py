"""The first answers of `serve` and `run NAME`, given while the rest of it is still being loaded.

What a client asks as it connects (`initialize`, `server/discover`, `tools/list`, `ping`) has
answers that need nothing else. All other messages are kept, in their order, for the server proper,
and `initialize` with them: it is to know its client too, only its answer goes nowhere.
"""

from __future__ import annotations

import json
import os
import select
import stat
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from orchestrator.errors import OrchestratorError
from orchestrator.frontends.greeting import (
    INSTRUCTIONS,
    LEGACY,
    MODERN,
    build_discover_result,
    build_initialize_result,
    build_tool_list,
    find_kept_instructions,
)
from orchestrator.settings import Settings, load_settings
from registry.database.fingerprint import compute_fingerprint

MAX_LINE = 65_536
MAX_KEPT = 1_048_576
MAX_SENT = 49_152
"""Bytes that are written before the server proper goes on: as many as a pipe holds unread."""
_PROTOCOL, _INFO, _CAPABILITIES = (
    f"io.modelcontextprotocol/{name}"
    for name in ("protocolVersion", "clientInfo", "clientCapabilities")
)
_INFO_KEYS = frozenset({"name", "version", "title", "description", "websiteUrl"})
MessageId = str | int


@dataclass(frozen=True)
class Taken:
    """What came in early: `unread` are the bytes that the server proper has to read first, the
    answer to `answered` is not to be sent again.
    """

    unread: bytes = b""
    answered: frozenset[MessageId] = frozenset()


class Greeter(Protocol):
    """What introduces a server. A result is None where only the server proper knows it."""

    def introduce(self, version: str) -> dict[str, Any] | None:
        """The result of `initialize` for a client that speaks `version`, one of LEGACY."""
        ...

    def discover(self) -> dict[str, Any] | None:
        """The result of `server/discover`."""
        ...

    def list_tools(self, modern: bool) -> dict[str, Any] | None:
        """The result of `tools/list`."""
        ...


@dataclass(frozen=True)
class FrontGreeter:
    """Introduces `serve`. `find_instructions` is asked at the first need; where it knows none,
    nothing is answered that tells them.
    """

    find_instructions: Callable[[], str | None]

    def introduce(self, version: str) -> dict[str, Any] | None:
        told = self.find_instructions()
        return None if told is None else build_initialize_result(version, told)

    def discover(self) -> dict[str, Any] | None:
        told = self.find_instructions()
        return None if told is None else build_discover_result(told)

    def list_tools(self, modern: bool) -> dict[str, Any] | None:
        return build_tool_list(modern)


@dataclass
class FirstAnswers:
    """What is answered early, line by line."""

    greeter: Greeter
    send: Callable[[bytes], None]
    kept: list[bytes] = field(default_factory=list)
    answered: set[MessageId] = field(default_factory=set)
    full: bool = False
    _sent: int = 0
    _kept_bytes: int = 0
    _legacy: bool = False

    def take_line(self, line: bytes) -> None:
        """Answer a line, or keep it."""
        message = None if self.full or len(line) > MAX_LINE else _read_request(line)
        result = self._find_result(message) if message else None
        if message is None or result is None:
            self._keep(line)
            return
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        written = json.dumps(answer, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
        if self._sent + len(written) > MAX_SENT:
            self.full = True
            self._keep(line)
            return
        if message["method"] == "initialize":
            self._legacy = True
            self.answered.add(message["id"])
            self._keep(line)
        self._sent += len(written)
        self.send(written)

    def _keep(self, line: bytes) -> None:
        self.kept.append(line)
        self._kept_bytes += len(line)
        self.full = self.full or self._kept_bytes > MAX_KEPT

    def _find_result(self, message: Mapping[str, Any]) -> dict[str, Any] | None:
        """The result of a request that has one already; None for all else."""
        method, params = message["method"], message.get("params", {})
        modern = _is_modern(params)
        if method == "initialize" and not self._legacy and _is_introduction(params):
            return self.greeter.introduce(params["protocolVersion"])
        if method == "server/discover" and modern:
            return self.greeter.discover()
        if method == "tools/list" and modern:
            return self.greeter.list_tools(modern=True)
        if method == "tools/list" and self._legacy and set(params) <= {"_meta"}:
            return self.greeter.list_tools(modern=False)
        if method == "ping" and self._legacy:
            return {}
        return None


class EarlyAnswers:
    """Answers on two descriptors in a thread, from `start` to `stop`."""

    def __init__(self, source: int, sink: int, greeter: Greeter) -> None:
        self._source, self._sink = source, sink
        self._answers = FirstAnswers(greeter, self._send)
        self._rest = b""
        self._wake, self._stop = os.pipe()
        self._thread = threading.Thread(target=self._answer_lines, name="early", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> Taken:
        """End answering. Nothing is read from the source after that."""
        os.close(self._stop)
        self._thread.join()
        os.close(self._wake)
        unread = b"".join((*self._answers.kept, self._rest))
        return Taken(unread, frozenset(self._answers.answered))

    def _answer_lines(self) -> None:
        while not self._answers.full and len(self._rest) <= MAX_LINE:
            ready, _, _ = select.select((self._source, self._wake), (), ())
            if self._wake in ready:
                return
            try:
                came = os.read(self._source, MAX_LINE)
            except OSError:
                return
            if not came:
                return
            *lines, self._rest = (self._rest + came).split(b"\n")
            for line in lines:
                self._answers.take_line(line + b"\n")

    def _send(self, answer: bytes) -> None:
        """A client that is gone is found out by the server proper."""
        try:
            while answer:
                answer = answer[os.write(self._sink, answer) :]
        except OSError:
            self._answers.full = True


def find_front_greeter(settings: Settings) -> Greeter:
    """What introduces `serve` in that home."""
    return FrontGreeter(partial(_find_instructions, settings))


def start_early_answers(
    find_greeter: Callable[[Settings], Greeter | None],
) -> EarlyAnswers | None:
    """Begin to answer on stdin and stdout. None where they are no pipes, where nothing is known to
    answer with, or where the home cannot be used: the server proper says why.
    """
    if not all(_is_pipe(descriptor) for descriptor in (0, 1)):
        return None
    try:
        settings = load_settings()
    except OrchestratorError:
        return None
    greeter = find_greeter(settings)
    if greeter is None:
        return None
    early = EarlyAnswers(0, 1, greeter)
    early.start()
    return early


def _find_instructions(settings: Settings) -> str | None:
    """The instructions for what is registered, as they were told last; None where it changed
    since.
    """
    database = settings.database
    if database is None:
        return None
    if not database.exists():
        return INSTRUCTIONS
    return find_kept_instructions(settings.home, compute_fingerprint(database))


def _is_pipe(descriptor: int) -> bool:
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def _read_request(line: bytes) -> dict[str, Any] | None:
    """A line as a JSON-RPC request with parameters by name; None where it is anything else."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        return None
    identity, params = message.get("id"), message.get("params", {})
    if type(identity) not in (int, str) or not isinstance(message.get("method"), str):
        return None
    return message if isinstance(params, dict) else None


def _is_introduction(params: Mapping[str, Any]) -> bool:
    """Whether these are parameters of `initialize` that no server would refuse."""
    return (
        set(params) <= {"protocolVersion", "capabilities", "clientInfo"}
        and params.get("protocolVersion") in LEGACY
        and _are_capabilities(params.get("capabilities"))
        and _is_info(params.get("clientInfo"))
    )


def _is_modern(params: Mapping[str, Any]) -> bool:
    """Whether a request says all that each request of the modern era has to, and nothing else."""
    meta = params.get("_meta")
    return (
        set(params) == {"_meta"}
        and isinstance(meta, dict)
        and set(meta) <= {_PROTOCOL, _INFO, _CAPABILITIES}
        and meta.get(_PROTOCOL) == MODERN
        and _are_capabilities(meta.get(_CAPABILITIES))
        and _is_info(meta.get(_INFO))
    )


def _are_capabilities(given: object) -> bool:
    """Whether these are capabilities of a kind whose form is known here."""
    if not isinstance(given, dict):
        return False
    roots = given.get("roots", {})
    plain = isinstance(roots, dict) and all(
        key == "listChanged" and isinstance(value, bool) for key, value in roots.items()
    )
    others = [given[key] for key in given if key != "roots"]
    return plain and all(
        isinstance(each, dict) and all(isinstance(inner, dict) for inner in each.values())
        for each in others
    )


def _is_info(given: object) -> bool:
    return (
        isinstance(given, dict)
        and {"name", "version"} <= set(given) <= _INFO_KEYS
        and all(isinstance(value, str) for value in given.values())
    )
