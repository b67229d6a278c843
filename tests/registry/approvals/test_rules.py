"""Rules and classifications as they are stored, used and ended."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from registry.approvals.rules import ApprovalRule, Condition
from registry.errors import DuplicateRow, GrantStale, RowNotFound
from registry.secrets.signing import verify_signature
from registry.servers.classifications import Classification
from registry.store import Store
from tests.registry.processes import race
from tests.registry.samples import SIGNER, entry

RULE = ApprovalRule(
    id="r1",
    server="dns",
    tool="create_zone",
    version=1,
    digest="dns-1",
    where=(Condition("zone", "example.org"), Condition("name", pattern="*.example.org")),
    created=100.0,
    expires=200.0,
    max_uses=3,
    by="ann",
    approval="a1",
)
RULE = replace(RULE, signature=SIGNER.sign(RULE.to_signed_body()))


@pytest.fixture
def ruled(dns: Store) -> Store:
    dns.rules.add(RULE)
    return dns


def sql(store: Store, statement: str) -> None:
    connection = sqlite3.connect(store.path, isolation_level=None)
    connection.execute(statement)
    connection.close()


def test_a_rule_comes_back_as_it_was_signed(ruled: Store) -> None:
    assert ruled.rules.find() == ruled.rules.find("dns", "create_zone") == (RULE,)
    assert ruled.rules.find("dns", "list_zones") == ()
    (found,) = ruled.rules.find()
    assert verify_signature(SIGNER.public, found.to_signed_body(), found.signature)


def test_a_rule_is_added_once_and_for_a_server_that_is_there(ruled: Store) -> None:
    with pytest.raises(DuplicateRow):
        ruled.rules.add(RULE)
    with pytest.raises(RowNotFound):
        ruled.rules.add(replace(RULE, id="r2", server="nowhere"))


def test_a_rule_is_used_as_often_as_it_says_and_each_use_is_in_the_audit(ruled: Store) -> None:
    used = [ruled.rules.count_use("r1", f"c{n}", "dns.create_zone", 110.0) for n in range(5)]
    assert used == [True, True, True, False, False]
    assert [row.kind for row in ruled.audit.find(limit=4)] == ["rule.used"] * 3 + ["rule.added"]
    assert ruled.rules.get("r1").uses == 3
    assert ruled.audit.verify_chains() is None


@pytest.mark.parametrize("moment", [99.0, 200.0, 1000.0])
def test_a_rule_is_not_used_before_or_after_its_time(ruled: Store, moment: float) -> None:
    assert not ruled.rules.count_use("r1", "c1", "dns.create_zone", moment)


def test_a_revoked_rule_is_not_used_and_is_revoked_once(ruled: Store) -> None:
    assert ruled.rules.revoke("r1", "bob", 120.0)
    assert not ruled.rules.revoke("r1", "eve", 121.0)
    assert not ruled.rules.count_use("r1", "c1", "dns.create_zone", 122.0)
    rule = ruled.rules.get("r1")
    assert (rule.revoked, rule.revoked_by) == (120.0, "bob")
    with pytest.raises(RowNotFound):
        ruled.rules.revoke("r9", "bob", 1.0)


def test_a_row_changed_by_hand_does_not_bring_back_what_the_audit_says_ended(ruled: Store) -> None:
    for number in range(3):
        ruled.rules.count_use("r1", f"c{number}", "dns.create_zone", 110.0)
    ruled.rules.revoke("r1", "bob", 120.0)
    sql(ruled, "UPDATE rules SET uses = 0, revoked = NULL, revoked_by = ''")
    rule = ruled.rules.get("r1")
    assert (rule.uses, rule.revoked) == (3, 120.0)
    assert not ruled.rules.count_use("r1", "c9", "dns.create_zone", 130.0)


@pytest.mark.parametrize(
    "change",
    [
        "body = '{}'",
        "body = 'x'",
        'body = replace(body, \'"tool":"create_zone"\', \'"tool":"list_zones"\')',
        "tool = 'list_zones'",
    ],
)
def test_a_row_that_does_not_agree_with_itself_is_no_rule(ruled: Store, change: str) -> None:
    sql(ruled, f"UPDATE rules SET {change}")
    assert ruled.rules.find() == ()
    assert not ruled.rules.count_use("r1", "c1", "dns.create_zone", 110.0)


@pytest.mark.parametrize(
    ("before", "after"), [("example.org", "example.com"), ('"max_uses":3', '"max_uses":9')]
)
def test_a_changed_body_does_not_carry_the_signature(ruled: Store, before: str, after: str) -> None:
    sql(ruled, f"UPDATE rules SET body = replace(body, '{before}', '{after}')")
    (found,) = ruled.rules.find()
    assert not verify_signature(SIGNER.public, found.to_signed_body(), found.signature)


def test_processes_that_race_do_not_use_a_rule_more_often_than_it_says(tmp_path: Path) -> None:
    path = tmp_path / "registry.db"
    with Store.open(path) as store:
        store.servers.publish(entry(), now=1.0)
        store.rules.add(RULE)

    def use(number: int) -> int:
        with Store.open(path, f"p{number}") as own:
            return sum(
                own.rules.count_use("r1", f"{number}", "dns.create_zone", 110.0) for _ in range(3)
            )

    assert sum(race(use, 4)) == 3


SAID = Classification("dns", "createZone", "write", (("POST", "https://a.test/zones"),), 5.0, "ann")


def test_what_a_person_says_of_an_operation_is_kept_until_they_say_otherwise(dns: Store) -> None:
    dns.classifications.store_classification(SAID)
    assert dns.classifications.find("dns") == {"createZone": SAID}
    stricter = replace(SAID, level="destructive", changed=6.0, serial=2, signature="00")
    dns.classifications.store_classification(stricter)
    assert dns.classifications.find("dns") == {"createZone": stricter}
    assert dns.classifications.find("mail") == {}
    assert [row.kind for row in dns.audit.find(limit=2)] == ["classified"] * 2
    with pytest.raises(GrantStale):
        dns.classifications.store_classification(stricter)
    with pytest.raises(RowNotFound):
        dns.classifications.store_classification(replace(SAID, server="nowhere"))


@pytest.mark.parametrize("change", ["level = 'read'", "body = '[]'", "operation = 'other'"])
def test_a_classification_that_does_not_agree_with_itself_is_none(dns: Store, change: str) -> None:
    dns.classifications.store_classification(SAID)
    sql(dns, f"UPDATE overrides SET {change}")
    assert dns.classifications.find("dns") == {}


def test_a_classification_is_seen_by_other_processes(dns: Store) -> None:
    before = dns.signals.read_signals()
    dns.classifications.store_classification(SAID)
    once = dns.signals.read_signals()
    assert once.catalogue != before.catalogue
    again = replace(SAID, level="write" if SAID.level == "read" else "read")
    dns.classifications.store_classification(again)
    assert dns.signals.read_signals().catalogue != once.catalogue
