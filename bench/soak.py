"""Does anything leak? Many servers, called all the time, and a kill every minute.

    python -m bench.soak [--minutes 10] [--servers 50] [--engine docker] [--kills 0]

A fresh home with real `serve` and control processes, and real sandboxes. Reads, writes that a
person approves, servers that ignore SIGTERM, that crash and that flood. Every minute (or `--kills`
times in all) one of `POST /kill`, SIGKILL of a `serve` and `toolwright kill`, in turns; then it is
unfrozen or started again. Prints what there is each time, and ends with what is wrong: nothing, and
status 0, where all that was taken was given back and no write was lost or sent twice.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field, replace
from itertools import count, cycle
from pathlib import Path
from typing import Any

import httpx

from bench.soaking import measure
from bench.soaking.client import GONE, Client
from bench.soaking.servers import MISCHIEF, bundle, kind_of
from bench.soaking.upstream import Recorder, recording_api
from bench.soaking.verdict import Ending, Sample, Writes, verdict
from orchestrator.approvals.decide import Decision, decide_signed
from orchestrator.chores import CHORE_SECONDS
from orchestrator.cli.commands.doctor import run_checks
from orchestrator.processes.control_client import find_control
from orchestrator.settings import Settings, load_settings
from registry.audit.heads import HeadSigner
from registry.models import build_entry
from registry.secrets.signing import Signer
from registry.servers.files import install_bundle
from registry.store import Store
from tests.granted import PIN, allow, person

ROOT = Path(__file__).parents[1]
SERVES = ("serve-a", "serve-b")
VICTIM = "serve-a"
WORKERS = 2
PAUSE_SECONDS = 0.15
WRITES, MISCHIEFS = 0.08, 0.06
"""What part of the calls write, and what part of those to a server that can misbehaves."""
SETTLE_SECONDS = 30.0
CALM_SECONDS = 3 * CHORE_SECONDS
"""A stopped process that held no less than before for so long has given back what it held: it gives
memory back among its chores.
"""
KILLS = ("POST /kill", "SIGKILL", "toolwright kill")
SHOWN = ("invocations", "approvals", "recordings", "audit", "processes")


@dataclass
class Soak:
    """One installation under load."""

    settings: Settings
    engine: measure.Engine
    recorder: Recorder
    signer: Signer
    servers: int
    scratch: Path
    clients: dict[str, Client] = field(default_factory=dict)
    samples: list[Sample] = field(default_factory=list)
    calls: int = 0
    under_way: int = 0
    silenced: int = 0
    calm_seconds: float = CALM_SECONDS
    started: float = field(default_factory=time.monotonic)
    calling: asyncio.Event = field(default_factory=asyncio.Event)
    ended: bool = False
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))
    _control: asyncio.subprocess.Process | None = None

    @property
    def environment(self) -> Mapping[str, str]:
        return {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "TOOLWRIGHT_HOME": str(self.settings.home),
            "TOOLWRIGHT_ENGINE": self.settings.engine,
            "TOOLWRIGHT_ANSWER_SECONDS": "2",
            "TMPDIR": str(self.scratch),
        }

    async def make_ready(self) -> None:
        """The engine as `setup` makes it ready, and the servers as no command would register them:
        unproved.
        """
        await self._run("setup", "--engine-only")
        await asyncio.to_thread(self._register_servers)

    def _register_servers(self) -> None:
        with Store.open(self.settings.database_url) as store:
            allow(self.settings, store, self.recorder.url)
            for number in range(self.servers):
                made = bundle(number, self.recorder.url, self.settings.engine)
                install_bundle(
                    self.settings.home, store.servers, made, build_entry(made, 1.0), now=1.0
                )
            while store.search.fill_vectors():
                pass

    async def control(self) -> None:
        """Start the control plane, and return when it answers."""
        with (self.scratch.parent / "control.log").open("ab") as log:
            self._control = await asyncio.create_subprocess_exec(
                *_command("control"), env=dict(self.environment), stdout=log, stderr=log
            )
        while await asyncio.to_thread(find_control, self.settings) is None:
            await asyncio.sleep(0.1)

    async def serve(self, name: str) -> None:
        log = self.scratch.parent / f"{name}.log"
        command = _command("serve", "--no-control")
        self.clients[name] = await Client.started(command, self.environment, log)
        assert not self.clients[name].gone, log.read_text()[-2000:]
        # What the first search loads (an encoder of 200 MB, with the extra) is no growth.
        await self.clients[name].call("find", task="the items of a soak")

    async def call_on(self, name: str, mine: tuple[int, ...]) -> None:
        """Call these servers through that `serve` until the end, whoever it is by then."""
        for number in cycle(mine):
            await self.calling.wait()
            if self.ended:
                return
            self.under_way += 1
            answer = await self._called(self.clients[name], number)
            self.under_way -= 1
            self.calls += answer is not GONE
            await asyncio.sleep(PAUSE_SECONDS)

    async def _called(self, client: Client, number: int) -> Mapping[str, Any]:
        server, chance = f"soak_{number:02}", random.random()
        mischief = MISCHIEF.get(kind_of(number))
        if chance < WRITES:
            arguments = {"n": next(self._numbers)}
            return await client.call("call_write", tool=f"{server}.add_item", arguments=arguments)
        if mischief and chance < WRITES + MISCHIEFS:
            return await client.call("call_read", tool=f"{server}.{mischief}")
        return await client.call("call_read", tool=f"{server}.get_items")

    async def approve(self) -> None:
        """Approve what waits, as a person would, until the end."""
        with Store.open(self.settings.database_url) as store:
            while not self.ended:
                await asyncio.to_thread(self._approve_all, store)
                await asyncio.sleep(0.5)

    def _approve_all(self, store: Store) -> None:
        for shown in store.approvals.find("pending"):
            decision = Decision(shown.id, True, "", by="soak")
            decide_signed(store.approvals, shown, decision, self.signer, time.time())

    async def sample(self, phase: Any, kill: str = "", kill_ms: float = 0.0) -> Sample:
        pids = {name: client.process.pid for name, client in self.clients.items()}
        if self._control is not None:
            pids["control"] = self._control.pid
        found = await asyncio.to_thread(self.engine.containers)
        taken = Sample(
            minute=(time.monotonic() - self.started) / 60,
            phase=phase,
            processes=measure.figures(pids),
            rows=await asyncio.to_thread(measure.rows, _database(self.settings)),
            containers=sum(found.values()),
            left=0 if phase == "busy" else await asyncio.to_thread(self.engine.left),
            temp=measure.files(self.scratch),
            calls=self.calls,
            reads=self.recorder.reads,
            kill=kill,
            kill_ms=kill_ms,
        )
        self.samples.append(taken)
        print(line(taken), flush=True)
        return taken

    async def kill(self, way: str) -> None:
        """Kill in that way, look, and bring everything back."""
        await asyncio.to_thread(self.engine.remember)
        await self.sample("busy")
        if way == "SIGKILL":
            await self._sigkill(way)
            return
        if way == "POST /kill":
            killed = await asyncio.to_thread(self._post_kill)
        else:
            killed = json.loads(await self._run("kill", "--json"))
        self.silenced += killed["sigkilled"]
        at_once = sum((await asyncio.to_thread(self.engine.containers)).values())
        await self._calm()
        taken = await self.sample("still", way, killed["milliseconds"])
        most = max(at_once, taken.containers)
        self.samples[-1] = replace(taken, containers=most, kill_left=killed["left"])
        await self._run("unfreeze", "--pin-file", str(self.scratch.parent / "pin"))
        for name in [n for n, c in self.clients.items() if c.gone]:
            # On a loaded machine one may be silent for half a second, and is killed for it.
            await self.serve(name)

    async def _calm(self) -> None:
        """Return when what was stopped has given back what it held, or after a while."""
        pids = {name: client.process.pid for name, client in self.clients.items()}
        least: dict[str, tuple[int, int]] = {}
        end = (since := time.monotonic()) + SETTLE_SECONDS
        while (now := time.monotonic()) < end and now - since < self.calm_seconds:
            await asyncio.sleep(0.5)
            for name, found in measure.figures(pids).items():
                fds, megabytes = least.get(name, (found.fds, round(found.own_mb)))
                lower = (min(fds, found.fds), min(megabytes, round(found.own_mb)))
                if lower != least.get(name):
                    least[name], since = lower, now

    async def _sigkill(self, way: str) -> None:
        """SIGKILL a `serve`; its containers have to go by themselves."""
        client = self.clients[VICTIM]
        with Store.open(self.settings.database_url) as store:
            dead = {p.id for p in store.processes.find() if p.pid == client.process.pid}
        self.calling.clear()
        with suppress(ProcessLookupError):
            client.process.send_signal(signal.SIGKILL)
        await client.process.wait()
        end = time.monotonic() + SETTLE_SECONDS
        while (left := await self._of(dead)) and time.monotonic() < end:
            await asyncio.sleep(0.2)
        await self.serve(VICTIM)
        self.calling.set()
        taken = await self.sample("busy", way)
        self.samples[-1] = replace(taken, foreign=left)

    async def _of(self, processes: set[str]) -> int:
        found = await asyncio.to_thread(self.engine.containers)
        return sum(found[process] for process in processes)

    def _post_kill(self) -> dict[str, Any]:
        address = find_control(self.settings)
        assert address is not None, "the control plane does not answer"
        with httpx.Client(trust_env=False, timeout=30) as client:
            answer = client.post(f"{address.url}/kill", json={}, headers=address.headers)
            killed: dict[str, Any] = answer.raise_for_status().json()
            return killed

    async def _run(self, *words: str) -> bytes:
        process = await asyncio.create_subprocess_exec(
            *_command(*words),
            env=dict(self.environment),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
        )
        said, _ = await process.communicate()
        assert process.returncode == 0, f"toolwright {' '.join(words)}: {said.decode()[:500]}"
        return said

    async def settle(self) -> None:
        """Stop calling, and return when no call runs and nothing that was approved waits."""
        self.calling.clear()
        end = time.monotonic() + SETTLE_SECONDS * 2
        waiting = {"pending", "approved", "claimed", "sending"}
        while time.monotonic() < end:
            states = await asyncio.to_thread(measure.write_states, _database(self.settings))
            if not self.under_way and not waiting & {*states.values()}:
                return
            await asyncio.sleep(0.5)

    async def close(self) -> None:
        """End everything in order."""
        self.ended = True
        self.calling.set()
        for client in self.clients.values():
            await client.close()
        if self._control is not None:
            self._control.terminate()
            await self._control.wait()
        self.clients, self._control = {}, None

    async def ending(self) -> Ending:
        """What is left when all has ended and the next `serve` has looked after it."""
        await self.serve(VICTIM)
        await self.clients.pop(VICTIM).close()
        end = time.monotonic() + SETTLE_SECONDS
        while (left := await asyncio.to_thread(measure.survivors, self.settings.home)) > 0:
            if time.monotonic() > end:
                break
            await asyncio.sleep(0.5)
        with Store.open(self.settings.database_url) as store:
            broken, rows = HeadSigner(self.settings.heads).verify_and_count(store.audit)
            print(f"audit verify: {rows} rows, {broken or 'whole'}", flush=True)
            checks = run_checks(self.settings, store)
            registered = len(store.processes.find())
        troubles = tuple(f"{c.name}: {c.found}" for c in checks if c.verdict != "ok")
        return Ending(broken.reason if broken else "", left, registered, troubles)


async def soak(given: argparse.Namespace, directory: Path) -> tuple[str, ...]:
    """Run it; what is wrong."""
    settings = load_settings(home=directory / "home", engine=given.engine)
    scratch = directory / "tmp"
    scratch.mkdir()
    (directory / "pin").write_text(PIN)
    engine = measure.Engine(settings.instance, given.engine == "docker")
    with recording_api() as recorder:
        signer = person(settings.pin)
        running = Soak(settings, engine, recorder, signer, given.servers, scratch)
        running.calm_seconds = min(CALM_SECONDS, _find_period(given) / 4)
        await running.make_ready()
        async with AsyncExitStack() as stack:
            stack.push_async_callback(running.close)
            await running.control()
            for name in SERVES:
                await running.serve(name)
            tasks = [asyncio.create_task(running.approve())]
            for place, name in enumerate(SERVES):
                mine = tuple(range(place, given.servers, len(SERVES)))
                for worker in range(WORKERS):
                    share = mine[worker:] + mine[:worker]
                    tasks.append(asyncio.create_task(running.call_on(name, share)))
            running.started = time.monotonic()
            running.calling.set()
            await _killed_in_turns(running, given)
            await running.settle()
        await asyncio.gather(*tasks)
        ending = await running.ending()
        await running.sample("end")
        states = measure.write_states(_database(settings))
        _tell_writes(states, recorder)
        print(f"{running.silenced} times a serve was silent and was killed for it", flush=True)
        return verdict(running.samples, Writes(states, recorder.written), ending)


async def _killed_in_turns(running: Soak, given: argparse.Namespace) -> None:
    period = _find_period(given)
    for number, way in zip(range(_count_kills(given)), cycle(KILLS), strict=False):
        await asyncio.sleep(max(0.0, running.started + (number + 1) * period - time.monotonic()))
        await running.kill(way)
    await asyncio.sleep(min(5.0, period / 2))


def _count_kills(given: argparse.Namespace) -> int:
    return int(given.kills or max(1, round(given.minutes)))


def _find_period(given: argparse.Namespace) -> float:
    """Seconds from one kill to the next."""
    return float(given.minutes * 60 / _count_kills(given))


def line(sample: Sample) -> str:
    """A sample in a line."""
    processes = "  ".join(
        f"{name} {figures.fds} fds {figures.own_mb:.0f} MB {figures.threads} threads"
        for name, figures in sorted(sample.processes.items())
    )
    rows = " ".join(f"{name} {sample.rows.get(name, 0)}" for name in SHOWN)
    how = f" after {sample.kill} ({sample.kill_ms:.0f} ms)" if sample.kill else ""
    return (
        f"{sample.minute:5.1f} min {sample.phase}{how}: {sample.containers} containers, "
        f"{sample.left} mounts and namespaces left, {sample.temp} temporary files, "
        f"{sample.calls} calls, {sample.reads} reads | {processes} | {rows}"
    )


def _tell_writes(states: Mapping[int, str], recorder: Recorder) -> None:
    counted = sorted({state: [*states.values()].count(state) for state in states.values()}.items())
    told = ", ".join(f"{number} {state}" for state, number in counted)
    twice = sum(times > 1 for times in recorder.written.values())
    print(f"writes: {told}; {len(recorder.written)} arrived, {twice} more than once", flush=True)


def _command(*words: str) -> list[str]:
    return [sys.executable, "-m", "orchestrator", *words]


def _database(settings: Settings) -> Path:
    return Path(settings.database_url.removeprefix("sqlite:///"))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--servers", type=int, default=50)
    parser.add_argument("--kills", type=int, default=0, help="How many in all; 0: one a minute.")
    parser.add_argument("--engine", choices=("docker", "wasm"), default="docker")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="soak-") as directory:
        wrong = asyncio.run(soak(given, Path(directory)))
    for reason in wrong:
        print(f"FAILED  {reason}")
    print("it leaks" if wrong else "it held")
    with suppress(BrokenPipeError):
        sys.stdout.flush()
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
