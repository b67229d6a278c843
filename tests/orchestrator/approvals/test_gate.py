"""The gate, as a table: who may call what, and who is asked first."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.approvals.gate import (
    Allow,
    Ask,
    Deny,
    GateQuestion,
    Ruling,
    WriteFacts,
    is_condition_met,
    is_erasing,
    judge_call,
    matches_pattern,
)
from registry.approvals.rules import ApprovalRule, Condition
from registry.models import EntryState
from registry.trust import EXEMPT_SUCCESSES, Level
from sandbox.bundle.apispec import Access
from sandbox.bundle.model import RequestPattern
from tests.registry.samples import BLANK


def question(
    state: str = "active",
    access: Access = "read",
    level: Level = "probationary",
    written: int = 0,
    frozen: bool = False,
) -> GateQuestion:
    record = replace(BLANK, version_successes=written)
    write = WriteFacts(record, vouched=written, erases=False)
    return GateQuestion(state, access, replace(BLANK, level=level), write, frozen)


def test_a_call_of_an_archived_server_says_what_brings_it_back() -> None:
    ruling = judge_call(question("archived"))
    assert isinstance(ruling, Deny)
    assert "forges or adds it again" in ruling.reason


@pytest.mark.parametrize("level", ["probationary", "standard", "trusted"])
def test_a_read_of_an_active_server_is_allowed(level: Level) -> None:
    assert isinstance(judge_call(question(level=level)), Allow)


@pytest.mark.parametrize(
    ("level", "written", "ruling"),
    [
        ("probationary", 1000, Ask),
        ("standard", 1000, Ask),
        ("trusted", 0, Ask),
        ("trusted", EXEMPT_SUCCESSES - 1, Ask),
        ("trusted", EXEMPT_SUCCESSES, Allow),
        ("degraded", 1000, Deny),
    ],
)
def test_a_write_asks_until_a_trusted_server_has_done_it_fifty_times(
    level: Level, written: int, ruling: type
) -> None:
    assert isinstance(judge_call(question(access="write", level=level, written=written)), ruling)


def test_what_deletes_asks_whatever_its_record_is() -> None:
    asked = question(access="write", level="trusted", written=1000)
    assert asked.write is not None
    erasing = replace(asked, write=replace(asked.write, erases=True))
    assert isinstance(judge_call(asked), Allow)
    assert isinstance(judge_call(erasing), Ask)


def test_a_write_whose_own_record_is_not_known_asks() -> None:
    unknown = replace(question(access="write", level="trusted"), write=None)
    assert isinstance(judge_call(unknown), Ask)


@pytest.mark.parametrize("access", get_args(Access))
@pytest.mark.parametrize("level", get_args(Level))
def test_an_experimental_server_asks_for_every_call(access: Access, level: Level) -> None:
    ruling = judge_call(question("experimental", access, level, EXEMPT_SUCCESSES))
    assert isinstance(ruling, Ask)


@pytest.mark.parametrize(
    "state", sorted({*get_args(EntryState), "", "never heard of"} - {"active", "experimental"})
)
@pytest.mark.parametrize("access", get_args(Access))
def test_a_server_in_any_other_state_is_denied(state: str, access: Access) -> None:
    ruling = judge_call(question(state, access, "trusted", EXEMPT_SUCCESSES))
    assert isinstance(ruling, Deny)
    assert state in ruling.reason


@pytest.mark.parametrize("state", [*get_args(EntryState), "never heard of"])
@pytest.mark.parametrize("access", get_args(Access))
@pytest.mark.parametrize("level", get_args(Level))
def test_nothing_is_allowed_or_asked_while_frozen(state: str, access: Access, level: Level) -> None:
    frozen = question(state, access, level, EXEMPT_SUCCESSES, frozen=True)
    assert isinstance(judge_call(frozen), Deny)


NOW = 1000.0
RULE = ApprovalRule(
    id="r1",
    server="dns",
    tool="create_zone",
    version=3,
    digest="d" * 64,
    where=(Condition("zone", "example.org"),),
    created=NOW - 1,
    expires=NOW + 1,
    max_uses=None,
    by="ann",
    approval="a1",
)
CALLED = WriteFacts(
    operation=BLANK,
    erases=False,
    tool="dns.create_zone",
    version=3,
    digest="d" * 64,
    arguments={"zone": "example.org", "ttl": 60},
    rules=(RULE,),
    now=NOW,
)


ANY_VERSION = replace(
    RULE,
    version=None,
    digest="",
    author="compiler",
    method="POST",
    url="https://dns.test/v1/zones/example.org",
)
POST = RequestPattern("POST", "https://dns.test/v1/zones/{zone}")
SAME: dict[str, Any] = {
    "rules": (ANY_VERSION,),
    "version": 4,
    "author": "compiler",
    "requests": (POST,),
}


def ruled(state: str = "active", frozen: bool = False, **changes: Any) -> Ruling:
    write = replace(CALLED, **changes)
    return judge_call(GateQuestion(state, "write", BLANK, write, frozen))


def test_a_rule_allows_what_it_says_and_names_itself() -> None:
    ruling = ruled()
    assert isinstance(ruling, Allow)
    assert (ruling.rule, "r1" in ruling.reason) == (RULE, True)


@pytest.mark.parametrize(
    "changes",
    [
        {"rules": ()},
        {"now": NOW + 1},
        {"now": NOW - 2},
        {"version": 4},
        {"digest": "e" * 64},
        {"tool": "dns.delete_zone"},
        {"tool": "mail.create_zone"},
        {"erases": True},
        {"arguments": {"ttl": 60}},
        {"arguments": {"zone": "example.com"}},
        {"arguments": {"zone": "EXAMPLE.ORG"}},
        {"arguments": {"zone": ["example.org"]}},
        {"arguments": {"Zone": "example.org"}},
        {"rules": (replace(RULE, revoked=NOW - 0.5),)},
        {"rules": (replace(RULE, max_uses=2, uses=2),)},
    ],
)
def test_a_rule_allows_nothing_else(changes: dict[str, Any]) -> None:
    assert isinstance(ruled(**changes), Ask)


@pytest.mark.parametrize("state", ["experimental", "quarantined", "archived"])
def test_no_rule_helps_a_server_that_is_not_active(state: str) -> None:
    assert not isinstance(ruled(state), Allow)


def test_no_rule_helps_while_frozen() -> None:
    assert isinstance(ruled(frozen=True), Deny)


def test_a_rule_for_any_version_holds_for_the_next_one() -> None:
    lasting = replace(RULE, version=None, digest="")
    assert isinstance(ruled(version=9, digest="f" * 64, rules=(lasting,)), Allow)


@pytest.mark.parametrize(
    ("wanted", "value", "held"),
    [
        (1, 1, True),
        (1, True, False),
        (1, 1.0, False),
        (None, None, True),
        ({"a": [1]}, {"a": [1]}, True),
        ({"a": [1]}, {"a": [True]}, False),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ([1, 2], [1], False),
        ("", None, False),
    ],
)
def test_a_condition_compares_as_json_does(wanted: Any, value: Any, held: bool) -> None:
    assert is_condition_met(Condition("body.x", wanted), {"body": {"x": value}}) == held


@pytest.mark.parametrize(
    ("pattern", "text", "fits"),
    [
        ("*.example.org", "www.example.org", True),
        ("*.example.org", "example.org", False),
        ("*.example.org", "www.example.org.evil.test", False),
        ("*.example.org", "evil.test/.example.org", False),
        ("*.example.org", "a\n.example.org", False),
        ("a*b*c", "aXbYc", True),
        ("a*b*c", "acb", False),
        ("a*a", "a", False),
        ("zones/*/records", "zones/x/records", True),
        ("zones/*/records", "zones/x/y/records", False),
        ("*", "", True),
        ("[a-z]?", "b1", False),
    ],
)
def test_a_pattern_knows_stars_and_nothing_else(pattern: str, text: str, fits: bool) -> None:
    assert matches_pattern(pattern, text) == fits


@given(st.lists(st.sampled_from(["a", "b", "*"]), max_size=8), st.text("ab", max_size=12))
def test_a_pattern_fits_as_its_regular_expression_would(parts: list[str], text: str) -> None:
    wanted = re.compile("".join(".*" if part == "*" else part for part in parts))
    assert matches_pattern("".join(parts), text) == bool(wanted.fullmatch(text))


@pytest.mark.parametrize(
    ("method", "operation", "name", "deletes"),
    [
        ("DELETE", "", "x", True),
        ("POST", "deleteZone", "zone", True),
        ("POST", "", "purge_cache", True),
        ("POST", "Zone_Remove", "remove_zone", True),
        ("PATCH", "patchZone", "patch_zone", False),
        ("POST", "", "", False),
        ("POST", "42", "_", False),
    ],
)
def test_what_deletes_is_known_by_its_method_and_first_words(
    method: str, operation: str, name: str, deletes: bool
) -> None:
    assert is_erasing(method, operation, name) == deletes


def test_a_long_value_does_not_make_a_pattern_slow() -> None:
    assert not matches_pattern("a*" * 50 + "b", "a" * 1_000_000)


@given(st.data())
def test_a_stricter_question_is_never_ruled_more_freely(data: st.DataObject) -> None:
    """Taking a rule away, ending it or calling the operation deleting allows nothing new."""
    zone = data.draw(st.sampled_from(["example.org", "example.com"]))
    loose = {"arguments": {"zone": zone}, "now": data.draw(st.floats(NOW - 3, NOW + 3))}
    strict = data.draw(
        st.sampled_from([{"rules": ()}, {"erases": True}, {"now": NOW + 10}, {"version": 4}])
    )
    if isinstance(ruled(**{**loose, **strict}), Allow):
        assert isinstance(ruled(**loose), Allow)


def test_a_record_that_nobody_vouches_for_exempts_nothing() -> None:
    made_up = WriteFacts(replace(BLANK, version_successes=10**6), vouched=EXEMPT_SUCCESSES - 1)
    trusted = replace(BLANK, level="trusted")
    assert isinstance(judge_call(GateQuestion("active", "write", trusted, made_up, False)), Ask)


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"requests": (POST, RequestPattern("GET", "https://dns.test/v1/zones"))},
        {"requests": (RequestPattern("CALL", "call:mail.send"),)},
    ],
    ids=["the same", "reads before", "calls another tool"],
)
def test_a_rule_for_any_version_covers_the_next_one(more: dict[str, Any]) -> None:
    assert isinstance(ruled(**{**SAME, **more}), Allow)


@pytest.mark.parametrize(
    "more",
    [
        {"author": "client"},
        {"author": "person"},
        {"requests": (replace(POST, url="https://other.test/v1/zones/{zone}"),)},
        {"requests": (replace(POST, url="http://dns.test/v1/zones/{zone}"),)},
        {"requests": (POST, RequestPattern("POST", "https://other.test/copy"))},
        {"requests": (replace(POST, url="https://dns.test/v1/keys/{zone}"),)},
        {"requests": (replace(POST, method="PUT"),)},
        {"requests": (replace(POST, document="mutation { drop }"),)},
    ],
    ids=["client", "edited", "host", "scheme", "a second host", "path", "method", "document"],
)
def test_a_rule_for_any_version_covers_no_other_author_or_request(more: dict[str, Any]) -> None:
    assert isinstance(ruled(**{**SAME, **more}), Ask)
