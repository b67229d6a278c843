"""A home in which something has happened, for tests of the page's rooms and their screenshots."""

from __future__ import annotations

import json
import time
from dataclasses import replace

from registry.approvals.rules import ApprovalRule, Condition
from registry.models import Approval, Job
from registry.store import Store
from sandbox.bundle.report import CaseResult, StageReport
from sandbox.wire.exchange import WireRequest, digest_request
from tests.registry.samples import approval, entry, invocation, tool

OPERATIONS = ("list_zones", "get_zone", "create_zone", "update_zone")
TOOLS = (
    tool("list_zones", "List all zones of the account.", "read", {"page": "Which page, from 1."}),
    tool("get_zone", "One zone with its records.", "read", {"zone": "The zone's name."}),
    tool("create_zone", "Create a zone.", "write", {"name": "Its name.", "ttl": "In seconds."}),
    tool("update_zone", "Change a zone.", "write", {"zone": "Its name.", "ttl": "In seconds."}),
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
    given = {"created": now - 40, "expires": now + 3600}
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
    """Two servers, their calls, two waiting writes, jobs, a rule."""
    now = time.time()
    store.servers.publish(entry("dns", 1, *TOOLS, title="DNS of example"), REPORTS, now=now - 9000)
    store.servers.publish(
        entry("weather-of-the-whole-world", description="Forecasts"), REPORTS[:2], now=now - 8000
    )
    store.calls.record_many(
        (
            invocation(
                f"{number:016x}",
                "upstream" if number % 9 == 0 else None,
                started=now - (calls - number) * 500,
                tool=OPERATIONS[number % 2],
                arguments={"page": number},
                task="list the zones of the account" if number % 3 else "",
                result={"zones": ["example.org", "example.net"]},
                exchanges=({"request": {"method": "GET", "url": "https://api.example/zones"}},),
            )
            for number in range(calls)
        ),
        now,
    )
    for waiting in _build_approvals(now):
        store.approvals.add_pending(waiting)
    only = (Condition("/name", equals="example.net"),)
    store.rules.add(
        ApprovalRule("r1", "dns", "create_zone", 1, "", only, now, now + 9e4, 3, "ann", "a1")
    )
    _add_jobs(store, now)


def _add_jobs(store: Store, now: float) -> None:
    forging = Job("4f00ba4200000001", "forge", {"source": "https://api.example"}, now - 60, now)
    store.jobs.create(forging)
    claimed = store.jobs.claim(forging.id, "p", now - 50)
    if claimed is not None:
        for stage, share in (("read", 0.2), ("compile", 0.4), ("prove", 0.7)):
            told = f"{stage}: 36 operations"
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
