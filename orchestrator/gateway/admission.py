"""Facts about a call for the gate, and counting the use of the rule that allows it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from orchestrator.approvals.gate import Allow, Ask, GateQuestion, Ruling, WriteFacts
from orchestrator.approvals.signed_policy import SignedPolicy
from orchestrator.calls import Call
from orchestrator.gateway.catalog import RegisteredServer
from registry.approvals.rules import RuleTable
from sandbox.killswitch import KillSwitch


@dataclass(frozen=True)
class Admission:
    """Gathers what is known of a call at this moment."""

    rules: RuleTable
    signed_policy: SignedPolicy
    kill_switch: KillSwitch
    now: Callable[[], float] = time.time

    def build_question(self, call: Call, member: RegisteredServer) -> GateQuestion:
        access = member.tools[call.tool].access
        return GateQuestion(
            state=member.entry.state,
            access=access,
            server=member.standing,
            write=self._build_write_facts(call, member) if access == "write" else None,
            frozen=self.kill_switch.engaged,
        )

    def count_rule_use(self, identity: str, call: Call, ruling: Ruling) -> Ruling:
        """The ruling, once a use of its rule is stored; another process may have used it up."""
        if not isinstance(ruling, Allow) or ruling.rule is None:
            return ruling
        if self.rules.count_use(ruling.rule.id, identity, call.name, self.now()):
            return ruling
        return Ask(f"the rule {ruling.rule.id} has ended")

    def _build_write_facts(self, call: Call, member: RegisteredServer) -> WriteFacts:
        write = self.signed_policy.describe_write(
            call, member.entry, member.bundle, member.standing, self.now()
        )
        # Words alone never write: what a model made of them is always shown to a person.
        return replace(write, vouched=0, rules=()) if call.read_by else write
