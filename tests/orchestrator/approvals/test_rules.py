"""Rules and classifications as people make them."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.approvals.decide import Decision, decide_with_pin
from orchestrator.approvals.gate import WriteFacts, covers_write
from orchestrator.approvals.rules import (
    RuleRequest,
    classify_operation,
    create_rule,
    encode_rule,
    parse_rule_request,
    render_rule,
)
from orchestrator.approvals.signed_policy import SignedPolicy, apply_overrides, resolve_level
from orchestrator.approvals.signing_key import build_authority, open_key
from orchestrator.calls import Call
from orchestrator.errors import OrchestratorError
from orchestrator.settings import Settings
from registry.approvals.rules import ApprovalRule
from registry.models import Approval, RegisteredTool
from registry.secrets.signing import Signer, verify_signature
from registry.servers.classifications import (
    Classification,
    Level,
    find_raised_level,
    list_requests,
)
from registry.store import Store
from sandbox.bundle.model import (
    Bundle,
    RequestPattern,
    ToolDefinition,
    compute_operation_digest,
)
from sandbox.bundle.permissions import build_request_pattern
from sandbox.wire.access import is_self_evident
from tests.orchestrator.approvals.test_gate import BLANK
from tests.orchestrator.conftest import PIN
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
    store.servers.publish(entry(), REPORTS, now=now)
    waiting = approval(arguments=ARGUMENTS, created=now, expires=now + 3600)
    store.approvals.add_pending(waiting)
    return store.approvals.get(waiting.id)


def made(store: Store, asked: Approval, *where: str, **options: Any) -> ApprovalRule:
    return create_rule(store, asked, RuleRequest(where, **options), SIGNER, "ann", time.time())


def covered(rule: ApprovalRule, **arguments: Any) -> bool:
    write = WriteFacts(
        BLANK,
        erases=False,
        tool="dns.create_zone",
        version=1,
        digest="dns-1",
        arguments={**ARGUMENTS, **arguments},
        now=time.time(),
    )
    return covers_write(rule, write)


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
    assert verify_signature(SIGNER.public, rule.to_signed_body(), rule.signature)


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


def test_a_condition_on_no_argument_is_told_which_there_are(store: Store, asked: Approval) -> None:
    with pytest.raises(OrchestratorError, match=r"It has zone, ttl, body\.name, body\.deep\.on\."):
        made(store, asked, "name=www.example.org")


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
    removing = RegisteredTool("remove_zone", "write", True, tool("remove_zone").listed)
    store.servers.publish(entry("dns", 1, removing), REPORTS, now=1.0)
    store.approvals.add_pending(approval(tool="remove_zone"))
    with pytest.raises(OrchestratorError, match=r"classify dns\.remove_zone write"):
        made(store, store.approvals.get("a1"))
    said = Classification("dns", "remove_zone", "write", (), 2.0, "ann")
    store.classifications.store_classification(said)
    with pytest.raises(OrchestratorError):
        made(store, store.approvals.get("a1"))
    said = replace(said, serial=2)
    store.classifications.store_classification(
        replace(said, signature=SIGNER.sign(said.to_signed_body()))
    )
    assert made(store, store.approvals.get("a1"))


def test_an_operation_that_a_person_calls_destructive_gets_no_rule(
    store: Store, asked: Approval
) -> None:
    store.classifications.store_classification(
        Classification("dns", "create_zone", "destructive", (), 2.0, "ann")
    )
    with pytest.raises(OrchestratorError):
        made(store, asked)


def test_a_request_of_an_earlier_version_gets_no_rule(store: Store, asked: Approval) -> None:
    store.servers.publish(entry("dns", 2), REPORTS, now=time.time())
    with pytest.raises(OrchestratorError, match="version 2"):
        made(store, asked)


def test_the_pin_adds_the_rule_with_the_approval_or_neither(
    settings: Settings, store: Store, asked: Approval
) -> None:
    always = RuleRequest(("zone=example.org",))
    wrong = Decision(asked.id, True, "wrong pin", by="test")
    assert decide_with_pin(settings, store, wrong, time.time(), always).pin_wrong
    with pytest.raises(OrchestratorError):
        decide_with_pin(
            settings, store, replace(wrong, pin=PIN), time.time(), RuleRequest(("zone=other.org",))
        )
    assert (store.rules.find(), store.approvals.get(asked.id).state) == ((), "pending")
    decided = decide_with_pin(settings, store, replace(wrong, pin=PIN), time.time(), always)
    (rule,) = store.rules.find()
    assert (decided.state, decided.rule) == ("approved", rule.id)
    told = encode_rule(rule, time.time(), build_authority(settings).load_key())
    assert (told["state"], told["says"]) == (
        "live",
        'dns.create_zone (version 1) with zone="example.org"',
    )
    assert encode_rule(rule, time.time(), SIGNER.public)["state"] == "not signed"


@pytest.mark.parametrize("value", [[1], "x", {"where": 1}, {"max": "many"}, {"max": []}])
def test_what_a_page_asks_for_is_read_or_refused(value: Any) -> None:
    with pytest.raises(OrchestratorError):
        parse_rule_request(value)


def test_a_page_asks_as_a_terminal_does() -> None:
    asked = {"where": {"zone": "example.org"}, "until": "3d", "max": 5, "any_version": True}
    assert parse_rule_request(asked) == RuleRequest(("zone=example.org",), "3d", 5, True)


def test_a_rule_as_a_sentence_names_patterns_and_values(store: Store, asked: Approval) -> None:
    said = render_rule(made(store, asked, "zone=*.org", "ttl=60"))
    assert said == "dns.create_zone (version 1) with zone like *.org, ttl=60"


def operation(method: str, access: Any = "write", destructive: bool = False) -> ToolDefinition:
    request = RequestPattern(method, "https://api.example/zones")
    return ToolDefinition(
        "zones", "Zones.", OBJECT, OBJECT, access, "zones", destructive=destructive,
        requests=(request,),
    )  # fmt: skip


def said(level: Level, of: ToolDefinition, signer: Signer | None = None) -> Classification:
    digest = compute_operation_digest(of)
    override = Classification("dns", "zones", level, list_requests(of), 1.0, "ann", digest)
    return (
        replace(override, signature=signer.sign(override.to_signed_body())) if signer else override
    )


def signed(override: Classification) -> bool:
    return verify_signature(SIGNER.public, override.to_signed_body(), override.signature)


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
        (POST, said("read", POST, Signer.generate()), "write"),
        (POST, said("read", POST, SIGNER), "read"),
        (POST, said("read", DELETE, SIGNER), "write"),
        (DELETE, said("write", DELETE), "destructive"),
        (DELETE, said("write", DELETE, SIGNER), "write"),
        (DELETE, said("read", DELETE, SIGNER), "read"),
    ],
)
def test_stricter_needs_no_proof_and_looser_a_signature_for_these_requests(
    of: ToolDefinition, override: Classification | None, level: Level
) -> None:
    assert resolve_level(of, override, signed, compiled=True) == level


def test_only_the_compiler_is_believed_that_a_method_that_writes_reads() -> None:
    search = operation("POST", "read")
    assert resolve_level(search, None, signed, compiled=True) == "read"
    assert resolve_level(search, None, signed, compiled=False) == "write"
    assert resolve_level(search, said("read", search, SIGNER), signed, compiled=False) == "read"


def talking(permission: str) -> ToolDefinition:
    """A tool that says that it reads, and talks to that place."""
    (asked,) = filter(None, [build_request_pattern(permission)])
    return replace(operation("GET", "read"), operation="", name="zones", requests=(asked,))


WHOIS, MAIL = talking("tcp:whois.test:43"), talking("tcp:mail.test:25")


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize(
    ("override", "level"),
    [
        (None, "write"),
        (said("read", WHOIS), "write"),
        (said("read", WHOIS, Signer.generate()), "write"),
        (said("read", MAIL, SIGNER), "write"),
        (said("read", WHOIS, SIGNER), "read"),
        (said("destructive", WHOIS), "destructive"),
    ],
)
def test_only_a_person_is_believed_that_what_talks_over_tcp_reads(
    override: Classification | None, level: Level, compiled: bool
) -> None:
    assert resolve_level(WHOIS, override, signed, compiled=compiled) == level


def with_tools(*tools: ToolDefinition) -> Bundle:
    return replace(bundle(), tools=tools)


PURE = replace(operation("GET", "read"), requests=())
QUERY = replace(
    GET, requests=(RequestPattern("POST", "https://api.example/graphql", document="{ zones }"),)
)
CALLING = replace(PURE, requests=(RequestPattern("CALL", "call:mail.send"),))


@pytest.mark.parametrize("reads", [None, frozenset[str]()])
@pytest.mark.parametrize("believed", [True, False])
@pytest.mark.parametrize("author", ["compiler", "client"])
@pytest.mark.parametrize(
    ("tool", "evident"),
    [
        (GET, True),
        (PURE, True),
        (POST, True),
        (DELETE, True),
        (replace(WHOIS, access="write"), True),
        (operation("POST", "read"), False),
        (QUERY, False),
        (CALLING, False),
        (WHOIS, False),
    ],
)
def test_of_a_self_evident_tool_nobody_but_a_person_makes_another_access(
    tool: ToolDefinition, evident: bool, author: Any, believed: bool, reads: frozenset[str] | None
) -> None:
    assert is_self_evident(tool) == evident
    of = replace(with_tools(tool), version=2)
    of = replace(of, provenance=replace(of.provenance, author=author))
    (counted,) = apply_overrides(of, {}, signed, believed, reads).tools
    assert counted.access == tool.access or not evident


def test_a_classified_bundle_says_what_counts() -> None:
    overrides = {"zones": said("destructive", GET)}
    (zones,) = apply_overrides(with_tools(GET), overrides, signed).tools
    assert (zones.access, zones.destructive) == ("write", True)


def test_tightening_needs_no_key_and_loosening_again_does(settings: Settings, store: Store) -> None:
    store.servers.publish(entry(), REPORTS, now=1.0)
    of = with_tools(GET)
    signed_policy = SignedPolicy(store, build_authority(settings))
    assert classify_operation(store.classifications, of, "zones", "destructive", None, 2.0)
    assert signed_policy.classify_bundle(of).get_tool("zones").destructive
    assert not classify_operation(store.classifications, of, "zones", "read", None, 3.0)
    assert not classify_operation(store.classifications, of, "zones", "write", None, 3.0)
    assert signed_policy.classify_bundle(of).get_tool("zones").destructive
    signer = open_key(settings, PIN, time.time()).signer
    assert classify_operation(store.classifications, of, "zones", "read", signer, 4.0)
    assert signed_policy.classify_bundle(of).get_tool("zones").access == "read"


def raised_by(url: str, asked: str, server: str, method: str, named: str) -> Level:
    """The level that a request has by a person's word on a GET of `dns`; `named` is the operation
    that a tool of `server` is of, "" for one with code of its own.
    """
    given = Classification("dns", "kick", "write", (("GET", url),), 1.0, "ann")
    made = operation(method, "read")
    made = replace(made, operation=named, requests=(RequestPattern(method, asked),))
    return find_raised_level((given,), server, made)


KICK = "https://api.example/boats/{id}/kick"


@pytest.mark.parametrize("server", ["dns", "other"])
@pytest.mark.parametrize(
    "asked",
    [
        KICK,
        "https://API.example:443/boats/{boat}/kick/",
        "https://api.example/boats/{id}/kick?now={now}",
        "https://api.example/boats/{id}/{what}",
        "https://api.example/{a}/{b}/{c}",
        "https://api.example/boats/{id}/%6Bick",
    ],
)
def test_a_word_on_a_request_is_one_on_it_under_every_name(asked: str, server: str) -> None:
    assert raised_by(KICK, asked, server, "GET", "look") == "write"


@pytest.mark.parametrize(
    ("asked", "server", "method", "named", "level"),
    [
        ("https://api.example/boats/7/kick", "other", "GET", "look", "write"),
        ("https://api.example/boats/7/kick", "dns", "GET", "", "write"),
        ("https://api.example/boats/7/kick", "dns", "GET", "look", "read"),
        ("https://api.example/boats/{id}", "other", "GET", "look", "read"),
        ("https://api.example/boats/{id}/look", "other", "GET", "look", "read"),
        ("https://api.other/boats/{id}/kick", "other", "GET", "look", "read"),
        ("http://api.example/boats/{id}/kick", "other", "GET", "look", "read"),
        (KICK, "other", "POST", "look", "read"),
    ],
)
def test_a_word_on_a_request_is_none_on_others(
    asked: str, server: str, method: str, named: str, level: Level
) -> None:
    assert raised_by(KICK, asked, server, method, named) == level


def test_a_standing_and_approvals_both_have_to_be_there_for_an_exemption(
    settings: Settings, store: Store, asked: Approval
) -> None:
    signed_policy = SignedPolicy(store, build_authority(settings))
    trusted = replace(BLANK, level="trusted")
    of = replace(bundle(), tools=(replace(POST, name="create_zone"),))
    member = store.servers.get("dns")
    facts = signed_policy.describe_write(call_of(asked), member, of, trusted, time.time())
    assert facts.vouched == 0


def call_of(asked: Approval) -> Call:
    return Call(asked.entry, asked.tool, asked.arguments)


def test_while_the_key_is_in_doubt_no_signature_counts(
    settings: Settings, store: Store, asked: Approval
) -> None:
    signed_policy = SignedPolicy(store, build_authority(settings))
    assert signed_policy.find_obstacle() == ""
    decide_with_pin(settings, store, Decision(asked.id, True, PIN, by="test"), time.time())
    assert signed_policy.check_forgery(store.approvals.get(asked.id), time.time()) == ""
    settings.pin.unlink()
    assert signed_policy.find_obstacle()
    assert signed_policy.check_forgery(store.approvals.get(asked.id), time.time())
