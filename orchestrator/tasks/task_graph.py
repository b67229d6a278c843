"""The task run as a state machine (LangGraph): plan, route, execute, retry, repair, escalate,
forge. It is checkpointed after every node; nodes may run twice, so every call goes through dispatch
under an id made from the job and the attempt, which never repeats a write.

Checkpointed after every node (LangGraph, SQLite), so that a run goes on after a crash with the job
that owns it. Nodes may run twice, so none of them sends anything by itself: a call goes through
dispatch under an id made from the job and the attempt, which refuses to act twice on a write.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypedDict

from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph

from forge.errors import AuthorFailed
from orchestrator.calls import Call, Done, split_tool_name
from orchestrator.errors import BudgetSpent, UnknownTool
from orchestrator.forging.contact.suggestions import describe_suggestions
from orchestrator.forging.order import NO_TOOL, ForgeStep, Report
from orchestrator.tasks import results
from orchestrator.tasks.arguments import extract_arguments, is_extraction_wanted
from orchestrator.tasks.parts import TaskParts
from orchestrator.tasks.results import TaskResult
from registry.models import Job
from sandbox.bundle.model import ToolDefinition
from sandbox.schemas.validator import get_checker
from sandbox.session.interface import Failure

MAX_STEPS = 10
_JOINTS = re.compile(r"\s*(?:;|\n+|,?\s+(?:and\s+)?then\s+)\s*", re.IGNORECASE)
_BULLET = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)])\s+")


def split_task(task: str) -> tuple[str, ...]:
    """The steps of a task in order, one to ten: split at lines, semicolons and `then`."""
    parts = (_BULLET.sub("", part).strip(" .") for part in _JOINTS.split(task))
    steps = tuple(part for part in parts if part)[:MAX_STEPS]
    return steps or (task,)


MAX_ATTEMPTS = 3
TRANSIENT = frozenset({"timeout", "unreachable", "crashed"})
FIXABLE = frozenset({"schema", "malformed", "drift", "bug"})
MOVED = frozenset({405, 410})
"""Statuses by which an API says that an operation is no longer where it was (RFC 9110)."""


class TaskState(TypedDict, total=False):
    """The state of one task run; plain JSON values only."""

    task: str
    tool: str
    arguments: dict[str, Any]
    source: str
    reason: str
    session: str
    job: str
    steps: list[str]
    attempts: int
    read_by: str
    repairs: int
    failure: str
    retriable: bool
    result: dict[str, Any]


class TaskGraph:
    """The nodes of one run. `report` tells the job how far it is."""

    def __init__(self, parts: TaskParts, job: Job, report: Report) -> None:
        self._parts, self._job, self._report = parts, job, report

    def build_graph(self) -> StateGraph[TaskState]:
        """The graph, not yet compiled."""
        graph: StateGraph[TaskState] = StateGraph(TaskState)
        for node in (
            self.plan,
            self.route,
            self.extract,
            self.execute,
            self.repair,
            self.escalate,
            self.forge,
        ):
            graph.add_node(node.__name__, node)
        graph.add_edge(START, "plan")
        graph.add_edge("plan", "route")
        graph.add_conditional_edges("route", self.choose_after_route, ["extract", "forge", END])
        graph.add_conditional_edges("extract", self.choose_after_extract, ["execute", END])
        graph.add_conditional_edges(
            "execute", self.choose_after_execute, ["execute", "repair", "escalate", END]
        )
        graph.add_conditional_edges("repair", self.choose_after_repair, ["execute", "escalate"])
        graph.add_edge("forge", "route")
        graph.add_edge("escalate", END)
        return graph

    async def plan(self, state: TaskState) -> TaskState:
        self._report(ForgeStep("plan", 0.05, "planning"))
        return {"steps": list(split_task(state["task"])), "attempts": 0, "repairs": 0}

    async def route(self, state: TaskState) -> TaskState:
        """Find who can do it: an exact name or the client's choice runs, words propose."""
        self._report(ForgeStep("route", 0.1, "looking for a server that can do it"))
        chosen = state.get("tool") or self._find_named_tool(state["task"])
        if chosen == NO_TOOL:
            return {"tool": NO_TOOL}
        if chosen:
            return {"tool": chosen}
        return {"result": self._suggested(state["steps"])}

    def choose_after_route(self, state: TaskState) -> str:
        if state.get("result"):
            return END
        return "forge" if state["tool"] == NO_TOOL else "extract"

    async def extract(self, state: TaskState) -> TaskState:
        """Where an endpoint is configured and nobody gave arguments, those that the task says. What
        a model answered once is not asked again when the run is resumed.
        """
        parts = split_tool_name(state["tool"])
        try:
            tool = self._parts.roster.find_tool(*parts) if parts else None
        except UnknownTool:
            tool = None
        given = state.get("arguments") or {}
        if (
            tool is None
            or parts is None
            or not is_extraction_wanted(state["task"], state["tool"], tool, given)
        ):
            return {}
        try:
            author = await self._parts.authors.open_endpoint(self._job.id, parts[0])
            if author is None:
                return {}
            self._report(ForgeStep("extract", 0.3, f"reading the arguments of {state['tool']}"))
            found = await extract_arguments(author, state["task"], tool)
        except (AuthorFailed, BudgetSpent) as error:
            return self._explain_unread(state, tool, str(error))
        if found.problem:
            return self._explain_unread(state, tool, found.problem)
        return {"arguments": dict(found.arguments), "read_by": found.model or author.name}

    def _explain_unread(self, state: TaskState, tool: ToolDefinition, problem: str) -> TaskState:
        """Without arguments the tool is called as before where it needs none."""
        if get_checker(tool.input_schema).find_problem({}) is None:
            return {}
        return {"result": results.build_missing_arguments(state["tool"], tool, problem)}

    def choose_after_extract(self, state: TaskState) -> str:
        return END if state.get("result") else "execute"

    async def execute(self, state: TaskState) -> TaskState:
        """One attempt at the call, through the gate."""
        parts = split_tool_name(state["tool"])
        if parts is None:
            return {"result": results.build_unknown_tool(state["tool"])}
        attempt = state["attempts"] + 1
        self._report(ForgeStep("execute", 0.6, f"calling {state['tool']} (attempt {attempt})"))
        call = Call(
            server=parts[0],
            tool=parts[1],
            arguments=state.get("arguments") or {},
            task=state["task"],
            reason=_render_reason(state),
            session=state.get("session", ""),
            read_by=state.get("read_by", ""),
        )
        reply = await self._parts.call(call, f"{self._job.id}-{attempt}")
        failure = reply.outcome.failure if isinstance(reply, Done) else None
        return {
            "attempts": attempt,
            "result": _add_reading_note(results.build_call_result(reply), state),
            "failure": _classify_failure(failure) if failure else "",
            "retriable": self._parts.roster.find_tool(*parts).access == "read",
        }

    def choose_after_execute(self, state: TaskState) -> str:
        kind = state.get("failure", "")
        if kind in TRANSIENT and state["retriable"] and state["attempts"] < MAX_ATTEMPTS:
            return "execute"
        if kind in FIXABLE and not state["repairs"]:
            return "repair"
        return "escalate" if kind in TRANSIENT or kind in FIXABLE else END

    async def repair(self, state: TaskState) -> TaskState:
        """Have the server repaired, where what is known of it tells how."""
        server = state["tool"].partition(".")[0]
        self._report(ForgeStep("repair", 0.7, f"looking for what {server} could be repaired by"))
        return {"repairs": 1 if await self._parts.repair(server) else -1}

    def choose_after_repair(self, state: TaskState) -> str:
        return "execute" if state["repairs"] > 0 and state["retriable"] else "escalate"

    async def escalate(self, state: TaskState) -> TaskState:
        """Nothing more can be done without a person: say so beside what the server said."""
        lost = (state["tool"], state["failure"], state["attempts"])
        return {"result": results.add_escalation(state["result"], *lost)}

    async def forge(self, state: TaskState) -> TaskState:
        """No server can do it: make one as a forge job does, then route again. What that waits for
        the run waits for, and goes on from here.
        """
        await self._parts.forge(self._job, self._report)
        return {"tool": ""}

    def _find_named_tool(self, task: str) -> str:
        """The tool whose exact `server.tool` name the task is, or nothing."""
        parts = split_tool_name(task.strip())
        try:
            return task.strip() if parts and self._parts.roster.find_tool(*parts) else ""
        except UnknownTool:
            return ""

    def _suggested(self, steps: list[str]) -> TaskResult:
        found = {step: self._parts.suggestions.find(step, 5) for step in steps}
        services = () if any(found.values()) else describe_suggestions(" ".join(steps))
        return results.build_suggestions(found, services)


def _classify_failure(failure: Failure) -> str:
    return "drift" if failure.status in MOVED else failure.kind


def _add_reading_note(result: TaskResult, state: TaskState) -> TaskResult:
    if not state.get("read_by"):
        return result
    arguments = state.get("arguments") or {}
    return results.add_reading(result, state["tool"], state["read_by"], arguments)


def _render_reason(state: TaskState) -> str:
    said, model = state.get("reason", ""), state.get("read_by", "")
    return f"{said} (arguments read out of the task by {model})".strip() if model else said


async def run_task(parts: TaskParts, job: Job, report: Report) -> Mapping[str, Any]:
    """Run or resume the task of a job; what it came to (`orchestrator.tasks.results`)."""
    async with AsyncSqliteSaver.from_conn_string(str(parts.checkpoints)) as saver:
        graph = TaskGraph(parts, job, report).build_graph().compile(checkpointer=saver)
        thread: Any = {"configurable": {"thread_id": job.id}, "recursion_limit": 40}
        resumed = (await graph.aget_state(thread)).next
        wanted = {key: job.request[key] for key in TaskState.__annotations__ if key in job.request}
        begin: Any = None if resumed else {**wanted, "job": job.id}
        state = await graph.ainvoke(begin, thread, durability="sync")
        return dict(state["result"])
