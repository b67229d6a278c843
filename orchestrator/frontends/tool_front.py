"""The seven tools of Toolwright, in front of dispatch and jobs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from orchestrator.app import App
from orchestrator.approvals.settling import settle_run
from orchestrator.called_tools import CalledTools
from orchestrator.calls import Call, Done, Reply, split_tool_name
from orchestrator.errors import TOLD_ERRORS, UnknownTool
from orchestrator.forging.drafts.compose import DECLINE
from orchestrator.forging.order import FileAccess
from orchestrator.frontends.overview import build_overview
from orchestrator.frontends.tools import TOOLS
from orchestrator.results.references import has_references
from orchestrator.results.session import describe_session
from orchestrator.results.shape import write_json
from orchestrator.views.jobs import build_draft_refusal, build_forge_result, build_job_result
from orchestrator.views.records import encode_approval, encode_call
from orchestrator.views.replies import build_reply_result, build_running_result
from orchestrator.views.results import Result, build_answer, build_refusal
from orchestrator.views.task_results import build_answer_refusal, list_called_tools
from registry.errors import RegistryError, RowNotFound
from registry.jobs.jobs import awaits_answer, is_parked
from registry.models import ENDED_JOBS, Job, ToolMatch
from sandbox.bundle.apispec import Access
from sandbox.errors import BundleInvalid
from sandbox.offload import run_counted
from sandbox.sanitize import clean_json
from sandbox.schemas.validator import get_checker
from sandbox.wire.content import clean_answer
from sandbox.wire.notifications import Hearer, ProgressNotice

Tell = Callable[[float, float | None, str], Awaitable[None]]


class ProgressRelay:
    """Tells in order what is heard, until it is closed: past its answer a call has no progress.

    What telling raises ends it.
    """

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._waiting: asyncio.Queue[ProgressNotice | None]
        """What is to be told, from the first of it on: most calls tell nothing."""
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    def queue_progress(self, progress: ProgressNotice) -> None:
        if self._closed:
            return
        if self._task is None:
            self._waiting = asyncio.Queue()
            self._task = asyncio.create_task(self._deliver_progress())
        self._waiting.put_nowait(progress)

    async def close(self) -> None:
        """Returns when what was heard is told."""
        self._closed = True
        if self._task is None:
            return
        self._waiting.put_nowait(None)
        await asyncio.gather(self._task, return_exceptions=True)

    async def _deliver_progress(self) -> None:
        while progress := await self._waiting.get():
            await self._tell(progress.done, progress.total, progress.message)


_NOTHING_FITS = (
    "No registered tool fits. `forge` one: give the API's URL or host as source, `none` for what "
    "only computes."
)
_NO_RESULT = (
    "`path` and `offset` say which part of a kept `result` is wanted: give its handle (such as r1) "
    "and the `session` too."
)
Arguments = Mapping[str, Any]
MAX_UNASKED = 8
"""Of so many calls that took longer than their client waits the whole reply is kept until it asks:
the record of a large one holds its beginning alone.
"""


class ToolFront:
    """Answers the seven tools. Failures that a model can act on are results, not exceptions."""

    def __init__(self, app: App, files: FileAccess = "") -> None:
        """`files` are those of this machine that a client may name as sources."""
        self._app, self._files = app, files
        self._unasked: dict[str, tuple[str, asyncio.Task[Reply]]] = {}
        self._tools: dict[str, Callable[[Arguments, Tell], Awaitable[Result]]] = {
            "find": self._find_tools,
            "call_read": partial(self._call_with_access, "read"),
            "call_write": partial(self._call_with_access, "write"),
            "do": self._do_task,
            "forge": self._start_forge,
            "submit": self._submit_draft,
            "status": self._show_status,
        }
        self._checkers = {tool["name"]: get_checker(tool["inputSchema"]) for tool in TOOLS}

    async def call_tool(self, name: str, arguments: Arguments, progress: Tell) -> Result:
        """The result of one tool, without anything that its reader would not see. Raises KeyError
        for a name that is not one of the seven.
        """
        result = await self.answer_uncleaned(name, arguments, progress)
        clean: Result = await run_counted(result, partial(clean_answer, result))
        return clean

    async def wait_for_forge(self, begun: Result) -> Result:
        """What a forge came to that `forge` has just begun, or what it waits for a person to do;
        `begun`, the job, where it takes longer than a client waits.
        """
        told = begun.get("structuredContent") or {}
        if begun.get("isError") or "job" not in told:
            return begun
        seconds = self._app.settings.answer_seconds
        job = await self._wait_for_job(str(told["job"]), seconds, _tell_nobody, to_end=True)
        if job.state not in ENDED_JOBS and not is_parked(job):
            return begun
        result: Result = await asyncio.to_thread(clean_json, build_forge_result(job))
        return result

    async def answer_plain(
        self, name: str, arguments: Arguments, progress: Tell, follows: bool
    ) -> Result:
        """As `answer_uncleaned`; a forge is waited for unless its client `follows` its progress."""
        result = await self.answer_uncleaned(name, arguments, progress)
        return result if name != "forge" or follows else await self.wait_for_forge(result)

    async def answer_uncleaned(self, name: str, arguments: Arguments, progress: Tell) -> Result:
        """The same for who cleans the result where it is written."""
        tool = self._tools[name]
        problem = self._checkers[name].find_problem(arguments)
        if problem:
            return build_refusal(f"{name}: argument {problem.where or '/'}: {problem.reason}")
        try:
            return await tool(arguments, progress)
        except TOLD_ERRORS as error:
            return build_refusal(str(error))

    async def _find_tools(self, arguments: Arguments, progress: Tell) -> Result:
        routed = await asyncio.to_thread(
            self._app.suggestions.route, arguments["task"], arguments.get("k", 5)
        )
        routed = routed.drop_unlike()
        if routed.found:
            # When the answer is written: whoever reads it calls no sooner.
            asyncio.get_running_loop().call_soon(self._prepare_call, routed.found[0].match)
        text = "" if routed.found else _NOTHING_FITS
        return build_answer(routed.to_json(), text)

    def _prepare_call(self, match: ToolMatch) -> None:
        with suppress(UnknownTool, BundleInvalid, RegistryError):
            self._app.dispatch.execution.prepare_call(match.entry, match.tool)

    async def _call_with_access(
        self, access: Access, arguments: Arguments, progress: Tell
    ) -> Result:
        relay = ProgressRelay(progress)
        call = _parse_call(arguments, relay.queue_progress)
        member = self._app.roster.find_server(call.server, call.tool)
        if member.tools[call.tool].access != access:
            other = "call_write" if access == "read" else "call_read"
            return build_refusal(
                f"{call.name} {'writes' if access == 'read' else 'only reads'}: use `{other}`."
            )
        if has_references(call.arguments):
            call = await asyncio.to_thread(self._app.results.resolve_references, call, access)
        identity, task = self._app.dispatch.start_call(call, member=member)
        try:
            return await self._wait_for_reply(call.name, identity, task)
        finally:
            await relay.close()

    async def _wait_for_reply(self, name: str, identity: str, task: asyncio.Task[Reply]) -> Result:
        """The reply, or a handle where it takes longer than a client waits."""
        try:
            await asyncio.wait((task,), timeout=self._app.settings.answer_seconds)
        except asyncio.CancelledError:
            task.cancel()
            raise
        if not task.done():
            while len(self._unasked) >= MAX_UNASKED:
                del self._unasked[next(iter(self._unasked))]
            self._unasked[identity] = (name, task)
            return build_running_result(name, identity)
        return await self._give_reply(task.result())

    async def _give_reply(self, reply: Reply) -> Result:
        """A call's result; a large one of a session by reference."""
        result = build_reply_result(reply)
        if not isinstance(reply, Done) or not reply.call.session:
            return result
        return await asyncio.to_thread(self._app.results.shorten_reply, reply, result)

    async def _do_task(self, arguments: Arguments, progress: Tell) -> Result:
        self._app.kill_switch.raise_if_engaged()
        if "run" in arguments:
            return await self._answer_run(arguments, progress)
        if "task" not in arguments:
            return build_refusal("do: give a `task`, or a `run` with its `answer`.")
        job = self._app.jobs.create_job("do", {**arguments, "files": self._files})
        self._app.jobs.start_queued()
        seconds = self._app.settings.answer_seconds
        return await self._follow_job(job.id, seconds, progress, to_end=True)

    async def _answer_run(self, arguments: Arguments, progress: Tell) -> Result:
        """A run goes on with the answer to its question, or shows how it stands."""
        run = arguments["run"]
        if "answer" in arguments:
            answering = (await self._app.job_parts.fetch()).answering
            taken = await asyncio.to_thread(
                answering.take_answer,
                run,
                arguments["answer"],
                "a client",
                arguments.get("session", ""),
            )
            if isinstance(taken, tuple):
                job = await asyncio.to_thread(self._app.store.jobs.get, run)
                return build_answer_refusal(taken, job)
            self._app.jobs.start_queued()
        return await self._follow_job(run, self._app.settings.answer_seconds, progress, to_end=True)

    async def _start_forge(self, arguments: Arguments, progress: Tell) -> Result:
        self._app.kill_switch.raise_if_engaged()
        job = self._app.jobs.create_job("forge", {**arguments, "files": self._files})
        self._app.jobs.start_queued()
        return build_answer(
            {"job": job.id, "state": job.state},
            f"Forging. Ask `status` with job={job.id} and wait=25.",
        )

    async def _submit_draft(self, arguments: Arguments, progress: Tell) -> Result:
        self._app.kill_switch.raise_if_engaged()
        identity = arguments["job"]
        submissions = (await self._app.job_parts.fetch()).submissions
        if "document" in arguments:
            job = await asyncio.to_thread(
                submissions.resubmit_order, identity, arguments["document"]
            )
            identity = job.id
        elif DECLINE in arguments:
            ended = await asyncio.to_thread(submissions.decline_job, identity, arguments)
            if isinstance(ended, tuple):
                return build_draft_refusal(ended)
            return build_job_result(ended)
        else:
            taken = await asyncio.to_thread(submissions.submit_draft, identity, arguments)
            if isinstance(taken, tuple):
                return build_draft_refusal(taken)
        self._app.jobs.start_queued()
        return build_answer(
            {"job": identity, "state": "queued"},
            f"Being proved. Ask `status` with job={identity} and wait=25.",
        )

    async def _show_status(self, arguments: Arguments, progress: Tell) -> Result:
        wait = arguments.get("wait", 0)
        if "result" not in arguments and {"path", "offset"} & arguments.keys():
            return build_refusal(_NO_RESULT)
        if "job" in arguments and "brief" in arguments:
            submissions = (await self._app.job_parts.fetch()).submissions
            brief = await asyncio.to_thread(
                submissions.render_brief, arguments["job"], arguments["brief"]
            )
            return build_answer({"job": arguments["job"], "brief": brief}, brief)
        if "job" in arguments:
            return await self._follow_job(arguments["job"], wait, progress)
        if "call" in arguments:
            return await self._show_call(arguments["call"], wait)
        if "approval" in arguments:
            return await self._show_approval(arguments["approval"], wait)
        if "result" in arguments:
            return await self._show_kept(arguments)
        if arguments.get("session"):
            memory = await asyncio.to_thread(
                self._app.store.sessions.load_memory, arguments["session"], time.time()
            )
            session = describe_session(memory)
            return build_answer(session, write_json(session))
        told = await asyncio.to_thread(build_overview, self._app)
        return build_answer(told, write_json(told))

    async def _follow_job(
        self, identity: str, wait: float, progress: Tell, to_end: bool = False
    ) -> Result:
        """A job's state, waiting for it to change, or `to_end`, and passing on its progress. What
        waits for somebody is told at once.
        """
        job = await self._wait_for_job(identity, wait, progress, to_end)
        return await self._give_job(job)

    async def _wait_for_job(self, identity: str, wait: float, progress: Tell, to_end: bool) -> Job:
        job = self._app.store.jobs.get(identity)
        if is_parked(job) and await asyncio.to_thread(self._app.jobs.met, job):
            # What it waited for is there, and whoever asks is not told that it waits for that.
            self._app.jobs.start_queued()
            job = self._app.store.jobs.get(identity)
        begun, told = job.state, -1.0
        if is_parked(job):
            return job
        async for _ in self._app.watch_changes(wait):
            job = await asyncio.to_thread(self._app.store.jobs.get, identity)
            if job.progress != told:
                told = job.progress
                await progress(job.progress, 1.0, job.message or job.stage or job.state)
            if job.state in ENDED_JOBS or is_parked(job):
                break
            if job.state != begun and not to_end:
                break
        return job

    async def _give_job(self, job: Job) -> Result:
        """A job's result; a large one of a task run by reference."""
        job = await asyncio.to_thread(settle_run, job, self._app.store)
        result, session = build_job_result(job), str(job.request.get("session", ""))
        if job.kind != "do" or not (job.state == "done" or awaits_answer(job)):
            return result
        told = job.result if isinstance(job.result, Mapping) else {}
        shorten = partial(
            self._app.results.shorten_run,
            session=session,
            job=job.id,
            tools=list_called_tools(told),
            answered=told.get("state") in ("called", "answered"),
            # What other steps answered is no short note, and comes before it.
            leads=1 if told.get("reading") and not told.get("beside") else 0,
        )
        return await asyncio.to_thread(shorten, result)

    async def _show_kept(self, arguments: Arguments) -> Result:
        shown = await asyncio.to_thread(
            self._app.results.show_part,
            arguments.get("session", ""),
            arguments["result"],
            arguments.get("path", "$"),
            arguments.get("offset", 0),
        )
        return build_answer(shown, write_json(shown))

    async def _show_call(self, identity: str, wait: float) -> Result:
        running = self._app.dispatch.running.get(identity)
        known = (running[0].name, running[1]) if running else self._unasked.get(identity)
        if known is not None:
            name, task = known
            await asyncio.wait({task}, timeout=wait)
            if not task.done():
                return build_running_result(name, identity)
            if not task.cancelled():
                given = await self._give_reply(task.result())
                self._unasked.pop(identity, None)
                return given
        # One that has just ended may not be on disk yet.
        await self._app.dispatch.ledger.wait_written()
        ended = await asyncio.to_thread(self._app.store.calls.get, identity)
        called = CalledTools(self._app.store.servers, self._app.shelf)
        return build_answer(await asyncio.to_thread(encode_call, ended, called))

    async def _show_approval(self, identity: str, wait: float) -> Result:
        approval = self._app.store.approvals.get(identity)
        async for _ in self._app.watch_changes(wait):
            approval = await asyncio.to_thread(self._app.store.approvals.get, identity)
            if approval.state not in ("pending", "approved", "claimed", "sending"):
                break
        return build_answer(encode_approval(approval))


async def _tell_nobody(done: float, total: float | None, message: str) -> None:
    return None


def _parse_call(arguments: Arguments, heard: Hearer) -> Call:
    parts = split_tool_name(arguments["tool"])
    if parts is None:
        raise RowNotFound("tool", arguments["tool"])
    return Call(
        server=parts[0],
        tool=parts[1],
        arguments=arguments.get("arguments") or {},
        task=arguments.get("task", ""),
        reason=arguments.get("reason", ""),
        session=arguments.get("session", ""),
        heard=heard,
    )
