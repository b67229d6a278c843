from __future__ import annotations

import json
import sqlite3
from dataclasses import replace

from registry.models import Invocation, Job
from registry.sessions.kept_results import KeepLimits, KeptResult
from registry.sessions.memory import MAX_EXCHANGES, MAX_VALUES, SessionMemory
from registry.store import Store
from tests.registry.samples import approval, invocation


def record(store: Store, *calls: Invocation) -> None:
    for call in calls:
        store.calls.record(call, now=120.0)


def test_a_session_remembers_its_calls_runs_and_approvals_and_no_others(dns: Store) -> None:
    answer = {"content": [], "structuredContent": {"zones": ["a"]}}
    mine = {"session": "s", "task": "list zones", "reason": "to see"}
    record(
        dns,
        invocation("c1", result=answer, arguments={"page": 1}, **mine),
        invocation("c2", "http", **mine),
        invocation("c3", result=answer, session="other"),
        invocation("c4", result=answer),
    )
    dns.approvals.add_pending(replace(approval(), session="s"))
    request = {"task": "do it", "session": "s"}
    dns.jobs.create(Job("j1", "do", request, created=1.0, updated=2.0, message="asks"))
    dns.jobs.create(Job("j2", "do", {**request, "session": "o"}, created=1.0, updated=2.0))
    dns.kept_results.keep("s", KeptResult(0, "c1", "dns.list_zones", 1, 1, 0, (), {}), KeepLimits())
    memory = dns.sessions.load_memory("s", 2.0)
    newest, oldest = memory.exchanges
    assert (newest.call, newest.outcome, newest.value) == ("c2", "http", None)
    assert (oldest.call, oldest.outcome, oldest.value) == ("c1", "ok", {"zones": ["a"]})
    assert (oldest.tool, oldest.task, oldest.reason) == ("dns.list_zones", "list zones", "to see")
    assert (oldest.arguments, oldest.handle) == ({"page": 1}, "r1")
    assert [each.approval for each in memory.approvals] == [approval().id]
    assert [(run.job, run.task, run.message) for run in memory.runs] == [("j1", "do it", "asks")]


def test_a_session_that_nobody_named_has_no_memory(dns: Store) -> None:
    record(dns, invocation("c1"))
    assert dns.sessions.load_memory("", 1.0) == SessionMemory()
    assert dns.sessions.load_memory("unheard of", 1.0) == SessionMemory()
    assert dns.sessions.load_memory("%", 1.0) == SessionMemory()


def test_it_is_short_and_holds_few_values(dns: Store) -> None:
    answer = {"structuredContent": {"a": 1}}
    record(dns, *(invocation(f"c{n}", result=answer, session="s") for n in range(20)))
    exchanges = dns.sessions.load_memory("s", 1.0).exchanges
    assert [each.call for each in exchanges] == [f"c{n}" for n in range(19, 9, -1)]
    assert len(exchanges) == MAX_EXCHANGES
    assert sum(each.value is not None for each in exchanges) == MAX_VALUES


def test_an_answer_too_long_to_store_and_one_of_another_form_have_no_value(dns: Store) -> None:
    long = {"structuredContent": {"a": "x" * 2_000_000}}
    record(
        dns,
        invocation("c1", result=long, session="s"),
        invocation("c2", result=["structuredContent"], session="s"),
    )
    exchanges = dns.sessions.load_memory("s", 1.0).exchanges
    assert [each.value for each in exchanges] == [None, None]


def test_calls_of_a_session_are_found_by_an_index(dns: Store) -> None:
    query = "SELECT id FROM invocations WHERE session = ? AND session != '' ORDER BY sequence DESC"
    connection = sqlite3.connect(dns.path)
    plan = json.dumps(connection.execute(f"EXPLAIN QUERY PLAN {query}", ("s",)).fetchall())
    connection.close()
    assert "invocations_by_session" in plan
