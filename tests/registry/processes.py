"""Running a function in a forked child: killed at a chosen step, or racing against others."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import Any

from sqlalchemy import Engine, Pool, event

FILE_EVENTS = frozenset({"os.mkdir", "os.rename", "os.rmdir", "os.remove", "os.link"})
WRITES = ("INSERT", "UPDATE", "DELETE", "CREATE")


def survives_kill_at(step: int, action: Callable[[], object]) -> bool:
    """Run an action in a child that gets SIGKILL before its n-th step that changes anything.

    Steps are writing opens, directory changes, SQL statements that write, and commits. True where
    the action took fewer and so ran to its end.
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
    """What the action returned in each of several processes that start it together.

    Raises EOFError where one of them ended without an answer.
    """
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(processes)

    def run(number: int, answer: Connection) -> None:
        barrier.wait()
        answer.send(action(number))

    running, answers = [], []
    for number in range(processes):
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=run, args=(number, theirs))
        process.start()
        theirs.close()
        running.append(process)
        answers.append(ours)
    try:
        return [answer.recv() for answer in answers]
    finally:
        for process, answer in zip(running, answers, strict=True):
            process.join()
            answer.close()


def _kill_at(step: int) -> None:
    left = step

    def count() -> None:
        nonlocal left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def on_audit(name: str, arguments: tuple[Any, ...]) -> None:
        if name in FILE_EVENTS or (name == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR)):
            count()

    def on_connect(connection: Any, record: Any) -> None:
        connection.set_trace_callback(on_statement)

    def on_statement(statement: str) -> None:
        if statement.lstrip().startswith(WRITES):
            count()

    sys.addaudithook(on_audit)
    event.listen(Pool, "connect", on_connect)
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
