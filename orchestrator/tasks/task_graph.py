"""The task run as a state machine (LangGraph): its nodes and the ways between them.

Checkpointed after every node (LangGraph, SQLite), so that a run goes on after a crash with the job
that owns it. A node may run twice: those that may wait have no side effect, and calls go through
dispatch under an id that never repeats a write.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime

from orchestrator.errors import OrchestratorError, RunWaits
from orchestrator.forging.order import ForgeStep, Report
from orchestrator.tasks.parts import TaskParts
from orchestrator.tasks.run.calling import Calling
from orchestrator.tasks.run.context import RunContext
from orchestrator.tasks.run.ending import Ending, Making, settle_step
from orchestrator.tasks.run.filling import Filling
from orchestrator.tasks.run.preparing import Preparing
from orchestrator.tasks.run.state import REQUESTED, RunState
from registry.database.files import create_private_file
from registry.models import Job

MAX_NODES = 200
"""Nodes that a run passes at most, against going round in circles."""

Part = Callable[[RunContext], Any]
"""A class of nodes: what it makes of a run's context has the nodes of that run."""
Node = Callable[[Any, RunState], Awaitable[RunState]]
"""A method of a part."""
Choose = Callable[[Any, RunState], str]
"""A method of a part that says which node comes next."""


def build_graph() -> StateGraph[RunState, RunContext]:
    """The graph of all runs, not yet compiled."""
    graph: StateGraph[RunState, RunContext] = StateGraph(RunState, RunContext)
    for part, node in (
        (Preparing, Preparing.plan),
        (Preparing, Preparing.route),
        (Preparing, Preparing.choose),
        (Filling, Filling.arguments),
        (Preparing, Preparing.gate),
        (Preparing, Preparing.confirm),
        (Making, Making.forge),
        (Making, Making.adapt),
        (Calling, Calling.execute),
        (Calling, Calling.check),
        (Calling, Calling.retry),
        (Calling, Calling.diagnose),
        (Calling, Calling.repair),
        (Calling, Calling.replan),
        (Calling, Calling.escalate),
        (Ending, Ending.assemble),
    ):
        graph.add_node(node.__name__, _build_node(part, node))

    def branch(node: str, part: Part, choose: Choose, targets: list[str]) -> None:
        graph.add_conditional_edges(node, _build_choice(part, choose), targets)

    graph.add_edge(START, "plan")
    graph.add_conditional_edges("plan", _choose_after_plan, ["route", "assemble"])
    after_route = ["choose", "adapt", "forge", "arguments", "assemble"]
    branch("route", Preparing, Preparing.choose_after_route, after_route)
    branch("choose", Preparing, Preparing.choose_after_choose, ["forge", "arguments"])
    graph.add_conditional_edges("arguments", _choose_after_arguments, ["gate", "assemble"])
    after_gate = ["confirm", "choose", "route", "execute", "assemble"]
    branch("gate", Preparing, Preparing.choose_after_gate, after_gate)
    branch("confirm", Preparing, Preparing.choose_after_gate, after_gate)
    branch("forge", Making, Making.choose_after_forge, ["route", "assemble"])
    branch("adapt", Making, Making.choose_after_forge, ["route", "assemble"])
    graph.add_edge("execute", "check")
    after_check = ["retry", "diagnose", "route", "execute", "assemble"]
    branch("check", Calling, Calling.choose_after_check, after_check)
    graph.add_edge("retry", "execute")
    unmended = ["replan", "escalate"]
    branch("diagnose", Calling, Calling.choose_after_diagnose, ["repair", *unmended])
    branch("repair", Calling, Calling.choose_after_repair, ["execute", *unmended])
    graph.add_edge("replan", "choose")
    graph.add_edge("escalate", "assemble")
    graph.add_edge("assemble", END)
    return graph


@cache
def load_graph() -> CompiledStateGraph[RunState, RunContext]:
    """The same, compiled, without a place for checkpoints. It takes a third of a short run."""
    return build_graph().compile()


def _build_node(part: Part, node: Node) -> Any:
    async def run_node(state: RunState, runtime: Runtime[RunContext]) -> RunState:
        return await node(part(runtime.context), state)

    return run_node


def _build_choice(part: Part, choose: Choose) -> Any:
    def choose_next(state: RunState, runtime: Runtime[RunContext]) -> str:
        return choose(part(runtime.context), state)

    return choose_next


def _choose_after_plan(state: RunState) -> str:
    return "route" if state.get("current") and not state.get("result") else "assemble"


def _choose_after_arguments(state: RunState) -> str:
    return "assemble" if state.get("result") else "gate"


async def run_task(
    parts: TaskParts, job: Job, report: Report, quiet: bool = False
) -> Mapping[str, Any]:
    """Run or resume the task of a job; what it came to (`orchestrator.tasks.run.outcome`). A
    `quiet` run asks nobody and makes no server: it ends with what it would have asked. Raises
    RunWaits where somebody has to answer first, and as forging does.
    """
    create_private_file(parts.checkpoints)
    context = RunContext(parts, job, _MonotonicReport(report, job.progress).tell, quiet)
    async with AsyncSqliteSaver.from_conn_string(str(parts.checkpoints)) as saver:
        # What a power cut takes of these is a node that runs twice, as after a crash; else a short
        # run would wait for the disk 25 times instead of 13.
        await saver.conn.execute("PRAGMA synchronous=NORMAL")
        graph = load_graph().copy({"checkpointer": saver})
        thread = _build_thread(job.id)
        begin: Any = None
        if not (await graph.aget_state(thread)).next:
            begin = {name: job.request[name] for name in REQUESTED if name in job.request}
            if "continues" in begin:
                earlier = (await graph.aget_state(_build_thread(begin["continues"]))).values
                begin = await _continue_run(context, earlier, begin)
        try:
            state = await graph.ainvoke(begin, thread, context=context, durability="sync")
        except RunWaits as wait:
            if not quiet or wait.result is None:
                raise
            return {**wait.result, "state": "suggested", "candidates": _list_shown(wait.result)}
        return dict(state["result"])


def _list_shown(asked: Mapping[str, Any]) -> list[Any]:
    """The candidates of what a run would have asked: the tool that it asked about, or those that
    it would have let choose from.
    """
    shown = asked["question"]["shown"]
    if "tool" in shown:
        return [{"tool": shown["tool"], "arguments": shown.get("arguments", {})}]
    listed = shown.get("candidates")
    return list(listed) if isinstance(listed, list) else []


class _MonotonicReport:
    """Tells a job's steps with a progress that never falls, as MCP wants it, also where a run goes
    back to an earlier node.
    """

    def __init__(self, report: Report, progress: float) -> None:
        self._report, self._progress = report, progress

    def tell(self, step: ForgeStep) -> None:
        self._progress = max(self._progress, step.progress)
        self._report(replace(step, progress=self._progress))


def _build_thread(job: str) -> Any:
    return {"configurable": {"thread_id": job}, "recursion_limit": MAX_NODES}


async def _continue_run(context: RunContext, earlier: Any, begin: Any) -> dict[str, Any]:
    """What a run begins with that goes on with another's steps. Raises OrchestratorError."""
    if not earlier.get("steps"):
        raise OrchestratorError(
            f"the steps of run {begin['continues']} are not kept here any more. `do` the rest anew."
        )
    kept: Any = {key: value for key, value in earlier.items() if key not in ("result", "wave")}
    kept |= begin
    return {**kept, **await settle_step(context, kept)}
