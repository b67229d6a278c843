from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from registry.errors import JobLost, RowNotFound, VersionConflict
from registry.models import build_entry, describe_server
from registry.store import Store
from tests.registry.processes import survives_kill_at
from tests.registry.samples import REPORTS, bundle, entry, invocation, job, tool


def test_a_published_entry_comes_back_as_it_was(store: Store) -> None:
    published = store.servers.publish(entry(), REPORTS, now=10.0)
    assert store.servers.get("dns") == published == entry()
    assert store.servers.find() == (entry(),)
    assert store.servers.get_reports("dns", 1) == REPORTS
    assert (
        store.servers.get("dns").get_tool("list_zones").definition["description"] == "list_zones it"
    )


def test_an_entry_made_from_a_bundle_lists_its_tools_as_the_protocol_does(store: Store) -> None:
    made = build_entry(bundle(), now=5.0)
    store.servers.publish(made, now=5.0)
    assert made.digest == bundle().compute_digest()
    assert made.created_by == "compiler"
    assert store.servers.get("dns").tools[0].definition == bundle().tools[0].build_listing(
        bundle().base_url
    )


def test_publishing_the_same_digest_again_changes_nothing(dns: Store) -> None:
    before = dns.audit.find()
    assert dns.servers.publish(entry(created=99.0), REPORTS, now=99.0) == entry()
    assert dns.audit.find() == before


def test_publishing_an_archived_server_again_puts_it_back_into_use(dns: Store) -> None:
    dns.servers.archive("dns", 20.0, by="me")
    assert dns.servers.publish(entry(), REPORTS, now=30.0).state == "active"
    assert dns.servers.get("dns").state == "active"


def test_a_summary_says_what_a_list_shows_of_every_server(dns: Store) -> None:
    dns.servers.publish(entry("bare", 3), now=20.0)
    dns.calls.record(invocation("c1"), now=30.0)
    found = {
        s.name: (s.version, s.state, s.tools, s.standing.total)
        for s in dns.servers.find_summaries()
    }
    assert found["dns"] == (1, "active", len(dns.servers.get("dns").tools), 1)
    assert found["bare"][0] == 3
    assert [s.standing for s in dns.servers.find_summaries()] == [
        dns.standings.get(n) for n in sorted(found)
    ]


def test_a_new_version_replaces_the_current_one_and_keeps_the_history(dns: Store) -> None:
    newer = entry("dns", 2, tool("get_zone"))
    dns.servers.publish(newer, now=20.0)
    assert dns.servers.get("dns") == newer
    assert [version.version for version in dns.servers.find_versions("dns")] == [2, 1]
    assert dns.servers.find_versions("dns")[1].tools == entry().tools
    current = dns.servers.get("dns")
    assert dns.servers.find_current("dns") == (2, current.digest)
    assert dns.servers.find_current("other") is None


@pytest.mark.parametrize("version", [1, 2])
def test_a_version_that_is_not_newer_is_refused(store: Store, version: int) -> None:
    store.servers.publish(entry("dns", 2), now=10.0)
    with pytest.raises(VersionConflict, match="version 3"):
        store.servers.publish(entry("dns", version, digest="other"), now=11.0)
    assert store.servers.get("dns") == entry("dns", 2)


def test_a_new_version_of_a_trusted_server_keeps_its_score(dns: Store) -> None:
    dns.calls.record_many([invocation(f"c{n}") for n in range(50)], now=20.0)
    dns.servers.publish(entry("dns", 2), now=30.0)
    assert dns.standings.get("dns").level == "trusted"
    assert dns.standings.get_operation("dns", "list_zones").version_successes == 0


def test_the_repair_of_a_degraded_server_starts_every_ladder_again(dns: Store) -> None:
    dns.calls.record_many([invocation(f"c{n}", "bug") for n in range(5)], now=20.0)
    assert dns.servers.get("dns").state == "quarantined"
    dns.servers.publish(entry("dns", 2), now=30.0)
    assert dns.servers.get("dns").state == "active"
    assert dns.standings.get("dns").level == "probationary"
    assert dns.standings.get("dns").score == 0.0
    assert dns.standings.get_operation("dns", "list_zones").window == 0


def test_a_stale_job_attempt_publishes_nothing(store: Store) -> None:
    store.jobs.create(job())
    store.jobs.claim("j1", "p1", 1.0)
    store.jobs.requeue_orphans(["p1"], 2.0)
    store.jobs.claim("j1", "p2", 3.0)
    with pytest.raises(JobLost):
        store.servers.publish(entry(), now=4.0, job=("j1", 1))
    assert store.servers.find() == ()
    store.servers.publish(entry(), now=4.0, job=("j1", 2))
    assert store.servers.find() == (entry(),)


def test_a_cancelled_job_publishes_nothing(store: Store) -> None:
    store.jobs.create(job())
    store.jobs.claim("j1", "p1", 1.0)
    store.jobs.cancel("j1", "me", 2.0)
    with pytest.raises(JobLost):
        store.servers.publish(entry(), now=4.0, job=("j1", 1))


def test_states_select_entries_and_archiving_keeps_them(dns: Store) -> None:
    dns.servers.publish(entry("web"), now=11.0)
    dns.servers.archive("dns", 12.0, by="me", reason="unused")
    assert [found.name for found in dns.servers.find()] == ["dns", "web"]
    assert [found.name for found in dns.servers.find(("active",))] == ["web"]
    assert dns.servers.get_last_state("dns") == {
        "state": "archived",
        "before": "active",
        "by": "me",
        "reason": "unused",
    }


def test_an_unknown_server_is_named_in_the_error(store: Store) -> None:
    for ask in (store.servers.get, store.servers.find_versions, store.standings.get):
        with pytest.raises(RowNotFound, match="'nope'"):
            ask("nope")
    with pytest.raises(RowNotFound):
        store.servers.set_state("nope", "archived", 1.0, "me")


def test_the_dossier_holds_the_reference_systems_record(dns: Store) -> None:
    dns.calls.record_many(
        [invocation("c1"), invocation("c2"), invocation("c3", "bug", latency_ms=40.0)], now=20.0
    )
    shown = describe_server(dns.servers.get("dns"), dns.standings.get("dns"))
    wanted = {
        "tool_id": "dns",
        "created": 10.0,
        "created_by": "compiler",
        "reliability_score": 0.6667,
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
    store.servers.publish(entry(title="a\0b\ud800c", description="x" * 10**6), now=1.0)
    found = store.servers.get("dns")
    assert found.title == "a\ufffdb?c"
    assert len(found.description) == 20_000


def test_a_kill_at_any_step_of_publishing_leaves_all_of_a_version_or_nothing(
    tmp_path: Path,
) -> None:
    path = tmp_path / "registry.db"
    with Store.open(path) as store:
        store.servers.publish(entry(), REPORTS, now=1.0)
    newer = entry("dns", 2, tool("fetch_record"))

    def publish() -> None:
        with Store.open(path) as store:
            store.servers.publish(newer, REPORTS, now=2.0)

    for step in range(200):
        finished = survives_kill_at(step, publish)
        with Store.open(path) as store:
            current = store.servers.get("dns")
            found = [match.tool for match in store.search.find_tools("record")]
            assert store.audit.verify_chains() is None
            assert store.standings.get("dns").version == current.version
            if current.version == 1:
                assert not finished
                assert (found, store.servers.get_reports("dns", 2)) == ([], ())
            else:
                assert (found, store.servers.get_reports("dns", 2)) == (["fetch_record"], REPORTS)
                assert len(store.audit.find()) == 2
        if finished:
            break
    assert step > 5


def test_search_rows_of_a_replaced_version_are_gone(dns: Store) -> None:
    dns.servers.publish(replace(entry("dns", 2, tool("get_zone"))), now=20.0)
    assert [match.tool for match in dns.search.find_tools("create get zones")] == ["get_zone"]


def test_the_figures_of_a_server_are_rounded(dns: Store) -> None:
    uneven = replace(dns.standings.get("dns"), average_latency_ms=12.3456789, score=2 / 3)
    shown = describe_server(dns.servers.get("dns"), uneven)
    assert (shown["avg_latency_ms"], shown["reliability_score"]) == (12.3, 0.6667)
    bare = describe_server(dns.servers.get("dns"), replace(uneven, average_latency_ms=None))
    assert bare["avg_latency_ms"] is None
