"""Parts that are loaded when they are first asked for."""

from __future__ import annotations

import asyncio
import threading

import pytest

from orchestrator.later import Later


def test_what_many_threads_ask_for_at_once_is_loaded_once() -> None:
    loads: list[int] = []
    all_ask = threading.Barrier(8)

    def load() -> object:
        loads.append(1)
        return object()

    later, got = Later(load), []

    def ask() -> None:
        all_ask.wait()
        got.append(later.get())

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(loads), len(got), len(set(map(id, got)))) == (1, 8, 1)


def test_what_could_not_be_loaded_is_tried_again() -> None:
    answers = iter([OSError("too many open files"), "loaded"])

    def load() -> str:
        answer = next(answers)
        if isinstance(answer, OSError):
            raise answer
        return str(answer)

    later = Later(load)
    with pytest.raises(OSError, match="too many open files"):
        later.get()
    assert (later.get(), later.get()) == ("loaded", "loaded")


def test_the_event_loop_goes_on_while_something_is_loaded() -> None:
    turned = threading.Event()

    def load() -> bool:
        # Were it loaded on the loop, the loop could not set this.
        return turned.wait(30)

    async def run() -> bool:
        loading = asyncio.create_task(Later(load).fetch())
        await asyncio.sleep(0)
        turned.set()
        return await loading

    assert asyncio.run(run())
