"""What the page says before a write: whether it waits, or a rule may send it at once."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from orchestrator.approvals.gate import (
    Allow,
    Ask,
    GateQuestion,
    WriteFacts,
    describe_asking,
    judge_call,
)
from orchestrator.control.asking import (
    BY_RULE,
    EXEMPT,
    WAITS,
    AskingFacts,
    explain_asking,
    explain_press,
)
from orchestrator.control.page import render_panels
from orchestrator.control.rooms.place import Place
from orchestrator.control.trying import describe_answer
from registry.approvals.rules import ApprovalRule, Condition
from registry.models import RegisteredTool
from registry.store import Store
from registry.trust import EXEMPT_SUCCESSES, TrustRecord, compute_standing
from tests.orchestrator.control.filled import fill_store

NOBODY = compute_standing(TrustRecord(1))
RULE = ApprovalRule("r1", "lifts", "close", 1, "", (Condition("", {}),), 0.0, 9e9, None, "ann", "a")


def close(method: str = "POST", *, destructive: bool = False) -> RegisteredTool:
    listed = f'{{"_meta": {{"toolwright": {{"method": "{method}", "operation": "close"}}}}}}'
    return RegisteredTool("close", "write", destructive, listed)


def test_a_tool_s_form_says_that_a_rule_in_force_may_send_it_at_once(store: Store) -> None:
    fill_store(store)
    place = Place("servers", "dns", {"tool": "create_zone"})
    told = render_panels(store, place)
    assert BY_RULE in told["try"]
    assert "Nothing is sent" not in told["try"]
    assert "but for what a rule of yours allows" in told["tool"]
    store.rules.revoke("r1", "ann", time.time())
    told = render_panels(store, place)
    assert WAITS in told["try"]
    assert "rule of yours" not in told["try"] + told["tool"]


def test_no_rule_is_promised_for_what_deletes_something() -> None:
    facts = AskingFacts(close("DELETE", destructive=True), NOBODY, NOBODY, (RULE,))
    assert explain_press(facts) == WAITS
    assert "no rule and no record can allow that" in explain_asking(facts)
    changing = replace(facts, tool=close("PUT", destructive=True))
    assert explain_press(changing) == BY_RULE


def test_a_write_that_needs_no_approval_any_more_is_not_said_to_wait() -> None:
    often = TrustRecord(
        1, 90, 90, 90, window="1" * 50, ladder_successes=90, version_successes=EXEMPT_SUCCESSES
    )
    standing = compute_standing(often)
    facts = AskingFacts(close(), standing, standing)
    assert explain_press(facts) == EXEMPT
    assert explain_press(replace(facts, server=NOBODY)) == WAITS


@pytest.mark.parametrize(
    ("meta", "told"),
    [
        ({"call": "c1"}, "The call succeeded."),
        ({"call": "c1", "rule": "r1"}, "Sent at once by your rule r1. The call succeeded."),
    ],
)
def test_the_notice_after_the_press_names_the_rule_that_had_it_sent(
    meta: dict[str, str], told: str
) -> None:
    said = describe_answer({"content": [], "_meta": {"toolwright": meta}})
    assert (said["told"], said["link"]["href"]) == (told, "/rooms/calls/c1")


def test_the_notice_of_a_write_that_waits_says_where() -> None:
    said = describe_answer({"content": [], "structuredContent": {"state": "pending"}})
    assert said["told"].endswith("waits for your yes under Approvals.")
    assert said["link"]["href"] == "/rooms/approvals"


def test_what_is_said_of_a_destructive_write_is_what_the_gate_does() -> None:
    standing = compute_standing(
        TrustRecord(
            1, 90, 90, 90, window="1" * 50, ladder_successes=90, version_successes=EXEMPT_SUCCESSES
        )
    )
    exempt = WriteFacts(standing, vouched=EXEMPT_SUCCESSES, erases=False)
    asked = GateQuestion("active", "write", standing, exempt, frozen=False)
    assert isinstance(judge_call(asked), Allow)
    said = describe_asking(standing, standing, destructive=True)
    assert f"until you have approved {EXEMPT_SUCCESSES} calls" in said
    assert isinstance(judge_call(replace(asked, write=replace(exempt, vouched=49))), Ask)
    assert "until the server is trusted" in describe_asking(NOBODY, NOBODY, destructive=True)
    # What deletes is asked for each time, and so it is told.
    assert isinstance(judge_call(replace(asked, write=replace(exempt, erases=True))), Ask)
    assert "until" not in describe_asking(standing, standing, destructive=True, erases=True)
