"""Toolwright as an MCP server: the low-level SDK server in front of dispatch and jobs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import mcp.types as types
from mcp import MCPError
from mcp.server.lowlevel import Server

from orchestrator import answers
from orchestrator.answers import Result
from orchestrator.app import App
from orchestrator.calls import Call, Reply, split_name
from orchestrator.composing import DECLINE
from orchestrator.elicitation import Elicitation
from orchestrator.errors import OrchestratorError
from orchestrator.front import INSTRUCTIONS, TOOLS
from orchestrator.overview import overview
from orchestrator.polling import declares, offer
from orchestrator.relay import Relay, Tell
from orchestrator.sampling import Sampling
from orchestrator.stdio import stdio
from orchestrator.tasks import Tasks
from registry.drafts import awaits_draft
from registry.errors import RegistryError, Unknown
from registry.records import ENDED_JOBS
from sandbox.cleantext import clean_json
from sandbox.errors import SandboxError
from sandbox.validation import checker

VERSION = "0.1.0"
MODERN = "2026-07-28"
TOLD = (OrchestratorError, RegistryError, SandboxError)

_NOTHING_FITS = (
    "No registered tool fits. `forge` one: give the API's URL or host, or no source for what only "
    "computes."
)
Arguments = Mapping[str, Any]
Progress = Tell


class Front:
    """Answers the seven tools. Failures that a model can act on are results, not exceptions."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._tools: dict[str, Callable[[Arguments, Progress], Awaitable[Result]]] = {
            "find": self._find,
            "call_read": self._call_read,
            "call_write": self._call_write,
            "do": self._do,
            "forge": self._forge,
            "submit": self._submit,
            "status": self._status,
        }
        self._checkers = {tool["name"]: checker(tool["inputSchema"]) for tool in TOOLS}

    async def call(self, name: str, arguments: Arguments, progress: Progress) -> Result:
        """The result of one tool, without anything that its reader would not see. Raises KeyError
        for a name that is not one of the seven.
        """
        told: Result = clean_json(await self._told(name, arguments, progress))
        return told

    async def _told(self, name: str, arguments: Arguments, progress: Progress) -> Result:
        tool = self._tools[name]
        problem = self._checkers[name].problem(arguments)
        if problem:
            return answers.refusal(f"{name}: argument {problem.where or '/'}: {problem.reason}")
        try:
            return await tool(arguments, progress)
        except TOLD as error:
            return answers.refusal(str(error))

    async def _find(self, arguments: Arguments, progress: Progress) -> Result:
        found = await asyncio.to_thread(
            self._app.candidates, arguments["task"], arguments.get("k", 5)
        )
        text = "" if found else _NOTHING_FITS
        return answers.answer({"candidates": found, "none": "forge"}, text)

    async def _call_read(self, arguments: Arguments, progress: Progress) -> Result:
        return await self._called(arguments, "read", progress)

    async def _call_write(self, arguments: Arguments, progress: Progress) -> Result:
        return await self._called(arguments, "write", progress)

    async def _called(self, arguments: Arguments, access: str, progress: Progress) -> Result:
        relay = Relay(progress)
        call = replace(_call(arguments), heard=relay.hear)
        if self._app.access(call) != access:
            other = "call_write" if access == "read" else "call_read"
            return answers.refusal(
                f"{call.name} {'writes' if access == 'read' else 'only reads'}: use `{other}`."
            )
        identity, task = self._app.dispatch.start(call)
        try:
            return await self._patiently(call.name, identity, task)
        finally:
            await relay.close()

    async def _patiently(self, name: str, identity: str, task: asyncio.Task[Reply]) -> Result:
        """The reply, or a handle where it takes longer than a client waits."""
        try:
            async with asyncio.timeout(self._app.settings.answer_seconds):
                return answers.reply_result(await asyncio.shield(task))
        except TimeoutError:
            return answers.running_result(name, identity)
        except asyncio.CancelledError:
            task.cancel()
            raise

    async def _do(self, arguments: Arguments, progress: Progress) -> Result:
        self._app.brake.check()
        job = self._app.jobs.create("do", arguments)
        self._app.jobs.advance()
        return await self._followed(job.id, self._app.settings.answer_seconds, progress)

    async def _forge(self, arguments: Arguments, progress: Progress) -> Result:
        self._app.brake.check()
        job = self._app.jobs.create("forge", arguments)
        self._app.jobs.advance()
        return answers.answer(
            {"job": job.id, "state": job.state},
            f"Forging. Ask `status` with job={job.id} and wait=25.",
        )

    async def _submit(self, arguments: Arguments, progress: Progress) -> Result:
        self._app.brake.check()
        identity = arguments["job"]
        if "document" in arguments:
            job = await asyncio.to_thread(
                self._app.submissions.resubmit, identity, arguments["document"]
            )
            identity = job.id
        elif DECLINE in arguments:
            ended = await asyncio.to_thread(self._app.submissions.decline, identity, arguments)
            if isinstance(ended, tuple):
                return answers.faulty_draft(ended)
            return answers.job_result(ended)
        else:
            taken = await asyncio.to_thread(self._app.submissions.hand_in, identity, arguments)
            if isinstance(taken, tuple):
                return answers.faulty_draft(taken)
        self._app.jobs.advance()
        return answers.answer(
            {"job": identity, "state": "queued"},
            f"Being proved. Ask `status` with job={identity} and wait=25.",
        )

    async def _status(self, arguments: Arguments, progress: Progress) -> Result:
        wait = arguments.get("wait", 0)
        if "job" in arguments:
            return await self._followed(arguments["job"], wait, progress)
        if "call" in arguments:
            return await self._call_status(arguments["call"], wait)
        if "approval" in arguments:
            return await self._approval_status(arguments["approval"], wait)
        return answers.answer(await asyncio.to_thread(overview, self._app))

    async def _followed(self, identity: str, wait: float, progress: Progress) -> Result:
        """A job's state, waiting for its end and passing on its progress."""
        job = self._app.store.job(identity)
        begun, told = job.state, -1.0
        if awaits_draft(job):
            return answers.job_result(job)
        async for _ in self._app.changes(wait):
            job = await asyncio.to_thread(self._app.store.job, identity)
            if job.progress != told:
                told = job.progress
                await progress(job.progress, 1.0, job.message or job.stage or job.state)
            if job.state in ENDED_JOBS or job.state != begun:
                break
        if job.kind == "do" and job.state == "done" and isinstance(job.result, dict):
            return dict(job.result)
        return answers.job_result(job)

    async def _call_status(self, identity: str, wait: float) -> Result:
        running = self._app.dispatch.running.get(identity)
        if running is None:
            return answers.answer(await asyncio.to_thread(self._app.finished, identity))
        call, task = running
        done, _ = await asyncio.wait({task}, timeout=wait)
        return (
            answers.reply_result(task.result())
            if done
            else answers.running_result(call.name, identity)
        )

    async def _approval_status(self, identity: str, wait: float) -> Result:
        approval = self._app.store.approval(identity)
        async for _ in self._app.changes(wait):
            approval = await asyncio.to_thread(self._app.store.approval, identity)
            if approval.state not in ("pending", "approved", "claimed"):
                break
        return answers.answer(answers.approval_json(approval))


def _call(arguments: Arguments) -> Call:
    parts = split_name(arguments["tool"])
    if parts is None:
        raise Unknown("tool", arguments["tool"])
    return Call(
        server=parts[0],
        tool=parts[1],
        arguments=arguments.get("arguments") or {},
        task=arguments.get("task", ""),
        reason=arguments.get("reason", ""),
        session=arguments.get("session", ""),
    )


async def serve(app: App) -> None:
    """Serve MCP on stdin and stdout until end of file."""
    server = front_server(app)
    async with stdio() as (inbound, outbound):
        await server.run(inbound, outbound, server.create_initialization_options())


def front_server(app: App) -> Server[Any]:
    """The seven tools; writes that wait are shown through clients that can ask their users."""
    elicitation = Elicitation(app.store, app.settings.answer_seconds)
    sampling = Sampling(app.authors.samplers, app.settings.of_model.seconds)
    front, tasks = Front(app).call, Tasks(app)
    return low_level_server(TOOLS, front, "toolwright", INSTRUCTIONS, elicitation, tasks, sampling)


def low_level_server(
    tools: Iterable[Mapping[str, Any]],
    call: Callable[[str, Arguments, Progress], Awaitable[Result]],
    name: str,
    instructions: str,
    elicitation: Elicitation | None = None,
    tasks: Tasks | None = None,
    sampling: Sampling | None = None,
) -> Server[Any]:
    """An MCP server of those tools in both protocol eras, for whatever carries it."""
    listed = types.ListToolsResult(tools=[types.Tool.model_validate(tool) for tool in tools])
    names = {tool.name for tool in listed.tools}

    async def on_list_tools(context: Any, params: Any) -> Any:
        return listed

    async def on_call_tool(context: Any, params: types.CallToolRequestParams) -> Any:
        if params.name not in names:
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name}")
        asks = elicitation if params.name == "call_write" else None
        modern = context.protocol_version == MODERN
        progress = context.session.report_progress
        result = asks.answered(params) if asks and modern else None
        if result is None:
            result = await call(params.name, params.arguments or {}, progress)
            result = await asks.shown(context, result, modern) if asks else result
            if sampling and params.name == "forge":
                sampling.attach(context, result)
            result = tasks.instead(result) if tasks and declares(context) else result
        # A dict spares the SDK's models a round trip (0.1 ms); what they would add, it lacks.
        return {"resultType": "complete", **result} if modern else result

    server: Server[Any] = Server(
        name,
        version=VERSION,
        instructions=instructions,
        on_list_tools=on_list_tools,
        on_call_tool=on_call_tool,
    )
    # The SDK's tracing middleware costs 0.05 ms a call; the audit log holds what it would say.
    server.middleware.clear()
    if tasks is not None:
        offer(server, tasks)
    return server
