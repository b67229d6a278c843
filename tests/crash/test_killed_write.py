"""SIGKILL before and after each step of an approved write: sent at most once, and known."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest

from orchestrator.calls import Call
from registry.models import Approval
from tests.crash.installation import Installation
from tests.crash.victim import idled, killed_at
from tests.world.harbour import HarbourApi, harbour_api

WAITS = 3
INTENT = "INSERT INTO invocations"
OUTCOME = "UPDATE invocations .*'done'"
BEFORE_THE_INTENT = {
    "before it is claimed": "UPDATE approvals .*'claimed'",
    "after it is claimed": "after UPDATE approvals .*'claimed'",
    "before the intent is on disk": INTENT,
}
AFTER_THE_INTENT = {
    "before the byte leaves": (r"socket\.connect .*'127\.0\.0\.1'", 0),
    "after the byte left": (OUTCOME, 1),
}
_boats = count(1)


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HarbourApi]:
    with harbour_api(tmp_path_factory.mktemp("harbour")) as api:
        yield api


@pytest.fixture(scope="module")
def shared(
    tmp_path_factory: pytest.TempPathFactory, any_engine: str, api: HarbourApi
) -> Installation:
    """An installation with the harbour's server."""
    installation = Installation.made(tmp_path_factory.mktemp("killed") / "home", any_engine)
    installation.allow(api.url)
    result = installation.run("forge", "book a berth", "--source", api.url, "--name", "harbour")
    assert result.exit_code == 0, result.stdout
    return installation


@pytest.fixture(autouse=True)
def _vacated(api: HarbourApi) -> Iterator[None]:
    """A berth can be booked once: free it again after each test."""
    yield
    with httpx.Client(base_url=api.url, trust_env=False, timeout=60) as client:
        for booked in client.get("/bookings").json():
            client.delete(f"/bookings/{booked['id']}").raise_for_status()


def booking() -> dict[str, Any]:
    """The arguments of a write that nobody asked for before."""
    boat = {"name": f"Boat {next(_boats)}", "kind": "sail", "length": 7.5}
    return {"body": {"berth": 4, "boat": boat, "arrival": "2030-06-01", "nights": 2}}


def approved(installation: Installation) -> Approval:
    """A write that a person has approved and nobody has carried out."""
    result = installation.run("call", "harbour.book_berth", json.dumps(booking()), "--json")
    assert result.exit_code == WAITS, result.stdout
    identity = json.loads(result.stdout)["structuredContent"]["approval"]
    return installation.approve(identity)


def posts(api: HarbourApi, approval: Approval) -> int:
    """How often exactly that write reached the API."""
    body = approval.wire.body.decode()
    return [entry["body"] for entry in api.received("POST")].count(body)


@pytest.mark.parametrize("moment", BEFORE_THE_INTENT)
def test_a_write_killed_before_its_intent_is_stored_is_carried_out_once_by_the_next(
    moment: str, shared: Installation, api: HarbourApi
) -> None:
    approval = approved(shared)
    killed_at(BEFORE_THE_INTENT[moment], shared.settings)
    assert posts(api, approval) == 0
    idled(shared.settings)
    assert posts(api, approval) == 1
    assert_settled(shared, approval, "done")


@pytest.mark.parametrize("moment", AFTER_THE_INTENT)
def test_a_write_killed_after_its_intent_is_unknown_and_never_sent_again(
    moment: str, shared: Installation, api: HarbourApi
) -> None:
    approval = approved(shared)
    pattern, sent = AFTER_THE_INTENT[moment]
    killed_at(pattern, shared.settings)
    assert posts(api, approval) == sent
    idled(shared.settings)
    assert posts(api, approval) == sent
    assert_settled(shared, approval, "unknown")


LOOSENED = {
    "call cut loose": "UPDATE invocations SET approval = NULL WHERE approval = :id",
    "call deleted": "DELETE FROM invocations WHERE approval = :id",
    "approval set back": "UPDATE approvals SET state = 'approved', claimed_by = '' WHERE id = :id",
    "claim set back": "UPDATE approvals SET state = 'claimed', invocation = '' WHERE id = :id",
}


@pytest.mark.parametrize("name", LOOSENED)
def test_a_write_killed_in_mid_send_is_not_sent_again_whatever_rows_are_edited(
    name: str, shared: Installation, api: HarbourApi, tmp_path: Path
) -> None:
    # What is edited stays edited, so it is done to a copy.
    shutil.copytree(shared.home, tmp_path / "home")
    edited = Installation(tmp_path / "home", shared.engine, shared.environment)
    approval = approved(edited)
    killed_at(OUTCOME, edited.settings)
    assert posts(api, approval) == 1
    connection = sqlite3.connect(edited.home / "toolwright.db", isolation_level=None, timeout=60)
    connection.execute(LOOSENED[name], {"id": approval.id})
    connection.close()
    told = edited.run("audit", "verify")
    assert (told.exit_code, approval.id in told.stdout) == (1, True)
    idled(edited.settings)
    assert posts(api, approval) == 1
    with edited.store() as store:
        assert store.approvals.get(approval.id).state in ("unknown", "rejected")


def test_a_write_killed_after_its_outcome_is_stored_is_done(
    shared: Installation, api: HarbourApi
) -> None:
    approval = approved(shared)
    killed_at(f"after {OUTCOME}", shared.settings)
    idled(shared.settings)
    assert posts(api, approval) == 1
    assert_settled(shared, approval, "done")


@pytest.mark.parametrize(("moment", "kept"), [("", 0), ("after ", 1)])
def test_a_write_killed_at_its_capture_has_sent_nothing(
    moment: str, kept: int, shared: Installation, api: HarbourApi
) -> None:
    before = len(api.received("POST"))
    call = Call("harbour", "book_berth", booking())
    killed_at(f"{moment}INSERT INTO approvals", shared.settings, call)
    idled(shared.settings)
    assert len(api.received("POST")) == before
    with shared.store() as store:
        pending = [a.arguments for a in store.approvals.find("pending")]
    assert pending.count(call.arguments) == kept
    assert shared.troubles() == []


def assert_settled(installation: Installation, approval: Approval, state: str) -> None:
    """The registry says the same of the approval and of its one call, and all else is in order."""
    with installation.store() as store:
        assert store.approvals.get(approval.id).state == state
        calls = [call for call in store.calls.find() if call.approval == approval.id]
    assert [call.state for call in calls] == [state]
    assert installation.troubles() == []
