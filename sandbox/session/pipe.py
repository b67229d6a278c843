"""A session with an untrusted server over a pipe, in JSON-RPC."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from sandbox import exactjson
from sandbox.broker.broker import Broker
from sandbox.broker.host.local import WITHHELD
from sandbox.broker.host.requests import encode_answer, encode_refusal, is_secret, read_request
from sandbox.broker.sender import build_cut_exchange
from sandbox.budget import (
    CALL,
    CALL_FULL,
    SMALL_BYTES,
    ByteBudget,
    CallUsage,
)
from sandbox.bundle.model import Bundle
from sandbox.errors import (
    BytesExhausted,
    CallTimedOut,
    Frozen,
    LoadFailed,
    SessionBroken,
    SessionStopped,
)
from sandbox.killswitch import KillSwitch
from sandbox.offload import INLINE_BYTES, INLINE_PAIRS, Workbench, has_many_values, run_counted
from sandbox.schemas.accepted import build_accepted_schema
from sandbox.schemas.coercion import coerce_arguments, find_claims
from sandbox.schemas.validator import (
    SchemaChecker,
    SchemaViolation,
    describe_refusal,
    get_checker,
)
from sandbox.session.differences import judge_result
from sandbox.session.interface import Failure, Limits, Outcome
from sandbox.session.lines import LineEnds, LineIntake, build_unreadable, is_answer
from sandbox.session.recording import CallLog
from sandbox.wire.content import (
    extract_page_text,
    find_content_problem,
    holds_media,
    join_texts,
    redact_tool_answer,
)
from sandbox.wire.exchange import Exchange, WireResponse, measure_request, measure_response
from sandbox.wire.framing import Message, is_id
from sandbox.wire.redaction import SHORT, Redaction

PROTOCOL = "2025-11-25"
ERROR_META = "toolwright/error"
MAX_MESSAGE = 2000
MAX_WAIT = 10.0**7
"""Seconds of a `retry_after`; a longer one is ignored as nonsense."""
MAX_EXCHANGES_AT_ONCE = 16
MAX_NOTICE = 256 * 1024
"""Bytes of a message that asks or tells something without being an answer; a larger one counts as a
stray. A request carries a body of 8 MiB at most, which may be base64.
"""
MAX_REQUEST = 16 * 1024 * 1024
MAX_LATE = 32
"""Cancelled calls, the latest, whose answers may still come: one that is under way when its call is
cancelled does, and a server need not take heed of that (MCP 2025-11-25, cancellation).
"""
SERVER_FULL = (
    "the calls of this server hold as much as one server's may. Call again when others have ended, "
    "or ask for less at once."
)
SHORT_PAIRS = 2 * INLINE_PAIRS
"""An answer of no more bytes, times the parts of its tool's schema, has too few values to take long
to judge (`has_many_values`): each takes two.
"""
CUT = "cut"
"""The refusal of an exchange whose call ended before the answer: it may have been sent."""
_REFUSED_ARGUMENTS = frozenset(range(400, 500)) - {401, 403, 407, 408, 425, 429}
"""Statuses by which an API may refuse what it was sent."""


class Pipe(Protocol):
    """The host's end of a sandbox's stdin, and the means to end it."""

    def write(self, data: bytes) -> None: ...

    def count_unread(self) -> int:
        """Bytes written that wait here for the sandbox to take them."""
        ...

    def kill(self) -> None:
        """Start ending the sandbox at once; must not block."""
        ...


class Listener(Protocol):
    """Receives a sandbox's output."""

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
        self.tapes: dict[str, CallLog] = {}
        """Logs of the calls that wait for their answer, by the id of the `tools/call`."""
        self._pipe = pipe
        self._ids = itertools.count(1)
        self._waiting: dict[str, asyncio.Future[Message]] = {}
        self._given_up: deque[str] = deque(maxlen=MAX_LATE)
        """The ids of requests that were cancelled before their answer came."""
        self._tasks: dict[asyncio.Task[None], str] = {}
        self._memory = ByteBudget(2 * limits.call_bytes, SERVER_FULL, broker.memory)
        """What is held of all its calls."""
        self._checked: dict[str, tuple[SchemaChecker, SchemaChecker]] = {}
        self._broken: Exception | None = None
        self._workbench = Workbench()
        self._lines = LineIntake(
            limits,
            broker.memory,
            self._workbench,
            LineEnds(pipe.count_unread, self._receive_message, self.end),
        )
        # What an engine calls for each piece of output goes there without a step between.
        self.feed, self.feed_answer = self._lines.feed, self._lines.feed_answer
        self._secrets: set[str] = set()
        """Values of `env:` permissions that the server was given, which must not come back."""

    @asynccontextmanager
    async def run_session(self, kill_switch: KillSwitch) -> AsyncIterator[None]:
        """Start the session for the duration of the block; a freeze ends it at once.

        Raises what `start` raises, and Frozen.
        """
        try:
            with kill_switch.on_engage(self.freeze):
                kill_switch.raise_if_engaged()
                await self.start()
                yield
        finally:
            self._lines.forget()
            self.end()

    async def start(self) -> None:
        """Send the bundle and initialize the MCP session. Raises LoadFailed or SessionBroken."""
        load = {
            "manifest": self.bundle.build_manifest(),
            "tools": self.bundle.list_runtime_tools(),
            "source": self.bundle.source_code,
        }
        hello = {
            "protocolVersion": PROTOCOL,
            "capabilities": {"experimental": {"toolwright/request": {}}},
            "clientInfo": {"name": "toolwright", "version": "1"},
        }
        loaded = self._send_request("toolwright/load", load)
        greeted = self._send_request("initialize", hello)
        self._send_message({"jsonrpc": "2.0", "method": "notifications/initialized"})
        try:
            async with asyncio.timeout(self.limits.start_seconds):
                answer, greeting = await asyncio.gather(loaded, greeted)
        except TimeoutError as error:
            self.end(SessionBroken("the server did not start in time; it was stopped"))
            raise SessionBroken("the server did not start in time; it was stopped") from error
        if "error" in answer:
            raise LoadFailed(read_error_message(answer["error"]))
        if "error" in greeting:
            raise SessionBroken(
                f"the server refused to start: {read_error_message(greeting['error'])}"
            )

    async def list_tools(self) -> tuple[Mapping[str, Any], ...]:
        async with asyncio.timeout(self.limits.start_seconds):
            answer = await self._send_request("tools/list", {})
        tools = answer.get("result", {}).get("tools")
        if not isinstance(tools, list) or not all(isinstance(tool, dict) for tool in tools):
            raise SessionBroken("the server's tool list is not one; it was stopped")
        return tuple(tools)

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        seconds: float | None = None,
        tape: CallLog | None = None,
    ) -> Outcome:
        started = time.perf_counter()
        taking, giving = self._get_checkers(tool)
        if not taking.fits_plainly(arguments):
            find = partial(self._find_refusal, tool, arguments)
            refusal = await run_counted(arguments, find, taking.weight)
            if refusal:
                return _build_failed_outcome(tool, Failure("arguments", refusal), (), started)
        tape = tape or CallLog()
        params = {"name": tool, "arguments": arguments}
        try:
            answer = await self._await_answer("tools/call", params, tool, tape, seconds)
        except BytesExhausted as error:
            failure = Failure("too_large", str(error))
            return _build_failed_outcome(tool, failure, tuple(tape.exchanges), started)
        exchanges = tuple(tape.exchanges)
        is_long, fitting = False, None
        if answer.size * giving.weight > SHORT_PAIRS:
            is_long, fitting = self._look_ahead(tool, answer)
        work = partial(self._build_outcome, tool, answer, exchanges, started, fitting)
        if not is_long:
            outcome = work()
            return await self._add_claims(outcome, arguments) if outcome.failure else outcome
        patience = seconds or self.limits.call_seconds
        try:
            async with asyncio.timeout(patience - (time.perf_counter() - started)):
                outcome = await self._workbench.run(work)
        except TimeoutError as error:
            self.end(SessionStopped(tool))
            raise CallTimedOut(tool, patience) from error
        return replace(await self._add_claims(outcome, arguments), size=answer.size)

    async def _await_answer(
        self,
        method: str,
        params: Mapping[str, Any],
        what: str,
        tape: CallLog,
        seconds: float | None = None,
    ) -> Message:
        """The answer to a request; the request is cancelled with the task that waits for it.

        Raises CallTimedOut, which ends the session, SessionBroken, or BytesExhausted.
        """
        # As long as any other, so that a call leaves the same traces in memory however many came
        # before it: in WASM its result must not depend on that.
        identity = f"{next(self._ids):012}"
        self.tapes[identity] = tape
        if tape.usage is None:
            memory = ByteBudget(self.limits.call_bytes, CALL_FULL, self._memory, SMALL_BYTES)
            allowed = self.broker.requests_per_call
            tape.usage = CallUsage(memory, self.bundle.name, allowed, CALL.get())
        patience = seconds or self.limits.call_seconds
        timer: asyncio.TimerHandle | None = None
        future: asyncio.Future[Message] | None = None
        try:
            future = self._send_request(method, params, identity)
            timer = future.get_loop().call_later(patience, _time_out, future)
            return await future
        except TimeoutError as error:
            self.end(SessionStopped(what))
            raise CallTimedOut(what, patience) from error
        except asyncio.CancelledError:
            # Where it was answered in the meantime, no other answer is owed.
            if identity in self._waiting:
                self._given_up.append(identity)
            self._cancel_request(identity)
            raise
        finally:
            if timer is not None:
                timer.cancel()
            # What it raised would keep this frame, and so all that the call holds.
            del future
            del self.tapes[identity]
            self._waiting.pop(identity, None)

    def feed_stderr(self, chunk: bytes) -> None:
        """Bytes from the sandbox's stderr; the first ones are kept as evidence."""
        self.stderr += chunk[: max(0, self.limits.stderr_bytes - len(self.stderr))]

    def end(self, reason: Exception | None = None) -> None:
        """Fail the waiting calls, cancel the exchanges and kill the sandbox. Idempotent."""
        if self._broken:
            return
        if reason is None and self._lines.postpone_end():
            return
        self._lines.stop()
        if self._workbench.thread is not None:
            self._workbench.close()
        self._broken = reason or SessionBroken("its sandbox ended; call again to start another")
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(_renew_error(self._broken))
        for task in self._tasks:
            task.cancel()
        self._pipe.kill()

    @property
    def ended(self) -> bool:
        return self._broken is not None

    def freeze(self) -> None:
        """End the session because Toolwright is frozen."""
        self.end(Frozen())

    def _send_request(
        self, method: str, params: Mapping[str, Any], identity: str | None = None
    ) -> asyncio.Future[Message]:
        identity = identity or str(next(self._ids))
        future: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        if self._broken:
            future.set_exception(_renew_error(self._broken))
            return future
        message = {"jsonrpc": "2.0", "id": identity, "method": method, "params": params}
        data = exactjson.dumps(message) + b"\n"
        tape = self.tapes.get(identity)
        if tape is not None and tape.usage is not None:
            tape.usage.memory.take(len(data))
        self._waiting[identity] = future
        self._write_line(data)
        return future

    def _cancel_request(self, identity: str) -> None:
        if not self._broken:
            for task in [task for task, call in self._tasks.items() if call == identity]:
                task.cancel()
            params = {"requestId": identity}
            self._send_message(
                {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
            )

    def _send_message(self, message: Mapping[str, Any]) -> None:
        try:
            self._write_line(exactjson.dumps(message) + b"\n")
        except BytesExhausted as error:
            self.end(SessionBroken(str(error)))

    def _write_line(self, line: bytes) -> None:
        """Raises BytesExhausted, and writes nothing, where too much was not read yet."""
        self._lines.count(len(line))
        self._pipe.write(line)

    def _receive_message(self, message: Message) -> None:
        if "method" in message:
            self._handle_request(message)
        else:
            answer = message if is_answer(message) else build_unreadable("")
            identity = message.get("id")
            self._settle_request(str(identity) if is_id(identity) else "", answer)

    def _settle_request(self, identity: str, answer: Message) -> None:
        """Give a waiting request its answer; what nobody waits for is a stray."""
        future = self._waiting.pop(identity, None)
        if future is None or future.done():
            self._drop_answer(identity, future)
        else:
            self._lines.note_answer()
            tape = self.tapes.get(identity)
            try:
                if tape is not None and tape.usage is not None:
                    tape.usage.memory.take(answer.size)
            except BytesExhausted as error:
                future.set_exception(error)
            else:
                future.set_result(answer)

    def _drop_answer(self, identity: str, future: asyncio.Future[Message] | None) -> None:
        """Take an answer that nobody waits for any more: the one to a request that was cancelled is
        no stray.
        """
        if identity in self._given_up:
            self._given_up.remove(identity)
        elif future is None or not future.cancelled():
            self._count_stray()

    def _count_stray(self) -> None:
        self.strays += 1
        if self.strays > self.limits.strays:
            raise SessionBroken("the server sent too much that nobody asked for; it was stopped")

    def _handle_request(self, message: Message) -> None:
        identity, params = message.get("id"), message.get("params")
        if (
            message["method"] != "toolwright/request"
            or message.size > MAX_REQUEST
            or not is_id(identity)
            or not isinstance(params, dict)
            or len(self._tasks) >= MAX_EXCHANGES_AT_ONCE
        ):
            self._count_stray()
            if is_id(identity):
                self._send_reply(
                    identity, encode_refusal("unsupported", "not what the host answers")
                )
            return
        work = self._answer_exchange(identity, params, message.size)
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[task] = _read_call(params)
        task.add_done_callback(partial(self._finish_exchange, identity))

    async def _answer_exchange(
        self, identity: str | int, params: Mapping[str, Any], size: int
    ) -> None:
        self._send_reply(identity, await self.answer_request(params, size))

    def _finish_exchange(self, identity: str | int, task: asyncio.Task[None]) -> None:
        del self._tasks[task]
        # What fails on our side must not leave the code waiting until its time is up.
        if not task.cancelled() and (error := task.exception()):
            self._send_reply(
                identity, encode_refusal("refused", f"no answer: {type(error).__name__}")
            )

    async def answer_request(self, params: Mapping[str, Any], size: int = 0) -> dict[str, Any]:
        """Answer a `toolwright/request` that came in `size` bytes: an object with a `result` or an
        `error`.
        """
        tape = self.tapes.get(_read_call(params))
        if params.get("kind") == "progress" and tape is not None:
            tape.report_progress(self._hide_progress(tape, params))
            return {"result": {"status": 204, "headers": []}}
        request = (
            read_request(params)
            if size <= INLINE_BYTES
            else await self._workbench.run_sized(size, partial(read_request, params))
        )
        if tape is None or tape.usage is None or request is None:
            reason = "no such call" if tape is None else "not a well-formed request"
            return encode_refusal("unsupported", reason)
        place = len(tape.exchanges)
        if place >= 2 * self.broker.caps.exchanges:
            return encode_refusal("refused", "too many requests in one call")
        try:
            tape.usage.memory.take(measure_request(request))
        except BytesExhausted as error:
            return encode_refusal("too_large", str(error))
        tape.exchanges.append(Exchange(request, None, CUT, "the call ended before an answer came"))
        token = CALL.set(tape.usage)
        try:
            exchange = await self.broker.perform(request, tape.calls)
            if exchange.response is not None:
                tape.usage.memory.take(measure_response(exchange.response))
        except BytesExhausted as error:
            status = exchange.response.status if exchange.response else 0
            exchange = build_cut_exchange(request, str(error), status, exchange.attempts)
        finally:
            CALL.reset(token)
        tape.exchanges[place] = exchange
        if exchange.response is None:
            return encode_refusal(exchange.kind, exchange.reason, exchange.retry_after)
        if is_secret(request):
            tape.exchanges[place] = replace(exchange, response=WireResponse(200, (), WITHHELD))
            self._secrets.add(exchange.response.body.decode())
            tape.keep_out(self._secrets)
        return {"result": encode_answer(exchange.response)}

    def _send_reply(self, identity: Any, answer: Mapping[str, Any]) -> None:
        if self._broken:
            return
        head = {"jsonrpc": "2.0", "id": identity}
        try:
            self._write_line(exactjson.dumps({**head, **answer}) + b"\n")
        except BytesExhausted as error:
            self._send_message({**head, **encode_refusal("too_large", str(error))})

    def _build_outcome(
        self,
        tool: str,
        answer: Mapping[str, Any],
        exchanges: tuple[Exchange, ...],
        started: float,
        fitting: Any,
    ) -> Outcome:
        """`fitting` is structured content that is known to be as the tool says, or None."""
        if self._secrets:
            answer = redact_tool_answer(answer, Redaction(self._secrets))
        answer = self.broker.redact_answer(answer)
        if "error" in answer:
            failure = Failure("bug", read_error_message(answer["error"]))
            return _build_failed_outcome(tool, failure, exchanges, started)
        result = answer["result"]
        problem = find_content_problem(result.get("content") if isinstance(result, dict) else None)
        if problem:
            failure = Failure("bug", f"the server's result is not an MCP tool result: {problem}")
            return _build_failed_outcome(tool, failure, exchanges, started)
        elapsed = (time.perf_counter() - started) * 1000
        if result.get("isError"):
            return Outcome(tool, result, self._read_failure(tool, result), exchanges, elapsed)
        is_known = fitting is not None and result.get("structuredContent") is fitting
        violation = None if is_known else self._find_breach(tool, result)
        if violation is None and "_meta" not in result:
            return Outcome(tool, result, None, exchanges, elapsed)
        judged = judge_result(self.bundle.get_tool(tool), result, violation)
        return Outcome(
            tool,
            judged.result,
            judged.failure,
            exchanges,
            elapsed,
            difference=judged.difference,
        )

    async def _add_claims(self, outcome: Outcome, arguments: Mapping[str, Any]) -> Outcome:
        """The outcome; behind an API's refusal of the arguments stands what its document says of
        them, where that differs.
        """
        failure, tool = outcome.failure, self.bundle.get_tool(outcome.tool)
        if failure is None or failure.status not in _REFUSED_ARGUMENTS:
            return outcome
        find = partial(find_claims, self.bundle, tool, arguments)
        claims = await run_counted(arguments, find, self._get_checkers(outcome.tool)[0].weight)
        if not claims:
            return outcome
        content = [*outcome.result["content"], {"type": "text", "text": claims}]
        said = replace(failure, message=f"{failure.message}\n\n{claims}")
        return replace(outcome, result={**outcome.result, "content": content}, failure=said)

    def _find_refusal(self, tool: str, arguments: Mapping[str, Any]) -> str:
        """Why arguments that break the tool's schema are refused, with both readings of a value
        that has two; "" where they are accepted, as most are.
        """
        claimed = self._get_checkers(tool)[0].find_problem(arguments)
        if claimed is None:
            return ""
        accepted = build_accepted_schema(self.bundle, self.bundle.get_tool(tool))
        problem = get_checker(accepted).find_problem(arguments)
        if problem is None:
            return ""
        doubts = coerce_arguments(accepted, arguments).doubts
        # Of the same value the document's own words say more than what was made of them.
        told = claimed if problem.where and claimed.where == problem.where else problem
        return "; ".join(doubts) or describe_refusal(accepted, told)

    def _read_failure(self, name: str, result: Mapping[str, Any]) -> Failure:
        """The failure that a result tells; a refusal has its code where the tool declares it."""
        tool, failure = self.bundle.get_tool(name), _read_failure(result)
        failure = self._shorten_page(failure, join_texts(result["content"]))
        if tool.operation:
            return replace(failure, told_by="compiler", code="")
        declared = failure.kind == "tool" and failure.code in tool.refusals
        return replace(failure, told_by="code", code=failure.code if declared else "")

    def _look_ahead(self, tool: str, answer: Message) -> tuple[bool, Any]:
        """Whether an answer is large, may have to be unpacked, or has many values that may not be
        as its tool's schema says; and its structured content where that was found to be so, or
        None.
        """
        result = answer.get("result")
        if answer.size > INLINE_BYTES or answer.may_unpack:
            return True, None
        content = result.get("content") if isinstance(result, dict) else None
        if answer.size > SHORT and (holds_media(content) or has_many_values(content)):
            return True, None
        value = result.get("structuredContent") if isinstance(result, dict) else None
        checker = self._get_checkers(tool)[1]
        if not has_many_values(value, checker.weight):
            return False, None
        return (False, value) if checker.fits_plainly(value) else (True, None)

    def _shorten_page(self, failure: Failure, text: str) -> Failure:
        """A failure that is told by a page, with the page's text. What stood on both sides of a tag
        may have been a secret, which is whole only here.
        """
        told = extract_page_text(text)
        if told == text:
            return failure
        for hide in self._list_redactions():
            told = hide.redact_text(told)
        return replace(failure, message=told[:MAX_MESSAGE])

    def _find_breach(self, tool: str, result: Mapping[str, Any]) -> SchemaViolation | None:
        """How a result breaks the tool's output schema."""
        return self._get_checkers(tool)[1].find_problem(result.get("structuredContent"))

    def _list_redactions(self) -> tuple[Redaction, ...]:
        """What hides the secrets that may come back: values that the server was given, and what its
        requests were signed with. Answers of APIs were redacted one by one, but code may have
        joined parts of a secret from several.
        """
        own = (Redaction(self._secrets),) if self._secrets else ()
        used = self.broker.build_redaction()
        return own if used is None else (*own, used)

    def _hide_progress(self, tape: CallLog, said: Mapping[str, Any]) -> Mapping[str, Any]:
        """A progress notice as its reader may have it: cleaned, then redacted."""
        message = said.get("message")
        if not isinstance(message, str):
            return said
        hides = (*self._list_redactions(), *filter(None, [tape.hide]))
        return {**said, "message": tape.hide_next(message, hides)} if hides else said

    def _get_checkers(self, tool: str) -> tuple[SchemaChecker, SchemaChecker]:
        """The validators of the tool's arguments and of its results. Raises KeyError."""
        if tool not in self._checked:
            definition = self.bundle.get_tool(tool)
            takes, gives = (
                get_checker(definition.input_schema),
                get_checker(definition.output_schema),
            )
            self._checked[tool] = (takes, gives)
        return self._checked[tool]


def _renew_error(error: Exception) -> Exception:
    """The same error without its traceback, which keeps all that a failed call holds."""
    made = type(error).__new__(type(error), *error.args)
    made.__dict__.update(error.__dict__)
    return made


def _read_call(params: Mapping[str, Any]) -> str:
    """The id of the call that a request is for; "" where it names none."""
    call = params.get("call")
    return str(call) if is_id(call) else ""


def _time_out(future: asyncio.Future[Message]) -> None:
    if not future.done():
        future.set_exception(TimeoutError())


def _read_failure(result: Mapping[str, Any]) -> Failure:
    """The failure that an untrusted `isError` result describes; every field is checked."""
    meta = result.get("_meta")
    said = meta.get(ERROR_META) if isinstance(meta, dict) else None
    said = said if isinstance(said, dict) else {}
    status, wait = said.get("status"), said.get("retry_after")
    text = join_texts(result["content"])
    return Failure(
        kind=_read_text(said.get("kind"), 40) or "tool",
        message=text[:MAX_MESSAGE],
        status=status if isinstance(status, int) and 100 <= status <= 599 else None,
        retry_after=float(wait)
        if isinstance(wait, int | float) and 0 <= wait <= MAX_WAIT
        else None,
        where=_read_text(said.get("where"), 200),
        code=_read_text(said.get("code"), 40),
    )


def _build_failed_outcome(
    tool: str, failure: Failure, exchanges: tuple[Exchange, ...], started: float
) -> Outcome:
    result = {
        "isError": True,
        "content": [{"type": "text", "text": failure.message}],
        "_meta": {ERROR_META: {"kind": failure.kind}},
    }
    return Outcome(tool, result, failure, exchanges, (time.perf_counter() - started) * 1000)


def read_error_message(error: Any) -> str:
    message = error.get("message") if isinstance(error, dict) else error
    return _read_text(message, MAX_MESSAGE) or "the server refused, without a word"


def _read_text(value: Any, limit: int) -> str:
    """A foreign text, cut; "" for what is none: to write it out could take long."""
    return value[:limit] if isinstance(value, str) else ""
