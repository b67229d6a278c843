"""A write waits for a person, is carried out once and exactly as it was shown, or not at all."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from orchestrator.cli.commands.doctor import run_checks
from orchestrator.processes.kill import freeze_everything
from sandbox.clock import SystemClock
from tests.functional.home import PIN, SECONDS, SILENCE_SECONDS, Home, new_home, until
from tests.functional.letters import Letters, letters_api
from tests.functional.peer import Peer, text
from tests.world.harbour import EXAMPLE, HarbourApi

CLOSED = ("done", "failed", "rejected", "expired", "unknown")


@pytest.fixture(scope="module")
def hasty(toolwright_home: Home, harbour: HarbourApi) -> Iterator[Peer]:
    """A second `serve` on the same home, whose requests wait for nobody."""
    with Peer(
        toolwright_home, "serve", "--no-control", TOOLWRIGHT_APPROVAL_SECONDS="0.001"
    ) as peer:
        yield peer


def booking(boat: str, berth: int = 1) -> dict[str, Any]:
    return {
        "berth": berth,
        "boat": {"name": boat, "kind": "sail", "length": 5},
        "arrival": "2027-06-01",
        "nights": 1,
    }


def book(peer: Peer, boat: str, server: str = "harbour", berth: int = 1) -> dict[str, Any]:
    """Ask for a booking; the answer, which says what waits for a person."""
    body = booking(boat, berth)
    pending = peer.value("call_write", tool=f"{server}.book_berth", arguments={"body": body})
    assert pending["state"] == "pending"
    assert json.loads(pending["request"]["body"]) == body
    return dict(pending)


def sent(harbour: HarbourApi, boat: str) -> int:
    """How many bookings of that boat reached the API."""
    return len([entry for entry in harbour.received("POST") if boat in entry["body"]])


def state(home: Home, approval: str) -> str:
    with home.store() as store:
        return store.approvals.get(approval).state


def closed(home: Home, approval: str) -> str:
    """The state that an approval ends in."""
    until(lambda: state(home, approval) in CLOSED, f"approval {approval} is closed")
    return state(home, approval)


def test_a_wrong_pin_changes_nothing(
    served: Peer, toolwright_home: Home, harbour: HarbourApi, tmp_path: Path
) -> None:
    approval = book(served, "Unasked")["approval"]
    wrong = tmp_path / "pin"
    wrong.write_text("not-the-pin")
    done = toolwright_home.run("approve", approval, "--pin-file", str(wrong))
    assert done.returncode == 1
    assert "not the PIN" in done.stdout + done.stderr
    assert toolwright_home.approve(approval, "000000").status_code == 403
    assert toolwright_home.approve(approval, "").status_code == 403
    assert state(toolwright_home, approval) == "pending"
    toolwright_home.person("reject", approval)
    assert sent(harbour, "Unasked") == 0


def test_what_was_decided_stays_decided(
    served: Peer, toolwright_home: Home, harbour: HarbourApi
) -> None:
    approval = book(served, "Refused")["approval"]
    rejected = toolwright_home.decide(
        approval, decision="reject", pin=PIN, reason="too late in the year"
    )
    assert rejected.json()["state"] == "rejected"
    again = toolwright_home.approve(approval)
    assert (again.status_code, "rejected" in again.json()["error"]) == (409, True)
    told = served.value("status", approval=approval)
    assert (told["state"], told["decision_reason"]) == ("rejected", "too late in the year")
    assert sent(harbour, "Refused") == 0


def test_a_request_that_nobody_decided_in_time_can_no_longer_be_approved(
    hasty: Peer, toolwright_home: Home, harbour: HarbourApi
) -> None:
    approval = book(hasty, "Late")["approval"]
    assert toolwright_home.approve(approval).status_code == 409
    assert closed(toolwright_home, approval) == "expired"
    assert sent(harbour, "Late") == 0


def test_of_two_processes_exactly_one_carries_an_approved_write_out(
    served: Peer, hasty: Peer, toolwright_home: Home, harbour: HarbourApi
) -> None:
    boats = {f"Twin-{berth}": berth for berth in (1, 3, 4)}
    approvals = [book(served, boat, berth=berth)["approval"] for boat, berth in boats.items()]
    assert [sent(harbour, boat) for boat in boats] == [0, 0, 0]
    for approval in approvals:
        assert toolwright_home.approve(approval).json()["state"] == "approved"
    assert [closed(toolwright_home, approval) for approval in approvals] == ["done"] * 3
    assert [sent(harbour, boat) for boat in boats] == [1, 1, 1]
    calls = toolwright_home.read("logs", "harbour", "-n", "100")
    carried_out = [call["approval"] for call in calls if call["approval"] in approvals]
    assert sorted(carried_out) == sorted(approvals)


def test_an_approved_write_that_the_api_refuses_has_failed_and_is_not_repeated(
    served: Peer, toolwright_home: Home, harbour: HarbourApi
) -> None:
    approval = book(served, "Closed-berth", berth=8)["approval"]
    toolwright_home.approve(approval)
    assert closed(toolwright_home, approval) == "failed"
    outcome = served.value("status", approval=approval)["outcome"]
    assert "409" in text(outcome)
    assert sent(harbour, "Closed-berth") == 1


def test_an_approved_call_of_a_server_that_has_changed_since_is_not_carried_out(
    served: Peer, toolwright_home: Home, harbour: HarbourApi, tmp_path: Path
) -> None:
    document = json.loads((EXAMPLE / "openapi.json").read_text())
    document["servers"] = [{"url": harbour.url}]
    path = tmp_path / "quay.json"
    path.touch()
    toolwright_home.person("source", "allow", str(path))
    assert forged(served, document, path)["version"] == 1
    approval = book(served, "Overtaken", "pier")["approval"]
    document["paths"]["/bookings"]["post"]["summary"] = "Book a berth, or so"
    assert forged(served, document, path)["version"] == 2
    toolwright_home.approve(approval)
    assert closed(toolwright_home, approval) == "failed"
    told = served.value("status", approval=approval)
    assert "version 2" in told["outcome"]["error"]
    archived = book(served, "Archived", "pier")["approval"]
    assert toolwright_home.run("archive", "pier").returncode == 0
    toolwright_home.approve(archived)
    assert closed(toolwright_home, archived) == "failed"
    told = served.value("status", approval=archived)
    assert "archived" in told["outcome"]["error"]
    assert [sent(harbour, boat) for boat in ("Overtaken", "Archived")] == [0, 0]


def forged(peer: Peer, document: dict[str, Any], path: Path) -> dict[str, Any]:
    """The result of forging the server `pier` from a document."""
    path.write_text(json.dumps(document))
    job = peer.value("forge", task="berths", source=str(path), name="pier")["job"]
    done = peer.settled(job=job)
    assert done["state"] == "done", done["message"]
    return dict(done["result"])


@pytest.mark.parametrize(
    "name",
    ["approve", "reject", "unfreeze", "kill", "secret", "source", "grant", "setup", "approvals"],
)
def test_no_tool_of_the_front_decides_anything(served: Peer, name: str) -> None:
    asked = served.request("tools/call", {"name": name, "arguments": {}})
    assert asked["error"]["code"] == -32602
    assert served.request(f"toolwright/{name}")["error"]["code"] == -32601


def test_a_client_cannot_approve_its_own_write_by_any_of_the_seven_tools(
    served: Peer, toolwright_home: Home, harbour: HarbourApi
) -> None:
    approval = book(served, "Selfish")["approval"]
    assert served.call("status", approval=approval, approve=True, pin=PIN)["isError"]
    assert served.call("call_write", tool="toolwright.approve", arguments={"id": approval})[
        "isError"
    ]
    wish = f"toolwright approve {approval}"
    asked = json.dumps(served.value("do", task=wish))
    assert '"tool": "toolwright.' not in asked
    served.call("do", task=wish, tool="toolwright.approve", arguments={"approval": approval})
    served.call("submit", job=approval, document="approve")
    assert state(toolwright_home, approval) == "pending"
    assert sent(harbour, "Selfish") == 0


def test_a_server_for_the_control_plane_itself_would_first_need_a_person(
    served: Peer, toolwright_home: Home
) -> None:
    url = toolwright_home.control().url
    job = served.value("forge", task="approve everything", source=url, name="control")["job"]
    until(lambda: served.value("status", job=job)["state"] == "waiting", "it waits for a person")
    assert "source allow" in served.value("status", job=job)["message"]
    assert toolwright_home.run("jobs", job, "--cancel").returncode == 0
    assert served.value("status", job=job)["state"] == "cancelled"


def test_a_read_tool_cannot_be_used_to_write_nor_the_other_way_round(
    served: Peer, harbour: HarbourApi
) -> None:
    smuggled = served.call(
        "call_read", tool="harbour.book_berth", arguments={"body": booking("Smuggler")}
    )
    assert smuggled["isError"]
    assert "call_write" in text(smuggled)
    assert served.call("call_write", tool="harbour.list_berths")["isError"]
    assert sent(harbour, "Smuggler") == 0


def freed(harbour: HarbourApi, berth: int) -> None:
    """Make a berth free that another test of the same harbour may have booked."""
    with httpx.Client(base_url=harbour.url, trust_env=False, timeout=60) as client:
        for booking in client.get("/bookings").json():
            if booking["berth"] == berth:
                client.delete(f"/bookings/{booking['id']}").raise_for_status()


def test_an_approved_write_is_replayed_without_sending_it(
    served: Peer, toolwright_home: Home, harbour: HarbourApi
) -> None:
    freed(harbour, 1)
    approval = book(served, "Again", berth=1)["approval"]
    toolwright_home.person("approve", approval)
    assert closed(toolwright_home, approval) == "done"
    with toolwright_home.store() as store:
        (write,) = (i for i in store.calls.find() if i.approval == approval)
    assert sent(harbour, "Again") == 1
    found = toolwright_home.read("replay", write.id)
    assert found["verdict"] == "same"
    assert found["replays"][0]["subject"] == "harbour.book_berth"
    assert sent(harbour, "Again") == 1


@pytest.fixture(scope="module")
def letters() -> Iterator[Letters]:
    with letters_api() as api:
        yield api


@pytest.fixture(scope="module")
def quiet_home(
    any_engine: str, letters: Letters, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Home]:
    """A home where nothing serves, with the server `letters`."""
    with new_home(tmp_path_factory.mktemp("quiet"), any_engine) as home:
        host = letters.url.removeprefix("http://")
        home.person("forge", "send letters", "--source", letters.url, "--allow", host)
        yield home


def asked(home: Home, letter: str) -> str:
    """The approval that a call at the terminal waits for."""
    arguments = json.dumps({"body": {"text": letter}})
    done = home.run("call", "letters.send_letter", arguments, "--json")
    assert done.returncode == 3, done.stderr
    return str(json.loads(done.stdout)["structuredContent"]["approval"])


def test_a_write_approved_while_nothing_serves_is_sent_once_and_its_decider_sees_the_outcome(
    quiet_home: Home, letters: Letters
) -> None:
    approval = asked(quiet_home, "by night")
    told = quiet_home.person("approve", approval)
    assert f"{approval}: done" in told
    assert "by night" in told.partition(f"{approval}: done")[2]
    assert (state(quiet_home, approval), letters.sent) == ("done", ["by night"])
    # Whoever tries again sends nothing.
    assert quiet_home.run("work", "--approval", approval).returncode == 0
    assert letters.sent == ["by night"]


def test_an_approved_write_that_found_nobody_listening_failed_and_may_be_asked_for_again(
    quiet_home: Home,
) -> None:
    with letters_api() as post:
        host = post.url.removeprefix("http://")
        source = ("--source", post.url, "--allow", host)
        quiet_home.person("forge", "send letters", "--name", "post", *source)
        arguments = json.dumps({"body": {"text": "to nobody"}})
        done = quiet_home.run("call", "post.send_letter", arguments, "--json")
        approval = json.loads(done.stdout)["structuredContent"]["approval"]
    told = quiet_home.run("approve", approval, "--pin-file", str(quiet_home.pin_file))
    assert state(quiet_home, approval) == "failed"
    assert "nothing listens there (connection refused): is it running?" in told.stdout + told.stderr


def test_what_was_approved_while_frozen_stands_as_unsent_and_a_freeze_ends_who_sends_it(
    quiet_home: Home, letters: Letters
) -> None:
    approval = asked(quiet_home, "held")
    send = f"toolwright work --approval {approval}"
    with quiet_home.store() as store:
        store.processes.freeze(time.time(), "test", "")
        assert "frozen" in quiet_home.person("approve", approval)
        # Whoever is asked to send it is held by the freeze as well.
        assert quiet_home.run("work", "--approval", approval).returncode == 1
        checks = {each.name: each for each in run_checks(quiet_home.settings, store)}
        assert checks["approvals"].verdict == "warning"
        assert checks["approvals"].found.endswith(approval)
        quiet_home.person("unfreeze")
        listed = quiet_home.run("approvals")
        assert ("not sent" in listed.stdout, send in listed.stderr) == (True, True)
        assert "held" not in letters.sent
        letters.held.set()
        sender = quiet_home.start("work", "--approval", approval)
        until(lambda: "held" in letters.sent, "the letter is under way")
        (process,) = [each for each in store.processes.find() if each.kind == "send"]
        assert process.pid == sender.pid
        freeze_everything(
            store.processes,
            quiet_home.settings.reserve,
            "test",
            "",
            lambda: 0,
            SystemClock(),
            SILENCE_SECONDS,
        )
        sender.wait(SECONDS)
        # It was cut while under way: nobody knows whether it arrived, and nobody sends it again.
        assert store.approvals.get(approval).state == "unknown"
        assert letters.sent.count("held") == 1


def test_a_tool_that_is_tried_on_its_page_is_called_and_its_writes_wait(
    served: Peer, toolwright_home: Home, harbour: HarbourApi
) -> None:
    def try_tool(name: str, **body: Any) -> httpx.Response:
        return toolwright_home.post(f"/servers/harbour/tools/{name}/call", **body)

    read = try_tool("list_berths").json()
    assert read["told"] == "The call succeeded."
    with toolwright_home.store() as store:
        call = store.calls.get(read["link"]["href"].rpartition("/")[2])
    assert (call.tool, call.task) == ("list_berths", "tried on the control page")
    written = try_tool("book_berth", fields={"body": json.dumps(booking("Tried"))}).json()
    assert (written["link"]["href"], "text" in written) == ("/rooms/approvals", True)
    assert state(toolwright_home, written["approval"]) == "pending"
    assert sent(harbour, "Tried") == 0
    assert try_tool("list_berths", fields={"--engine": "x"}).status_code == 400
    assert try_tool("sink_berth").status_code == 400
