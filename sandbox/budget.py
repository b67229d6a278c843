"""Budgets of what a call, a server and a process may hold at once, and of what a call may send."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from sandbox.errors import BytesExhausted

MEGABYTE = 1024 * 1024
SMALL_BYTES = MEGABYTE // 2
"""What each call may hold even where its process is full, so that small calls are served on."""
PROCESS_MB = 400
PROCESS_FULL = (
    "Toolwright holds {} MB of calls at this moment, and takes no more of this one. Call again "
    "when others have ended, ask for less at once, or let it hold more with TOOLWRIGHT_CALLS_MB."
)
CALL_FULL = (
    "this call would hold more than {} MB: its arguments, its requests, their answers and its "
    "result count together. Ask for less at once, such as smaller pages."
)
DEFAULT_REQUESTS = 100
"""What one call may send to one host, unless a person lets its server's calls send more."""


class ByteBudget:
    """Counts bytes that are held, up to a limit. `refusal`, in which `{}` is the limit in MB, is
    told to whoever wants more.

    What is held counts in the budget `within` as well, but for the first `free` bytes. It is given
    back when this budget is forgotten. In any thread.
    """

    def __init__(
        self, limit: int, refusal: str, within: ByteBudget | None = None, free: int = 0
    ) -> None:
        self.limit, self.refusal = limit, refusal
        self.held = 0
        self._within, self._free = within, free
        # Reentrant: the garbage collector may forget another budget within this one's.
        self._lock = threading.RLock()

    def take(self, size: int) -> None:
        """Hold so many bytes more, or fewer if it is negative. Raises BytesExhausted, and holds no
        more than before.
        """
        with self._lock:
            held, free = self.held + size, self._free
            if held > self.limit and size > 0:
                raise BytesExhausted(self.refusal.format(f"{self.limit / MEGABYTE:.3g}"))
            if self._within is not None and (held > free or self.held > free):
                self._within.take(max(held, free) - max(self.held, free))
            self.held += size

    def hold(self, size: int) -> None:
        """Hold exactly so many bytes. Raises BytesExhausted as `take` does."""
        if size != self.held:
            self.take(size - self.held)

    def __del__(self) -> None:
        # What is left counts where it was shared until nobody has it any more.
        if self.held > self._free and self._within is not None:
            self._within.take(self._free - self.held)


def build_process_budget(megabytes: int) -> ByteBudget:
    """The budget of all calls of a process."""
    return ByteBudget(megabytes * MEGABYTE, PROCESS_FULL)


@dataclass
class HostUsage:
    """`sent` requests of a call went to a host; at `due` the next one would, were all spread."""

    sent: int = 0
    due: float = 0.0


@dataclass
class CallUsage:
    """What one call has used of what it may: bytes, requests in all, and requests to each host.

    `server` is whose call it is, `allowed` how many requests it may send to one host, `caller` the
    call that made this one: what this one sends counts there too.
    """

    memory: ByteBudget
    server: str = ""
    allowed: int = DEFAULT_REQUESTS
    caller: CallUsage | None = None
    asked: int = 0
    hosts: defaultdict[str, HostUsage] = field(default_factory=lambda: defaultdict(HostUsage))


CALL: ContextVar[CallUsage | None] = ContextVar("call", default=None)
"""The call that a task works for."""


@contextmanager
def work_for(call: CallUsage | None) -> Iterator[None]:
    """Count what is done in the block as this call's."""
    token = CALL.set(call)
    try:
        yield
    finally:
        CALL.reset(token)
