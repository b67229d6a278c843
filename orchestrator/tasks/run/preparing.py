"""The nodes that prepare a step: plan, route, choose, arguments, gate and confirm.

None of them calls a tool. Each may wait for an answer, and is run again from its start with it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from forge.errors import AuthorFailed
from orchestrator.calls import split_tool_name
from orchestrator.errors import BudgetSpent, UnknownTool
from orchestrator.forging.contact.suggestions import describe_suggestions
from orchestrator.forging.order import NO_TOOL
from orchestrator.tasks.model import Plan, Step
from orchestrator.tasks.planning.parse import parse_plan
from orchestrator.tasks.planning.references import Resolution, expand_each, resolve_references
from orchestrator.tasks.planning.split import plan_task
from orchestrator.tasks.results import (
    build_nothing,
    build_unknown_tool,
)
from orchestrator.tasks.routing.decision import RoutingDecision
from orchestrator.tasks.run import questions
from orchestrator.tasks.run.context import RunContext
from orchestrator.tasks.run.flow import find_foreign_values, holds_reference
from orchestrator.tasks.run.lookups import drop_lookup
from orchestrator.tasks.run.remembering import find_remembered_tool, find_repeated_call
from orchestrator.tasks.run.restrictions import is_restricted
from orchestrator.tasks.run.state import (
    RunState,
    StepState,
    build_steps,
    change_step,
    find_ready,
    get_server,
    get_step,
    list_results,
)
from orchestrator.tasks.run.step_decision import StepDecision, decide_step
from orchestrator.tasks.run.taking import Taken, parse_sources
from orchestrator.tasks.run.task_words import strip_addresses
from orchestrator.tasks.run.thinking import CLIENT, RULES, ask_choice, ask_plan
from orchestrator.tasks.run.workflows import MAX_RUNS, find_known_plan
from registry.sessions.memory import SessionCall

CANDIDATES = 5
MADE_CANDIDATES = 20
"""So many are looked through for those of a server that was made for the step."""
NOTHING_ASKED = frozenset({"advice", "remark"})
DOUBTFUL = NOTHING_ASKED | {"uncertain_intent"}
"""Reasons for which only whoever asked can tell whether something is to be done."""

_UNLIKELY = frozenset({"no_candidate", "below_forge"})
"""Reasons for which none of the tools may be meant, but a public API."""


@dataclass(frozen=True)
class Preparing:
    """The nodes of one run."""

    context: RunContext

    async def plan(self, state: RunState) -> RunState:
        """A task's steps: as somebody gave them, by rules, by the endpoint, or by who asked."""
        self.context.tell("plan", 0.05, "planning")
        if state.get("steps"):
            return {"current": next((step["id"] for step in find_ready(state)), "")}
        named = state.get("tool") or self._find_named_tool(state["task"])
        given, taken = await self.context.take_arguments(state, state.get("arguments") or {})
        if named:
            steps = build_steps(Plan((Step("s1", state["task"], named, given),)))
            steps["s1"] |= {"choice": "forge" if named == NO_TOOL else "given", "taken": taken}
            return {
                "steps": steps,
                "current": "s1",
                "strategy": "forced" if named == NO_TOOL else "single",
            }
        plan = await asyncio.to_thread(plan_task, state["task"])
        if len(plan.steps) == 1:
            steps = build_steps(plan)
            steps[plan.steps[0].id] |= {"arguments": given, "taken": taken}
            return {"steps": steps, "current": plan.steps[0].id, "strategy": plan.strategy}
        plan, by, took = await self._arrange_steps(state, plan)
        steps = build_steps(plan)
        for step in steps.values():
            step["taken"] = took.get(step["id"], {})
            if step["tool"]:
                step |= {"choice": "choose", "read_by": by}
        return {"steps": steps, "current": plan.steps[0].id, "strategy": plan.strategy}

    async def _arrange_steps(
        self, state: RunState, plan: Plan
    ) -> tuple[Plan, str, Mapping[str, Taken]]:
        """Several steps, who says how they hang together, and what each takes of other answers."""
        found = await asyncio.to_thread(self._find_candidates, plan)
        author = await self.context.open_author()
        if author is not None:
            try:
                made, by = await ask_plan(author, state["task"], plan, found, self._knows_tool)
            except (AuthorFailed, BudgetSpent):
                return plan, RULES, {}
            return made, by, {}
        plan = await asyncio.to_thread(self._find_known, state["task"], plan)
        told = [_describe_planned(step) for step in plan.steps]
        question = questions.build_plan_question(0, told, found)
        if self.context.quiet:
            return plan, RULES, {}
        answer = self.context.ask(question, state)
        if "steps" not in answer:
            return plan, CLIENT, {}
        steps, took = [], {}
        for each in answer["steps"]:
            given, took[each["id"]] = await self.context.take_arguments(
                state, each.get("arguments") or {}
            )
            steps.append({**each, "arguments": given})
        parsed = parse_plan({"steps": steps})
        return (parsed, CLIENT, took) if isinstance(parsed, Plan) else (plan, RULES, {})

    def _find_known(self, task: str, plan: Plan) -> Plan:
        """How an earlier run of this home did the same steps; the rules' plan where none did."""
        runs = self.context.store.jobs.find("done", MAX_RUNS)
        return find_known_plan(task, plan, runs, self._knows_tool) or plan

    def _find_candidates(self, plan: Plan) -> dict[str, list[dict[str, Any]]]:
        find = self.context.parts.suggestions.find
        return {step.id: [each.to_json() for each in find(step.task, 3)] for step in plan.steps}

    def _knows_tool(self, tool: str) -> bool:
        parts = split_tool_name(tool)
        try:
            return bool(parts and self.context.parts.roster.find_tool(*parts))
        except UnknownTool:
            return False

    def _find_named_tool(self, task: str) -> str:
        """The tool whose exact `server.tool` name the task is, or nothing."""
        return task.strip() if self._knows_tool(task.strip()) else ""

    async def route(self, state: RunState) -> RunState:
        """Who can do the step: the tool that somebody named, else what its words come to."""
        step = get_step(state)
        self.context.tell("route", 0.1, "looking for a server that can do it")
        if step.get("tool") == NO_TOOL:
            return {"steps": change_step(state, step["id"], choice="forge")}
        if step.get("tool"):
            parts = split_tool_name(step["tool"])
            if parts is None:
                return {"result": build_unknown_tool(step["tool"])}
            self.context.parts.roster.find_tool(*parts)
            return {}
        made = step.get("made") or list(filter(None, [state.get("made")]))
        most = MADE_CANDIDATES if made else CANDIDATES
        routed = await asyncio.to_thread(
            self.context.parts.suggestions.route, strip_addresses(step["task"]), most
        )
        decided = await asyncio.to_thread(
            decide_step, self.context.parts, step["task"], routed, made, state.get("source", "")
        )
        decided, repeated = await asyncio.to_thread(self._remember, state, decided)
        if decided.decision.kind == "answer":
            shown = questions.shorten_candidates(decided.candidates)
            return {"result": build_nothing(shown, decided.decision.reasons)}
        changes = _decided(step, decided)
        if repeated is not None:
            changes |= {"arguments": dict(repeated.arguments), "repeats": True}
        if changes["choice"] == "confirm" and await self._may_choose(changes["reasons"]):
            # The endpoint is asked in place of whoever asked for the task.
            changes |= {"choice": "choose", "tool": "", "read_by": ""}
        return {"steps": change_step(state, step["id"], **changes)}

    def _remember(
        self, state: RunState, decided: StepDecision
    ) -> tuple[StepDecision, SessionCall | None]:
        """The decision; to show a call of what the words mean by an earlier answer of the session
        where they would not choose a tool by themselves, or that answer's own call once more.
        """
        session, reasons = state.get("session", ""), decided.decision.reasons
        undecided = decided.decision.kind in ("choose", "forge", "answer")
        open_kind = undecided and "creation" not in reasons
        if not session or not open_kind or self.context.quiet or NOTHING_ASKED & {*reasons}:
            return decided, None
        parts, task = self.context.parts, get_step(state)["task"]
        memory = self.context.store.sessions.load_memory(session, time.time())
        names = [str(each["tool"]) for each in decided.candidates]
        tool = find_remembered_tool(parts.roster, memory, task, names)
        repeated = None if tool else find_repeated_call(parts.roster, memory, task)
        tool = repeated.tool if repeated else tool
        if not tool:
            return decided, None
        shown = replace(decided, decision=RoutingDecision("confirm", ("memory_value",)), tool=tool)
        return shown, repeated

    async def _may_choose(self, reasons: Sequence[str]) -> bool:
        """Whether an endpoint chooses: not where it is doubtful that anything is to be done."""
        if DOUBTFUL.intersection(reasons):
            return False
        return await self.context.open_author() is not None

    def choose_after_route(self, state: RunState) -> str:
        if state.get("result"):
            return "assemble"
        choice = get_step(state).get("choice")
        if choice in ("choose", "adapt", "forge") and not get_step(state).get("tool"):
            return str(choice)
        return "forge" if choice == "forge" else "arguments"

    async def choose(self, state: RunState) -> RunState:
        """One of the candidates or none of them: the endpoint says so, else who asked."""
        step = get_step(state)
        self.context.tell("choose", 0.2, f"choosing a tool for {step['id']}")
        candidates = step.get("candidates") or []
        again = bool(step.get("failed_tool"))
        asks = (again or not step.get("rounds")) and await self._may_choose(
            step.get("reasons") or []
        )
        author = await self.context.open_author() if asks else None
        if author is not None:
            try:
                chosen = await ask_choice(author, step["task"], candidates)
            except (AuthorFailed, BudgetSpent):
                chosen = None
            # A server was made for just this: whether another is to be made, who asked has to say.
            if chosen is not None and not (chosen.tool == questions.NONE and step.get("made")):
                return _chosen(state, chosen.tool, {}, chosen.by)
        unlikely = not candidates or bool(_UNLIKELY.intersection(step.get("reasons") or []))
        question = questions.build_choice(
            step["id"],
            step.get("rounds", 0),
            step["task"],
            candidates,
            await asyncio.to_thread(describe_suggestions, step["task"]) if unlikely else (),
            step.get("failed_tool", ""),
            step.get("made") or list(filter(None, [state.get("made")])),
        )
        answer = self.context.ask(question, state)
        given, taken = await self.context.take_arguments(state, answer.get("arguments") or {})
        return _chosen(state, answer["tool"], given, CLIENT, taken)

    def choose_after_choose(self, state: RunState) -> str:
        return "forge" if get_step(state).get("choice") == "forge" else "arguments"

    async def gate(self, state: RunState) -> RunState:
        """What of the call has to be shown before it is made: values that another server's answer
        gave, a server that words may not choose, a match that is not sure.
        """
        step = get_step(state)
        self.context.tell("gate", 0.45, f"judging {step['tool']}")
        calls = self._resolve_calls(state, step)
        problems = [problem for each in calls for problem in each.problems]
        if problems:
            told = "; ".join(f"{p.where} {p.code} {p.step} {p.path}" for p in problems[:5])
            return self._refuse(state, f"{step['tool']} was not called: {told}")
        if len(calls) != 1 and self.context.get_tool(step["tool"]).access != "read":
            return self._refuse(state, f"{step['tool']} writes, and a step writes once")
        resolved = dict(calls[0].arguments) if len(calls) == 1 else {}
        many = [dict(each.arguments) for each in calls] if len(calls) != 1 else []
        why = self._list_reasons(state, step, {"each": many} if many else resolved)
        changes: dict[str, Any] = {"resolved": resolved, "each": many, "why": " ".join(why)}
        if why and not step.get("shown"):
            return {"steps": change_step(state, step["id"], **changes)}
        return self._finish(state, change_step(state, step["id"], **changes, ready=True))

    def _resolve_calls(self, state: RunState, step: StepState) -> Sequence[Resolution]:
        """The arguments of the step's calls: one, or one for each value that a reference means."""
        arguments, results = step.get("arguments") or {}, list_results(state)
        if step.get("pick") == "each" and holds_reference(arguments):
            return expand_each(arguments, results)
        schema = self.context.get_tool(step["tool"]).input_schema
        return (resolve_references(arguments, results, schema),)

    def _list_reasons(
        self, state: RunState, step: StepState, resolved: Mapping[str, Any]
    ) -> Sequence[str]:
        why = list(step.get("doubts") or [])
        if step.get("choice") == "confirm":
            why += questions.explain_reasons(step.get("reasons") or [])
        chosen = step.get("choice") == "given" or step.get("read_by") == CLIENT
        if not chosen and is_restricted(self.context.parts, step["tool"]):
            why.append("Its server is not one that words alone may call.")
        said = " ".join([state["task"], step["task"]])
        foreign = find_foreign_values(self.context.parts.roster, state, step, resolved, said)
        allowed, server = self.context.parts.results.is_flow_allowed, get_server(step["tool"])
        shown = {n: origin for n, origin in foreign.items() if not allowed(origin, server)}
        shown |= self._find_taken(step, server)
        if shown:
            named = ", ".join(f"{name} (from {origin})" for name, origin in shown.items())
            why.append(f"Another server's answer would be sent there: {named}.")
        return why

    def _find_taken(self, step: StepState, server: str) -> dict[str, str]:
        """The arguments whose values earlier answers of the session gave, and that would get to new
        places with this call; each with the server that gave it.
        """
        find = self.context.parts.results.find_foreign_sources
        found: dict[str, str] = {}
        for name, sources in (step.get("taken") or {}).items():
            foreign = find(parse_sources(sources), server)
            if foreign and name in (step.get("arguments") or {}):
                found[name] = foreign[0].server
        return found

    async def confirm(self, state: RunState) -> RunState:
        """Show the filled call to who asked, and let them say yes, no or other arguments."""
        step = get_step(state)
        self.context.tell("confirm", 0.5, f"asking whether {step['tool']} is meant")
        tool = self.context.get_tool(step["tool"])
        question = questions.build_confirmation(
            step["id"],
            step.get("rounds", 0),
            step["tool"],
            tool.access,
            {"each": step["each"]} if step.get("each") else step["resolved"],
            [step["why"]] if step.get("why") else [],
            tool.input_schema if step.get("doubts") and not step.get("finds") else None,
        )
        answer = self.context.ask(question, state)
        if answer["confirm"]:
            told = answer.get("arguments")
            resolved = step["resolved"] if told is None else dict(told)
            origins = step.get("origins", {}) if told is None else dict.fromkeys(resolved, "given")
            by = step.get("read_by") or CLIENT
            steps = change_step(
                state,
                step["id"],
                resolved=resolved,
                origins=origins,
                read_by=by,
                shown=True,
                ready=True,
            )
            waiting = steps.get(step.get("finds", ""))
            if waiting and self.context.get_tool(waiting["tool"]).access == "read":
                # What the lookup is for was shown with it.
                steps = {**steps, waiting["id"]: {**waiting, "shown": True}}
            return self._finish(state, steps)
        if step.get("finds"):
            return drop_lookup(state, step)
        if step.get("choice") == "confirm" and not step.get("rounds"):
            changes = {"choice": "choose", "tool": "", "arguments": {}, "rounds": 1}
            return {"steps": change_step(state, step["id"], **changes)}
        return self._refuse(state, f"{step['tool']} was not called: it was not confirmed")

    def choose_after_gate(self, state: RunState) -> str:
        """Where a prepared step leads: to its confirmation, to the next step, or to the calls."""
        if state.get("result"):
            return "assemble"
        step = get_step(state)
        if step.get("choice") == "choose" and not step.get("tool") and not step.get("ready"):
            return "choose" if step.get("rounds") else "route"
        if step.get("ready"):
            return "execute"
        return "confirm" if "resolved" in step else "route"

    def _finish(self, state: RunState, steps: dict[str, StepState]) -> RunState:
        """The step is prepared. The next that can be is prepared too, to run beside it."""
        following = next(find_ready({**state, "steps": steps}), None)
        return {"steps": steps, "current": following["id"] if following else state["current"]}

    def _refuse(self, state: RunState, reason: str) -> RunState:
        step = get_step(state)
        reply = {"state": "refused", "tool": step["tool"], "reason": reason}
        ended = change_step(state, step["id"], end="refused", reply=reply)
        return {"steps": ended, "result": {"state": "refused"}}


def _describe_planned(step: Step) -> dict[str, Any]:
    told = {"id": step.id, "task": step.task, "after": list(step.after)}
    known = {"tool": step.tool, "arguments": dict(step.arguments)} if step.tool else {}
    return {**told, **known}


def _decided(step: StepState, decided: StepDecision) -> dict[str, Any]:
    changes: dict[str, Any] = {
        "choice": decided.decision.kind,
        "tool": decided.tool,
        "candidates": [dict(each) for each in decided.candidates],
        "reasons": list(decided.decision.reasons),
        "read_by": RULES if decided.tool else "",
        "server": decided.decision.server,
        "looks_up": decided.looks_up,
    }
    return changes


def _chosen(
    state: RunState,
    tool: str,
    arguments: Mapping[str, Any],
    by: str,
    taken: Taken | None = None,
) -> RunState:
    """The step with what was chosen of its candidates."""
    step = get_step(state)
    if tool == questions.NONE:
        return {"steps": change_step(state, step["id"], choice="forge", tool=NO_TOOL)}
    changes: dict[str, Any] = {"choice": "choose", "tool": tool, "read_by": by}
    if arguments:
        changes |= {"arguments": dict(arguments), "taken": taken or {}}
    return {"steps": change_step(state, step["id"], **changes)}
