"""A home in which something has happened, for tests of the page's rooms and their screenshots."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from orchestrator.approvals.accounts import SOURCES
from orchestrator.approvals.granting import add_source, allow_host, find_declared_uses
from orchestrator.approvals.secrets import store_secret
from orchestrator.approvals.signing_key import open_key
from orchestrator.settings import Settings
from orchestrator.tasks.model import Question
from orchestrator.tasks.run.questions import (
    build_choice,
    build_confirmation,
    build_missing,
    build_need,
    build_plan_question,
    build_source,
    encode_question,
)
from registry.approvals.rules import ApprovalRule, Condition
from registry.models import Approval, DocumentationSource, Invocation, Job, build_entry
from registry.secrets.vault import Secret, open_vault
from registry.servers.bundles import Bundles
from registry.store import Store
from sandbox.bundle.apispec import Access
from sandbox.bundle.credential import Credential
from sandbox.bundle.model import Bundle, Provenance, RequestPattern, ToolDefinition
from sandbox.bundle.report import CaseResult, StageReport
from sandbox.wire.exchange import WireRequest, digest_request
from tests.registry.samples import approval, entry, invocation

OPERATIONS = ("list_zones", "get_zone", "create_zone", "update_zone")
ANY = {"type": "object", "properties": {}}
ZONE = {"type": "string", "description": "The zone's name.", "example": "example.org"}
KIND = {"type": "string", "enum": ["native", "master", "slave"], "description": "Who serves it."}
TTL = {"type": "integer", "description": "How long answers are kept, in seconds.", "default": 3600}
LIMITS = {
    "type": "object",
    "properties": {
        "page": {"type": "integer", "description": "Which page, from 1."},
        "kind": KIND,
        "disabled": {"type": "boolean", "description": "Those too that are switched off."},
    },
}
CREATION = {
    "type": "object",
    "properties": {"name": ZONE, "ttl": TTL, "servers": {"type": "array", "items": ZONE}},
    "required": ["name"],
}
ONE = {"type": "object", "properties": {"zone": ZONE, "ttl": TTL}, "required": ["zone"]}


def _make_tool(
    name: str, description: str, schema: dict[str, Any], method: str, path: str = "/zones"
) -> ToolDefinition:
    asked = (RequestPattern(method, f"https://api.example{path}"),)
    access: Access = "read" if method == "GET" else "write"
    return ToolDefinition(
        name, description, schema, ANY, access, requests=asked, security=(("token",),), path=path
    )


TOOLS = (
    _make_tool("list_zones", "List all zones of the account.", LIMITS, "GET"),
    _make_tool("get_zone", "One zone with its records.", ONE, "GET", "/zones/{zone}"),
    _make_tool("create_zone", "Create a zone.", CREATION, "POST"),
    _make_tool("update_zone", "Change a zone.", ONE, "PATCH", "/zones/{zone}"),
)
CODE = "".join(
    f'\n\n@tool\ndef {name}(arguments):\n    return http.{verb}("/zones", arguments)\n'
    for name, verb in zip(OPERATIONS, ("get", "get", "post", "patch"), strict=True)
)
FIRST = Bundle(
    name="dns",
    version=1,
    title="DNS of example",
    base_url="https://api.example",
    source_code=f"from toolwright import http, tool\n{CODE}",
    tools=(*TOOLS[:3], replace(TOOLS[3], name="set_ttl", description="Set a zone's TTL.")),
    provenance=Provenance("https://api.example/openapi.json", "0" * 64),
    permissions=("network:api.example:443",),
    credentials=(Credential("token", "apiKey", parameter="X-API-Key"),),
    description="Zones and records of a hosted DNS",
)
SECOND = replace(
    FIRST,
    version=2,
    source_code=FIRST.source_code.replace("http.patch", "http.put"),
    tools=(replace(TOOLS[0], description="List all zones of the account, by page."), *TOOLS[1:]),
    permissions=("network:api.example:443", "network:status.example:443"),
)
BRIEF = Bundle(
    name="morning_brief",
    version=1,
    title="The day before it begins",
    base_url="",
    source_code="from toolwright import call, tool\n",
    tools=(ToolDefinition("brief", "Zones and weather in one text.", ANY, ANY, "read"),),
    provenance=Provenance("a task", "0" * 64, "client", "a model"),
    permissions=("call:dns.list_zones", "call:weather_of_the_whole_world.list_zones"),
    description="Asks two servers and writes one text",
)
FORK = replace(
    SECOND,
    name="dns_read_only",
    version=1,
    title="DNS of example, reads alone",
    tools=TOOLS[:2],
    provenance=replace(SECOND.provenance, parent=f"dns@2:{SECOND.compute_digest()}"),
)


def _run(stage: str, *failing: str) -> StageReport:
    cases = tuple(
        CaseResult(operation, case, "failed" if operation in failing else "passed", "GET /zones")
        for operation in OPERATIONS
        for case in ("200", "404", "slow")
    )
    return StageReport(stage, "passed", 210.0, cases)  # type: ignore[arg-type]


REPORTS = (
    StageReport("static", "passed", 1.5),
    _run("mock"),
    _run("recorded", "update_zone"),
    StageReport("live", "skipped", 0.0, note="no host was allowed"),
)


EXCHANGE = {
    "request": {
        "method": "GET",
        "url": "https://api.example/zones?page=1",
        "headers": [["accept", "application/json"]],
        "body": "",
    },
    "response": {
        "status": 200,
        "headers": [["content-type", "application/json"], ["x-request-id", "01HZX0V3J6"]],
        "body": '{"zones": [{"name": "example.org", "ttl": 3600}, {"name": "example.net"}]}',
    },
    "attempts": 1,
    "elapsed_ms": 9.4,
}


def _build_approvals(now: float) -> tuple[Approval, ...]:
    create = WireRequest(
        "POST",
        "https://api.example/v1/zones",
        (("content-type", "application/json"),),
        json.dumps({"name": "example.org", "ttl": 3600}).encode(),
    )
    update = WireRequest(
        "PATCH", "https://api.example/v1/zones/example.org", (), b'{"ttl": 60, "owner": "ann"}'
    )
    given = {"created": now - 40, "expires": now + 3600, "version": 2}
    return (
        approval(
            "6f1c2a9b11d04e77",
            **given,
            wire=create,
            arguments={"name": "example.org", "ttl": 3600},
            task="make a zone for example.org",
        ),
        approval(
            "91d3e0b5a7c84f20",
            **given,
            tool="update_zone",
            wire=update,
            wire_digest=digest_request(update),
            arguments={"zone": "example.org", "ttl": 60},
            present='{"ttl": 3600, "owner": "bob", "name": "example.org"}',
        ),
    )


def fill_store(store: Store, calls: int = 120) -> None:
    """Four servers, one in its second version, their calls, two waiting writes, jobs, a rule."""
    now = time.time()
    shelf = Bundles(store.path.parent, store.servers)
    shelf.publish_bundle(FIRST, build_entry(FIRST, now - 90_000), REPORTS, None)
    store.servers.publish(
        entry("weather_of_the_whole_world", description="Forecasts"), REPORTS[:2], now=now - 8000
    )
    shelf.publish_bundle(BRIEF, build_entry(BRIEF, now - 7000), REPORTS[:1], None)
    store.calls.record_many(_make_calls(0, calls // 3, 1, now, calls), now)
    shelf.publish_bundle(SECOND, build_entry(SECOND, now - 40_000), REPORTS, None)
    shelf.publish_bundle(FORK, build_entry(FORK, now - 5000), REPORTS[:2], None)
    store.calls.record_many(_make_calls(calls // 3, calls, 2, now, calls), now)
    for waiting in _build_approvals(now):
        store.approvals.add_pending(waiting)
    only = (Condition("/name", equals="example.net"),)
    store.rules.add(
        ApprovalRule("r1", "dns", "create_zone", 2, "", only, now, now + 9e4, 3, "ann", "a1")
    )
    _add_jobs(store, now)


def _make_calls(first: int, end: int, version: int, now: float, count: int) -> Iterator[Invocation]:
    for number in range(first, end):
        failed = "upstream" if number % 9 == 0 else "bug" if number % 31 == 7 else None
        yield invocation(
            f"{number:016x}",
            failed,
            version=version,
            started=now - (count - number) * 500,
            tool=OPERATIONS[number % 2],
            arguments={"page": number},
            task="list the zones of the account" if number % 3 else "",
            result={"zones": ["example.org", "example.net"]},
            exchanges=(EXCHANGE,),
        )


def _add_jobs(store: Store, now: float) -> None:
    forging = Job("4f00ba4200000001", "forge", {"source": "https://api.example"}, now - 60, now)
    store.jobs.create(forging)
    claimed = store.jobs.claim(forging.id, "p", now - 50)
    if claimed is not None:
        for stage, share in (("read", 0.2), ("compile", 0.4), ("prove", 0.7)):
            told = "36 operations"
            store.jobs.update_progress(
                forging.id, claimed.attempt, now, stage=stage, progress=share, message=told
            )
    task = Job("4f00ba4200000002", "do", {"task": "list the zones"}, now - 300, now - 300)
    store.jobs.create(replace(task, state="queued"))
    taken = store.jobs.claim(task.id, "p", now - 299)
    if taken is not None:
        text = {"content": [{"type": "text", "text": "example.org, example.net"}]}
        called = {"call": "c1", "trust": "", "rule": "", "cause": "", "failure": None}
        step = {"id": "s1", "task": "list", "tool": "dns.list_zones", "state": "done"}
        result = {"state": "called", **called, "result": text, "steps": [step]}
        store.jobs.finish(task.id, taken.attempt, "done", result, now - 298)
    _ask(store, "4f00ba4200000003", "show the records of the zone", CHOICE, now - 30)


_CANDIDATES = (
    {"tool": "dns.get_zone", "description": "One zone with its records."},
    {"tool": "dns.list_zones", "description": "List all zones of the account, by page."},
)
CHOICE = build_choice("s1", 0, "show the records of the zone", _CANDIDATES)
CONFIRMATION = build_confirmation(
    "s1", 0, "dns.create_zone", "write", {"name": "example.org", "ttl": 60}, ["The TTL is a guess."]
)
MISSING = build_missing("s1", 0, "dns.get_zone", ONE, {}, ["zone", "ttl"], "")
SOURCE = build_source("s1", 0, "water the plants")
PLAN = build_plan_question(
    0, [{"id": "s1", "task": "list zones"}, {"id": "s2", "task": "delete one", "after": ["s1"]}], {}
)


def _ask(store: Store, id: str, task: str, question: Question, now: float) -> None:
    """A task run that waits for the answer to a question."""
    store.jobs.create(Job(id, "do", {"task": task}, now, now))
    claimed = store.jobs.claim(id, "p", now)
    assert claimed is not None
    need = build_need(question, id)
    result = {"state": "asking", "run": id, **encode_question(question, id), "steps": []}
    store.drafts.park_job(id, claimed.attempt, result, now, need.text, need, "asking")


def ask_question(store: Store, question: Question, id: str = "j1") -> Job:
    """The same, as the test's own run."""
    _ask(store, id, "do something", question, time.time())
    return store.jobs.get(id)


def fill_grants(settings: Settings, store: Store, pin: str) -> None:
    """Sources, hosts and secrets that the person with this PIN allowed."""
    signer = open_key(settings, pin, time.time()).signer
    assert signer is not None
    vault = open_vault(settings)
    vault.put(SOURCES, "docs", Secret("the-value-of-docs"))
    url = "https://api.example/openapi.json"
    source = DocumentationSource(url, "X-Api-Key", "docs")
    add_source(store.grants, source, "terminal", signer)
    allow_host(store.grants, "localhost:8081", "page", signer)
    uses = find_declared_uses(store.servers, Bundles(settings.home, store.servers), "dns", "token")
    store_secret(store, vault, "dns", "token", "the-value-of-the-token", uses, "page", signer)
