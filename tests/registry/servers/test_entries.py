from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import text

from registry.errors import JobLost, Unknown, VersionConflict
from registry.records import dossier, entry_from
from registry.store import Store
from tests.registry.processes import survives_kill_at
from tests.registry.samples import REPORTS, bundle, entry, invocation, job, tool


def test_a_published_entry_comes_back_as_it_was(store: Store) -> None:
    published = store.publish(entry(), REPORTS, now=10.0)
    assert store.entry("dns") == published == entry()
    assert store.entries() == (entry(),)
    assert store.reports("dns", 1) == REPORTS
    assert store.entry("dns").tool("list_zones").definition["description"] == "list_zones it"


def test_an_entry_made_from_a_bundle_lists_its_tools_as_the_protocol_does(store: Store) -> None:
    made = entry_from(bundle(), now=5.0)
    store.publish(made, now=5.0)
    assert made.digest == bundle().digest()
    assert made.created_by == "compiler"
    assert store.entry("dns").tools[0].definition == bundle().tools[0].listed(bundle().base_url)


def test_publishing_the_same_digest_again_changes_nothing(dns: Store) -> None:
    before = dns.audit()
    assert dns.publish(entry(created=99.0), REPORTS, now=99.0) == entry()
    assert dns.audit() == before


def test_publishing_an_archived_server_again_puts_it_back_into_use(dns: Store) -> None:
    dns.archive("dns", 20.0, by="me")
    assert dns.publish(entry(), REPORTS, now=30.0).state == "active"
    assert dns.entry("dns").state == "active"


def test_a_summary_says_what_a_list_shows_of_every_server(dns: Store) -> None:
    dns.publish(entry("bare", 3), now=20.0)
    dns.record(invocation("c1"), now=30.0)
    found = {s.name: (s.version, s.state, s.tools, s.standing.total) for s in dns.summaries()}
    assert found["dns"] == (1, "active", len(dns.entry("dns").tools), 1)
    assert found["bare"][0] == 3
    assert [s.standing for s in dns.summaries()] == [dns.standing(n) for n in sorted(found)]


def test_a_new_version_replaces_the_current_one_and_keeps_the_history(dns: Store) -> None:
    newer = entry("dns", 2, tool("get_zone"))
    dns.publish(newer, now=20.0)
    assert dns.entry("dns") == newer
    assert [version.version for version in dns.versions("dns")] == [2, 1]
    assert dns.versions("dns")[1].tools == entry().tools


@pytest.mark.parametrize("version", [1, 2])
def test_a_version_that_is_not_newer_is_refused(store: Store, version: int) -> None:
    store.publish(entry("dns", 2), now=10.0)
    with pytest.raises(VersionConflict, match="version 3"):
        store.publish(entry("dns", version, digest="other"), now=11.0)
    assert store.entry("dns") == entry("dns", 2)


def test_a_new_version_of_a_trusted_server_keeps_its_score(dns: Store) -> None:
    dns.record_many([invocation(f"c{n}") for n in range(50)], now=20.0)
    dns.publish(entry("dns", 2), now=30.0)
    assert dns.standing("dns").level == "trusted"
    assert dns.operation_standing("dns", "list_zones").version_successes == 0


def test_the_repair_of_a_degraded_server_starts_every_ladder_again(dns: Store) -> None:
    dns.record_many([invocation(f"c{n}", "bug") for n in range(5)], now=20.0)
    assert dns.entry("dns").state == "quarantined"
    dns.publish(entry("dns", 2), now=30.0)
    assert dns.entry("dns").state == "active"
    assert dns.standing("dns").level == "probationary"
    assert dns.standing("dns").score == 0.0
    assert dns.operation_standing("dns", "list_zones").window == 0


def test_a_stale_job_attempt_publishes_nothing(store: Store) -> None:
    store.create_job(job())
    store.claim_job("j1", "p1", 1.0)
    store.requeue_orphans(["p1"], 2.0)
    store.claim_job("j1", "p2", 3.0)
    with pytest.raises(JobLost):
        store.publish(entry(), now=4.0, job=("j1", 1))
    assert store.entries() == ()
    store.publish(entry(), now=4.0, job=("j1", 2))
    assert store.entries() == (entry(),)


def test_a_cancelled_job_publishes_nothing(store: Store) -> None:
    store.create_job(job())
    store.claim_job("j1", "p1", 1.0)
    store.cancel_job("j1", "me", 2.0)
    with pytest.raises(JobLost):
        store.publish(entry(), now=4.0, job=("j1", 1))


def test_states_select_entries_and_archiving_keeps_them(dns: Store) -> None:
    dns.publish(entry("web"), now=11.0)
    dns.archive("dns", 12.0, by="me", reason="unused")
    assert [found.name for found in dns.entries()] == ["dns", "web"]
    assert [found.name for found in dns.entries(("active",))] == ["web"]
    assert dns.audit(1)[0].payload == '{"by":"me","reason":"unused","state":"archived"}'


def test_an_unknown_server_is_named_in_the_error(store: Store) -> None:
    for ask in (store.entry, store.versions, store.standing):
        with pytest.raises(Unknown, match="'nope'"):
            ask("nope")
    with pytest.raises(Unknown):
        store.set_state("nope", "archived", 1.0, "me")


def test_the_dossier_holds_the_reference_systems_record(dns: Store) -> None:
    dns.record_many(
        [invocation("c1"), invocation("c2"), invocation("c3", "bug", latency_ms=40.0)], now=20.0
    )
    shown = dossier(dns.entry("dns"), dns.standing("dns"))
    wanted = {
        "tool_id": "dns",
        "created": 10.0,
        "created_by": "compiler",
        "reliability_score": 2 / 3,
        "total_invocations": 3,
        "successful_invocations": 2,
        "avg_latency_ms": 20.0,
        "last_failure": 20.0,
        "last_failure_reason": "bug: it broke",
        "trust_level": "probationary",
        "permissions": ["network:api.example"],
    }
    assert wanted.items() <= shown.items()


def test_hostile_text_is_stored_without_what_a_database_cannot_hold(store: Store) -> None:
    store.publish(entry(title="a\0b\ud800c", description="x" * 10**6), now=1.0)
    found = store.entry("dns")
    assert found.title == "a\ufffdb?c"
    assert len(found.description) == 20_000


def test_a_kill_at_any_step_of_publishing_leaves_all_of_a_version_or_nothing(
    tmp_path: Path,
) -> None:
    path = tmp_path / "registry.db"
    with Store.open(path) as store:
        store.publish(entry(), REPORTS, now=1.0)
    newer = entry("dns", 2, tool("fetch_record"))

    def publish() -> None:
        with Store.open(path) as store:
            store.publish(newer, REPORTS, now=2.0)

    for step in range(200):
        finished = survives_kill_at(step, publish)
        with Store.open(path) as store:
            current = store.entry("dns")
            found = [match.tool for match in store.search("record")]
            assert store.verify_audit() is None
            assert store.standing("dns").version == current.version
            if current.version == 1:
                assert not finished
                assert (found, store.reports("dns", 2)) == ([], ())
            else:
                assert (found, store.reports("dns", 2)) == (["fetch_record"], REPORTS)
                assert len(store.audit()) == 2
        if finished:
            break
    assert step > 5


def test_search_rows_of_a_replaced_version_are_gone(dns: Store) -> None:
    dns.publish(replace(entry("dns", 2, tool("get_zone"))), now=20.0)
    with dns._database.read() as connection:
        query = text("SELECT count(*) FROM search_index WHERE search_index MATCH 'create'")
        assert connection.execute(query).scalar() == 0
