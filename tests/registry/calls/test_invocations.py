from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from registry.database.canonical import MAX_HEAD
from registry.errors import ApprovalNotHeld, DuplicateRow, NotCallable, RowNotFound
from registry.models import CallFailure
from registry.servers.quarantine import explain_quarantine
from registry.store import Store
from sandbox.errors import Frozen
from tests.registry.processes import survives_kill_at
from tests.registry.samples import SIGNER, approval, approve, entry, forgery, invocation


def claimed(store: Store, id: str = "a1", process: str = "p1") -> None:
    store.approvals.add_pending(approval(id))
    approve(store, id, "me")
    assert store.approvals.claim(id, process, 120.0, forgery) is not None


def write(id: str = "w1", process: str = "p1", **changes: Any) -> Any:
    return invocation(
        id, **{"tool": "create_zone", "access": "write", "process": process, **changes}
    )


def test_a_recorded_call_comes_back_as_it_was(dns: Store) -> None:
    call = invocation(
        "c1",
        arguments={"server": "localhost"},
        result={"structuredContent": [1, None]},
        exchanges=({"request": {"url": "https://api.example/"}},),
        failure=CallFailure("http", "not found", 404),
        task="t",
        reason="r",
        session="s",
        process="main",
    )
    dns.calls.record(call, now=101.0)
    assert dns.calls.get("c1") == call
    assert dns.calls.find("dns") == (call,)
    assert not call.succeeded
    assert not call.counted


def test_recording_updates_the_server_and_the_operation(dns: Store) -> None:
    for number in range(10):
        standing = dns.calls.record(invocation(f"c{number}"), now=101.0)
    assert standing == dns.standings.get("dns")
    assert (standing.level, standing.total, standing.average_latency_ms) == ("standard", 10, 10.0)
    assert dns.standings.get_operation("dns", "list_zones").version_successes == 10
    assert dns.standings.get_operation("dns", "create_zone").total == 0
    assert list(dns.standings.find_operations("dns")) == ["list_zones"]


def test_recording_an_id_twice_counts_once(dns: Store) -> None:
    dns.calls.record(invocation("c1"), now=101.0)
    assert dns.calls.record(invocation("c1", "bug"), now=102.0).total == 1
    assert dns.calls.get("c1").succeeded


def test_a_call_that_degrades_a_server_quarantines_it_in_the_same_transaction(dns: Store) -> None:
    dns.calls.record_many([invocation(f"c{n}", "bug") for n in range(4)], now=101.0)
    assert dns.servers.get("dns").state == "active"
    assert dns.calls.record(invocation("c5", "bug"), now=102.0).level == "degraded"
    assert dns.servers.get("dns").state == "quarantined"
    assert dns.audit.find(1)[0].kind == "state"
    why = explain_quarantine(dns.servers, "dns")
    assert why.startswith("quarantined by trust: 5 of its last 5 counted calls failed by its own")
    assert "`toolwright reprove dns`" in why


@pytest.mark.parametrize("kind", ["exception", "tool", "schema", "refusal", "upstream"])
def test_what_may_not_be_its_own_fault_quarantines_no_server(dns: Store, kind: str) -> None:
    dns.calls.record_many([invocation(f"c{n}", kind) for n in range(60)], now=101.0)
    assert dns.servers.get("dns").state == "active"
    assert dns.standings.get("dns").level == "probationary"
    assert dns.standings.get_operation("dns", "list_zones").refusing in (1.0, None)


def test_degrading_does_not_bring_an_archived_server_back(dns: Store) -> None:
    dns.servers.archive("dns", 90.0, by="me")
    dns.calls.record_many([invocation(f"c{n}", "bug") for n in range(6)], now=101.0)
    assert dns.servers.get("dns").state == "archived"


def test_upstream_failures_do_not_degrade_a_server(dns: Store) -> None:
    failure = CallFailure("http", "down", 503)
    dns.calls.record_many([invocation(f"c{n}", failure=failure) for n in range(20)], now=101.0)
    standing = dns.standings.get("dns")
    assert (standing.level, standing.total, standing.counted) == ("probationary", 20, 0)
    assert standing.last_failure_reason == "http: down"


def test_a_call_of_an_unknown_server_is_refused(store: Store) -> None:
    with pytest.raises(RowNotFound):
        store.calls.record(invocation("c1"), now=1.0)
    with pytest.raises(RowNotFound):
        store.calls.store_intent(write(), now=1.0)


def test_a_batch_with_one_bad_call_stores_none_of_it(dns: Store) -> None:
    with pytest.raises(RowNotFound):
        dns.calls.record_many([invocation("c1"), invocation("c2", entry="nope")], now=1.0)
    assert dns.calls.find() == ()


def test_huge_results_are_kept_by_their_hash(dns: Store) -> None:
    dns.calls.record(invocation("c1", result="x" * 3_000_000), now=101.0)
    kept = dns.calls.get("c1").result
    assert kept["truncated"] is True
    assert kept["length"] == 3_000_002
    assert kept["head"] == '"' + "x" * (MAX_HEAD - 1)


@pytest.mark.parametrize("value", [float("nan"), {1, 2}, b"bytes"])
def test_results_that_json_cannot_say_do_not_lose_the_call(dns: Store, value: Any) -> None:
    dns.calls.record(invocation("c1", result=value), now=101.0)
    assert list(dns.calls.get("c1").result) == ["unstorable"]


def test_endless_nesting_does_not_lose_the_call(dns: Store) -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    dns.calls.record(invocation("c1", result=deep), now=101.0)
    assert list(dns.calls.get("c1").result) == ["unstorable"]


def test_lone_surrogates_and_nul_are_stored(dns: Store) -> None:
    dns.calls.record(invocation("c1", result="\ud800\0", task="\ud800\0"), now=101.0)
    assert dns.calls.get("c1").result == "\ud800\0"
    assert dns.calls.get("c1").task == "?\ufffd"


def test_an_intent_is_stored_before_and_finished_after_the_call(dns: Store) -> None:
    dns.calls.store_intent(write(), now=100.0)
    assert dns.calls.get("w1").state == "intended"
    assert dns.standings.get("dns").total == 0
    dns.calls.record(write(result={"ok": True}), now=101.0)
    done = dns.calls.get("w1")
    assert (done.state, done.result) == ("done", {"ok": True})
    assert dns.standings.get("dns").total == 1


def test_an_intent_is_stored_once(dns: Store) -> None:
    dns.calls.store_intent(write(), now=100.0)
    with pytest.raises(DuplicateRow):
        dns.calls.store_intent(write(), now=100.0)


def test_nothing_is_intended_while_frozen(dns: Store) -> None:
    dns.processes.freeze(99.0, by="me")
    with pytest.raises(Frozen):
        dns.calls.store_intent(write(), now=100.0)
    assert dns.calls.find() == ()
    dns.processes.unfreeze(101.0, "me", SIGNER.sign)
    dns.calls.store_intent(write(), now=102.0)


@pytest.mark.parametrize("state", ["quarantined", "archived"])
def test_nothing_is_intended_on_a_server_out_of_use(dns: Store, state: Any) -> None:
    dns.servers.set_state("dns", state, 90.0, by="me")
    with pytest.raises(NotCallable, match=state):
        dns.calls.store_intent(write(), now=100.0)


def test_nothing_is_intended_on_a_replaced_version(dns: Store) -> None:
    dns.servers.publish(entry("dns", 2), now=90.0)
    with pytest.raises(NotCallable, match="version 1"):
        dns.calls.store_intent(write(), now=100.0)


def test_an_approved_call_runs_only_in_the_process_that_claimed_it_and_once(dns: Store) -> None:
    dns.approvals.add_pending(approval())
    with pytest.raises(ApprovalNotHeld):
        dns.calls.store_intent(write(approval="a1"), now=105.0)
    approve(dns, "a1", "me")
    assert dns.approvals.claim("a1", "p1", 120.0, forgery) is not None
    with pytest.raises(ApprovalNotHeld):
        dns.calls.store_intent(write(approval="a1", process="p2"), now=121.0)
    dns.calls.store_intent(write(approval="a1"), now=121.0)
    with pytest.raises(ApprovalNotHeld):
        dns.calls.store_intent(write("w2", approval="a1"), now=122.0)
    assert [call.id for call in dns.calls.find()] == ["w1"]


def test_what_a_dead_process_left_becomes_unknown_and_stays_so(dns: Store) -> None:
    claimed(dns)
    dns.calls.store_intent(write(approval="a1"), now=121.0)
    dns.calls.store_intent(write("w2", process="p2"), now=121.0)
    settled = dns.calls.settle_unknown(["p1"], now=130.0)
    assert [(call.id, call.state) for call in settled] == [("w1", "unknown")]
    assert dns.approvals.get("a1").state == "unknown"
    assert dns.calls.get("w2").state == "intended"
    assert dns.calls.settle_unknown(["p1"], now=131.0) == ()
    assert dns.standings.get("dns").total == 0
    assert dns.approvals.claim("a1", "p3", 132.0, forgery) is None


def test_a_claim_without_an_intent_can_be_claimed_again(dns: Store) -> None:
    claimed(dns)
    dns.calls.settle_unknown(["p1"], now=130.0)
    assert dns.approvals.get("a1").state == "approved"
    assert dns.approvals.claim("a1", "p2", 131.0, forgery) is not None
    with pytest.raises(ApprovalNotHeld):
        dns.calls.store_intent(write(approval="a1", process="p1"), now=132.0)


def test_a_process_that_was_only_thought_dead_can_still_say_what_happened(dns: Store) -> None:
    dns.calls.store_intent(write(), now=100.0)
    dns.calls.settle_unknown(["p1"], now=110.0)
    dns.calls.record(write(), now=120.0)
    assert dns.calls.get("w1").state == "done"


def test_a_result_marked_wrong_counts_as_a_failure(dns: Store) -> None:
    dns.calls.record_many([invocation(f"c{n}") for n in range(10)], now=101.0)
    standing = dns.calls.mark_wrong("c3", by="me", now=110.0, reason="not my zone")
    assert (standing.level, standing.successful, standing.ratio) == ("probationary", 9, 0.9)
    assert standing.last_failure_reason == "marked wrong by me: not my zone"
    assert dns.standings.get_operation("dns", "list_zones").version_successes == 9
    assert not dns.calls.get("c3").succeeded
    assert dns.calls.mark_wrong("c3", by="me", now=111.0) == standing


def test_results_marked_wrong_can_degrade_a_server(dns: Store) -> None:
    dns.calls.record_many([invocation(f"c{n}") for n in range(5)], now=101.0)
    dns.calls.mark_wrong("c0", by="me", now=110.0)
    assert dns.servers.get("dns").state == "active"
    dns.calls.mark_wrong("c1", by="me", now=111.0)
    assert dns.servers.get("dns").state == "quarantined"


def test_marking_a_failure_wrong_changes_nothing(dns: Store) -> None:
    before = dns.calls.record(invocation("c1", "bug"), now=101.0)
    assert dns.calls.mark_wrong("c1", by="me", now=110.0) == before


def test_a_kill_at_any_step_of_recording_keeps_trust_and_calls_equal(tmp_path: Path) -> None:
    path = tmp_path / "registry.db"
    with Store.open(path) as store:
        store.servers.publish(entry(), now=1.0)
        store.calls.store_intent(write(), now=2.0)

    def record() -> None:
        with Store.open(path) as store:
            store.calls.record(write(), now=3.0)

    for step in range(100):
        finished = survives_kill_at(step, record)
        with Store.open(path) as store:
            done = store.calls.get("w1").state == "done"
            assert store.standings.get("dns").total == int(done)
            assert store.standings.get_operation("dns", "create_zone").total == int(done)
            assert store.audit.verify_chains() is None
            assert len(store.audit.find()) == 2 + done
            assert done or not finished
        if finished:
            break
    assert step > 5
