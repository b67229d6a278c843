"""Facts about a call for the gate, and counting the use of the rule that allows it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

from orchestrator.approvals.gate import Allow, Ask, GateQuestion, Ruling, WriteFacts
from orchestrator.approvals.signed_policy import SignedPolicy
from orchestrator.calls import Call
from orchestrator.gateway.arguments import adapt_arguments
from orchestrator.gateway.catalog import RegisteredServer
from orchestrator.gateway.secret_arguments import find_secret_arguments, mark_secrets
from registry.approvals.rules import RuleTable
from sandbox.bundle.apispec import Access
from sandbox.killswitch import KillSwitch
from sandbox.offload import Workbench
from sandbox.schemas.validator import SchemaChecker, get_checker


@dataclass(frozen=True)
class Admission:
    """Gathers what is known of a call at this moment."""

    rules: RuleTable
    signed_policy: SignedPolicy
    kill_switch: KillSwitch
    now: Callable[[], float] = time.time
    workbench: Workbench = field(default_factory=Workbench)

    async def read_arguments(self, call: Call, member: RegisteredServer) -> Call:
        """The call with its arguments as they count for all that follows: those that its tool's
        schema takes as they are, others as `orchestrator.gateway.arguments` reads them. It knows
        which of them are a secret.
        """
        checker = member.checkers.get(call.tool)
        if checker is None:
            checker = get_checker(member.tools[call.tool].input_schema)
            member.checkers[call.tool] = checker
            member.secrets[call.tool] = find_secret_arguments(
                member.tools[call.tool], member.bundle.credentials
            )
        if not checker.fits_plainly(call.arguments):
            adapt = partial(_adapt_call, call, member, checker)
            call = await self.workbench.run_counted(call.arguments, adapt, checker.weight)
        places = member.secrets[call.tool]
        return mark_secrets(call, places) if places else call

    def build_question(self, call: Call, member: RegisteredServer) -> GateQuestion:
        access: Access = "write" if call.asks else member.tools[call.tool].access
        if access == "write":
            # Approved writes are often carried out by another process, whose records count too.
            member = replace(member, standing=self.signed_policy.store.standings.get(call.server))
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
        # Words alone never write: what a model made of them is always shown to a person, and so is
        # what nobody can have vouched for, since the tool does it with no documented argument, and
        # what takes one API's answer to another.
        shown = call.read_by or call.asks or call.flow
        return replace(write, vouched=0, rules=()) if shown else write


def _adapt_call(call: Call, member: RegisteredServer, checker: SchemaChecker) -> Call:
    """The call with its arguments as they count, where they may break its tool's schema."""
    if checker.find_problem(call.arguments) is None:
        return call
    read = adapt_arguments(member.bundle, member.tools[call.tool], call.arguments)
    return replace(call, arguments=read.arguments, note=read.note, asks=read.asks)
