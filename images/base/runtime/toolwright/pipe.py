"""The stdio pipe: a reader, eight threads for calls, and the exchanges that wait for the host."""

from __future__ import annotations

import os
import threading
from queue import SimpleQueue

from .broker import BrokerTransport
from .errors import Cancelled
from .protocol import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    PARSE_ERROR,
    Connection,
    PendingCall,
    error,
)
from .wire import MAX_LINE, decode, encode, outcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, BinaryIO

    from .bundle import Bundle
    from .calls import Transport

MAX_CALLS = 8
MAX_WAITING = 1024
GRACE_SECONDS = 1.0


class Pipe:
    """Serves one peer until its end of input."""

    def __init__(
        self,
        source: BinaryIO,
        sink: BinaryIO,
        bundle: Bundle | None,
        standalone: Callable[[Bundle], Transport],
    ) -> None:
        self._source, self._sink = source, sink
        self._standalone = standalone
        self._connection = Connection(bundle, self._transport)
        self._changed = threading.Condition()
        self._writing = threading.Lock()
        self._queue: SimpleQueue[PendingCall] = SimpleQueue()
        self._calls: dict[int | str, bool] = {}
        """The calls that are queued or running; True once cancelled."""
        self._exchanges: dict[str, tuple[int | str, SimpleQueue[Any]]] = {}
        self._threads = self._count = self._unfinished = 0
        self._ended = False

    def run(self) -> None:
        """Returns at the end of input, when calls had a moment to finish."""
        # The first call finds its thread running: a spare server waits long before it is asked.
        self._start_thread()
        for line in self._lines():
            if line is None:
                self._send(error(None, INVALID_REQUEST, f"a line is longer than {MAX_LINE} bytes"))
            elif line.strip():
                self._receive(line)
        with self._changed:
            self._ended = True
            for _, answer in self._exchanges.values():
                answer.put(None)
            self._changed.wait_for(lambda: not self._unfinished, GRACE_SECONDS)

    def _lines(self) -> Iterator[bytes | None]:
        """The lines of the input; None for one that was too long and has been passed over."""
        while line := self._source.readline(MAX_LINE + 1):
            if len(line) <= MAX_LINE:
                yield line
                continue
            while line and not line.endswith(b"\n"):
                line = self._source.readline(1 << 16)
            yield None

    def _receive(self, line: bytes) -> None:
        try:
            message = decode(line)
        except ValueError:
            self._send(error(None, PARSE_ERROR, "the line is not JSON"))
            return
        if isinstance(message, dict) and "method" not in message and "id" in message:
            self._deliver(message)
        elif isinstance(message, dict) and message.get("method") == "notifications/cancelled":
            self._cancel(message.get("params"))
        else:
            received = self._connection.receive(message)
            if isinstance(received, PendingCall):
                self._accept(received)
            elif received is not None:
                self._send(received)

    def _accept(self, call: PendingCall) -> None:
        with self._changed:
            known, full = call.identity in self._calls, len(self._calls) >= MAX_WAITING
            if not known and not full:
                self._calls[call.identity] = False
                self._unfinished += 1
                self._queue.put(call)
                if self._threads < MAX_CALLS and self._threads < self._unfinished:
                    self._start_thread()
        if known:
            reason = "a call with this id is running"
            self._send(error(call.identity, INVALID_REQUEST, reason))
        elif full:
            self._send(error(call.identity, INTERNAL_ERROR, "too many calls are waiting"))

    def _start_thread(self) -> None:
        self._threads += 1
        threading.Thread(target=self._work, daemon=True).start()

    def _work(self) -> None:
        while True:
            call = self._queue.get()
            try:
                line = None if self._calls.get(call.identity) else outcome(call)
            except Cancelled:
                line = None
            # The id is free before its answer is out: the peer may use it again at once.
            with self._changed:
                cancelled = self._calls.pop(call.identity, False)
            if line is not None and not cancelled:
                self._write(line)
            with self._changed:
                self._unfinished -= 1
                self._changed.notify_all()

    def _cancel(self, params: Any) -> None:
        identity = params.get("requestId") if isinstance(params, dict) else None
        if isinstance(identity, bool) or not isinstance(identity, int | str):
            return
        with self._changed:
            if identity in self._calls:
                self._calls[identity] = True
            for call, answer in self._exchanges.values():
                if call == identity:
                    answer.put(None)

    def _deliver(self, message: dict[str, Any]) -> None:
        identity = message["id"]
        with self._changed:
            waiting = self._exchanges.get(identity) if isinstance(identity, str) else None
        if waiting:
            waiting[1].put(message)

    def _exchange(self, params: dict[str, Any]) -> dict[str, Any]:
        """Ask the host and wait. Raises Cancelled where the call was given up meanwhile."""
        answer: SimpleQueue[Any] = SimpleQueue()
        with self._changed:
            if self._ended or self._calls.get(params["call"], True):
                raise Cancelled
            self._count += 1
            identity = f"r{self._count}"
            self._exchanges[identity] = (params["call"], answer)
        request = {"jsonrpc": "2.0", "id": identity, "method": "toolwright/request"}
        self._send({**request, "params": params})
        message = answer.get()
        with self._changed:
            del self._exchanges[identity]
        if message is None:
            raise Cancelled
        return dict(message)

    def _transport(self, bundle: Bundle, brokered: bool) -> Transport:
        if brokered:
            return BrokerTransport(bundle.base_url, self._exchange)
        return self._standalone(bundle)

    def _send(self, message: dict[str, Any]) -> None:
        self._write(encode(message))

    def _write(self, line: bytes) -> None:
        with self._writing:
            try:
                self._sink.write(line)
                self._sink.flush()
            except OSError:
                # Nobody listens any more; the end of input follows, and there is no one to tell.
                os._exit(0)
