"""The nodes that call tools and mend what fails: execute, check, retry, diagnose and repair.

A node may run twice, so a call goes through dispatch under an id made from job, step and attempt,
and a write that was requested or made under it before is not made again.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from orchestrator.calls import Call, Done, Pending, Reply
from orchestrator.errors import UnknownTool
from orchestrator.gateway.approved_writes import derive_approval_id
from orchestrator.results.references import merge_sources
from orchestrator.tasks.planning.pages import (
    describe_count,
    describe_page,
    describe_unapplied,
)
from orchestrator.tasks.planning.ranking import describe_ranking
from orchestrator.tasks.results import add_escalation, build_call_result
from orchestrator.tasks.run.context import RunContext
from orchestrator.tasks.run.outcome import explain_arguments, is_answered_by_person
from orchestrator.tasks.run.state import (
    MAX_CALLS,
    RunState,
    StepState,
    change_step,
    extract_value,
    find_ready,
    get_server,
)
from orchestrator.tasks.run.taking import parse_sources
from orchestrator.tasks.run.task_words import asks_for_count, plain_words
from registry.errors import RowNotFound
from registry.models import Invocation
from sandbox.session.interface import Failure

MAX_ATTEMPTS = 3
AT_ONCE = 4
TRANSIENT = frozenset({"timeout", "unreachable", "crashed", "interrupted"})
FIXABLE = frozenset({"schema", "malformed", "drift", "bug"})
UNTAKEN = frozenset({400, 422})
"""Statuses by which an API says that arguments are missing or wrong."""
MOVED = frozenset({405, 410})
"""Statuses by which an API says that an operation is no longer where it was (RFC 9110)."""


@dataclass(frozen=True)
class Calling:
    """The nodes of one run."""

    context: RunContext

    async def execute(self, state: RunState) -> RunState:
        """The prepared steps: reads side by side, else one write, each through the gate."""
        ready = [s for s in state["steps"].values() if s.get("ready") and not s.get("end")]
        reads = [step for step in ready if self._is_read(step)]
        wave = _fit_budget(reads or ready[:1], MAX_CALLS - state.get("calls", 0))
        named = ", ".join(step["tool"] for step in wave)
        attempt = max((step.get("attempts", 0) for step in wave), default=0) + 1
        self.context.tell("execute", 0.6, f"calling {named} (attempt {attempt})")
        limit = asyncio.Semaphore(AT_ONCE)
        replies = await asyncio.gather(*(self._call(state, step, limit) for step in wave))
        steps = state["steps"]
        for step, changes in zip(wave, replies, strict=True):
            steps = change_step({**state, "steps": steps}, step["id"], **changes)
        if not wave:
            steps = change_step(
                {**state, "steps": steps},
                ready[0]["id"],
                end="refused",
                reply={
                    "state": "refused",
                    "tool": ready[0]["tool"],
                    "reason": f"the run has made {MAX_CALLS} calls, the most it may; ask for less",
                },
            )
        calls = state.get("calls", 0) + sum(map(_count_calls, wave))
        return {"steps": steps, "wave": [step["id"] for step in wave], "calls": calls}

    async def _call(
        self, state: RunState, step: StepState, limit: asyncio.Semaphore
    ) -> dict[str, Any]:
        """One attempt at a step, and what came of it."""
        attempt = step.get("attempts", 0) + 1
        job = self.context.job
        identity = f"{job.id}-{step['id']}-{attempt}"
        reads = self._is_read(step)
        if reads:
            # A read may be made again by who carries on with the run of a dead process.
            identity = f"{identity}-{job.attempt}"
        call = self._build_call(state, step)
        earlier = None if reads else await asyncio.to_thread(self._find_earlier, identity, call)
        begun = time.monotonic()
        if earlier is not None:
            reply = earlier
        elif step.get("each"):
            reply = await self._call_each(call, step["each"], identity, limit)
        else:
            reply = await self._call_once(call, identity, limit)
        failure, status = reply.pop("kind", ""), reply.pop("status", None)
        return {
            "attempts": attempt,
            "reply": reply,
            "failure": failure,
            "status": status,
            "call": reply.get("call", ""),
            "page": "" if failure or step.get("each") else self._describe_list(step, call, reply),
            "trust": reply.get("trust", ""),
            "milliseconds": round((time.monotonic() - begun) * 1000, 1),
        }

    def _describe_list(self, step: StepState, call: Call, reply: Mapping[str, Any]) -> str:
        """What is to be said of a list that was read, "" of anything else."""
        try:
            tool = self.context.parts.roster.find_tool(call.server, call.tool)
        except UnknownTool:
            return ""
        if tool.access != "read" or reply.get("state") != "called":
            return ""
        answer = extract_value(reply["result"])
        page = describe_page(tool, call.arguments, answer)
        words = plain_words(step["task"], tool, call.server)
        unapplied = describe_unapplied(words, tool, step.get("evidence") or {})
        ranked = describe_ranking(words, tool, call.arguments, answer)
        asks = asks_for_count(step["task"]) and not unapplied
        count = describe_count(tool, call.arguments, answer) if asks else ""
        return " ".join(filter(None, (count, ranked, page, unapplied)))

    async def _call_once(
        self, call: Call, identity: str, limit: asyncio.Semaphore
    ) -> dict[str, Any]:
        async with limit:
            made = await self.context.parts.call(call, identity)
        return {**build_call_result(made), **_encode_failure(made)}

    async def _call_each(
        self,
        call: Call,
        each: Sequence[Mapping[str, Any]],
        identity: str,
        limit: asyncio.Semaphore,
    ) -> dict[str, Any]:
        """One read for each value; what all of them came to, or the first that failed."""
        replies = await asyncio.gather(
            *(
                self._call_once(replace(call, arguments=arguments), f"{identity}-{number}", limit)
                for number, arguments in enumerate(each, 1)
            )
        )
        bad = [r for r in replies if r["state"] != "called" or r.get("failure")]
        if bad:
            return bad[0]
        answers = [extract_value(reply["result"]) for reply in replies]
        text = json.dumps(answers, ensure_ascii=False)
        told = {"content": [{"type": "text", "text": text}], "structuredContent": {"body": answers}}
        return {**replies[-1], "result": told}

    def _build_call(self, state: RunState, step: StepState) -> Call:
        server, _, tool = step["tool"].partition(".")
        read_by = step.get("read_by", "")
        said = state.get("reason", "")
        origin = explain_arguments(step, by_person=is_answered_by_person(self.context.job.request))
        reason = f"{said} ({origin})" if origin else said
        return Call(
            server=server,
            tool=tool,
            arguments=step.get("resolved") or {},
            task=step["task"] if len(state["steps"]) > 1 else state["task"],
            reason=reason.strip(),
            session=state.get("session", ""),
            read_by=read_by,
            flow=_describe_taken(step),
            sources=merge_sources(*map(parse_sources, (step.get("taken") or {}).values())),
        )

    def _find_earlier(self, identity: str, call: Call) -> dict[str, Any] | None:
        """What a write came to that was begun under this id before its process died."""
        store = self.context.store
        try:
            approval = store.approvals.get(derive_approval_id(identity))
        except RowNotFound:
            approval = None
        if approval is not None:
            return build_call_result(Pending(call, approval, approval.reason))
        try:
            return _encode_stored(store.calls.get(identity))
        except RowNotFound:
            return None

    async def check(self, state: RunState) -> RunState:
        """How each step of the wave ended; one that may be mended has not ended."""
        self.context.tell("check", 0.7, "looking at what came")
        steps = state["steps"]
        for identity in state["wave"]:
            step = steps[identity]
            end = self._judge(step)
            if end == "failed" and step.get("spared") and step.get("status") in UNTAKEN:
                asked = {"ready": False, "spared": False, "insists": True}
                steps = change_step({**state, "steps": steps}, identity, **asked)
            elif end:
                steps = change_step({**state, "steps": steps}, identity, end=end)
        following = next(find_ready({**state, "steps": steps}), None)
        return {"steps": steps, "current": following["id"] if following else state["current"]}

    def _judge(self, step: StepState) -> str:
        came = (step.get("reply") or {}).get("state")
        if came in ("pending", "refused"):
            return str(came)
        kind = step.get("failure", "")
        if not kind:
            return "done"
        return "" if kind in TRANSIENT or kind in FIXABLE else "failed"

    def choose_after_check(self, state: RunState) -> str:
        steps = state["steps"]
        open_steps = [s for i in state["wave"] if not (s := steps[i]).get("end") and s["ready"]]
        if open_steps:
            again = all(self._may_retry(step) for step in open_steps)
            return "retry" if again else "diagnose"
        if any(step.get("end") in ("pending", "refused", "failed") for step in steps.values()):
            return "assemble"
        if next(find_ready(state), None):
            return "route"
        left = any(step.get("ready") and not step.get("end") for step in steps.values())
        return "execute" if left else "assemble"

    def _may_retry(self, step: StepState) -> bool:
        transient = step["failure"] in TRANSIENT
        return transient and self._is_read(step) and step["attempts"] < MAX_ATTEMPTS

    async def retry(self, state: RunState) -> RunState:
        """The same reads once more: what failed may pass."""
        named = ", ".join(s["tool"] for s in state["steps"].values() if s.get("failure"))
        self.context.tell("retry", 0.72, f"trying {named} again")
        return {}

    async def diagnose(self, state: RunState) -> RunState:
        """Which step of the wave is to be mended first."""
        step = self._find_broken(state)
        self.context.tell("diagnose", 0.74, f"{step['tool']} failed: {step['failure']}")
        version = await asyncio.to_thread(self._get_version, step)
        return {"current": step["id"], "steps": change_step(state, step["id"], version=version)}

    def _get_version(self, step: StepState) -> int:
        return self.context.store.servers.get(get_server(step["tool"])).version

    def choose_after_diagnose(self, state: RunState) -> str:
        step = state["steps"][state["current"]]
        mendable = step["failure"] in FIXABLE and not step.get("repairs")
        return "repair" if mendable else self._choose_unmended(state)

    def _choose_unmended(self, state: RunState) -> str:
        """A read that nobody named the tool of may be done by another tool, once a run."""
        step = state["steps"][state["current"]]
        chosen = step.get("choice") not in ("given", None) and not step.get("made")
        useful = step["failure"] in TRANSIENT or step["failure"] in FIXABLE
        others = _list_others(step)
        may = useful and others and chosen and self._is_read(step) and not self.context.quiet
        return "replan" if may and not state.get("replanned") else "escalate"

    async def replan(self, state: RunState) -> RunState:
        """The step without the tool that failed: one of its other candidates, or none."""
        step = state["steps"][state["current"]]
        self.context.tell("replan", 0.78, f"{step['tool']} failed; looking at other tools")
        fresh: StepState = {
            "id": step["id"],
            "task": step["task"],
            "after": step["after"],
            "uses": step["uses"],
            "pick": step["pick"],
            "choice": "choose",
            "tool": "",
            "arguments": {},
            "candidates": _list_others(step),
            "failed_tool": step["tool"],
            "attempts": step["attempts"],
            "rounds": step.get("rounds", 0) + 1,
        }
        return {"steps": {**state["steps"], step["id"]: fresh}, "replanned": True}

    async def repair(self, state: RunState) -> RunState:
        """Have the server repaired, where what is known of it tells how."""
        step = state["steps"][state["current"]]
        server = get_server(step["tool"])
        self.context.tell("repair", 0.76, f"looking for what {server} could be repaired by")
        await self.context.parts.repair(server)
        # Compared with what failed: this node may run again after its process died.
        mended = await asyncio.to_thread(self._get_version, step) > step["version"]
        return {"steps": change_step(state, step["id"], repairs=1 if mended else -1)}

    def choose_after_repair(self, state: RunState) -> str:
        step = state["steps"][state["current"]]
        mended = step["repairs"] > 0 and self._is_read(step)
        return "execute" if mended else self._choose_unmended(state)

    async def escalate(self, state: RunState) -> RunState:
        """Nothing more can be done without a person: say so beside what the server said."""
        step = self._find_broken(state)
        self.context.tell("escalate", 0.9, f"{step['tool']} needs a person")
        lost = (step["tool"], step["failure"], step["attempts"])
        reply = add_escalation(step["reply"], *lost)
        return {"steps": change_step(state, step["id"], end="failed", reply=reply)}

    def _find_broken(self, state: RunState) -> StepState:
        steps = [state["steps"][identity] for identity in state["wave"]]
        return next(step for step in steps if not step.get("end"))

    def _is_read(self, step: StepState) -> bool:
        server, _, tool = step["tool"].partition(".")
        try:
            return self.context.parts.roster.find_tool(server, tool).access == "read"
        except UnknownTool:
            return False


def _describe_taken(step: StepState) -> str:
    """Which values are of earlier answers of the session, for who decides on a write."""
    named = (
        f"{name} is taken from an answer of {', '.join(sources)}"
        for name, sources in (step.get("taken") or {}).items()
    )
    return "; ".join(named)[:600]


def _list_others(step: StepState) -> list[dict[str, Any]]:
    """The step's candidates without those of the server whose tool it tried."""
    server = get_server(step["tool"])
    return [c for c in step.get("candidates") or [] if get_server(c["tool"]) != server]


def _count_calls(step: StepState) -> int:
    return max(1, len(step.get("each") or ()))


def _fit_budget(steps: Sequence[StepState], left: int) -> list[StepState]:
    """The first of the steps whose calls may still be made."""
    fitting = []
    for step in steps:
        left -= _count_calls(step)
        if left < 0:
            break
        fitting.append(step)
    return fitting


def _encode_failure(reply: Reply) -> dict[str, Any]:
    """The kind and status of a call's failure, as the nodes judge it."""
    failure = reply.outcome.failure if isinstance(reply, Done) else None
    if failure is None:
        return {}
    return {"kind": _classify_failure(failure), "status": failure.status}


def _classify_failure(failure: Failure) -> str:
    return "drift" if failure.status in MOVED else failure.kind


def _encode_stored(call: Invocation) -> dict[str, Any]:
    """What the record says of a write that was begun: also that nobody knows."""
    failure = call.failure
    if call.state != "done":
        reason = (
            "its process ended while the write was sent: nobody knows whether it was done. Look "
            "at the API before it is asked for again"
        )
        return {"state": "refused", "tool": f"{call.entry}.{call.tool}", "reason": reason}
    told = {"state": "called", "call": call.id, "trust": "", "rule": "", "cause": ""}
    shown = failure and {"kind": failure.kind, "message": failure.message, "status": failure.status}
    kind = {"kind": failure.kind, "status": failure.status} if failure else {}
    return {**told, "result": call.result, "failure": shown, **kind}
