"""One server: forged, every scenario by both, and what came of each."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import httpx
from mcp import MCPError

from bench.reality import ours, peer
from bench.reality.calling import NoTool
from bench.reality.model import Answer, Arguments, RealServer, Running, Scenario, Seen, Wrong
from tests.functional.home import Home
from tests.world.cache import Unavailable

DIRECT_SECONDS = 60.0
_ODD = (LookupError, TypeError, ValueError, AttributeError, RuntimeError)
"""What a judge raises where an answer has another form than it looks into."""


class ScenarioClient(Protocol):
    async def call(self, scenario: Scenario, arguments: Arguments) -> Answer: ...


@dataclass(frozen=True)
class Verdict:
    """`wrong` is empty where the scenario was right."""

    scenario: str
    wrong: str = ""


@dataclass(frozen=True)
class Trial:
    """What came of one server. `unavailable` says why it could not be had here."""

    server: RealServer
    commands: tuple[str, ...] = ()
    seconds: float = 0.0
    ours: tuple[Verdict, ...] = ()
    peer: tuple[Verdict, ...] = ()
    unavailable: str = ""


def try_server(home: Home, server: RealServer, directory: Path, with_peer: bool = True) -> Trial:
    """Start the server twice, once for each product, and drive it."""
    forged = ours.Forged("", [], 0.0)
    try:
        with _started(server, directory / "ours") as running:
            try:
                forged = ours.forge(home, server, running)
            except ours.NotForged as error:
                mine = _none_right(server, f"not forged: {error}")
            else:
                mine = asyncio.run(
                    _drive(server, running, lambda: ours.open_client(home, forged.name))
                )
        theirs: tuple[Verdict, ...] = ()
        if with_peer:
            with _started(server, directory / "peer") as running:
                theirs = asyncio.run(_drive_peer(server, running))
    except (Unavailable, ChildProcessError, TimeoutError) as error:
        return Trial(server, unavailable=str(error))
    return Trial(server, tuple(forged.commands), forged.seconds, mine, theirs)


@contextmanager
def _started(server: RealServer, directory: Path) -> Iterator[Running]:
    directory.mkdir(parents=True)
    with server.start(directory) as running:
        yield running


async def _drive_peer(server: RealServer, running: Running) -> tuple[Verdict, ...]:
    try:
        return await _drive(server, running, lambda: peer.open_client(server, running))
    except peer.NotPossible as error:
        return _none_right(server, str(error))
    except (OSError, MCPError, ValueError, subprocess.CalledProcessError, ExceptionGroup) as error:
        log = running.directory / "fastmcp.log"
        last = log.read_text(errors="replace")[-300:] if log.exists() else ""
        return _none_right(server, f"it does not start: {error!r} {last}")


async def _drive(
    server: RealServer,
    running: Running,
    connect: Callable[[], AbstractAsyncContextManager[ScenarioClient]],
) -> tuple[Verdict, ...]:
    verdicts = []
    with httpx.Client(
        base_url=running.url,
        headers=server.list_headers(running),
        params=server.list_query(running),
        trust_env=False,
        timeout=DIRECT_SECONDS,
    ) as direct:
        async with connect() as client:
            for scenario in server.scenarios:
                wrong = await _judge(scenario, client, direct, running)
                verdicts.append(Verdict(scenario.name, wrong))
    return tuple(verdicts)


async def _judge(
    scenario: Scenario, client: ScenarioClient, direct: httpx.Client, running: Running
) -> str:
    """What is wrong about a scenario; empty where nothing is."""
    given = scenario.arguments
    try:
        arguments = given(direct) if callable(given) else given
        answer = await client.call(scenario, arguments)
        seen = Seen(answer, direct, running.directory)
        if not scenario.refused:
            seen.expect_success()
        elif not answer.is_error:
            return f"expected a refusal, got {answer.text[:200]}"
        scenario.judge(seen)
    except (Wrong, NoTool) as error:
        return str(error)
    except TimeoutError:
        return "no answer in time"
    except (httpx.HTTPError, MCPError, OSError, *_ODD) as error:
        return f"{type(error).__name__}: {error}"[:300]
    return ""


def _none_right(server: RealServer, why: str) -> tuple[Verdict, ...]:
    return tuple(Verdict(scenario.name, why) for scenario in server.scenarios)
