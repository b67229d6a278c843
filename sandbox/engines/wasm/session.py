"""A session whose far end is instances in this process."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from wasmtime import WasmtimeError

from sandbox import exactjson
from sandbox.bundle import Bundle
from sandbox.guard import is_deep
from sandbox.recording import LOADING, Inputs, inputs_for
from sandbox.runner import Limits
from sandbox.session import ERROR_META, PipeSession
from sandbox.wasm_guest import MAX_REASON, Guest, GuestTrapped
from sandbox.wasm_opening import MAX_PRINTS, hear, went_well
from sandbox.wasm_pool import GuestPool
from sandbox.wasm_state import keeps_state

MAX_CALLS = 4
"""Calls of one session that run at once, each in an instance of its own; more wait."""
MAX_KEPT_BYTES = 256 * 1024
"""An instance that carried more in one call is not kept: its memory never shrinks."""
STATELESS_AUTHOR = "compiler"
"""Its code keeps nothing, and need not be searched for what might."""
LOAD_FAILED = -32001


class Job:
    """Something for a guest to do, and what it may reach meanwhile."""

    def __init__(
        self, pipe: GuestPipe, identity: str, line: str, inputs: Inputs, pristine: bool = False
    ) -> None:
        self.identity, self.line, self.inputs, self.pristine = identity, line, inputs, pristine
        self._pipe = pipe
        self._prints = 0
        self.carried = len(line)
        """Bytes that went in and out, about."""

    async def exchange(self, params: str) -> str:
        session, limits = self._pipe.session, self._pipe.limits
        content = params.encode()
        if len(content) > limits.line_bytes:
            raise GuestTrapped("the code asked for something longer than a line may be")
        try:
            asked = exactjson.loads(content)
        except (ValueError, RecursionError):
            asked = None
        if not isinstance(asked, dict) or is_deep(content, asked, limits.nesting):
            raise GuestTrapped("what the code asked for is not the params of a request")
        answer = exactjson.dumps(await session.answered(asked)).decode()
        self.carried += len(content) + len(answer)
        return answer

    def log(self, text: str) -> None:
        self._prints += 1
        if self._prints > MAX_PRINTS:
            raise WasmtimeError("the code printed too often")
        self._pipe.log(text)


class GuestPipe:
    """The guests of one session, as the pipe that the session writes to.

    A call runs in an idle guest, or in a new one that the session's first lines are repeated to.
    A guest serves a second call only where its code plainly keeps nothing and the tool asks the
    host for something. Any other call gets a guest that no call has touched, so that its result
    depends on its recording alone.
    """

    session: PipeSession

    def __init__(
        self, pool: GuestPool, bundle: Bundle, limits: Limits, make_inputs: Callable[[], Inputs]
    ) -> None:
        self.pool, self.limits = pool, limits
        self.loop = asyncio.get_running_loop()
        self._bundle, self._make_inputs = bundle, make_inputs
        self._opening: list[str] = []
        self._idle: deque[Guest] = deque()
        self._pending: deque[Job] = deque()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._logged = 0
        self._killed = False

    def write(self, data: bytes) -> None:
        message, line = exactjson.loads(data), data.decode()
        method, identity = message["method"], message.get("id", "")
        if method in ("toolwright/load", "initialize"):
            self._opening.append(line)
            if method == "initialize":
                self._start(Job(self, identity, line, LOADING), self._open)
        elif method == "notifications/cancelled":
            self._cancel(message["params"]["requestId"])
        elif method == "tools/call":
            inputs = self._inputs(identity, message["params"])
            pristine = self._is_pristine(message["params"]["name"])
            self._pending.append(Job(self, identity, line, inputs, pristine))
        elif identity:
            self._pending.append(Job(self, identity, line, LOADING))
        self._start_pending()

    def kill(self) -> None:
        self._killed = True
        self._pending.clear()
        for task in self._tasks.values():
            task.cancel()
        # Whoever holds the session may not look at it for a minute.
        self.loop.call_soon(self._close_idle)

    async def ended(self) -> None:
        """Return when no guest runs any more and their memory is given back."""
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        self._close_idle()

    def _close_idle(self) -> None:
        while self._idle:
            self._idle.pop().close()

    def log(self, text: str) -> None:
        """Keep what was printed, up to the session's limit. In any thread."""
        content = text.encode()[: max(0, self.limits.stderr_bytes - self._logged)]
        if content:
            self._logged += len(content)
            self.loop.call_soon_threadsafe(self.session.feed_stderr, content)

    def _inputs(self, call: str, params: Mapping[str, Any]) -> Inputs:
        """What a call is given: what is on its tape, where it is then in any case."""
        tape = self.session.tapes[call]
        if tape.inputs is None:
            live = self._make_inputs()
            tape.inputs = inputs_for(self._bundle, params["name"], params["arguments"], live)
        return tape.inputs

    def _is_pristine(self, tool: str) -> bool:
        if self._bundle.tool(tool).requests:
            written = self._bundle.provenance.author != STATELESS_AUTHOR
            return written and keeps_state(self._bundle.source_code)
        return True

    def _start_pending(self) -> None:
        while self._pending and len(self._tasks) < MAX_CALLS:
            self._start(self._pending.popleft(), self._perform)

    def _start(self, job: Job, work: Callable[[Job], Coroutine[Any, Any, None]]) -> None:
        task = self._tasks[job.identity] = self.loop.create_task(work(job))
        task.add_done_callback(partial(self._over, job))

    def _over(self, job: Job, task: asyncio.Task[None]) -> None:
        del self._tasks[job.identity]
        # What fails on our side, as an upstream may, ends the call and not the session.
        if not task.cancelled() and (error := task.exception()):
            self._deliver(_stopped(job.identity, f"no answer: {error!r}"[:MAX_REASON]))
        self._start_pending()

    def _cancel(self, identity: str) -> None:
        self._pending = deque(job for job in self._pending if job.identity != identity)
        if identity in self._tasks:
            self._tasks[identity].cancel()

    async def _open(self, job: Job) -> None:
        """Hand over the bundle and shake hands."""
        try:
            started = time.perf_counter()
            guest, answers = await self._opened()
        except GuestTrapped as reason:
            answers = tuple(_refused(line, str(reason)) for line in self._opening)
        else:
            self._keep(guest)
            seconds = time.perf_counter() - started
            if went_well(answers):
                self.pool.remember(tuple(self._opening), self.limits, seconds)
        for answer in answers:
            self._deliver(answer)

    async def _perform(self, job: Job) -> None:
        """Run a call and answer it; then make ready what the next one may need."""
        try:
            self._deliver(await self._answered(job))
        except GuestTrapped as reason:
            self._deliver(_stopped(job.identity, str(reason)))
        if job.pristine and not self._idle and not self._killed:
            with suppress(GuestTrapped):
                guest, _ = await self._opened()
                self._keep(guest)

    async def _answered(self, job: Job) -> str:
        """Run a call in a guest, which is kept where it may serve another one."""
        guest = await self._ready(job)
        guest.used, keep = True, False
        try:
            answer = await guest.call(job.line, job.inputs, job)
            keep = not job.pristine and job.carried + len(answer) <= MAX_KEPT_BYTES
        finally:
            if keep:
                self._keep(guest)
            else:
                guest.close()
        return answer

    async def _ready(self, job: Job) -> Guest:
        """A guest with the bundle: the idle one if it will do."""
        if self._idle:
            idle = self._idle.popleft()
            if not (job.pristine and idle.used):
                return idle
            idle.close()
        guest, _ = await self._opened()
        return guest

    async def _opened(self) -> tuple[Guest, tuple[str, ...]]:
        """A guest that has heard the first lines and nothing else, and what it answered."""
        lines = tuple(self._opening)
        ahead = self.pool.take_opened(lines, self.limits)
        if ahead:
            for text in ahead.printed:
                self.log(text)
            return ahead.guest, ahead.answers
        guest = await self.pool.take(self.limits)
        return guest, await hear(guest, lines, self.log)

    def _keep(self, guest: Guest) -> None:
        if self._idle or self._killed:
            guest.close()
        else:
            self._idle.append(guest)

    def _deliver(self, answer: str) -> None:
        self.session.feed(answer.encode() + b"\n")


def _stopped(identity: str, reason: str) -> str:
    """The answer to a call that a trap ended, as the runtime answers for other faults."""
    fault = "RecursionError" if "stack exhausted" in reason else "Trap"
    result = {
        "isError": True,
        "content": [{"type": "text", "text": f"bug: {fault}: the code was stopped: {reason}"}],
        "_meta": {ERROR_META: {"kind": "bug", "type": fault, "line": None}},
    }
    return _message(identity, {"result": result})


def _refused(line: str, reason: str) -> str:
    """The answer to one of the first lines where a trap ended it."""
    identity = exactjson.loads(line.encode())["id"]
    error = {"code": LOAD_FAILED, "message": f"server.py: the code was stopped: {reason}"}
    return _message(identity, {"error": error})


def _message(identity: str, answer: Mapping[str, Any]) -> str:
    return exactjson.dumps({"jsonrpc": "2.0", "id": identity, **answer}).decode()
