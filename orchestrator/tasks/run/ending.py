"""The nodes that make servers for a step, and the one that ends a run: forge, adapt, assemble."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from forge.addresses import find_locations
from orchestrator.errors import OrchestratorError
from orchestrator.forging.contact.suggestions import describe_suggestions
from orchestrator.forging.order import NO_SOURCE, NO_TOOL, ORDER, ForgeOrder
from orchestrator.tasks.run import questions
from orchestrator.tasks.run.context import RunContext
from orchestrator.tasks.run.outcome import build_outcome
from orchestrator.tasks.run.state import (
    RunState,
    StepState,
    change_step,
    get_step,
)
from orchestrator.tasks.suggestions import describe_resting
from registry.database.canonical import hash_text
from registry.errors import DuplicateRow, TooManyWaiting
from registry.models import Job
from registry.needs import DecisionNeed

STOP = "stop"
_ORDERED = frozenset({*ForgeOrder.__dataclass_fields__, "session", "reason"})
"""What of a run's request counts for what it has made too."""
MAX_FORGED = 3
"""Servers that a run makes or extends at most."""
ONE_BY_CODE = "a run has the code of one server written; ask for the rest by itself"


@dataclass(frozen=True)
class Making:
    """The nodes of one run that make servers."""

    context: RunContext

    async def forge(self, state: RunState) -> RunState:
        """No server can do it: make one as a forge job does. What that waits for the run waits for,
        and goes on from here.
        """
        step = get_step(state)
        self.context.tell("forge", 0.1, f"nothing registered does {step['id']}")
        if self.context.quiet:
            return self._suggest(state)
        if step.get("server") in (state.get("adapted") or []) and step.get("made"):
            return await self._extend(state, step)
        if len(state.get("forged") or []) >= MAX_FORGED:
            return self._refuse(
                state, f"a run makes {MAX_FORGED} servers at most; ask for the rest"
            )
        source = await asyncio.to_thread(self._find_source, state)
        if source == STOP:
            return self._refuse(state, "no server does it, and none was to be made")
        if source == NO_SOURCE and await self._has_drafts(state):
            return self._refuse(state, ONE_BY_CODE)
        made = await self._carry_out(state, {"source": source} if source else {})
        return self._route_to(state, str(made["server"]))

    async def _has_drafts(self, state: RunState) -> bool:
        """Whether a server that this run made was written as code: its drafts are the job's."""
        if not state.get("forged"):
            return False
        return bool(await asyncio.to_thread(self.context.store.drafts.find, self.context.job.id))

    async def _carry_out(self, state: RunState, order: Mapping[str, Any]) -> Mapping[str, Any]:
        """What forging for a step came to, as a forge job does it. Raises as that."""
        job, step = self.context.job, get_step(state)
        asked = isinstance(job.result, Mapping) and job.result.get("state") == "asking"
        # What a forge keeps of its drafts is the job's result too; a question is none of that, nor
        # is what another server of this run left there.
        begun = None if asked or state.get("forged") else job.result
        own = {k: v for k, v in job.request.items() if k in _ORDERED}
        if state.get("forged"):
            # What the order said of the server before is not this one's.
            own = {k: v for k, v in own.items() if k not in ("name", "parent", "source")}
        request = {**job.request, ORDER: {**own, "task": step["task"], **order}}
        # Whoever hands in a draft for it is held to the same order.
        self.context.store.jobs.keep_request(job.id, job.attempt, request, time.time())
        forging = replace(job, request=request, result=begun)
        return await self.context.parts.forge(forging, self.context.report)

    def _find_source(self, state: RunState) -> str:
        """Where the API is: as the request or the task says it, else asked once."""
        step = get_step(state)
        if not state.get("forged") and (state.get("source") or state.get("tool") == NO_TOOL):
            return state.get("source", "")
        if self.context.job.request.get("document") or find_locations(step["task"]):
            return ""
        services = describe_suggestions(step["task"])
        resting = describe_resting(self.context.store, step["task"])
        question = questions.build_source(step["id"], 0, step["task"], services, resting)
        return str(self.context.ask(question, state)["source"]).strip()

    async def adapt(self, state: RunState) -> RunState:
        """A registered server lacks what the step asks for: make its next version, from its own
        description anew, and where that has nothing more, from code.
        """
        step = get_step(state)
        server = step.get("server", "")
        self.context.tell("adapt", 0.1, f"{server} lacks what {step['id']} asks for")
        if self.context.quiet or not server:
            return self._suggest(state)
        entry = await asyncio.to_thread(self.context.store.servers.get, server)
        compiled = entry.created_by.startswith("compiler")
        if not compiled:
            return await self._extend(state, step)
        await self._carry_out(state, {"name": server, "source": entry.source})
        # What it has by now is chosen from; none of it leads to code for it.
        adapted = [*(state.get("adapted") or []), server]
        return {**self._route_to(state, server), "adapted": adapted, "strategy": "adapt"}

    async def _extend(self, state: RunState, step: StepState) -> RunState:
        """The next version of a registered server, from code that somebody writes, once a run."""
        if step.get("extended"):
            return self._refuse(state, "its next version does not do it either")
        if await self._has_drafts(state):
            return self._refuse(state, ONE_BY_CODE)
        server = step["server"]
        await self._carry_out(state, {"name": server, "parent": server, "source": NO_SOURCE})
        routed = self._route_to(state, server)
        steps = change_step({**state, "steps": routed["steps"]}, step["id"], extended=True)
        return {**routed, "steps": steps, "strategy": "adapt"}

    def choose_after_forge(self, state: RunState) -> str:
        return "assemble" if state.get("result") else "route"

    def _route_to(self, state: RunState, server: str) -> RunState:
        """The same step again, with the server that was made for it."""
        step = get_step(state)
        made = [*(step.get("made") or []), server]
        changes: dict[str, Any] = {"tool": "", "choice": "act", "made": made}
        return {
            "steps": change_step(state, step["id"], **changes),
            "forged": [*(state.get("forged") or []), server],
        }

    def _suggest(self, state: RunState) -> RunState:
        step = get_step(state)
        shown = questions.shorten_candidates(step.get("candidates") or [])
        return {"result": {"state": "suggested", "candidates": shown}}

    def _refuse(self, state: RunState, reason: str) -> RunState:
        step = get_step(state)
        reply = {"state": "refused", "tool": step["task"][:200], "reason": reason}
        ended = change_step(state, step["id"], end="refused", reply=reply)
        return {"steps": ended, "result": {"state": "refused"}}


@dataclass(frozen=True)
class Ending:
    """The node that ends a run."""

    context: RunContext

    async def assemble(self, state: RunState) -> RunState:
        """What the run came to. Where a write waits and steps are left, the run that goes on with
        them is there already: the decision on the write starts it.
        """
        self.context.tell("assemble", 0.95, "putting the answer together")
        result = state.get("result") or {}
        if result and result.get("state") != "refused":
            return {}
        held = [s for s in state["steps"].values() if s.get("end") == "pending"]
        left = [s for s in state["steps"].values() if not s.get("end")]
        following = ""
        if held and left and not self.context.quiet:
            approval = str(held[0]["reply"]["approval"])
            following = await asyncio.to_thread(self._queue_rest, state, approval)
        return {"result": build_outcome(state, following)}

    def _queue_rest(self, state: RunState, approval: str) -> str:
        """The run of the steps that are left, which waits for the decision; its id, or "" where no
        more may wait. It is made once, however often this run is carried on.
        """
        job = self.context.job
        identity = hash_text(f"the run after {job.id} and {approval}")[:16]
        now = time.time()
        kept = ("task", "reason", "session", "files")
        request = {name: job.request[name] for name in kept if name in job.request}
        request |= {"continues": job.id, "approval": approval}
        following = Job(
            identity,
            "do",
            request,
            created=now,
            updated=now,
            state="waiting",
            stage=DecisionNeed.kind,
            message=f"waits for the decision on approval {approval}",
            needs=DecisionNeed(approval),
        )
        with suppress(DuplicateRow):
            try:
                self.context.store.jobs.create(following)
            except TooManyWaiting:
                return ""
        return identity


async def settle_step(context: RunContext, state: RunState) -> RunState:
    """A run that goes on after the decision on a write, with what became of that."""
    approval = await asyncio.to_thread(context.store.approvals.get, state["approval"])
    held = next((s for s in state["steps"].values() if s.get("end") == "pending"), None)
    if held is None:
        raise OrchestratorError(f"job {state['continues']} waits for no write; nothing is left.")
    if approval.state == "done":
        reply = {
            "state": "called",
            "call": approval.invocation,
            "trust": "",
            "rule": "",
            "cause": "",
            "result": approval.outcome,
            "failure": None,
        }
        changes: dict[str, Any] = {"end": "done", "reply": reply, "call": approval.invocation}
        steps = change_step(state, held["id"], **changes)
        # What reads before it answered was told beside it, and its own answer with the decision.
        ended = [name for name, step in steps.items() if step.get("end") == "done"]
        for name in ended:
            steps = change_step({**state, "steps": steps}, name, told=True)
        return {"steps": steps}
    reason = f"approval {approval.id} is {approval.state}; what was to follow it was not done"
    refused = {"state": "refused", "tool": held["tool"], "reason": reason}
    return {
        "steps": change_step(state, held["id"], end="refused", reply=refused),
        "result": {"state": "refused"},
    }
