"""A process that stops calls in the WASM engine in every order; how it ends is what tells.

Run as `python -m tests.attacks.unwinding CACHE STORY`. It prints `done` once the story is over and
a further call has worked: a process that wasmtime ended prints nothing more.
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

from sandbox.engines.wasm.component import LoadedComponent, load_component
from sandbox.engines.wasm.engine import WasmRunner
from sandbox.errors import Frozen, SandboxError
from sandbox.killswitch import KillSwitch
from sandbox.session.interface import Limits, Session
from sandbox.session.pipe import PipeSession
from tests.engine.samples import RUN, Gate, body, broker, bundle

SPINNING = "while True: pass"
MATCHING = "import re; re.match('(a|aa)+$', 'a' * 60 + 'b')"
WAITING = "http.request('GET', '/items/{key}', path={'key': 'a'})"
CODES = {"spin": SPINNING, "match": MATCHING, "wait": WAITING}
SAMPLE = bundle(RUN, "run")
LIMITS = Limits(call_seconds=600.0, cpus=1.0)
ROUNDS = 40

Story = Callable[[WasmRunner, KillSwitch], Awaitable[None]]


def begin(session: Session, code: str) -> asyncio.Task[object]:
    return asyncio.ensure_future(session.call("run", {"code": code}))


async def computing(runner: WasmRunner, calls: int = 1) -> None:
    """Wait until so many calls compute in threads."""
    while runner.pool.computing < calls:
        await asyncio.sleep(0)


async def ended(*tasks: asyncio.Task[object]) -> None:
    for task in tasks:
        with suppress(asyncio.CancelledError, SandboxError):
            await task


async def cancel_jobs_again_and_again(runner: WasmRunner, kill_switch: KillSwitch) -> None:
    """Every task of the process but this one, several times, at other moments each round."""
    chance = random.Random(7)
    for number in range(ROUNDS):
        try:
            async with runner.open(SAMPLE, broker(SAMPLE, Gate(2))) as session:
                call = begin(session, CODES[list(CODES)[number % 3]])
                if number % 3 != 2:
                    await computing(runner)
                for _ in range(chance.randrange(2, 5)):
                    for task in asyncio.all_tasks() - {asyncio.current_task()}:
                        task.cancel()
                    for _ in range(chance.randrange(4)):
                        await asyncio.sleep(0)
                await ended(call)
        except SandboxError:
            continue


async def cancel_while_closing(runner: WasmRunner, kill_switch: KillSwitch) -> None:
    """The task that leaves the session is cancelled, and again, while it waits for the end."""

    async def use(code: str, ready: asyncio.Event) -> None:
        async with runner.open(SAMPLE, broker(SAMPLE, body(b"{}"))) as session:
            call = begin(session, code)
            await computing(runner)
            call.cancel()
            ready.set()

    for number in range(ROUNDS):
        ready = asyncio.Event()
        user = asyncio.ensure_future(use([SPINNING, MATCHING][number % 2], ready))
        await ready.wait()
        for _ in range(1 + number % 3):
            user.cancel()
            await asyncio.sleep(0)
        await ended(user)


async def kill_during_calls(runner: WasmRunner, kill_switch: KillSwitch) -> None:
    """A freeze while calls compute and wait, then cancels of them, then a freeze again."""
    for _ in range(ROUNDS // 4):
        with suppress(Frozen):
            async with runner.open(SAMPLE, broker(SAMPLE, Gate(9))) as session:
                calls = [begin(session, code) for code in CODES.values()]
                await computing(runner, 2)
                kill_switch.engage()
                for call in calls:
                    call.cancel()
                kill_switch.release()
                kill_switch.engage()
                await ended(*calls)
        kill_switch.release()


async def kill_from_below(runner: WasmRunner, kill_switch: KillSwitch) -> None:
    """The sandbox is killed under its session, twice, and what was opened ahead is forgotten."""
    for _ in range(ROUNDS // 4):
        async with runner.open(SAMPLE, broker(SAMPLE, body(b"{}"))) as session:
            assert isinstance(session, PipeSession)
            call = begin(session, SPINNING)
            await computing(runner)
            session.end()
            session.freeze()
            runner.pool.forget_servers()
            call.cancel()
            await ended(call)


STORIES: dict[str, Story] = {
    "cancels": cancel_jobs_again_and_again,
    "closing": cancel_while_closing,
    "kill": kill_during_calls,
    "below": kill_from_below,
}


async def run_story(component: LoadedComponent, story: Story) -> None:
    kill_switch = KillSwitch()
    async with WasmRunner(component, kill_switch=kill_switch, limits=LIMITS, spares=1) as runner:
        await story(runner, kill_switch)
        async with runner.open(SAMPLE, broker(SAMPLE, body(b"{}"))) as session:
            outcome = await session.call("run", {"code": "got = 6 * 7"})
            assert outcome.structured == {"got": 42}, outcome


async def leave_running(component: LoadedComponent) -> None:
    """The loop is closed while calls run: nobody ends them, and no task gets to its end."""
    runner = WasmRunner(component, limits=LIMITS, spares=1)
    await runner.__aenter__()
    opening = runner.open(SAMPLE, broker(SAMPLE, Gate(9)))
    session = await opening.__aenter__()
    calls = [begin(session, code) for code in (SPINNING, MATCHING, WAITING)]
    await computing(runner, 2)
    for call in calls[:2]:
        call.cancel()
    await asyncio.sleep(0)
    raise KeyboardInterrupt


def close_loop_with_calls(component: LoadedComponent) -> None:
    """As `leave_running`, on a loop that is just closed, and on one that cancels what is left."""
    loop = asyncio.new_event_loop()
    with suppress(KeyboardInterrupt):
        loop.run_until_complete(leave_running(component))
    loop.close()
    with suppress(KeyboardInterrupt):
        asyncio.run(leave_running(component))


def main(cache: str, story: str) -> None:
    component = load_component(Path(cache))
    if story == "loop":
        close_loop_with_calls(component)
    else:
        asyncio.run(run_story(component, STORIES[story]))
    print("done", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
