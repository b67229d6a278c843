"""An approved write that this process has claimed ends in a state that says what became of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.approvals.decide import Decision, decide_with_pin
from orchestrator.approvals.signed_policy import SignedPolicy
from orchestrator.approvals.signing_key import build_authority
from orchestrator.calling import open_caller
from orchestrator.calls import Reply
from orchestrator.gateway.approved_writes import ApprovedWrites
from orchestrator.settings import Settings
from registry.errors import DatabaseUnusable
from registry.models import Approval, build_entry
from registry.servers.bundles import Bundles
from registry.store import Store
from tests.orchestrator.conftest import PIN
from tests.registry.samples import REPORTS, approval, bundle, invocation

Send = Callable[[Approval], Coroutine[Any, Any, object]]


def _freeze(store: Store) -> None:
    store.processes.freeze(time.time(), "test", "it is enough")


def _quarantine(store: Store) -> None:
    store.servers.set_state("dns", "quarantined", time.time(), "test", "it looks wrong")


def _approve_write(settings: Settings, store: Store) -> Approval:
    """A write that a person approved, of a registered server."""
    made, now = bundle(), time.time()
    made = replace(made, tools=(replace(made.tools[0], name="create_zone", access="write"),))
    shelf = Bundles(settings.home, store.servers)
    shelf.publish_bundle(made, build_entry(made, now), REPORTS, None)
    asked = replace(approval(), created=now, expires=now + 3600)
    store.approvals.add_pending(asked)
    decision = Decision(asked.id, True, PIN, "test", "", asked.wire_digest)
    assert not decide_with_pin(settings, store, decision, now).refused
    return asked


@pytest.mark.parametrize(
    ("stop", "why"), [(_freeze, "frozen"), (_quarantine, "quarantined")], ids=["freeze", "state"]
)
def test_one_that_is_stopped_between_its_claim_and_its_intent_has_failed(
    settings: Settings, store: Store, stop: Callable[[Store], None], why: str
) -> None:
    asked = _approve_write(settings, store)

    async def work() -> None:
        async with open_caller(settings, "call") as caller:
            # What the process has loaded is what it judges by, until it hears of a change.
            caller.roster.get_server("dns")

            async def send(claimed: Approval) -> Reply:
                stop(store)
                return await caller.dispatch.carry_out_approval(claimed)

            policy = SignedPolicy(store, build_authority(settings))
            process = caller.dispatch.process
            assert await ApprovedWrites(store.approvals, send, policy, process).carry_out_one(
                asked.id
            )

    asyncio.run(work())
    ended = store.approvals.get(asked.id)
    assert ended.state == "failed"
    assert why in ended.outcome["error"]


async def _look_for_approved(settings: Settings, store: Store, send: Send, looks: int) -> None:
    writes = ApprovedWrites(
        store.approvals, send, SignedPolicy(store, build_authority(settings)), "p1"
    )
    for _ in range(looks):
        await writes.carry_out_approved()
        await asyncio.gather(*writes.begun.tasks, return_exceptions=True)


def test_one_whose_intent_the_disk_did_not_take_is_carried_out_by_the_next_look(
    settings: Settings, store: Store
) -> None:
    asked = _approve_write(settings, store)
    tried: list[str] = []

    async def send(claimed: Approval) -> None:
        tried.append(claimed.id)
        if len(tried) == 1:
            raise DatabaseUnusable("registry.db", "database or disk is full")
        store.approvals.store_outcome(claimed.id, "p1", "done", {}, time.time())

    asyncio.run(_look_for_approved(settings, store, send, 2))
    assert tried == [asked.id, asked.id]
    assert store.approvals.get(asked.id).state == "done"
    assert store.audit.verify_chains() is None


def test_one_that_was_sent_and_could_not_be_recorded_is_never_sent_again(
    settings: Settings, store: Store
) -> None:
    asked = _approve_write(settings, store)
    tried: list[str] = []

    async def send(claimed: Approval) -> None:
        tried.append(claimed.id)
        now = time.time()
        store.calls.store_intent(
            replace(invocation("i1"), approval=claimed.id, process="p1", state="intended"), now
        )
        raise DatabaseUnusable("registry.db", "database or disk is full")

    asyncio.run(_look_for_approved(settings, store, send, 3))
    assert tried == [asked.id]
    assert store.approvals.get(asked.id).state == "unknown"
