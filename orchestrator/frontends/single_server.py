"""Serving one registered server by itself: its tools listed flat, caged and gated as behind
`serve`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any

from orchestrator.app import App, open_app
from orchestrator.approvals.accounts import choose_account
from orchestrator.calls import Call, Done, Reply
from orchestrator.errors import TOLD_ERRORS
from orchestrator.frontends.early import EarlyAnswers
from orchestrator.frontends.flat import serve_flat
from orchestrator.frontends.flat_greeting import FlatGreeting, ServerInfo, keep_greeting
from orchestrator.frontends.greeting import EXTENSION, LEGACY, MODERN
from orchestrator.frontends.protocol import (
    INVALID_PARAMS,
    UNDECLARED,
    Answer,
    Peer,
    Result,
    RpcError,
    clean_result,
    flatten_tool,
)
from orchestrator.frontends.resources import ClientResources
from orchestrator.frontends.tasks import CANCEL, GET, REQUIRED, UPDATE, ClientTasks
from orchestrator.frontends.tasks import UNDECLARED as REASON
from orchestrator.processes.control_client import ensure_control
from orchestrator.processes.termination import cancel_at_sigterm, ignore_sigterm
from orchestrator.settings import load_settings
from orchestrator.views.replies import build_reply_result
from orchestrator.views.results import build_refusal
from registry.database.fingerprint import compute_server_fingerprint
from registry.errors import RowNotFound
from sandbox.bundle.model import Bundle
from sandbox.offload import run_sized
from sandbox.sanitize import clean_json, clean_text
from sandbox.schemas.accepted import build_listed_schema


class SingleServer:
    """The `ExtraMethods` of `toolwright run`."""

    def __init__(self, readings: ClientResources, tasks: ClientTasks) -> None:
        self._readings, self._tasks = readings, tasks

    def list_capabilities(self, version: str) -> Mapping[str, Any]:
        offered: dict[str, Any] = {"extensions": {EXTENSION: {}}} if version == MODERN else {}
        return {**self._readings.list_capabilities(version), **offered}

    def find_answer(self, method: str, modern: bool) -> Answer | None:
        if modern and method in (GET, UPDATE, CANCEL):
            return partial(self._answer_task, method)
        return self._readings.find_answer(method, modern)

    async def _answer_task(self, method: str, params: Mapping[str, Any], asker: Peer) -> Result:
        if not has_declared_tasks(asker):
            raise RpcError(UNDECLARED, REASON, REQUIRED)
        try:
            return await self._tasks.answer_request(method, params.get("taskId"))
        except RowNotFound as error:
            unknown = f"Unknown task: {str(params.get('taskId'))[:100]}"
            raise RpcError(INVALID_PARAMS, unknown) from error


def has_declared_tasks(asker: Peer) -> bool:
    """Whether the client declared the tasks extension with its request."""
    extensions = asker.declared.get("extensions")
    return asker.modern and isinstance(extensions, Mapping) and EXTENSION in extensions


async def serve_registered(
    name: str,
    engine: str | None,
    with_control: bool,
    account: str | None = None,
    early: EarlyAnswers | None = None,
) -> None:
    """Serve the registered server of that name until end of file, its calls with that account,
    where `early` has answered until now. SIGTERM cancels it, with every call recorded. Raises
    Unknown.
    """
    with choose_account(name, account):
        await _serve_registered(name, engine, with_control, early)


async def _serve_registered(
    name: str, engine: str | None, with_control: bool, early: EarlyAnswers | None
) -> None:
    settings = load_settings(engine=engine)
    cancel_at_sigterm()
    async with open_app(settings, "run", patient=True) as app:
        app.store.servers.get(name)
        if with_control:
            ensure_control(settings)
        try:
            await serve_one(app, name, early)
        finally:
            ignore_sigterm()


async def serve_one(app: App, name: str, early: EarlyAnswers | None = None) -> None:
    """Serve the registered server of that name until end of file, where `early` has answered until
    now. Raises Unknown.
    """
    database = app.settings.database
    # Taken first: what changes meanwhile is not kept as this server's.
    fingerprint = compute_server_fingerprint(database, name) if database else ""
    bundle = app.signed_policy.classify_bundle(
        app.shelf.load_bundle(app.signed_policy.check_entry(app.store.servers.get(name)))
    )

    tasks = ClientTasks(app, build_plain_result, name)

    async def call(tool: str, arguments: Mapping[str, Any], asker: Peer) -> Result:
        asked = Call(name, tool, arguments, session="run", heard=asker.heard, logged=asker.logged)
        return await _call_tool(app, asked, tasks if has_declared_tasks(asker) else None)

    listed = [
        flatten_tool(tool, bundle.base_url, build_listed_schema(bundle, tool))
        for tool in bundle.tools
    ]
    card = ServerInfo(bundle.name, str(bundle.version), bundle.title, _render_instructions(bundle))
    readings = ClientResources(app.dispatch, name)
    more = SingleServer(readings, tasks)
    if fingerprint:
        abilities = {version: more.list_capabilities(version) for version in (*LEGACY, MODERN)}
        keep_greeting(app.settings.home, fingerprint, FlatGreeting(card, listed, abilities))
    try:
        await serve_flat(card, listed, call, more, early.stop() if early else None)
    finally:
        readings.forget_client()


async def _call_tool(app: App, call: Call, tasks: ClientTasks | None) -> Result:
    """The result of a call, or, for a client that polls, a task where it takes longer than clients
    wait.
    """
    identity, task = app.dispatch.start_call(call)
    patience = app.settings.answer_seconds if tasks else None
    try:
        async with asyncio.timeout(patience):
            reply = await asyncio.shield(task)
    except TimeoutError:
        begun = tasks.create_call_task(identity) if tasks else None
        if begun is not None:
            return begun
        reply = await task
    except asyncio.CancelledError:
        task.cancel()
        raise
    except TOLD_ERRORS as error:
        return build_refusal(clean_text(str(error)))
    size = reply.outcome.size if isinstance(reply, Done) else 0
    return await run_sized(size, partial(build_plain_result, reply))


def build_plain_result(reply: Reply) -> Result:
    """The tool's own result; what was not carried out is an error result that says why."""
    if isinstance(reply, Done):
        meta = build_reply_result(reply)["_meta"]
        return {**clean_result(reply.outcome.delivered, reply.outcome.failure), "_meta": meta}
    content = clean_json(build_reply_result(reply, has_status=False)["content"])
    return {"isError": True, "content": content}


def _render_origin(bundle: Bundle) -> str:
    if bundle.launch is None:
        return "Forged and run in its sandbox"
    return (
        "Written by others, run without a sandbox"
        if bundle.launch.way == "process"
        else "Sandboxed"
    )


def _render_instructions(bundle: Bundle) -> str:
    return (
        f"{bundle.title}. {_render_origin(bundle)} by Toolwright. A writing tool answers that "
        "a person has to approve the exact request; it is carried out after that."
    )
