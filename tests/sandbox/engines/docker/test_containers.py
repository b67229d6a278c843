"""What a container says reaches its listener, however early it is said."""

from __future__ import annotations

import asyncio
import socket
import time

from sandbox.engines.docker.containers import FRAME_HEADER, MAX_EARLY, STDERR, AttachedContainer
from sandbox.offload import INLINE_SECONDS

LINES = 50


class Heard:
    """A listener that remembers."""

    def __init__(self) -> None:
        self.said: list[bytes] = []
        self.noise: list[bytes] = []
        self.ends = 0

    def feed(self, chunk: bytes) -> None:
        self.said.append(chunk)

    def feed_stderr(self, chunk: bytes) -> None:
        self.noise.append(chunk)

    def end(self, reason: Exception | None = None) -> None:
        self.ends += 1


def frame(content: bytes, stream: int = 1) -> bytes:
    return bytes([stream]) + bytes(FRAME_HEADER - 5) + len(content).to_bytes(4, "big") + content


def attached(removed: list[str]) -> AttachedContainer:
    def remove(identity: str) -> asyncio.Future[None]:
        removed.append(identity)
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        done.set_result(None)
        return done

    return AttachedContainer("c1", remove)


def test_what_was_said_before_there_was_a_listener_is_heard_first() -> None:
    async def heard() -> Heard:
        container, listener = attached([]), Heard()
        container.data_received(frame(b"ready") + frame(b"trouble", STDERR) + frame(b"half")[:-2])
        container.bind_listener(listener)
        container.data_received(b"lf" + frame(b"later"))
        return listener

    listener = asyncio.run(heard())
    assert (listener.said, listener.noise, listener.ends) == (
        [b"ready", b"half", b"later"],
        [b"trouble"],
        0,
    )


def test_one_that_talks_without_end_to_nobody_is_killed() -> None:
    async def kill() -> tuple[list[str], int]:
        removed: list[str] = []
        container, listener = attached(removed), Heard()
        ours, theirs = socket.socketpair()
        with theirs:
            await asyncio.get_running_loop().create_connection(lambda: container, sock=ours)
            container.data_received(frame(bytes(MAX_EARLY)))
            container.bind_listener(listener)
        return removed, listener.ends

    assert asyncio.run(kill()) == (["c1"], 1)


class Laborious(Heard):
    """A listener that takes long over what it hears."""

    def feed(self, chunk: bytes) -> None:
        super().feed(chunk)
        end = time.thread_time() + INLINE_SECONDS / 2
        while time.thread_time() < end:
            pass


def test_one_whose_output_takes_long_leaves_others_their_turns_and_loses_nothing() -> None:
    async def race() -> tuple[Laborious, int]:
        loop, container, listener = asyncio.get_running_loop(), attached([]), Laborious()
        container.bind_listener(listener)
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        await loop.create_connection(lambda: container, sock=ours)
        talking = loop.run_in_executor(None, talk, theirs)
        rests = 0
        while not listener.ends:
            rests += not container.is_read
            await asyncio.sleep(0)
        await talking
        return listener, rests

    def talk(end: socket.socket) -> None:
        with end:
            for number in range(LINES):
                end.sendall(frame(b"%d" % number))

    listener, rests = asyncio.run(race())
    assert listener.said == [b"%d" % number for number in range(LINES)]
    assert rests


def test_one_that_is_killed_while_it_is_not_read_stays_so() -> None:
    async def kill() -> list[str]:
        loop, removed, listener = asyncio.get_running_loop(), list[str](), Laborious()
        container = attached(removed)
        container.bind_listener(listener)
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        await loop.create_connection(lambda: container, sock=ours)
        with theirs:
            theirs.sendall(frame(b"x") * LINES)
            while container.is_read:
                await asyncio.sleep(0)
            container.kill()
            await container.kill_and_wait()
            while not listener.ends:
                await asyncio.sleep(0)
        return removed

    assert asyncio.run(kill()) == ["c1"]
