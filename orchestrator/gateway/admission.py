"""What the gate is asked about a call, and what its answer costs."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from orchestrator.calls import Call
from orchestrator.clearance import Clearance
from orchestrator.gate import Allow, Ask, Question, Ruling, Write
from orchestrator.roster import Member
from registry.store import Store
from sandbox.brake import Brake


@dataclass(frozen=True)
class Admission:
    """Gathers what is known of a call at this moment."""

    store: Store
    clearance: Clearance
    brake: Brake
    now: Callable[[], float] = time.time

    def question(self, call: Call, member: Member) -> Question:
        access = member.bundle.tool(call.tool).access
        return Question(
            state=member.entry.state,
            access=access,
            server=member.standing,
            write=self._facts(call, member) if access == "write" else None,
            frozen=self.brake.engaged,
        )

    def counted(self, identity: str, call: Call, ruling: Ruling) -> Ruling:
        """The ruling, once a use of its rule is stored; another process may have used it up."""
        if not isinstance(ruling, Allow) or ruling.rule is None:
            return ruling
        if self.store.use_rule(ruling.rule.id, identity, call.name, self.now()):
            return ruling
        return Ask(f"the rule {ruling.rule.id} has ended")

    def _facts(self, call: Call, member: Member) -> Write:
        write = self.clearance.write(call, member.entry, member.bundle, member.standing, self.now())
        # Words alone never write: what a model made of them is always shown to a person.
        return replace(write, vouched=0, rules=()) if call.read_by else write
