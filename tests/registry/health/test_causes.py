"""Whose fault a failure is: a table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from registry.health.causes import find_cause, find_refused_host
from registry.models import CallFailure
from sandbox.bundle.model import ToolDefinition
from tests.registry.samples import OBJECT, invocation

FIXED = ToolDefinition("list_zones", "", OBJECT, OBJECT, "read", path="/zones")
NAMED = ToolDefinition("get_zone", "", OBJECT, OBJECT, "read", path="/zones/{id}")
URL = "https://api.example:8443/zones/7"


def failed(kind: str, status: int | None = None, message: str = "it broke", **last: Any) -> Any:
    exchange = {"request": {"method": "GET", "url": URL}, **last}
    return invocation(
        "c1",
        failure=CallFailure(kind, message, status),
        exchanges=(exchange,),
        arguments={"id": "7"},
    )


@pytest.mark.parametrize(
    ("kind", "status", "cause", "repair"),
    [
        ("http", 400, "input", ""),
        ("http", 404, "input", ""),
        ("http", 409, "input", ""),
        ("http", 405, "drift", "recompile"),
        ("http", 410, "drift", "recompile"),
        ("http", 429, "rate limit", "rate"),
        ("rate_limited", None, "rate limit", "rate"),
        ("http", 500, "outage", ""),
        ("http", 503, "outage", ""),
        ("credential", 401, "credential", ""),
        ("timeout", None, "outage", ""),
        ("unreachable", None, "outage", ""),
        ("too_large", None, "input", ""),
        ("arguments", None, "input", ""),
        ("tool", None, "input", ""),
        ("schema", None, "drift", "widen"),
        ("malformed", None, "drift", "recompile"),
        ("drift", None, "drift", ""),
        ("bug", None, "bug", "code"),
        ("crashed", None, "bug", "code"),
        ("a kind that nobody declared", None, "bug", "code"),
        ("refused", None, "bug", "code"),
        ("not_allowed", None, "not allowed", ""),
        ("frozen", None, "interruption", ""),
        ("cancelled", None, "interruption", ""),
        ("engine", None, "interruption", ""),
    ],
)
def test_each_failure_has_its_cause(kind: str, status: int | None, cause: str, repair: str) -> None:
    found = find_cause(failed(kind, status), NAMED)
    assert found is not None
    assert (found.kind, found.repair) == (cause, repair)


def test_what_succeeded_or_has_not_ended_has_no_cause() -> None:
    assert find_cause(invocation("c1")) is None
    assert find_cause(invocation("c1", "bug", state="intended")) is None


def test_a_path_without_arguments_that_is_gone_has_moved() -> None:
    found = find_cause(failed("http", 404), FIXED)
    assert found is not None
    assert (found.kind, found.repair) == ("drift", "recompile")


@pytest.mark.parametrize(("required", "cause"), [([], "drift"), (["id"], "input")])
def test_a_call_without_arguments_that_is_refused_tells_of_drift_where_it_needs_none(
    required: list[str], cause: str
) -> None:
    tool = replace(FIXED, input_schema={**OBJECT, "required": required})
    found = find_cause(replace(failed("http", 400), arguments={}), tool)
    assert found is not None
    assert found.kind == cause


def test_what_a_person_marked_wrong_is_a_bug() -> None:
    found = find_cause(invocation("c1", disputed=True), NAMED)
    assert found is not None
    assert (found.kind, found.repair) == ("bug", "code")


@pytest.mark.parametrize(
    ("refusal", "reason", "cause"),
    [
        ("redirect", "redirected (301) to an undeclared target at https://other.example", "drift"),
        ("credential", "the credential k is not set (`secret set dns.k`)", "credential"),
        ("not_allowed", "h is at the private address 10.0.0.1; a person can", "not allowed"),
        ("refused", "GET https://evil.example/ is not among the declared requests", "bug"),
        ("redirect", "other words", "drift"),
        ("credential", "other words", "credential"),
        ("refused", "redirected to an undeclared target without a credential or secret", "bug"),
    ],
)
def test_a_refusal_is_told_by_its_code_and_not_by_its_reason(
    refusal: str, reason: str, cause: str
) -> None:
    found = find_cause(failed("refused", refusal=refusal, reason=reason), NAMED)
    assert found is not None
    assert (found.kind, found.reason) == (cause, reason)


def test_what_is_one_operation_is_not_mended_for_arguments_that_make_no_request() -> None:
    call = failed("refused", refusal="refused", reason="the request is larger than the caps allow")
    found = find_cause(call, replace(NAMED, operation="getZone"))
    assert found is not None
    assert (found.kind, found.repair) == ("input", "")
    moved = failed("refused", refusal="redirect", reason="redirected (301)")
    found = find_cause(moved, replace(NAMED, operation="getZone"))
    assert found is not None
    assert (found.kind, found.repair) == ("drift", "recompile")


def test_arguments_that_take_all_memory_are_nothing_to_mend() -> None:
    told = {"_meta": {"toolwright/error": {"kind": "bug", "type": "MemoryError"}}}
    call = invocation("c1", failure=CallFailure("exception", "MemoryError"), result=told)
    found = find_cause(replace(call, exchanges=()), NAMED)
    assert found is not None
    assert (found.kind, found.repair) == ("bug", "")


def test_a_turn_that_comes_too_late_is_a_rate_limit_that_nothing_has_to_mend() -> None:
    call = failed("timeout", refusal="timeout", attempts=0, reason="its turn comes in 90 s only")
    found = find_cause(call, NAMED)
    assert found is not None
    assert (found.kind, found.repair) == ("rate limit", "")


def test_the_place_and_the_host_are_told_bounded() -> None:
    call = invocation(
        "c1",
        failure=CallFailure("schema", "x" * 5000),
        result={"_meta": {"toolwright/error": {"where": "/body/" + "y" * 5000}}},
        exchanges=({"request": {"url": URL}},),
    )
    found = find_cause(call, NAMED)
    assert found is not None
    assert found.host == "api.example:8443"
    assert len(found.where) <= 300
    assert len(found.reason) <= 300


@pytest.mark.parametrize("last", [{}, {"request": None}, {"request": {"url": "http://[::1"}}])
def test_an_exchange_that_says_nothing_names_no_host(last: dict[str, Any]) -> None:
    found = find_cause(invocation("c1", "bug", exchanges=(last,)))
    assert found is not None
    assert found.host == ""


def test_a_bug_is_called_one_once() -> None:
    found = find_cause(failed("bug", None), NAMED)
    assert found is not None
    assert found.text.count("bug") == 1


def test_too_large_an_answer_names_the_arguments_that_ask_for_less() -> None:
    properties = {"id": {}, "per_page": {}, "fields[]": {}, "name": {}}
    tool = replace(FIXED, input_schema={"type": "object", "properties": properties})
    cause = find_cause(failed("too_large", message="the answer has 9 bytes"), tool)
    assert cause is not None
    assert cause.reason == (
        "it asks for more than is taken; arguments of this tool that may ask for less: per_page, "
        "fields[]: the answer has 9 bytes"
    )
    plain = find_cause(failed("too_large"), FIXED)
    assert plain is not None
    assert "arguments" not in plain.reason


@pytest.mark.parametrize(
    ("url", "refusal", "named", "host"),
    [
        ("http://localhost:8081/zones", "not_allowed", "localhost:8081", "localhost:8081"),
        ("https://dns.corp/zones", "not_allowed", "dns.corp:443", "dns.corp:443"),
        # The host that a token is asked of was refused, and not the API's.
        ("https://dns.corp/zones", "not_allowed", "login.corp:443", ""),
        ("http://localhost:8081/zones", "refused", "localhost:8081", ""),
        ("http://localhost:8081/zones", "unreachable", "localhost:8081", ""),
        ("tcp:dns.corp:25", "not_allowed", "dns.corp:25", ""),
        ("http://u:p@localhost:8081/", "not_allowed", "localhost:8081", ""),
    ],
)
def test_the_host_that_a_call_was_refused_can_be_allowed(
    url: str, refusal: str, named: str, host: str
) -> None:
    reason = f"it is private; a person can grant it with `toolwright source allow {named}`"
    call = failed("refused", refusal=refusal, reason=reason, request={"url": url})
    assert find_refused_host(call) == host


def test_a_call_that_succeeded_was_refused_no_host() -> None:
    call = failed("refused", refusal="not_allowed", reason="", request={"url": URL})
    assert find_refused_host(replace(call, failure=None)) == ""
    assert find_refused_host(invocation("c1", "refused")) == ""
