"""Rules and classifications as people make them."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.allowing import (
    Always,
    always_from,
    classify,
    rule_for,
    rule_json,
    rule_text,
)
from orchestrator.calls import Call
from orchestrator.clearance import Clearance, classified, effective
from orchestrator.errors import OrchestratorError
from orchestrator.gate import Write, covers
from orchestrator.people import Decision, decide
from orchestrator.pin import authority, open_key
from orchestrator.settings import Settings
from registry.overrides import Level, Override, requests_of
from registry.records import Approval, Tool
from registry.rules import Rule
from registry.signing import Signer, fits
from registry.store import Store
from sandbox.asked import pattern_of
from sandbox.bundle import Bundle, RequestPattern, ToolDefinition
from tests.orchestrator.conftest import PIN
from tests.orchestrator.test_gate import BLANK
from tests.registry.samples import OBJECT, REPORTS, SIGNER, approval, bundle, entry, tool

ARGUMENTS: dict[str, Any] = {
    "zone": "example.org",
    "ttl": 60,
    "body": {"name": "www.example.org", "deep": {"on": True}},
}


@pytest.fixture
def asked(store: Store) -> Approval:
    """A write of a registered server, with arguments to make rules of."""
    now = time.time()
    store.publish(entry(), REPORTS, now=now)
    waiting = approval(arguments=ARGUMENTS, created=now, expires=now + 3600)
    store.request_approval(waiting)
    return store.approval(waiting.id)


def made(store: Store, asked: Approval, *where: str, **options: Any) -> Rule:
    return rule_for(store, asked, Always(where, **options), SIGNER, "ann", time.time())


def covered(rule: Rule, **arguments: Any) -> bool:
    write = Write(
        BLANK,
        erases=False,
        tool="dns.create_zone",
        version=1,
        digest="dns-1",
        arguments={**ARGUMENTS, **arguments},
        now=time.time(),
    )
    return covers(rule, write)


def test_a_rule_without_conditions_means_exactly_these_arguments(
    store: Store, asked: Approval
) -> None:
    rule = made(store, asked)
    assert covered(rule)
    assert not covered(rule, ttl=61)
    assert not covered(rule, more=1)


def test_a_rule_with_conditions_leaves_the_others_free(store: Store, asked: Approval) -> None:
    rule = made(store, asked, "zone=example.org", "body.name=*.example.org")
    assert covered(rule, ttl=61, more=1, body={"name": "mail.example.org"})
    assert not covered(rule, zone="example.com")
    assert not covered(rule, body={"name": "www.example.com"})
    assert fits(SIGNER.public, rule.body(), rule.signature)


@pytest.mark.parametrize(
    "where", ["ttl=60", "body.deep.on=true", 'zone="example.org"', 'body.deep={"on": true}']
)
def test_a_value_is_read_as_what_the_argument_is(store: Store, asked: Approval, where: str) -> None:
    assert covered(made(store, asked, where))


@pytest.mark.parametrize(
    "where",
    ["zone=example.com", "ttl=61", "nothing=1", "zone", "=1", "zone.x=1", "ttl=*", "ttl=\"60\"",
     "body.name=*.org.example"],
)  # fmt: skip
def test_a_condition_that_does_not_hold_now_is_refused(
    store: Store, asked: Approval, where: str
) -> None:
    with pytest.raises(OrchestratorError):
        made(store, asked, where)


@pytest.mark.parametrize("until", ["2020-01-01", "5000d", "rubbish"])
def test_a_rule_ends_in_the_future_and_within_a_year(
    store: Store, asked: Approval, until: str
) -> None:
    with pytest.raises(OrchestratorError):
        made(store, asked, until=until)


def test_a_rule_is_for_this_version_unless_any_is_meant(store: Store, asked: Approval) -> None:
    assert (made(store, asked).version, made(store, asked).digest) == (1, "dns-1")
    lasting = made(store, asked, any_version=True)
    assert (lasting.version, lasting.digest) == (None, "")


def test_what_deletes_gets_no_rule_unless_a_person_says_that_it_does_not(store: Store) -> None:
    removing = Tool("remove_zone", "write", True, tool("remove_zone").listed)
    store.publish(entry("dns", 1, removing), REPORTS, now=1.0)
    store.request_approval(approval(tool="remove_zone"))
    with pytest.raises(OrchestratorError, match=r"classify dns\.remove_zone write"):
        made(store, store.approval("a1"))
    said = Override("dns", "remove_zone", "write", (), 2.0, "ann")
    store.set_override(said)
    with pytest.raises(OrchestratorError):
        made(store, store.approval("a1"))
    store.set_override(replace(said, signature=SIGNER.sign(said.body())))
    assert made(store, store.approval("a1"))


def test_an_operation_that_a_person_calls_destructive_gets_no_rule(
    store: Store, asked: Approval
) -> None:
    store.set_override(Override("dns", "create_zone", "destructive", (), 2.0, "ann"))
    with pytest.raises(OrchestratorError):
        made(store, asked)


def test_a_request_of_an_earlier_version_gets_no_rule(store: Store, asked: Approval) -> None:
    store.publish(entry("dns", 2), REPORTS, now=time.time())
    with pytest.raises(OrchestratorError, match="version 2"):
        made(store, asked)


def test_the_pin_adds_the_rule_with_the_approval_or_neither(
    settings: Settings, store: Store, asked: Approval
) -> None:
    always = Always(("zone=example.org",))
    wrong = Decision(asked.id, True, "wrong pin", by="test")
    assert decide(settings, store, wrong, time.time(), always).pin_wrong
    with pytest.raises(OrchestratorError):
        decide(settings, store, replace(wrong, pin=PIN), time.time(), Always(("zone=other.org",)))
    assert (store.rules(), store.approval(asked.id).state) == ((), "pending")
    decided = decide(settings, store, replace(wrong, pin=PIN), time.time(), always)
    (rule,) = store.rules()
    assert (decided.state, decided.rule) == ("approved", rule.id)
    told = rule_json(rule, time.time(), authority(settings).key())
    assert (told["state"], told["says"]) == (
        "live",
        'dns.create_zone (version 1) with zone="example.org"',
    )
    assert rule_json(rule, time.time(), SIGNER.public)["state"] == "not signed"


@pytest.mark.parametrize("value", [[1], "x", {"where": 1}, {"max": "many"}, {"max": []}])
def test_what_a_page_asks_for_is_read_or_refused(value: Any) -> None:
    with pytest.raises(OrchestratorError):
        always_from(value)


def test_a_page_asks_as_a_terminal_does() -> None:
    asked = {"where": {"zone": "example.org"}, "until": "3d", "max": 5, "any_version": True}
    assert always_from(asked) == Always(("zone=example.org",), "3d", 5, True)


def test_a_rule_as_a_sentence_names_patterns_and_values(store: Store, asked: Approval) -> None:
    said = rule_text(made(store, asked, "zone=*.org", "ttl=60"))
    assert said == "dns.create_zone (version 1) with zone like *.org, ttl=60"


def operation(method: str, access: Any = "write", destructive: bool = False) -> ToolDefinition:
    request = RequestPattern(method, "https://api.example/zones")
    return ToolDefinition(
        "zones", "Zones.", OBJECT, OBJECT, access, "zones", destructive=destructive,
        requests=(request,),
    )  # fmt: skip


def said(level: Level, of: ToolDefinition, signer: Signer | None = None) -> Override:
    override = Override("dns", "zones", level, requests_of(of), 1.0, "ann")
    return replace(override, signature=signer.sign(override.body())) if signer else override


def signed(override: Override) -> bool:
    return fits(SIGNER.public, override.body(), override.signature)


GET, POST = operation("GET", "read"), operation("POST")
DELETE = operation("DELETE", destructive=True)


@pytest.mark.parametrize(
    ("of", "override", "level"),
    [
        (GET, None, "read"),
        (POST, None, "write"),
        (DELETE, None, "destructive"),
        (GET, said("write", GET), "write"),
        (GET, said("destructive", GET), "destructive"),
        (POST, said("destructive", POST), "destructive"),
        (POST, said("read", POST), "write"),
        (POST, said("read", POST, Signer.fresh()), "write"),
        (POST, said("read", POST, SIGNER), "read"),
        (POST, said("read", DELETE, SIGNER), "write"),
        (DELETE, said("write", DELETE), "destructive"),
        (DELETE, said("write", DELETE, SIGNER), "write"),
        (DELETE, said("read", DELETE, SIGNER), "read"),
    ],
)
def test_stricter_needs_no_proof_and_looser_a_signature_for_these_requests(
    of: ToolDefinition, override: Override | None, level: Level
) -> None:
    assert effective(of, override, signed, compiled=True) == level


def test_only_the_compiler_is_believed_that_a_method_that_writes_reads() -> None:
    search = operation("POST", "read")
    assert effective(search, None, signed, compiled=True) == "read"
    assert effective(search, None, signed, compiled=False) == "write"
    assert effective(search, said("read", search, SIGNER), signed, compiled=False) == "read"


def talking(permission: str) -> ToolDefinition:
    """A tool that says that it reads, and talks to that place."""
    (asked,) = filter(None, [pattern_of(permission)])
    return replace(operation("GET", "read"), operation="", name="zones", requests=(asked,))


WHOIS, MAIL = talking("tcp:whois.test:43"), talking("tcp:mail.test:25")


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize(
    ("override", "level"),
    [
        (None, "write"),
        (said("read", WHOIS), "write"),
        (said("read", WHOIS, Signer.fresh()), "write"),
        (said("read", MAIL, SIGNER), "write"),
        (said("read", WHOIS, SIGNER), "read"),
        (said("destructive", WHOIS), "destructive"),
    ],
)
def test_only_a_person_is_believed_that_what_talks_over_tcp_reads(
    override: Override | None, level: Level, compiled: bool
) -> None:
    assert effective(WHOIS, override, signed, compiled=compiled) == level


def with_tools(*tools: ToolDefinition) -> Bundle:
    return replace(bundle(), tools=tools)


def test_a_classified_bundle_says_what_counts() -> None:
    overrides = {"zones": said("destructive", GET)}
    (zones,) = classified(with_tools(GET), overrides, signed).tools
    assert (zones.access, zones.destructive) == ("write", True)


def test_tightening_needs_no_key_and_loosening_again_does(settings: Settings, store: Store) -> None:
    store.publish(entry(), REPORTS, now=1.0)
    of = with_tools(GET)
    clearance = Clearance(store, authority(settings))
    assert classify(store, of, "zones", "destructive", None, 2.0)
    assert clearance.classified(of).tool("zones").destructive
    assert not classify(store, of, "zones", "read", None, 3.0)
    assert not classify(store, of, "zones", "write", None, 3.0)
    assert clearance.classified(of).tool("zones").destructive
    signer = open_key(settings, PIN, time.time()).signer
    assert classify(store, of, "zones", "read", signer, 4.0)
    assert clearance.classified(of).tool("zones").access == "read"


def test_a_standing_and_approvals_both_have_to_be_there_for_an_exemption(
    settings: Settings, store: Store, asked: Approval
) -> None:
    clearance = Clearance(store, authority(settings))
    trusted = replace(BLANK, level="trusted")
    of = replace(bundle(), tools=(replace(POST, name="create_zone"),))
    member = store.entry("dns")
    facts = clearance.write(call_of(asked), member, of, trusted, time.time())
    assert facts.vouched == 0


def call_of(asked: Approval) -> Call:
    return Call(asked.entry, asked.tool, asked.arguments)


def test_while_the_key_is_in_doubt_no_signature_counts(
    settings: Settings, store: Store, asked: Approval
) -> None:
    clearance = Clearance(store, authority(settings))
    assert clearance.held() == ""
    decide(settings, store, Decision(asked.id, True, PIN, by="test"), time.time())
    assert clearance.forgery(store.approval(asked.id), time.time()) == ""
    settings.pin.unlink()
    assert clearance.held()
    assert clearance.forgery(store.approval(asked.id), time.time())
