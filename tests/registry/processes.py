"""Running a function in a forked child: killed at a chosen step, or racing against others."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import Engine, event

FILE_EVENTS = frozenset(
    {"open", "os.mkdir", "os.rename", "os.rmdir", "os.remove", "shutil.rmtree", "os.listdir"}
)


def survives_kill_at(step: int, action: Callable[[], object]) -> bool:
    """Run an action in a child that gets SIGKILL at its n-th file event or SQL statement or commit.

    True where the action took fewer steps and so ran to its end.
    """
    child = os.fork()
    if child == 0:
        _run(lambda: _kill_at(step), action)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return False
    assert os.waitstatus_to_exitcode(status) == 0
    return True


def in_child(before: Callable[[], object], action: Callable[[], object]) -> int:
    """The exit status of a child that runs both; 0 where neither raised."""
    child = os.fork()
    if child == 0:
        _run(before, action)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def race(action: Callable[[int], Any], processes: int) -> Sequence[Any]:
    """What the action returned in each of several processes that start it together."""
    context = multiprocessing.get_context("fork")
    barrier, results = context.Barrier(processes), context.SimpleQueue()

    def run(number: int) -> None:
        barrier.wait()
        results.put(action(number))

    running = [context.Process(target=run, args=(number,)) for number in range(processes)]
    for process in running:
        process.start()
    answers = [results.get() for _ in running]
    for process in running:
        process.join()
    return answers


def _kill_at(step: int) -> None:
    left = step

    def count() -> None:
        nonlocal left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def on_audit(name: str, _arguments: object) -> None:
        if name in FILE_EVENTS:
            count()

    sys.addaudithook(on_audit)
    event.listen(Engine, "before_cursor_execute", lambda *_: count())
    event.listen(Engine, "commit", lambda *_: count())


def _run(before: Callable[[], object], action: Callable[[], object]) -> None:
    status = 1
    try:
        before()
        action()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)
