"""The task run as a state machine: plan, route, execute, retry, repair, escalate, forge.

Checkpointed after every node (LangGraph, SQLite), so that a run goes on after a crash with the job
that owns it. Nodes may run twice, so none of them sends anything by itself: a call goes through
dispatch under an id made from the job and the attempt, which refuses to act twice on a write.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypedDict

from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph

from forge.errors import AuthorFailed, BudgetSpent
from orchestrator import answers
from orchestrator.app import App
from orchestrator.calls import Call, Done, split_name
from orchestrator.errors import ForgeFailed, UnknownTool
from orchestrator.extraction import extract, is_wanted
from orchestrator.jobs import Report
from orchestrator.orders import Order, Step
from orchestrator.planner import plan
from registry.records import Job
from sandbox.bundle import ToolDefinition
from sandbox.validation import checker

MAX_ATTEMPTS = 3
NONE = "none"
TRANSIENT = frozenset({"timeout", "unreachable", "crashed"})
FIXABLE = frozenset({"schema", "malformed", "drift", "bug"})


class Run(TypedDict, total=False):
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
    """The nodes, over one app. `report` tells the job how far the run is."""

    def __init__(self, app: App, job: Job, report: Report) -> None:
        self._app, self._job, self._report = app, job, report

    def build(self) -> StateGraph[Run]:
        """The graph, not yet compiled."""
        graph: StateGraph[Run] = StateGraph(Run)
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
        graph.add_conditional_edges("route", self.after_route, ["extract", "forge", END])
        graph.add_conditional_edges("extract", self.after_extract, ["execute", END])
        graph.add_conditional_edges(
            "execute", self.after_execute, ["execute", "repair", "escalate", END]
        )
        graph.add_conditional_edges("repair", self.after_repair, ["execute", "escalate"])
        graph.add_edge("forge", "route")
        graph.add_edge("escalate", END)
        return graph

    async def plan(self, state: Run) -> Run:
        self._report("plan", 0.05, "planning")
        return {"steps": list(plan(state["task"])), "attempts": 0, "repairs": 0}

    async def route(self, state: Run) -> Run:
        """Find who can do it: an exact name or the client's choice runs, words propose."""
        self._report("route", 0.1, "looking for a server that can do it")
        chosen = state.get("tool") or self._named(state["task"])
        if chosen == NONE:
            return {"tool": NONE}
        if chosen:
            return {"tool": chosen}
        return {"result": self._proposal(state["steps"])}

    def after_route(self, state: Run) -> str:
        if state.get("result"):
            return END
        return "forge" if state["tool"] == NONE else "extract"

    async def extract(self, state: Run) -> Run:
        """Where an endpoint is configured and nobody gave arguments, those that the task says. What
        a model answered once is not asked again when the run is resumed.
        """
        parts = split_name(state["tool"])
        try:
            tool = self._app.tool(*parts) if parts else None
        except UnknownTool:
            tool = None
        given = state.get("arguments") or {}
        if (
            tool is None
            or parts is None
            or not is_wanted(state["task"], state["tool"], tool, given)
        ):
            return {}
        try:
            author = await self._app.authors.endpoint(self._job.id, parts[0])
            if author is None:
                return {}
            self._report("extract", 0.3, f"reading the arguments of {state['tool']}")
            found = await extract(author, state["task"], tool)
        except (AuthorFailed, BudgetSpent) as error:
            return self._unread(state, tool, str(error))
        if found.problem:
            return self._unread(state, tool, found.problem)
        return {"arguments": dict(found.arguments), "read_by": found.model or author.name}

    def _unread(self, state: Run, tool: ToolDefinition, problem: str) -> Run:
        """Without arguments the tool is called as before where it needs none."""
        if checker(tool.input_schema).problem({}) is None:
            return {}
        schema = dict(tool.input_schema)
        text = f"{state['tool']} needs arguments, and {problem} Give them in `arguments`."
        return {"result": answers.refusal(text, inputSchema=schema)}

    def after_extract(self, state: Run) -> str:
        return END if state.get("result") else "execute"

    async def execute(self, state: Run) -> Run:
        """One attempt at the call, through the gate."""
        parts = split_name(state["tool"])
        if parts is None:
            return {"result": answers.refusal(f"{state['tool']!r} is not of the form server.tool")}
        attempt = state["attempts"] + 1
        self._report("execute", 0.6, f"calling {state['tool']} (attempt {attempt})")
        call = Call(
            server=parts[0],
            tool=parts[1],
            arguments=state.get("arguments") or {},
            task=state["task"],
            reason=_reason(state),
            session=state.get("session", ""),
            read_by=state.get("read_by", ""),
        )
        reply = await self._app.dispatch.call(call, f"{self._job.id}-{attempt}")
        failure = reply.outcome.failure if isinstance(reply, Done) else None
        return {
            "attempts": attempt,
            "result": _with_reading(answers.reply_result(reply), state),
            "failure": failure.kind if failure else "",
            "retriable": self._app.access(call) == "read",
        }

    def after_execute(self, state: Run) -> str:
        kind = state.get("failure", "")
        if kind in TRANSIENT and state["retriable"] and state["attempts"] < MAX_ATTEMPTS:
            return "execute"
        if kind in FIXABLE and not state["repairs"]:
            return "repair"
        return "escalate" if kind in TRANSIENT or kind in FIXABLE else END

    async def repair(self, state: Run) -> Run:
        """Forge the server again from its source; a changed API description is the usual cause."""
        server = state["tool"].partition(".")[0]
        self._report("repair", 0.7, f"forging {server} again from its source")
        try:
            changed = await self._app.forge_jobs.again(server, self._step)
        except ForgeFailed:
            changed = False
        return {"repairs": 1 if changed else -1}

    def after_repair(self, state: Run) -> str:
        return "execute" if state["repairs"] > 0 and state["retriable"] else "escalate"

    async def escalate(self, state: Run) -> Run:
        """Nothing more can be done without a person: say so beside what the server said."""
        result = dict(state["result"])
        note = f"{state['tool']} failed ({state['failure']}) after {state['attempts']} attempts; "
        note += "a person should look at it: `toolwright show` and `toolwright logs`."
        result["content"] = [*result.get("content", []), {"type": "text", "text": note}]
        return {"result": result}

    async def forge(self, state: Run) -> Run:
        """No server can do it: make one, then route again."""
        order = Order(task=state["task"], source=state.get("source", ""))
        await self._app.forge.forge(order, self._step, (self._job.id, self._job.attempt))
        return {"tool": ""}

    def _step(self, step: Step) -> None:
        self._report(step.stage, step.progress, step.message)

    def _named(self, task: str) -> str:
        """The tool whose exact `server.tool` name the task is, or nothing."""
        parts = split_name(task.strip())
        return task.strip() if parts and self._app.exists(*parts) else ""

    def _proposal(self, steps: list[str]) -> dict[str, Any]:
        found = {step: self._app.candidates(step, 5) for step in steps}
        if not any(found.values()):
            text = (
                "No registered server can do this. Call `do` again with tool=none and a source "
                "(the API's URL or host), or call `forge`."
            )
            return answers.answer({"candidates": [], "none": "forge"}, text)
        first = next(iter(found.values()))
        value: dict[str, Any] = {"candidates": first, "none": "forge"}
        if len(found) > 1:
            value["steps"] = [{"step": step, "candidates": found[step]} for step in steps]
        return answers.answer(value)


def _with_reading(result: Mapping[str, Any], state: Run) -> dict[str, Any]:
    """The result, telling first with what arguments it was had where a model read them: whoever
    asked in words is to see what became of them.
    """
    if not state.get("read_by"):
        return dict(result)
    read = json.dumps(state.get("arguments") or {}, ensure_ascii=False)[:2_000]
    note = f"{state['tool']} was called with what {state['read_by']} read out of the task: {read}"
    return {**result, "content": [{"type": "text", "text": note}, *result.get("content", [])]}


def _reason(state: Run) -> str:
    said, model = state.get("reason", ""), state.get("read_by", "")
    return f"{said} (arguments read out of the task by {model})".strip() if model else said


async def run_task(app: App, job: Job, report: Report) -> Mapping[str, Any]:
    """Run or resume the task of a job; the MCP result it ends with."""
    async with AsyncSqliteSaver.from_conn_string(str(app.settings.checkpoints)) as saver:
        graph = TaskGraph(app, job, report).build().compile(checkpointer=saver)
        thread: Any = {"configurable": {"thread_id": job.id}, "recursion_limit": 40}
        resumed = (await graph.aget_state(thread)).next
        wanted = {key: job.request[key] for key in Run.__annotations__ if key in job.request}
        begin: Any = None if resumed else {**wanted, "job": job.id}
        state = await graph.ainvoke(begin, thread, durability="sync")
        return dict(state["result"])
