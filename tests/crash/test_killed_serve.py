"""`serve` ends in the middle of its work, killed or closed by its client; the next one goes on."""

from __future__ import annotations

import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from orchestrator.frontends.greeting import FILE
from registry.models import Job
from tests.crash.client import served
from tests.crash.documents import OBJECT, described, reading
from tests.crash.installation import Installation, until
from tests.crash.slowapi import slow_api
from tests.crash.victim import finished, idled
from tests.engine.samples import bundle
from tests.world.site import Page, site

COUNT = """
from toolwright import tool

@tool
def count():
    return {"berths": 12}
"""
SIGNALS = 50
"""More than there are parts to be closed before the write is waited for, each of which could take
one.
"""
Process = subprocess.Popen[bytes]


def kill(process: Process) -> None:
    process.kill()


def close(process: Process) -> None:
    """What a client does that ends in order."""
    assert process.stdin is not None
    process.stdin.close()


def terminate(process: Process) -> None:
    process.terminate()


@pytest.mark.parametrize(("end", "place"), [(kill, "/a"), (close, "/openapi.json")])
def test_a_job_that_serve_left_is_carried_out_by_the_next(
    end: Callable[[Process], None], place: str, installation: Installation
) -> None:
    released = threading.Event()
    good = {
        "/openapi.json": Page(described({"/a": reading(OBJECT)})),
        "/a": Page(b'{"name": "x"}', headers=(("Content-Type", "application/json"),)),
    }

    def never() -> Iterator[bytes]:
        released.wait()
        yield b""

    with site(good | {place: Page(chunks=never)}) as pages:
        installation.allow(pages.url)
        with served(installation) as client:
            job = client.value("forge", task="read a", source=pages.url, name="left")["job"]
            until(lambda: place in pages.paths)
            end(client.process)
            client.process.wait()
        assert installation.listed() == []
        released.set()
        pages.pages |= good
        ended = finished(installation.settings, job)
        assert (ended.state, ended.attempt) == ("done", 2), ended
    assert [entry["version"] for entry in installation.listed()] == [1]
    assert installation.troubles() == []


@pytest.mark.parametrize(("end", "state"), [(kill, "unknown"), (close, "done")])
def test_a_write_that_is_on_its_way_when_serve_ends_is_sent_once_and_known(
    end: Callable[[Process], None], state: str, installation: Installation
) -> None:
    with slow_api() as api:
        installation.allow(api.url)
        with served(installation) as client:
            assert client.forged(api.url, name="things")["state"] == "done"
            write = {"tool": "things.add_thing", "arguments": {"body": {"name": "one"}}}
            identity = client.value("call_write", **write)["approval"]
            installation.approve(identity)
            until(lambda: api.bodies)
            end(client.process)
            # It would have to be sent again before it is let go, if it ever were.
            api.released.set()
            client.process.wait()
        idled(installation.settings)
        assert len(api.bodies) == 1
    with installation.store() as store:
        assert store.approvals.get(identity).state == state
        assert [call.state for call in store.calls.find()] == [state]
    assert installation.troubles() == []


@pytest.mark.parametrize("end", [close, terminate])
def test_a_write_on_its_way_is_not_cut_by_the_signals_of_a_client_that_waits_for_the_end(
    end: Callable[[Process], None], installation: Installation
) -> None:
    instructions = installation.home / FILE
    with slow_api() as api:
        installation.allow(api.url)
        with served(installation) as client:
            assert client.forged(api.url, name="things")["state"] == "done"
            write = {"tool": "things.add_thing", "arguments": {"body": {"name": "one"}}}
            installation.approve(client.value("call_write", **write)["approval"])
            until(lambda: api.bodies)
            instructions.unlink()
            end(client.process)
            # Written when its input has ended for it: now it waits for the write.
            until(instructions.exists)
            for _ in range(SIGNALS):
                client.process.terminate()
                until(lambda: not is_pending(client.process, signal.SIGTERM))
            api.released.set()
            client.process.wait()
        assert len(api.bodies) == 1
    with installation.store() as store:
        assert [(call.state, call.succeeded) for call in store.calls.find()] == [("done", True)]
        assert [each.state for each in store.approvals.find()] == ["done"]
    assert installation.troubles() == []


def is_pending(process: Process, number: int) -> bool:
    """Whether a signal was sent and not taken yet, by proc(5)."""
    try:
        lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    except OSError:
        return False
    (shared,) = (line.split()[1] for line in lines if line.startswith("ShdPnd:"))
    return bool(int(shared, 16) >> (number - 1) & 1)


@pytest.mark.parametrize(
    ("words", "tool"),
    [(("serve",), "call_read"), (("run", "sample"), "count")],
    ids=["serve", "run"],
)
@pytest.mark.parametrize("end", [close, terminate])
def test_a_read_is_recorded_whose_client_ends_serve_at_once(
    end: Callable[[Process], None], words: tuple[str, ...], tool: str, installation: Installation
) -> None:
    installation.put(bundle(COUNT, "count", pure=True))
    asked = {"tool": "sample.count", "arguments": {}} if tool == "call_read" else {}
    with served(installation, *words) as client:
        answer = client.call(tool, **asked)
        end(client.process)
        assert client.process.wait() in (0, 128 + signal.SIGTERM)
    with installation.store() as store:
        assert [call.id for call in store.calls.find()] == [answer["_meta"]["toolwright"]["call"]]
    assert installation.troubles() == []


@pytest.mark.parametrize("end", [kill, close, terminate])
def test_what_stores_the_calls_of_a_busy_serve_ends_with_it_and_loses_none(
    end: Callable[[Process], None], installation: Installation
) -> None:
    installation.put(bundle(COUNT, "count", pure=True))

    def find_recorders(process: Process) -> list[psutil.Process]:
        children = psutil.Process(process.pid).children()
        return [child for child in children if "registry.calls.record_process" in child.cmdline()]

    with served(installation) as client:
        calls = 0
        while not (recorders := find_recorders(client.process)):
            client.value("call_read", tool="sample.count", arguments={})
            calls += 1
        answer = client.call("call_read", tool="sample.count", arguments={})
        # An ended call is shown when it is stored.
        client.value("status", call=answer["_meta"]["toolwright"]["call"])
        end(client.process)
        client.process.wait()
        for recorder in recorders:
            recorder.wait()
    idled(installation.settings)
    with installation.store() as store:
        assert len(store.calls.find(limit=2 * calls)) == calls + 1
    assert installation.troubles() == []


def test_a_job_that_comes_when_a_worker_has_waited_long_enough_is_carried_out(
    installation: Installation,
) -> None:
    good = {
        "/openapi.json": Page(described({"/a": reading(OBJECT)})),
        "/a": Page(b'{"name": "x"}', headers=(("Content-Type", "application/json"),)),
    }
    with site(good) as pages:
        installation.allow(pages.url)
        order = {"task": "read a", "source": f"{pages.url}/openapi.json", "name": "last"}
        with installation.store() as store:
            store.jobs.create(Job("j1", "forge", order, 1.0, 1.0))
        installation.run("work", "--idle", "0")
        with installation.store() as store:
            job = store.jobs.get("j1")
    assert (job.state, job.attempt) == ("done", 1), job
    assert installation.troubles() == []


@pytest.mark.usefixtures("interruptible")
def test_a_command_that_a_person_interrupts_leaves_no_job_behind(
    installation: Installation,
) -> None:
    released = threading.Event()

    def never() -> Iterator[bytes]:
        released.wait()
        yield b""

    with site({"/openapi.json": Page(chunks=never)}) as pages:
        installation.allow(pages.url)
        words = ("forge", "read a", "--source", f"{pages.url}/openapi.json")
        with installation.start(*words, stderr=subprocess.DEVNULL) as process:
            until(lambda: pages.paths)
            process.send_signal(2)
            assert process.wait() == 130
        released.set()
    with installation.store() as store:
        assert [job.state for job in store.jobs.find()] == ["cancelled"]
    assert installation.troubles() == []
