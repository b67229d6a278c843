"""What a tool's own code sends is held against the document that its draft declares."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import lru_cache

import pytest

from forge.documentation.checking import LocatedClaims
from forge.documentation.claims import parse_api_claims
from forge.documentation.to_openapi import compile_derived, derive_document
from forge.drafts.assemble import Purpose, build_bundle
from forge.drafts.calls import resolve_calls
from forge.drafts.draft import Draft, parse_draft
from forge.drafts.examples import HTTP_CODE, HTTP_EXAMPLE, HTTP_TASK
from forge.readers.page import parse_page
from sandbox.bundle.example import Example
from sandbox.bundle.model import Bundle, RequestPattern
from sandbox.stages.mock.programs import prove_programs
from sandbox.stages.prove import build_bench_opener
from sandbox.stages.static.stage import prove_static
from tests.sandbox.local import LocalRunner


@lru_cache(maxsize=1)
def example() -> tuple[Bundle, tuple[Example, ...]]:
    page = parse_page("task", HTTP_TASK.encode())
    draft = parse_draft({key: value for key, value in HTTP_EXAMPLE.items() if key != "api"})
    assert page is not None
    assert isinstance(draft, Draft)
    claims = LocatedClaims("task", "/api", parse_api_claims(HTTP_EXAMPLE["api"]))
    api = compile_derived(derive_document([page], [claims]), name="harbour", base_url=None).bundle
    resolved = resolve_calls(draft, api.spec, api.base_url)
    assert isinstance(resolved, Draft)
    bundle = build_bundle(resolved, Purpose(HTTP_TASK, "harbour", ""), None, api)
    return bundle, resolved.examples


def failures(code: str, examples: tuple[Example, ...] | None = None) -> str:
    bundle, known = example()
    changed = replace(bundle, source_code=code)

    async def run() -> str:
        async with build_bench_opener(changed, LocalRunner())() as bench:
            cells = await prove_programs(changed, known if examples is None else examples, bench)
        assert cells
        failed = [cell for cell in cells if cell.verdict == "failed"]
        return "\n".join(f"{cell.case}: {cell.evidence}" for cell in failed)

    return asyncio.run(run())


def test_the_briefs_example_is_as_documented() -> None:
    assert failures(HTTP_CODE) == ""


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (
            '"min_length": length',
            '"length": length',
            "the query parameter length is not documented",
        ),
        ('"min_length": length', '"min_length": "x"', "query min_length is 'x', and its type is"),
        ('"boat": boat}', '"boat": boat, "pier": 1}', "the body's field pier is not documented"),
        ('{"berth": berth["id"], "boat"', '{"boat"', "its body breaks the documented schema"),
        ('query={"min_length": length}', 'header={"x-note": "1"}', "the header x-note is not"),
        ('"POST", "/bookings"', '"POST", "/berths"', "is no operation of `api`"),
        ('made = http.request("POST"', 'made = http.request("PUT"', "is no operation of `api`"),
    ],
)
def test_a_request_that_the_documentation_does_not_know_fails(
    old: str, new: str, told: str
) -> None:
    assert HTTP_CODE.count(old) == 1
    assert told in failures(HTTP_CODE.replace(old, new))


def test_an_answer_with_other_types_than_the_documentation_shows_fails() -> None:
    _, (first, second) = example()
    odd = replace(first.answers[0], result={"berths": "none"})
    assert "is not as documented" in failures(HTTP_CODE, (replace(first, answers=(odd,)), second))
    other = replace(first.answers[1], status=204)
    lies = replace(first, answers=(first.answers[0], other))
    assert "the status is 204, not 201" in failures(HTTP_CODE, (lies, second))


def test_an_operation_that_no_case_asks_for_proves_nothing() -> None:
    _, (_, second) = example()
    assert "no case makes the request POST /bookings" in failures(HTTP_CODE, (second,))


def test_a_crash_on_an_answer_as_documented_is_found() -> None:
    crash = HTTP_CODE.replace('b["free"] is True', "b.get(1)[2]")
    assert "documented answers: " in failures(crash)


def test_a_request_beside_the_declared_operations_is_no_tools() -> None:
    bundle, _ = example()
    assert prove_static(bundle).passed
    (tool,) = bundle.tools
    more = RequestPattern("GET", "https://api.harbour.example/v1/admin")
    beside = replace(bundle, tools=(replace(tool, requests=(*tool.requests, more)),))
    assert "unproved-request" in {found.rule for found in prove_static(beside).findings}
    compiled = replace(bundle, provenance=replace(bundle.provenance, author="compiler"))
    assert "unproved-request" in {found.rule for found in prove_static(compiled).findings}
    quiet = replace(bundle, tools=(replace(tool, access="read"),))
    assert "understated-access" in {found.rule for found in prove_static(quiet).findings}
    open_one = replace(bundle, tools=(replace(tool, security=()),))
    assert "other-security" in {found.rule for found in prove_static(open_one).findings}
