"""Third-party servers as plain child processes without isolation, by a person's choice."""

from __future__ import annotations

import asyncio
import os
import sys
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from sandbox.broker.broker import Broker
from sandbox.bundle.model import Bundle
from sandbox.errors import SessionBroken
from sandbox.killswitch import KillSwitch
from sandbox.session.interface import Limits, Session
from sandbox.session.pipe import Listener
from sandbox.thirdparty.environment import LIMITS, EnvironmentProvider
from sandbox.thirdparty.session import McpSession
from sandbox.wire.redaction import Redaction

STDOUT, STDERR = 1, 2
GUARD = """import os, select, signal, subprocess, sys
leash = int(sys.argv[1])
child = subprocess.Popen(sys.argv[2:], start_new_session=True)
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
os.close(0)
os.close(1)
ended, told = os.pipe()
signal.signal(signal.SIGCHLD, lambda *_: None)
os.set_blocking(told, False)
signal.set_wakeup_fd(told, warn_on_full_buffer=False)
while child.poll() is None:
    if leash in select.select([leash, ended], [], [])[0]:
        break
    os.read(ended, 512)
try:
    os.killpg(child.pid, signal.SIGKILL)
except ProcessLookupError:
    pass
sys.exit(child.wait() & 255)
"""
"""Guard process: starts the command and kills its process group when our end of a pipe closes."""


class GuardedProcess(asyncio.SubprocessProtocol):
    """The pipe of a guarded child process. Output is kept until a listener is bound."""

    def __init__(self, leash: int) -> None:
        self._leash: int | None = leash
        self._transport: asyncio.SubprocessTransport | None = None
        self._listener: Listener | None = None
        self._early: list[tuple[int, bytes]] = []
        self._exited = asyncio.Event()

    def bind_listener(self, listener: Listener) -> None:
        self._listener = listener
        for descriptor, data in self._early:
            self.pipe_data_received(descriptor, data)
        if self._exited.is_set():
            listener.end()

    def write(self, data: bytes) -> None:
        pipe = self._transport and self._transport.get_pipe_transport(0)
        if isinstance(pipe, asyncio.WriteTransport) and not pipe.is_closing():
            pipe.write(data)

    def count_unread(self) -> int:
        pipe = self._transport and self._transport.get_pipe_transport(0)
        return pipe.get_write_buffer_size() if isinstance(pipe, asyncio.WriteTransport) else 0

    def kill(self) -> None:
        """Have the guard kill the child and its process group."""
        if self._leash is not None:
            os.close(self._leash)
            self._leash = None

    async def kill_and_wait(self) -> None:
        """Kill the child and wait until the guard has seen its end."""
        self.kill()
        await self._exited.wait()
        if self._transport:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if self._listener is None:
            self._early.append((fd, data))
        elif fd == STDERR:
            self._listener.feed_stderr(data)
        else:
            self._listener.feed(data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if self._listener and fd == STDOUT:
            self._listener.end()

    def process_exited(self) -> None:
        self._exited.set()
        if self._listener:
            self._listener.end()


@asynccontextmanager
async def run_guarded(
    command: tuple[str, ...], environment: Mapping[str, str]
) -> AsyncIterator[GuardedProcess]:
    """Run a command for the duration of the block; its process group is killed at the end. Raises
    SessionBroken.
    """
    held, leash = os.pipe()
    child = GuardedProcess(leash)
    try:
        await asyncio.get_running_loop().subprocess_exec(
            lambda: child,
            *(sys.executable, "-I", "-S", "-c", GUARD, str(held), *command),
            env=dict(environment),
            pass_fds=(held,),
        )
    except OSError as error:
        child.kill()
        raise SessionBroken(f"{command[0]} did not start: {error}") from error
    finally:
        os.close(held)
    try:
        yield child
    finally:
        await child.kill_and_wait()


class UnconfinedRunner:
    """A `Runner` for servers that a person chose to run without isolation.

    They are child processes: their declared permissions are not enforced. They are killed by the
    kill switch, at the session's end, and when this process dies. `inherited` is all they get of
    this process's environment.
    """

    def __init__(
        self,
        outfit: EnvironmentProvider,
        *,
        inherited: Mapping[str, str],
        kill_switch: KillSwitch | None = None,
        limits: Limits | None = None,
    ) -> None:
        self._outfit, self._inherited = outfit, dict(inherited)
        self._kill_switch = kill_switch or KillSwitch()
        self._limits = limits or LIMITS

    @asynccontextmanager
    async def open(
        self, bundle: Bundle, broker: Broker, limits: Limits | None = None
    ) -> AsyncIterator[Session]:
        """A session with the server. Raises SessionBroken, DefinitionsChanged, PermissionMissing,
        Frozen.
        """
        self._kill_switch.raise_if_engaged()
        launch = bundle.launch
        assert launch is not None
        outfit = self._outfit(bundle)
        environment = {**self._inherited, **launch.environment, **outfit.environment}
        async with run_guarded(launch.command, environment) as process:
            secrets = Redaction(outfit.environment.values())
            session = McpSession(bundle, broker, limits or self._limits, process, secrets, deque())
            process.bind_listener(session)
            async with session.run_session(self._kill_switch):
                yield session
