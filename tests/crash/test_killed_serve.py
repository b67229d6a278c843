"""`serve` ends in the middle of its work, killed or closed by its client; the next one goes on."""

from __future__ import annotations

import signal
import subprocess
import threading
from collections.abc import Callable, Iterator

import psutil
import pytest

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
def test_a_read_is_recorded_whose_client_ends_serve_at_once(
    end: Callable[[Process], None], installation: Installation
) -> None:
    installation.put(bundle(COUNT, "count", pure=True))
    with served(installation) as client:
        answer = client.call("call_read", tool="sample.count", arguments={})
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
