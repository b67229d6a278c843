"""A session whose far end is instances in this process."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError, Future
from functools import partial
from typing import Any

from wasmtime import WasmtimeError

from sandbox import exactjson
from sandbox.broker import Broker
from sandbox.bundle import Bundle
from sandbox.errors import SessionBroken
from sandbox.exchange import Exchange
from sandbox.guard import depth
from sandbox.runner import Limits
from sandbox.session import ERROR_META, PipeSession
from sandbox.wasm_guest import Guest, GuestCut, GuestTrapped
from sandbox.wasm_pool import GuestPool, finished
from sandbox.wasm_recording import LOADING, Inputs, RecordedOutcome, Recording
from sandbox.wasm_state import keeps_state

MAX_CALLS = 4
"""Calls of one session that run at once, each in an instance of its own; more wait."""
MAX_KEPT_BYTES = 256 * 1024
"""An instance that carried more in one call is not kept: its memory never shrinks."""
MAX_PRINTS = 10_000
STATELESS_AUTHOR = "compiler"
"""Its code keeps nothing, and need not be searched for what might."""
LOAD_FAILED = -32001


class WasmSession(PipeSession):
    """A session whose outcomes say what they depend on."""

    def __init__(self, bundle: Bundle, broker: Broker, limits: Limits, pipe: GuestPipe) -> None:
        super().__init__(bundle, broker, limits, pipe)
        self._guests = pipe

    def _outcome(
        self,
        tool: str,
        answer: Mapping[str, Any],
        exchanges: tuple[Exchange, ...],
        started: float,
    ) -> RecordedOutcome:
        outcome = super()._outcome(tool, answer, exchanges, started)
        inputs = self._guests.inputs.pop(str(answer["id"]))
        recording = Recording(self._guests.pool.component, inputs, exchanges)
        return RecordedOutcome(**vars(outcome), recording=recording)


class Job:
    """Something for a guest to do, and what it may reach meanwhile."""

    def __init__(
        self, pipe: GuestPipe, identity: str, line: str, inputs: Inputs, pristine: bool = False
    ) -> None:
        self.identity, self.line, self.inputs, self.pristine = identity, line, inputs, pristine
        self._pipe = pipe
        self._lock = threading.Lock()
        self._guest: Guest | None = None
        self._waiting: Future[dict[str, Any]] | None = None
        self._is_cut = False
        self._prints = 0
        self.carried = len(line)
        """Bytes that went in and out, about."""

    def hold(self, guest: Guest) -> Guest:
        """Take this guest for the job. Raises GuestCut where the job was cut before."""
        with self._lock:
            self._guest = guest
        if self._is_cut:
            raise GuestCut
        return guest

    def release(self) -> Guest | None:
        """The guest, which a cut of this job does not reach any more."""
        with self._lock:
            guest, self._guest = self._guest, None
        return guest

    def cut(self) -> None:
        """Stop the job wherever it is; its guest is lost. Does not wait."""
        with self._lock:
            self._is_cut = True
            if self._waiting:
                self._waiting.cancel()
            if self._guest:
                self._guest.cut()

    def exchange(self, params: str) -> str:
        session, limits = self._pipe.session, self._pipe.limits
        content = params.encode()
        if len(content) > limits.line_bytes:
            raise WasmtimeError("the code asked for something longer than a line may be")
        try:
            asked = exactjson.loads(content)
        except (ValueError, RecursionError):
            asked = None
        if not isinstance(asked, dict) or depth(asked, limits.nesting) > limits.nesting:
            raise WasmtimeError("what the code asked for is not the params of a request")
        with self._lock:
            if self._is_cut:
                raise WasmtimeError("cut")
            answered = session.answered(asked)
            self._waiting = asyncio.run_coroutine_threadsafe(answered, self._pipe.loop)
        answer = _awaited(self._waiting)
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
        self.inputs: dict[str, Inputs] = {}
        """Of the calls that have not been answered yet."""
        self._bundle, self._make_inputs = bundle, make_inputs
        self._opening: list[str] = []
        self._idle: deque[Guest] = deque()
        self._pending: deque[Job] = deque()
        self._jobs: dict[str, Job] = {}
        self._work: set[Future[None]] = set()
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
            inputs = self.inputs[identity] = self._make_inputs()
            pristine = self._is_pristine(message["params"]["name"])
            self._pending.append(Job(self, identity, line, inputs, pristine))
        elif identity:
            self._pending.append(Job(self, identity, line, LOADING))
        self._start_pending()

    def kill(self) -> None:
        self._killed = True
        self._pending.clear()
        for job in self._jobs.values():
            job.cut()

    async def ended(self) -> None:
        """Return when no guest runs any more and their memory is given back."""
        await finished(self._work)
        while self._idle:
            self._idle.pop().close()

    def log(self, text: str) -> None:
        """Keep what was printed, up to the session's limit. For threads."""
        content = text.encode()[: max(0, self.limits.stderr_bytes - self._logged)]
        if content:
            self._logged += len(content)
            self.loop.call_soon_threadsafe(self.session.feed_stderr, content)

    def _is_pristine(self, tool: str) -> bool:
        if self._bundle.tool(tool).requests:
            written = self._bundle.provenance.author != STATELESS_AUTHOR
            return written and keeps_state(self._bundle.source_code)
        return True

    def _start_pending(self) -> None:
        while self._pending and len(self._jobs) < MAX_CALLS:
            self._start(self._pending.popleft(), self._perform)

    def _start(self, job: Job, work: Callable[[Job], None]) -> None:
        self._jobs[job.identity] = job
        future = self.pool.run(partial(work, job))
        self._work.add(future)
        future.add_done_callback(
            lambda done: self.loop.call_soon_threadsafe(self._over, job.identity, done)
        )

    def _over(self, identity: str, done: Future[None]) -> None:
        del self._jobs[identity]
        self._work.discard(done)
        if done.exception():
            self.session.end(SessionBroken(f"the WASM engine failed: {done.exception()!r}"[:500]))
        self._start_pending()

    def _cancel(self, identity: str) -> None:
        self.inputs.pop(identity, None)
        self._pending = deque(job for job in self._pending if job.identity != identity)
        if identity in self._jobs:
            self._jobs[identity].cut()

    # What follows runs in threads.

    def _open(self, job: Job) -> None:
        """Hand over the bundle and shake hands."""
        try:
            _, answers = self._opened(job)
            self._keep(job)
        except GuestCut:
            answers = []
            _discard(job)
        except GuestTrapped as reason:
            answers = [_refused(line, str(reason)) for line in self._opening]
            _discard(job)
        for answer in answers:
            self._deliver(answer)

    def _perform(self, job: Job) -> None:
        """Run a call and answer it; then make ready what the next one may need."""
        try:
            guest = self._ready(job)
            guest.used = True
            answer = guest.call(job.line, job.inputs, job, job.inputs.seed)
        except GuestCut:
            _discard(job)
            return
        except GuestTrapped as reason:
            _discard(job)
            answer = _stopped(job.identity, str(reason))
        else:
            if job.pristine or job.carried + len(answer) > MAX_KEPT_BYTES:
                _discard(job)
            else:
                self._keep(job)
        self._deliver(answer)
        if job.pristine and not self._idle and not self._killed:
            self._prepare(job)

    def _ready(self, job: Job) -> Guest:
        """A guest with the bundle: the idle one if it will do."""
        try:
            idle = self._idle.popleft()
        except IndexError:
            idle = None
        if idle and not (job.pristine and idle.used):
            return job.hold(idle)
        if idle:
            idle.close()
        guest, _ = self._opened(job)
        return guest

    def _opened(self, job: Job) -> tuple[Guest, list[str]]:
        """A new guest that has heard the first lines, and what it answered."""
        guest = job.hold(self.pool.take(self.limits))
        return guest, [guest.call(line, LOADING, job) for line in self._opening]

    def _prepare(self, job: Job) -> None:
        try:
            self._opened(job)
            self._keep(job)
        except (GuestCut, GuestTrapped):
            _discard(job)

    def _keep(self, job: Job) -> None:
        guest = job.release()
        if guest and (self._idle or self._killed):
            guest.close()
        elif guest:
            self._idle.append(guest)

    def _deliver(self, answer: str) -> None:
        self.loop.call_soon_threadsafe(self.session.feed, answer.encode() + b"\n")


def _discard(job: Job) -> None:
    guest = job.release()
    if guest:
        guest.close()


def _awaited(answer: Future[dict[str, Any]]) -> str:
    """The answer as JSON. Raises WasmtimeError: no other exception may cross the guest."""
    try:
        error = answer.exception()
        if error is None:
            return exactjson.dumps(answer.result()).decode()
    except (CancelledError, ValueError) as problem:
        raise WasmtimeError(f"no answer: {problem!r}"[:300]) from problem
    raise WasmtimeError(f"no answer: {error!r}"[:300])


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
