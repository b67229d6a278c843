"""The pipe of a WASM session: jobs for instances in this process."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from sandbox import exactjson
from sandbox.bundle.model import Bundle
from sandbox.engines.wasm.guest import (
    MAX_REASON,
    STOP_SECONDS,
    Guest,
    GuestTrapped,
    wait_finished,
)
from sandbox.engines.wasm.memory import MemoryImage
from sandbox.engines.wasm.pool import MAX_PRINTS, GuestPool, is_loaded, send_opening_lines
from sandbox.engines.wasm.purity import keeps_state
from sandbox.offload import run_sized
from sandbox.session.interface import Limits
from sandbox.session.pipe import ERROR_META, MAX_REQUEST, PipeSession
from sandbox.session.recording import LOADING, CallInputs, choose_inputs
from sandbox.wire.framing import is_deep

MAX_CALLS = 4
"""Concurrent calls of one session, each in its own instance; more wait."""
MAX_AHEAD = 2
"""Instances made ahead for pristine calls: making one takes longer than a call, and two threads can
make them."""
MAX_AHEAD_BYTES = 8 * 1024 * 1024
"""None is made ahead of a server that changed more memory while it was loaded."""
MAX_KEPT_BYTES = 256 * 1024
"""An instance is not kept after a call that carried more: its memory never shrinks."""
STATELESS_AUTHOR = "compiler"
"""Compiled code keeps no state by construction, so it is not analysed."""
LOAD_FAILED = -32001


class GuestJob:
    """A JSON-RPC request for a guest, and the host's services for it."""

    def __init__(
        self, pipe: GuestPipe, identity: str, line: str, inputs: CallInputs, pristine: bool = False
    ) -> None:
        self.identity, self.line, self.inputs, self.pristine = identity, line, inputs, pristine
        self._pipe = pipe
        self._prints = 0
        self.carried = len(line)
        """Bytes passed in and out, roughly."""

    async def exchange_request(self, params: str) -> str:
        session, limits = self._pipe.session, self._pipe.limits
        content = params.encode()
        if len(content) > MAX_REQUEST:
            raise GuestTrapped("the code asked for something longer than a request may be")
        asked = await run_sized(len(content), partial(_parse_params, content, limits.nesting))
        if asked is None:
            raise GuestTrapped("what the code asked for is not the params of a request")
        answered = await session.answer_request(asked, len(content))
        answer = exactjson.dumps(answered).decode()
        self.carried += len(content) + len(answer)
        return answer

    def log_text(self, text: str) -> bool:
        self._prints += 1
        if self._prints <= MAX_PRINTS:
            self._pipe.log_text(text)
        return self._prints <= MAX_PRINTS


class GuestPipe:
    """The guests of one session, as the pipe that the session writes to.

    A call runs in an idle guest, or in a new one that gets the session's opening lines. A guest
    serves a second call only if its code plainly keeps no state and the tool declares requests.
    Any other call is pristine: it gets a guest that has run no call, so that its result depends on
    its recording alone. That is a new instance which begins with an image of the server's memory
    after its opening lines; where there are no images, it gets the lines itself.
    """

    session: PipeSession

    def __init__(
        self, pool: GuestPool, bundle: Bundle, limits: Limits, make_inputs: Callable[[], CallInputs]
    ) -> None:
        self.pool, self.limits = pool, limits
        self.loop = asyncio.get_running_loop()
        self._bundle, self._make_inputs = bundle, make_inputs
        self._opening: list[str] = []
        self._idle: deque[Guest] = deque()
        self._image: asyncio.Task[MemoryImage] | None = None
        self._knows_writes = False
        self._ahead: deque[asyncio.Task[Guest]] = deque()
        self._making: set[asyncio.Task[Guest]] = set()
        self._pending: deque[GuestJob] = deque()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._logged = 0
        self._killed = False

    def write(self, data: bytes) -> None:
        message, line = exactjson.loads(data), data.decode()
        method, identity = message.get("method"), message.get("id", "")
        if method in ("toolwright/load", "initialize"):
            self._opening.append(line)
            if method == "initialize":
                self._start_job(GuestJob(self, identity, line, LOADING), self._open_session)
        elif method == "notifications/cancelled":
            self._cancel_job(message["params"]["requestId"])
        elif method == "tools/call":
            inputs = self._choose_inputs(identity, message["params"])
            pristine = self._is_pristine(message["params"]["name"])
            self._pending.append(GuestJob(self, identity, line, inputs, pristine))
        elif identity:
            self._pending.append(GuestJob(self, identity, line, LOADING))
        self._start_pending()

    def count_unread(self) -> int:
        return sum(len(job.line) for job in self._pending)

    def kill(self) -> None:
        self._killed = True
        self._pending.clear()
        for task in self._tasks.values():
            task.cancel()
        # Whoever holds the session may not look at it for a minute.
        self.loop.call_soon(self._close_idle)

    async def wait_ended(self) -> None:
        """Wait until all guests have ended and their memory is freed."""
        try:
            await wait_finished(tuple(self._tasks.values()), STOP_SECONDS)
        finally:
            self._close_idle()
            image = [self._image] if self._image else []
            await wait_finished((*self._making, *image), STOP_SECONDS)

    def _close_idle(self) -> None:
        while self._idle:
            self._idle.pop().close()
        while self._ahead:
            _close_when_made(self._ahead.pop())
        if self._image:
            self._image.cancel()

    def log_text(self, text: str) -> None:
        """Keep printed text, up to the session's limit. In any thread."""
        content = text.encode()[: max(0, self.limits.stderr_bytes - self._logged)]
        if content:
            self._logged += len(content)
            self.loop.call_soon_threadsafe(self.session.feed_stderr, content)

    def _choose_inputs(self, call: str, params: Mapping[str, Any]) -> CallInputs:
        """The inputs of a call: those on its tape, which are chosen and put there if missing."""
        tape = self.session.tapes[call]
        if tape.inputs is None:
            live = self._make_inputs()
            tape.inputs = choose_inputs(self._bundle, params["name"], params["arguments"], live)
        return tape.inputs

    def _is_pristine(self, tool: str) -> bool:
        if self._bundle.get_tool(tool).requests:
            written = self._bundle.provenance.author != STATELESS_AUTHOR
            return written and keeps_state(self._bundle.source_code)
        return True

    def _start_pending(self) -> None:
        while self._pending and len(self._tasks) < MAX_CALLS:
            self._start_job(self._pending.popleft(), self._perform_call)

    def _start_job(
        self, job: GuestJob, work: Callable[[GuestJob], Coroutine[Any, Any, None]]
    ) -> None:
        task = self._tasks[job.identity] = self.loop.create_task(work(job))
        task.add_done_callback(partial(self._finish_job, job))

    def _finish_job(self, job: GuestJob, task: asyncio.Task[None]) -> None:
        del self._tasks[job.identity]
        # What fails on our side, as an upstream may, ends the call and not the session.
        if not task.cancelled() and (error := task.exception()):
            reason = f"no answer: {error!r}"[:MAX_REASON]
            self._deliver_answer(job.identity, _encode_stopped(job.identity, reason))
        self._start_pending()

    def _cancel_job(self, identity: str) -> None:
        self._pending = deque(job for job in self._pending if job.identity != identity)
        if identity in self._tasks:
            self._tasks[identity].cancel()

    async def _open_session(self, job: GuestJob) -> None:
        """Open a guest with the bundle and deliver its answers to the opening lines."""
        try:
            started = time.perf_counter()
            guest, answers = await self._open_guest()
        except GuestTrapped as reason:
            answers = tuple(_encode_load_failure(line, str(reason)) for line in self._opening)
        else:
            self._keep_guest(guest)
            seconds = time.perf_counter() - started
            if is_loaded(answers):
                self.pool.remember_server(tuple(self._opening), self.limits, seconds)
        for line, answer in zip(self._opening, answers, strict=True):
            self._deliver_answer(_read_identity(line), answer)

    async def _perform_call(self, job: GuestJob) -> None:
        """Run a call and deliver its answer; then open a guest for the next one if needed."""
        spent: Guest | None = None
        try:
            answer, spent = await self._run_call(job)
        except GuestTrapped as reason:
            answer = _encode_stopped(job.identity, str(reason))
        self._deliver_answer(job.identity, answer)
        # Whoever asked does not wait until the memory of the guest is freed.
        if job.pristine and self.pool.has_images and self._may_make_ahead():
            self._make_ahead(spent)
        elif spent:
            await self.pool.end_guest(spent)
        if job.pristine and not self.pool.has_images and not self._idle and not self._killed:
            with suppress(GuestTrapped):
                guest, _ = await self._open_guest()
                self._keep_guest(guest)

    async def _run_call(self, job: GuestJob) -> tuple[str, Guest | None]:
        """Run a call in a guest, which is kept if it may serve another call; else it is returned
        with the answer, to be ended.
        """
        guest = await self._take_guest(job)
        guest.used = True
        answer = await guest.answer_line(job.line, job.inputs, job)
        if job.pristine or job.carried + len(answer) > MAX_KEPT_BYTES:
            return answer, guest
        guest.note_writes()
        self._keep_guest(guest)
        return answer, None

    async def _take_guest(self, job: GuestJob) -> Guest:
        """A guest with the bundle: the idle one if the job may run in it."""
        if job.pristine and self.pool.has_images:
            making = self._ahead.popleft() if self._ahead else self._start_making()
            try:
                return await asyncio.shield(making)
            except asyncio.CancelledError:
                _close_when_made(making)
                raise
        if self._idle:
            idle = self._idle.popleft()
            if not (job.pristine and idle.used):
                return idle
            idle.close()
        guest, _ = await self._open_guest()
        return guest

    def _may_make_ahead(self) -> bool:
        """Whether guests may be made for later pristine calls: not if each takes much memory."""
        image = self._image
        if image is None or _has_failed(image) or not image.done() or self._killed:
            return False
        few = len(self._ahead) < MAX_AHEAD
        return few and image.result().count_changed() <= MAX_AHEAD_BYTES

    def _make_ahead(self, spent: Guest | None) -> None:
        """Have guests made for the next pristine calls. What makes the first of them ends `spent`
        before: each hand-over to a thread and back takes a tenth of a call. From the first on, they
        have pages of their own where that one wrote.
        """
        if spent and self._image and not self._knows_writes:
            self._knows_writes = True
            widening = self.pool.include_writes(spent, self._image.result())
            self._image = self.loop.create_task(widening)
        self._ahead.append(self._start_making(spent))
        while len(self._ahead) < MAX_AHEAD:
            self._ahead.append(self._start_making())

    def _start_making(self, spent: Guest | None = None) -> asyncio.Task[Guest]:
        making = self.loop.create_task(self._make_pristine(spent))
        self._making.add(making)
        making.add_done_callback(self._making.discard)
        return making

    async def _make_pristine(self, spent: Guest | None) -> Guest:
        """Create a guest that begins with the image, which is taken first if there is none."""
        if self._image is None or _has_failed(self._image):
            self._image = self.loop.create_task(self._take_image())
        try:
            image = await asyncio.shield(self._image)
        except BaseException:
            if spent:
                spent.close()
            raise
        return await self.pool.make_guest(self.limits, image, spent)

    async def _take_image(self) -> MemoryImage:
        """The memory of a guest that got the opening lines. Raises GuestTrapped."""
        if self._idle and not self._idle[0].used:
            return await self._idle.popleft().take_image()
        guest, _ = await self._open_guest()
        return await guest.take_image()

    async def _open_guest(self) -> tuple[Guest, tuple[str, ...]]:
        """A guest that got the opening lines and nothing else, and its answers."""
        lines = tuple(self._opening)
        ahead = self.pool.take_opened(lines, self.limits)
        if ahead:
            for text in ahead.printed:
                self.log_text(text)
            return ahead.guest, ahead.answers
        guest = await self.pool.take_guest(self.limits)
        return guest, await send_opening_lines(guest, lines, self.log_text)

    def _keep_guest(self, guest: Guest) -> None:
        if self._idle or self._killed:
            guest.close()
        else:
            self._idle.append(guest)

    def _deliver_answer(self, identity: str, answer: str) -> None:
        self.session.feed_answer(identity, answer.encode())


def _has_failed(task: asyncio.Task[MemoryImage]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)


def _close_when_made(making: asyncio.Task[Guest]) -> None:
    """Close a guest that nobody waits for."""
    if making.done():
        _close_made(making)
    else:
        making.add_done_callback(_close_made)


def _close_made(making: asyncio.Task[Guest]) -> None:
    if not making.cancelled() and making.exception() is None:
        making.result().close()


def _parse_params(content: bytes, nesting: int) -> dict[str, Any] | None:
    """The params of a request that the code made; None where they are none."""
    try:
        asked = exactjson.loads(content)
    except (ValueError, RecursionError):
        return None
    return asked if isinstance(asked, dict) and not is_deep(content, asked, nesting) else None


def _encode_stopped(identity: str, reason: str) -> str:
    """The answer to a call that a trap ended, in the form of the runtime's own errors."""
    fault = "RecursionError" if "stack exhausted" in reason else "Trap"
    result = {
        "isError": True,
        "content": [{"type": "text", "text": f"bug: {fault}: the code was stopped: {reason}"}],
        "_meta": {ERROR_META: {"kind": "bug", "type": fault, "line": None}},
    }
    return _encode_message(identity, {"result": result})


def _encode_load_failure(line: str, reason: str) -> str:
    """The answer to one of the opening lines if a trap ended it."""
    error = {"code": LOAD_FAILED, "message": f"server.py: the code was stopped: {reason}"}
    return _encode_message(_read_identity(line), {"error": error})


def _read_identity(line: str) -> str:
    """The id of a request that the session wrote."""
    return str(exactjson.loads(line.encode())["id"])


def _encode_message(identity: str, answer: Mapping[str, Any]) -> str:
    return exactjson.dumps({"jsonrpc": "2.0", "id": identity, **answer}).decode()
