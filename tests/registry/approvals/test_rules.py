"""Rules and classifications as they are stored, used and ended."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from registry.errors import Duplicate, Unknown
from registry.overrides import Override
from registry.rules import Condition, Rule
from registry.signing import fits
from registry.store import Store
from tests.registry.processes import race
from tests.registry.samples import SIGNER, entry

RULE = Rule(
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
RULE = replace(RULE, signature=SIGNER.sign(RULE.body()))


@pytest.fixture
def ruled(dns: Store) -> Store:
    dns.add_rule(RULE)
    return dns


def sql(store: Store, statement: str) -> None:
    connection = sqlite3.connect(store.path, isolation_level=None)
    connection.execute(statement)
    connection.close()


def test_a_rule_comes_back_as_it_was_signed(ruled: Store) -> None:
    assert ruled.rules() == ruled.rules("dns", "create_zone") == (RULE,)
    assert ruled.rules("dns", "list_zones") == ()
    (found,) = ruled.rules()
    assert fits(SIGNER.public, found.body(), found.signature)


def test_a_rule_is_added_once_and_for_a_server_that_is_there(ruled: Store) -> None:
    with pytest.raises(Duplicate):
        ruled.add_rule(RULE)
    with pytest.raises(Unknown):
        ruled.add_rule(replace(RULE, id="r2", server="nowhere"))


def test_a_rule_is_used_as_often_as_it_says_and_each_use_is_in_the_audit(ruled: Store) -> None:
    used = [ruled.use_rule("r1", f"c{n}", "dns.create_zone", 110.0) for n in range(5)]
    assert used == [True, True, True, False, False]
    assert [row.kind for row in ruled.audit(limit=4)] == ["rule.used"] * 3 + ["rule.added"]
    assert ruled.rule("r1").uses == 3
    assert ruled.verify_audit() is None


@pytest.mark.parametrize("moment", [99.0, 200.0, 1000.0])
def test_a_rule_is_not_used_before_or_after_its_time(ruled: Store, moment: float) -> None:
    assert not ruled.use_rule("r1", "c1", "dns.create_zone", moment)


def test_a_revoked_rule_is_not_used_and_is_revoked_once(ruled: Store) -> None:
    assert ruled.revoke_rule("r1", "bob", 120.0)
    assert not ruled.revoke_rule("r1", "eve", 121.0)
    assert not ruled.use_rule("r1", "c1", "dns.create_zone", 122.0)
    rule = ruled.rule("r1")
    assert (rule.revoked, rule.revoked_by) == (120.0, "bob")
    with pytest.raises(Unknown):
        ruled.revoke_rule("r9", "bob", 1.0)


def test_a_row_changed_by_hand_does_not_bring_back_what_the_audit_says_ended(ruled: Store) -> None:
    for number in range(3):
        ruled.use_rule("r1", f"c{number}", "dns.create_zone", 110.0)
    ruled.revoke_rule("r1", "bob", 120.0)
    sql(ruled, "UPDATE rules SET uses = 0, revoked = NULL, revoked_by = ''")
    rule = ruled.rule("r1")
    assert (rule.uses, rule.revoked) == (3, 120.0)
    assert not ruled.use_rule("r1", "c9", "dns.create_zone", 130.0)


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
    assert ruled.rules() == ()
    assert not ruled.use_rule("r1", "c1", "dns.create_zone", 110.0)


@pytest.mark.parametrize(
    ("before", "after"), [("example.org", "example.com"), ('"max_uses":3', '"max_uses":9')]
)
def test_a_changed_body_does_not_carry_the_signature(ruled: Store, before: str, after: str) -> None:
    sql(ruled, f"UPDATE rules SET body = replace(body, '{before}', '{after}')")
    (found,) = ruled.rules()
    assert not fits(SIGNER.public, found.body(), found.signature)


def test_processes_that_race_do_not_use_a_rule_more_often_than_it_says(tmp_path: Path) -> None:
    path = tmp_path / "registry.db"
    with Store.open(path) as store:
        store.publish(entry(), now=1.0)
        store.add_rule(RULE)

    def use(number: int) -> int:
        with Store.open(path, f"p{number}") as own:
            return sum(own.use_rule("r1", f"{number}", "dns.create_zone", 110.0) for _ in range(3))

    assert sum(race(use, 4)) == 3


SAID = Override("dns", "createZone", "write", (("POST", "https://a.test/zones"),), 5.0, "ann")


def test_what_a_person_says_of_an_operation_is_kept_until_they_say_otherwise(dns: Store) -> None:
    dns.set_override(SAID)
    assert dns.overrides("dns") == {"createZone": SAID}
    stricter = replace(SAID, level="destructive", changed=6.0, signature="00")
    dns.set_override(stricter)
    assert dns.overrides("dns") == {"createZone": stricter}
    assert dns.overrides("mail") == {}
    assert dns.remove_override("dns", "createZone", "ann", 7.0)
    assert not dns.remove_override("dns", "createZone", "ann", 8.0)
    kinds = [row.kind for row in dns.audit(limit=3)]
    assert kinds == ["classified"] * 3
    with pytest.raises(Unknown):
        dns.set_override(replace(SAID, server="nowhere"))


@pytest.mark.parametrize("change", ["level = 'read'", "body = '[]'", "operation = 'other'"])
def test_a_classification_that_does_not_agree_with_itself_is_none(dns: Store, change: str) -> None:
    dns.set_override(SAID)
    sql(dns, f"UPDATE overrides SET {change}")
    assert dns.overrides("dns") == {}


def test_a_classification_is_seen_by_other_processes(dns: Store) -> None:
    before = dns.signals()
    dns.set_override(SAID)
    assert dns.signals().catalogue != before.catalogue
