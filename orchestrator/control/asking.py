"""When a tool asks a person before it writes, in words for its page.

Only the press knows: the gate judges the arguments that are typed, and the signatures of rules.
What is said here is therefore what may happen.
"""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.approvals.gate import describe_asking, is_erasing
from registry.approvals.rules import ApprovalRule
from registry.models import RegisteredTool
from registry.store import Store
from registry.trust import Standing, is_write_exempt

READS_AT_ONCE = "A read is called at once, unless its server is stopped or everything is frozen."
READ_ASKS = "not for a read, unless its server is only on trial (“experimental”)"
WAITS = "Nothing is sent: the exact request is shown under Approvals, where you decide it."
BY_RULE = "A rule of yours may send it at once; else it is shown under Approvals."
MAY_BE_SENT = (
    "It writes. It may be sent at once, by a rule of yours or since you approved it often enough; "
    "else the exact request comes to Approvals first."
)
SEND_OR_ASK = "Send it, or ask me"
EXEMPT = "It may be sent at once: you approved this tool often enough. `asks you` above says when."


@dataclass(frozen=True)
class AskingFacts:
    """What is stored of a tool that decides whether a person is asked. `rules` are those of the
    tool that are live.
    """

    tool: RegisteredTool
    operation: Standing
    server: Standing
    rules: tuple[ApprovalRule, ...] = ()

    @property
    def erases(self) -> bool:
        """Whether it deletes something, which no rule allows."""
        meta = self.tool.definition.get("_meta")
        ours = meta.get("toolwright") if isinstance(meta, dict) else None
        said = ours if isinstance(ours, dict) else {}
        named = (str(said.get("method") or ""), str(said.get("operation") or ""))
        return self.tool.destructive and is_erasing(*named, self.tool.name)

    @property
    def may_be_sent_by_rule(self) -> bool:
        return bool(self.rules) and not self.erases

    @property
    def may_be_sent_at_once(self) -> bool:
        """Whether a write may be sent without asking, as far as the tool says."""
        return self.may_be_sent_by_rule or is_write_exempt(self.server, self.operation)


def read_asking(store: Store, server: str, tool: RegisteredTool, now: float) -> AskingFacts:
    """The facts about one tool of a registered server."""
    live = (rule for rule in store.rules.find(server, tool.name) if rule.is_live(now))
    standing = store.standings.get(server)
    return AskingFacts(tool, store.standings.get_operation(server, tool.name), standing, (*live,))


def explain_asking(facts: AskingFacts) -> str:
    """When a person is asked, and what is missing until they are not."""
    if facts.tool.access == "read":
        return READ_ASKS
    return describe_asking(
        facts.server,
        facts.operation,
        destructive=facts.tool.destructive,
        erases=facts.erases,
        rules=len(facts.rules),
    )


def name_press(facts: AskingFacts) -> str:
    """The word of the button of the tool's form."""
    if facts.tool.access == "read":
        return "Call it"
    return SEND_OR_ASK if facts.may_be_sent_at_once else "Prepare the request"


def explain_press(facts: AskingFacts) -> str:
    """What the button of the tool's form does."""
    if facts.tool.access == "read":
        return READS_AT_ONCE
    if facts.may_be_sent_by_rule:
        return BY_RULE
    return EXEMPT if is_write_exempt(facts.server, facts.operation) else WAITS
