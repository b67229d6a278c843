"""One running server at the far end of a pipe, spoken to in JSON-RPC and believed in nothing."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from sandbox import exactjson
from sandbox.brake import Brake
from sandbox.broker import Broker
from sandbox.bundle import Bundle
from sandbox.content import content_problem, texts, without_secrets
from sandbox.errors import CallTimedOut, Frozen, LoadFailed, SessionBroken
from sandbox.exchange import Exchange, WireResponse
from sandbox.guard import LineGuard, parse_message
from sandbox.hostrequest import answer_json, read_request, refusal
from sandbox.localaccess import WITHHELD, is_secret
from sandbox.recording import Tape
from sandbox.redaction import Redaction
from sandbox.runner import Failure, Limits, Outcome
from sandbox.validation import Checker, checker

PROTOCOL = "2025-11-25"
ERROR_META = "toolwright/error"
MAX_MESSAGE = 2000
MAX_EXCHANGES_AT_ONCE = 16
CUT = "cut"
"""In place of a refusal: it may have been sent, and nobody waited for what became of it."""


class Pipe(Protocol):
    """The host's end of a sandbox's stdin, and the means to end it."""

    def write(self, data: bytes) -> None: ...

    def kill(self) -> None:
        """Start ending the sandbox at once; must not block."""
        ...


class Listener(Protocol):
    """Who hears what a sandbox says."""

    def feed(self, chunk: bytes) -> None: ...

    def feed_stderr(self, chunk: bytes) -> None: ...

    def end(self, reason: Exception | None = None) -> None: ...


class PipeSession:
    """A session over a pipe. The engine feeds it what the sandbox writes.

    Everything received is bounded by `limits`; a message that is no answer to what was asked and no
    `toolwright/request` is dropped and counted, and too many of those end the session.
    """

    def __init__(self, bundle: Bundle, broker: Broker, limits: Limits, pipe: Pipe) -> None:
        self.bundle, self.broker, self.limits = bundle, broker, limits
        self.stderr = bytearray()
        self.strays = 0
        self.tapes: dict[str, Tape] = {}
        """Of the calls that wait for their answer, by the id of the `tools/call`."""
        self._pipe = pipe
        self._guard = LineGuard(limits.line_bytes, limits.session_bytes)
        self._ids = itertools.count(1)
        self._waiting: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._tasks: dict[asyncio.Task[None], str] = {}
        self._checked: dict[str, tuple[Checker, Checker]] = {}
        self._broken: Exception | None = None
        self._secrets: set[str] = set()
        """Values that the server was given, which must not come back."""

    @asynccontextmanager
    async def running(self, brake: Brake) -> AsyncIterator[None]:
        """Started for the time of the block; ended when it is over, and at once by a freeze.

        Raises what `start` raises, and Frozen.
        """
        try:
            with brake.on_engage(self.freeze):
                brake.check()
                await self.start()
                yield
        finally:
            self.end()

    async def start(self) -> None:
        """Hand over the bundle and shake hands. Raises LoadFailed or SessionBroken."""
        load = {
            "manifest": self.bundle.manifest(),
            "tools": self.bundle.runtime_tools(),
            "source": self.bundle.source_code,
        }
        hello = {
            "protocolVersion": PROTOCOL,
            "capabilities": {"experimental": {"toolwright/request": {}}},
            "clientInfo": {"name": "toolwright", "version": "1"},
        }
        loaded = self._request("toolwright/load", load)
        greeted = self._request("initialize", hello)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        try:
            async with asyncio.timeout(self.limits.start_seconds):
                answer, greeting = await asyncio.gather(loaded, greeted)
        except TimeoutError as error:
            self.end(SessionBroken("the server did not start in time; it was stopped"))
            raise SessionBroken("the server did not start in time; it was stopped") from error
        if "error" in answer:
            raise LoadFailed(_message(answer["error"]))
        if "error" in greeting:
            raise SessionBroken(f"the server refused to start: {_message(greeting['error'])}")

    async def list_tools(self) -> tuple[Mapping[str, Any], ...]:
        async with asyncio.timeout(self.limits.start_seconds):
            answer = await self._request("tools/list", {})
        tools = answer.get("result", {}).get("tools")
        if not isinstance(tools, list) or not all(isinstance(tool, dict) for tool in tools):
            raise SessionBroken("the server's tool list is not one; it was stopped")
        return tuple(tools)

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        seconds: float | None = None,
        tape: Tape | None = None,
    ) -> Outcome:
        started = time.perf_counter()
        problem = self._checkers(tool)[0].problem(arguments)
        if problem:
            failure = Failure("arguments", f"{problem.where or '/'}: {problem.reason}")
            return _failed(tool, failure, (), started)
        tape = tape or Tape()
        params = {"name": tool, "arguments": arguments}
        answer = await self._answer("tools/call", params, tool, tape, seconds)
        return self._outcome(tool, answer, tuple(tape.exchanges), started)

    async def _answer(
        self,
        method: str,
        params: Mapping[str, Any],
        what: str,
        tape: Tape,
        seconds: float | None = None,
    ) -> dict[str, Any]:
        """The answer to a request, which is cancelled if nobody waits for it any more.

        Raises CallTimedOut, which ends the session, or SessionBroken.
        """
        # As long as any other, so that a call leaves the same traces in memory however many came
        # before it: in WASM its result must not depend on that.
        identity = f"{next(self._ids):012}"
        self.tapes[identity] = tape
        patience = seconds or self.limits.call_seconds
        future = self._request(method, params, identity)
        timer = future.get_loop().call_later(patience, _give_up, future)
        try:
            return await future
        except TimeoutError as error:
            self.end(SessionBroken(f"{what} did not answer in time"))
            raise CallTimedOut(what, patience) from error
        except asyncio.CancelledError:
            self._cancel(identity)
            raise
        finally:
            timer.cancel()
            del self.tapes[identity]
            self._waiting.pop(identity, None)

    def feed(self, chunk: bytes) -> None:
        """Bytes from the sandbox's stdout."""
        try:
            for line in self._guard.lines(chunk):
                if line:
                    self._receive(line)
        except SessionBroken as error:
            self.end(error)

    def feed_stderr(self, chunk: bytes) -> None:
        """Bytes from the sandbox's stderr; the first ones are kept as evidence."""
        self.stderr += chunk[: max(0, self.limits.stderr_bytes - len(self.stderr))]

    def end(self, reason: Exception | None = None) -> None:
        """End the session: fail what waits, stop the exchanges, kill the sandbox. Idempotent."""
        if self._broken:
            return
        self._broken = reason or SessionBroken("its sandbox ended; call again to start another")
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(self._broken)
        for task in self._tasks:
            task.cancel()
        self._pipe.kill()

    @property
    def ended(self) -> bool:
        return self._broken is not None

    def freeze(self) -> None:
        """End the session because Toolwright is frozen."""
        self.end(Frozen())

    def _request(
        self, method: str, params: Mapping[str, Any], identity: str | None = None
    ) -> asyncio.Future[dict[str, Any]]:
        identity = identity or str(next(self._ids))
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        if self._broken:
            future.set_exception(self._broken)
            return future
        self._waiting[identity] = future
        self._send({"jsonrpc": "2.0", "id": identity, "method": method, "params": params})
        return future

    def _cancel(self, identity: str) -> None:
        if not self._broken:
            for task in [task for task, call in self._tasks.items() if call == identity]:
                task.cancel()
            params = {"requestId": identity}
            self._send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})

    def _send(self, message: Mapping[str, Any]) -> None:
        self._pipe.write(exactjson.dumps(message) + b"\n")

    def _receive(self, line: bytes) -> None:
        message = parse_message(line, self.limits.nesting)
        if message is None:
            self._stray()
        elif "method" in message:
            self._asked(message)
        else:
            future = self._waiting.get(str(message.get("id")))
            if future is None or future.done() or ("result" in message) == ("error" in message):
                self._stray()
            else:
                del self._waiting[str(message["id"])]
                future.set_result(message)

    def _stray(self) -> None:
        self.strays += 1
        if self.strays > self.limits.strays:
            raise SessionBroken("the server sent too much that nobody asked for; it was stopped")

    def _asked(self, message: Mapping[str, Any]) -> None:
        identity, params = message.get("id"), message.get("params")
        if (
            message["method"] != "toolwright/request"
            or not isinstance(identity, str | int)
            or not isinstance(params, dict)
            or len(self._tasks) >= MAX_EXCHANGES_AT_ONCE
        ):
            self._stray()
            if identity is not None:
                self._reply(identity, refusal("unsupported", "not what the host answers"))
            return
        task = asyncio.get_running_loop().create_task(self._exchange(identity, params))
        self._tasks[task] = str(params.get("call"))
        task.add_done_callback(partial(self._over, identity))

    async def _exchange(self, identity: str | int, params: Mapping[str, Any]) -> None:
        self._reply(identity, await self.answered(params))

    def _over(self, identity: str | int, task: asyncio.Task[None]) -> None:
        del self._tasks[task]
        # What fails on our side must not leave the code waiting until its time is up.
        if not task.cancelled() and (error := task.exception()):
            self._reply(identity, refusal("refused", f"no answer: {type(error).__name__}"))

    async def answered(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """What the host says to a `toolwright/request`: `result` or `error` of the answer."""
        tape = self.tapes.get(str(params.get("call")))
        if params.get("kind") == "progress" and tape is not None:
            tape.tell(params)
            return {"result": {"status": 204, "headers": []}}
        request = read_request(params)
        if tape is None or request is None:
            reason = "no such call" if tape is None else "not a well-formed request"
            return refusal("unsupported", reason)
        place = len(tape.exchanges)
        tape.exchanges.append(Exchange(request, None, CUT, "the call ended before an answer came"))
        exchange = tape.exchanges[place] = await self.broker.perform(request, tape.calls)
        if exchange.response is None:
            return refusal(exchange.refusal, exchange.reason, exchange.retry_after)
        if is_secret(request):
            tape.exchanges[place] = replace(exchange, response=WireResponse(200, (), WITHHELD))
            self._secrets.add(exchange.response.body.decode())
        return {"result": answer_json(exchange.response)}

    def _reply(self, identity: Any, answer: Mapping[str, Any]) -> None:
        if not self._broken:
            self._send({"jsonrpc": "2.0", "id": identity, **answer})

    def _outcome(
        self,
        tool: str,
        answer: Mapping[str, Any],
        exchanges: tuple[Exchange, ...],
        started: float,
    ) -> Outcome:
        if self._secrets:
            answer = without_secrets(answer, Redaction(self._secrets))
        answer = self.broker.without_secrets(answer)
        if "error" in answer:
            failure = Failure("bug", _message(answer["error"]))
            return _failed(tool, failure, exchanges, started)
        result = answer["result"]
        problem = content_problem(result.get("content") if isinstance(result, dict) else None)
        if problem:
            failure = Failure("bug", f"the server's result is not an MCP tool result: {problem}")
            return _failed(tool, failure, exchanges, started)
        elapsed = (time.perf_counter() - started) * 1000
        return Outcome(tool, result, self._failure(tool, result), exchanges, elapsed)

    def _checkers(self, tool: str) -> tuple[Checker, Checker]:
        """What the tool's arguments and results are checked with. Raises KeyError."""
        if tool not in self._checked:
            definition = self.bundle.tool(tool)
            takes, gives = checker(definition.input_schema), checker(definition.output_schema)
            self._checked[tool] = (takes, gives)
        return self._checked[tool]

    def _failure(self, tool: str, result: Mapping[str, Any]) -> Failure | None:
        if result.get("isError"):
            return _told(result)
        problem = self._checkers(tool)[1].problem(result.get("structuredContent"))
        if problem:
            return Failure("schema", problem.reason, where=problem.where)
        return None


def _give_up(future: asyncio.Future[dict[str, Any]]) -> None:
    if not future.done():
        future.set_exception(TimeoutError())


def _told(result: Mapping[str, Any]) -> Failure:
    """The failure that an `isError` result describes; hostile, so every field is checked."""
    meta = result.get("_meta")
    said = meta.get(ERROR_META) if isinstance(meta, dict) else None
    said = said if isinstance(said, dict) else {}
    status, wait = said.get("status"), said.get("retry_after")
    text = texts(result["content"])
    return Failure(
        kind=str(said.get("kind") or "tool")[:40],
        message=text[:MAX_MESSAGE],
        status=status if isinstance(status, int) else None,
        retry_after=float(wait) if isinstance(wait, int | float) else None,
        where=str(said.get("where") or "")[:200],
    )


def _failed(
    tool: str, failure: Failure, exchanges: tuple[Exchange, ...], started: float
) -> Outcome:
    result = {
        "isError": True,
        "content": [{"type": "text", "text": failure.message}],
        "_meta": {ERROR_META: {"kind": failure.kind}},
    }
    return Outcome(tool, result, failure, exchanges, (time.perf_counter() - started) * 1000)


def _message(error: Any) -> str:
    message = error.get("message") if isinstance(error, dict) else error
    return str(message)[:MAX_MESSAGE]
