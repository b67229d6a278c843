"""The kill switch: everything stops, in every process, and starts again only by a person."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from tests.crash.documents import OBJECT, described, reading
from tests.functional.home import PIN, SECONDS, Home, until
from tests.functional.peer import Peer, text
from tests.world import loopback
from tests.world.harbour import SLOW_SECONDS, HarbourApi, cut, slow_reports
from tests.world.loopback import Answering
from tests.world.site import Page, Site, site

SLOW = {"tool": "harbour.occupancy_report", "arguments": {"seconds": SLOW_SECONDS}}


def begin_slow(harbour: HarbourApi, *peers: Peer) -> list[int]:
    """A slow call in each process; returns when all of them have reached the API."""
    before = slow_reports(harbour)
    begun = [peer.begin_call("call_read", **SLOW) for peer in peers]
    until(lambda: slow_reports(harbour) == before + len(peers), "the calls reached the API")
    return begun


def unfreeze(home: Home, peer: Peer) -> None:
    """Lift the freeze on the control plane; returns when the process has noticed."""
    assert home.post("/unfreeze", pin=PIN).json()["frozen"] is False
    wait_until_allowed(peer)


def wait_until_allowed(peer: Peer) -> None:
    """Return when the process has noticed that it is not frozen any more."""
    call = {"tool": "harbour.list_berths"}
    until(lambda: not peer.call("call_read", **call).get("isError"), "calls are allowed again")


def requests_after(harbour: HarbourApi, moment: float) -> list[dict[str, Any]]:
    return [e for e in harbour.entries() if e["event"] == "received" and e["time"] > moment]


def test_it_cuts_the_calls_of_all_processes_and_refuses_new_ones_until_a_person_lifts_it(
    served: Peer, toolwright_home: Home, harbour: HarbourApi
) -> None:
    home = replace(toolwright_home, fresh=True)
    with Peer(home, "serve", "--no-control") as other:
        begun = begin_slow(harbour, served, other)
        killed = home.read("kill", "--reason", "a test")
        frozen_at = time.time()
        answers = [p.end(i)["result"] for p, i in zip((served, other), begun, strict=True)]
        assert all(answer.get("isError") for answer in answers), answers
        assert (killed["processes"], killed["acknowledged"], killed["sigkilled"]) == (2, 2, 0)
        assert killed["left"] == 0
        until(lambda: cut(harbour), "the API saw its connections closed")
        assert home.containers() == 0
        for peer in (served, other):
            refused = peer.call("call_read", tool="harbour.list_berths")
            assert refused["isError"]
            assert "frozen" in text(refused)
    assert_it_only_shows(served)
    assert home.run("unfreeze", "--pin-file", os.devnull).returncode == 1
    assert served.value("status")["frozen"]
    assert requests_after(harbour, frozen_at) == []
    home.person("unfreeze")
    wait_until_allowed(served)


def assert_it_only_shows(peer: Peer) -> None:
    """Frozen: what shows answers, what acts does not."""
    state = peer.value("status")
    assert (state["frozen"], state["frozen_by"]) == (True, "terminal")
    assert peer.value("find", task="list the berths")["candidates"]
    write = peer.call("call_write", tool="harbour.cancel_booking", arguments={"number": 1})
    done = peer.call("do", task="berths", tool="harbour.list_berths")
    forge = peer.call("forge", task="berths", source="/nonexistent")
    for refused in (write, done, forge):
        assert refused.get("isError"), refused
        assert "frozen" in text(refused)


def test_a_process_that_does_not_answer_is_killed_with_its_sandboxes(
    served: Peer, toolwright_home: Home, harbour: HarbourApi
) -> None:
    home = replace(toolwright_home, fresh=True)
    with Peer(home, "serve", "--no-control") as deaf:
        begin_slow(harbour, deaf)
        deaf.process.send_signal(signal.SIGSTOP)
        killed = home.post("/kill", by="test").json()
        assert (killed["sigkilled"], killed["acknowledged"], killed["left"]) == (1, 1, 0)
        assert deaf.process.wait(SECONDS) == -signal.SIGKILL
    until(lambda: cut(harbour), "the API saw its connection closed")
    assert home.containers() == 0
    with Peer(home, "serve", "--no-control") as next_one, home.store() as store:
        assert next_one.value("status")["frozen"]
        assert deaf.process.pid not in [process.pid for process in store.processes.find()]
    assert home.post("/unfreeze", pin="wrong-one").status_code == 403
    assert served.value("status")["frozen"]
    unfreeze(home, served)


def test_a_forge_that_was_stopped_leaves_nothing_and_can_be_started_again(
    served: Peer, toolwright_home: Home
) -> None:
    home = toolwright_home
    with held_api() as pages:
        home.person("source", "allow", pages.url.removeprefix("http://"))
        order = {"task": "read a", "source": f"{pages.url}/openapi.json", "name": "later"}
        # Who asks for progress is told the job at once.
        told = {"name": "forge", "arguments": order, "_meta": {"progressToken": "later"}}
        begun = served.request("tools/call", told)["result"]["structuredContent"]
        assert begun["state"] == "queued"
        job = begun["job"]
        until(lambda: "/a" in pages.paths, "its sandbox asks the API")
        killed = home.post("/kill", by="test").json()
        assert (killed["sigkilled"], killed["left"]) == (0, 0)
        stopped = served.settled(job=job)
        assert (stopped["state"], "frozen" in stopped["message"]) == ("failed", True)
        with home.store() as store:
            assert "later" not in [entry.name for entry in store.servers.find()]
        assert not (home.settings.servers / "later").exists()
        pages.pages["/a"] = Page(b'{"name": "x"}')
        unfreeze(home, served)
        again = served.settled(job=served.value("forge", **order)["job"])
        assert again["state"] == "done", again["message"]
        assert served.value("call_read", tool="later.get_a")["status"] == 200


@contextmanager
def held_api() -> Iterator[Site]:
    """An API whose one operation does not answer before the block ends."""
    over = threading.Event()

    def never() -> Iterator[bytes]:
        over.wait()
        yield b""

    document = Page(described({"/a": reading(OBJECT)}))
    with site({"/openapi.json": document, "/a": Page(chunks=never)}) as pages:
        try:
            yield pages
        finally:
            over.set()


def test_an_approval_given_while_frozen_is_carried_out_only_after_it(
    served: Peer, toolwright_home: Home, harbour: HarbourApi
) -> None:
    body = {
        "berth": 6,
        "boat": {"name": "Icebound", "kind": "sail", "length": 5},
        "arrival": "2027-06-01",
        "nights": 1,
    }
    pending = served.value("call_write", tool="harbour.book_berth", arguments={"body": body})
    toolwright_home.post("/kill", by="test")
    assert toolwright_home.approve(pending["approval"]).status_code == 200
    assert served.value("status", approval=pending["approval"], wait=1)["state"] == "approved"
    assert not arrived(harbour, "Icebound")
    unfreeze(toolwright_home, served)
    settled = served.settled(approval=pending["approval"])
    assert settled["state"] == "done", json.dumps(settled)
    assert len(arrived(harbour, "Icebound")) == 1


def arrived(harbour: HarbourApi, boat: str) -> list[dict[str, Any]]:
    return [entry for entry in harbour.received("POST") if boat in entry["body"]]


def test_it_needs_no_pin_but_the_token(toolwright_home: Home, served: Peer) -> None:
    results = []
    for _ in range(3):
        thread = threading.Thread(
            target=lambda: results.append(toolwright_home.post("/kill", by="many").status_code)
        )
        thread.start()
        thread.join()
    assert results == [200, 200, 200]
    unfreeze(toolwright_home, served)


def test_a_log_in_sends_nothing_while_frozen_not_even_to_find_out_where(
    toolwright_home: Home,
) -> None:
    asked: list[str] = []

    class Asked(Answering):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.answer(404, b"")

        do_POST = do_GET

    with loopback.served(Asked, lambda url: url) as url:
        toolwright_home.person("source", "allow", url.removeprefix("http://"))
        toolwright_home.run("kill")
        refused = toolwright_home.run("login", url, "--pin-file", str(toolwright_home.pin_file))
        assert "frozen" in refused.stderr
        assert asked == []
        toolwright_home.person("unfreeze")
        toolwright_home.run("login", url, "--pin-file", str(toolwright_home.pin_file))
        assert asked
