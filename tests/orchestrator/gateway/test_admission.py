"""What the gate is asked of a write is what is recorded at that moment, by whichever process."""

from __future__ import annotations

import time
from dataclasses import replace

from orchestrator.approvals.signed_policy import SignedPolicy
from orchestrator.approvals.signing_key import build_authority
from orchestrator.calls import Call
from orchestrator.gateway.admission import Admission
from orchestrator.gateway.catalog import RegisteredServer
from orchestrator.settings import Settings
from registry.store import Store
from registry.trust import EXEMPT_SUCCESSES
from sandbox.killswitch import KillSwitch
from tests.registry.samples import REPORTS, bundle, entry, invocation


def test_the_exemption_that_other_processes_writes_earned_comes_to_one_that_runs(
    settings: Settings, store: Store
) -> None:
    store.servers.publish(entry(), REPORTS, now=10.0)
    made = bundle()
    made = replace(made, tools=(replace(made.tools[0], name="create_zone", access="write"),))
    policy = SignedPolicy(store, build_authority(settings))
    tools = {tool.name: tool for tool in made.tools}
    member = RegisteredServer(entry(), made, store.standings.get("dns"), tools)
    admission = Admission(store.rules, policy, KillSwitch())
    call = Call("dns", "create_zone", {})
    before = admission.build_question(call, member)
    assert (before.server.total, before.write and before.write.operation.total) == (0, 0)
    # What another process did since; this one still holds what it loaded.
    calls = [
        invocation(f"c{n}", tool="create_zone", access="write") for n in range(EXEMPT_SUCCESSES)
    ]
    store.calls.record_many(calls, time.time())
    after = admission.build_question(call, member)
    assert after.server == store.standings.get("dns")
    assert after.server.total == EXEMPT_SUCCESSES
    assert after.write is not None
    assert after.write.operation.version_successes == EXEMPT_SUCCESSES
