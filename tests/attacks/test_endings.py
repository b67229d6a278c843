"""Calls in the WASM engine that are ended in every order: no order may end the process.

Each story runs in a process of its own, whose exit status is the oracle: wasmtime aborts it where a
stack is deleted while it is in use.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from orchestrator.settings import load_engine_settings
from sandbox.engines.wasm.component import LoadedComponent
from tests.attacks.unwinding import SAMPLE, SPINNING, STORIES, begin, computing
from tests.engine.conftest import wasm
from tests.engine.samples import body, broker

__all__ = ["wasm"]


@pytest.mark.parametrize("story", [*STORIES, "loop"])
def test_no_order_of_endings_aborts_or_hangs_the_process(
    story: str, component: LoadedComponent
) -> None:
    cache = str(load_engine_settings().cache)
    command = [sys.executable, "-m", "tests.attacks.unwinding", cache, story]
    done = subprocess.run(command, capture_output=True, timeout=600, check=False)
    assert (done.returncode, done.stdout) == (0, b"done\n"), done.stderr[-2000:].decode()


def test_a_call_that_its_client_gives_up_ends_alone_and_its_session_serves_on(
    wasm: Callable[..., Any],
) -> None:
    async def run() -> None:
        async with wasm() as runner, runner.open(SAMPLE, broker(SAMPLE, body(b"{}"))) as session:
            call = begin(session, SPINNING)
            await computing(runner)
            call.cancel()
            await asyncio.wait([call])
            assert call.cancelled()
            outcome = await session.call("run", {"code": "got = 6 * 7"})
            assert outcome.structured == {"got": 42}
            while runner.pool.computing:
                await asyncio.sleep(0)

    asyncio.run(run())
