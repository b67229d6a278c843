"""The resident process: answers the commands of its home's owner until nobody asks any more.

It has no PIN and no key of decisions, and answers nothing that wants either. It calls tools as
`toolwright call` does, is registered as a process that a freeze stops, and ends with the freeze.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from orchestrator.calling import Caller as OpenCaller
from orchestrator.calling import open_caller
from orchestrator.calls import Call
from orchestrator.cli.commands.call import MadeCall, call_tool
from orchestrator.cli.main import COMMANDS
from orchestrator.cli.resident.code_state import CodeState
from orchestrator.cli.resident.commands import Printed, run_command
from orchestrator.cli.resident.protocol import (
    ANSWERED,
    GREETING,
    MAX_REQUEST,
    PART_LETTERS,
    SENDING,
    SOCKET,
    FrameInvalid,
    Request,
    check_peer,
    describe_caller,
    is_answerable,
    open_place,
    read_length,
    read_request,
    write_frame,
)
from orchestrator.processes.memory import limit_arenas
from orchestrator.processes.resident import NAME
from orchestrator.settings import Settings

MAX_AT_ONCE = 8
"""Commands beyond that do their work by themselves."""
REQUEST_SECONDS = 5.0
SEND_SECONDS = 30.0
LOOK_SECONDS = 1.0
END_SECONDS = 2.0
"""How long what is being answered may take to end before it is given up."""


class CommandServer:
    """Answers commands of the user `owner`. Calls are made with `caller`, once there is one; `end`
    is called where `code` is not what this process was started with any more.
    """

    def __init__(self, owner: int, code: CodeState, end: Callable[[], None]) -> None:
        self.caller: OpenCaller | None = None
        self.used = time.monotonic()
        self._owner, self._code, self._end = owner, code, end
        self._here = describe_caller(os.environ)
        self._pool = ThreadPoolExecutor(MAX_AT_ONCE, "command")
        self._answering: dict[asyncio.Task[None], ThreadCalls] = {}
        self._finished = False

    @property
    def idle_seconds(self) -> float:
        """How long nothing was asked; 0 while something is being answered."""
        return 0.0 if self._answering else time.monotonic() - self.used

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one connection, which is closed then."""
        task = asyncio.current_task()
        assert task is not None
        calls = ThreadCalls(asyncio.get_running_loop())
        try:
            check_peer(writer.get_extra_info("socket"), self._owner)
            # One that was accepted just before the end is not greeted: it would take what comes of
            # its call for unknown.
            if len(self._answering) < MAX_AT_ONCE and not self._finished:
                self._answering[task] = calls
                await self._answer_request(reader, writer, calls)
                self.used = time.monotonic()
        except (OSError, EOFError, FrameInvalid):
            # Another user, or one who is gone, is too slow or speaks something else.
            calls.cancel()
        finally:
            self._answering.pop(task, None)
            writer.close()

    async def finish(self) -> None:
        """Wait a moment for what is being answered, then give it up."""
        if self._answering:
            await asyncio.wait(tuple(self._answering), timeout=END_SECONDS)
        for calls in self._answering.values():
            calls.cancel()
        if self._answering:
            await asyncio.wait(tuple(self._answering), timeout=END_SECONDS)
        self._finished = True
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def _answer_request(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, calls: ThreadCalls
    ) -> None:
        async with asyncio.timeout(REQUEST_SECONDS):
            writer.write(write_frame(GREETING))
            await writer.drain()
            length = read_length(await reader.readexactly(4), MAX_REQUEST)
            request = read_request(await reader.readexactly(length))
        calls.caller = self.caller
        if await self._takes(request, calls):
            printed = await self._run(request, calls, reader)
            frames = _write_answer(printed)
        else:
            frames = iter((write_frame({"declined": True}),))
        async with asyncio.timeout(SEND_SECONDS):
            for frame in frames:
                writer.write(frame)
                await writer.drain()

    async def _takes(self, request: Request, calls: ThreadCalls) -> bool:
        """Whether it is answered here: by the code, and as the environment, of who asks."""
        if self._finished or not is_answerable(request.words) or request.caller != self._here:
            return False
        if calls.is_frozen or not (calls.is_open or SENDING.isdisjoint(request.words[:1])):
            return False
        current = await asyncio.get_running_loop().run_in_executor(
            self._pool, self._code.is_current
        )
        if not current:
            self._end()
        return current

    async def _run(
        self, request: Request, calls: ThreadCalls, reader: asyncio.StreamReader
    ) -> Printed:
        """Run a command in a thread; what it calls is cancelled once who asked is gone."""
        loop = asyncio.get_running_loop()
        running = loop.run_in_executor(self._pool, partial(run_command, request, calls.make_call))
        gone = asyncio.ensure_future(reader.read(1))
        waited: set[asyncio.Future[Any]] = {running, gone}
        try:
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
            if not running.done():
                calls.cancel()
            return await running
        finally:
            gone.cancel()
            with suppress(asyncio.CancelledError, OSError):
                await gone


class ThreadCalls:
    """Calls that one command makes from its thread, carried out in the loop of `caller`."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.caller: OpenCaller | None = None
        self._loop = loop
        self._running: Future[MadeCall] | None = None
        self._cancelled = False

    @property
    def is_open(self) -> bool:
        return self.caller is not None

    @property
    def is_frozen(self) -> bool:
        return self.caller is not None and self.caller.kill_switch.engaged

    def make_call(self, call: Call) -> MadeCall:
        """Make a call and wait for it. Raises concurrent.futures.CancelledError."""
        assert self.caller is not None
        self._running = asyncio.run_coroutine_threadsafe(
            _call_and_record(self.caller, call), self._loop
        )
        if self._cancelled:
            self._running.cancel()
        return self._running.result()

    def cancel(self) -> None:
        """Cancel what runs, and what comes."""
        self._cancelled = True
        if self._running is not None:
            self._running.cancel()


async def _call_and_record(caller: OpenCaller, call: Call) -> MadeCall:
    """A command that has ended left its record, for the next one to show."""
    made = await call_tool(caller, call)
    await caller.ledger.wait_written()
    return made


def serve_commands(settings: Settings, idle: float) -> None:
    """Answer commands until none came for `idle` seconds, a freeze, a signal, another version of
    the code, or the end of the home.
    """
    limit_arenas()
    for module in {COMMANDS[name][0] for name in ANSWERED if name} | {"overview"}:
        importlib.import_module(f"orchestrator.cli.commands.{module}")
    asyncio.run(_serve(settings, idle))


async def _serve(settings: Settings, idle: float) -> None:
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    async with AsyncExitStack() as stack:
        listener = stack.enter_context(open_listener(settings.home, os.getuid()))
        code = CodeState(describe_caller(os.environ).code)
        server = CommandServer(os.getuid(), code, ended.set)
        accepting = await asyncio.start_unix_server(server.answer, sock=listener)
        # Spares are containers that wait for calls; those of a terminal come one by one.
        caller = await stack.enter_async_context(open_caller(replace(settings, spares=0), NAME))
        stack.enter_context(caller.kill_switch.on_engage(ended.set))
        if not caller.kill_switch.engaged:
            server.caller = caller
            await wait_for_end(settings.home, server, idle, ended)
        accepting.close()
        await server.finish()


async def wait_for_end(
    home: Path, server: CommandServer, idle: float, ended: asyncio.Event
) -> None:
    """Return once `ended` is set, nothing was asked for so long, or the home has no such socket any
    more.
    """
    path = home / SOCKET
    own = _find_inode(path)
    while not ended.is_set() and own == _find_inode(path) and server.idle_seconds < idle:
        with suppress(TimeoutError):
            async with asyncio.timeout(LOOK_SECONDS):
                await ended.wait()


@contextmanager
def open_listener(home: Path, owner: int) -> Iterator[socket.socket]:
    """The socket of the home, which only its owner can open. Who calls this holds the residence: a
    socket that lies there already is a dead process's. Raises OSError.
    """
    with open_place(str(home), owner) as (place, path), socket.socket(socket.AF_UNIX) as listener:
        with suppress(FileNotFoundError):
            os.unlink(SOCKET, dir_fd=place)
        # The file that `bind` makes has the mode of the socket itself: it is never open to others.
        os.fchmod(listener.fileno(), 0o600)
        listener.bind(path)
        listener.listen(MAX_AT_ONCE)
        own = _find_inode(home / SOCKET)
        try:
            yield listener
        finally:
            if own == _find_inode(home / SOCKET):
                os.unlink(SOCKET, dir_fd=place)


def _find_inode(path: Path) -> int:
    """The number of a file; 0 where there is none."""
    try:
        return path.stat().st_ino
    except OSError:
        return 0


def _write_answer(printed: Printed) -> Iterator[bytes]:
    for to, text in printed.parts:
        for start in range(0, len(text), PART_LETTERS):
            yield write_frame({"to": to, "text": text[start : start + PART_LETTERS]})
    yield write_frame({"status": printed.status})
