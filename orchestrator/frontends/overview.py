"""The overview of an installation that `status` answers with: short, however much goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from orchestrator.app import App
from orchestrator.approvals.grants import encode_void_grant
from orchestrator.approvals.needs import show_need
from orchestrator.errors import OrchestratorError, UnknownTool
from orchestrator.results.fitting import fit_lists
from orchestrator.results.shape import TOKEN_BYTES, cut_text
from orchestrator.server_report import find_own_cause
from registry.errors import RegistryError
from registry.models import Approval, Invocation, Job, JobState
from sandbox.bundle.model import Bundle
from sandbox.errors import BundleInvalid

MAX_TOKENS = 800
"""The most that the overview has, by the upper bound of `orchestrator.results.shape`."""
LETTERS = 80
LISTED = 50
LISTED_JOBS = 10
OPEN_STATES: tuple[JobState, ...] = ("running", "waiting", "queued")
# The share of each list, by what a client has to act on first. What one leaves, later ones have.
SHARES = {"approvals": 0.35, "jobs": 0.4, "running": 0.3, "recent": 0.5, "repairs": 0.5}


def build_overview(app: App) -> dict[str, Any]:
    """What goes on, for `status`: counts of everything, and of each kind the newest that have room.
    `more` says of which lists there are others.
    """
    state = app.store.processes.get_freeze()
    head = {
        "frozen": state.frozen,
        "frozen_by": cut_text(state.by, LETTERS) if state.frozen else "",
        "frozen_since": state.since if state.frozen else None,
        "approvals_held": cut_text(app.signed_policy.find_obstacle(), 3 * LETTERS),
        "servers": len(app.store.servers.find_states()),
        "writer": cut_text(_describe_writer(app), 2 * LETTERS),
    }
    counts = {"jobs": app.store.jobs.count(OPEN_STATES)}
    return fit_lists(head, _build_lists(app), MAX_TOKENS * TOKEN_BYTES, SHARES, counts)


def _build_lists(app: App) -> dict[str, Sequence[dict[str, Any]]]:
    jobs = [job for state in OPEN_STATES for job in app.store.jobs.find(state, LISTED_JOBS)]
    found: dict[str, Callable[[], Iterable[dict[str, Any]]]] = {
        "approvals": lambda: map(_encode_approval, app.store.approvals.find("pending")),
        "jobs": lambda: map(_encode_job, jobs),
        "running": lambda: (
            {"call": identity, "tool": call.name, "task": cut_text(call.task, LETTERS)}
            for identity, (call, _) in app.dispatch.running.items()
        ),
        "recent": lambda: (_encode_call(app, call) for call in app.store.calls.find(limit=10)),
        "repairs": lambda: (
            _encode_job(job) for job in app.store.jobs.find(limit=LISTED) if job.kind == "repair"
        ),
        "grants_void": lambda: (
            {name: cut_text(text, LETTERS) for name, text in encode_void_grant(*void).items()}
            for void in app.consents.find_void()
        ),
    }
    return {name: tuple(build()) for name, build in found.items()}


def _encode_approval(approval: Approval) -> dict[str, Any]:
    """A line of what waits for a person; `status` with its id has all of it."""
    request = {"method": approval.wire.method, "url": cut_text(approval.wire.url, 2 * LETTERS)}
    return {
        "approval": approval.id,
        "state": approval.state,
        "tool": f"{approval.entry}.{approval.tool}",
        "request": request,
        "expires": round(approval.expires),
    }


def _encode_job(job: Job) -> dict[str, Any]:
    """A line of a job; `status` with its id has all of it."""
    line = {
        "job": job.id,
        "kind": job.kind,
        "state": job.state,
        "task": cut_text(str(job.request.get("task", "")), LETTERS),
        "message": cut_text(job.message, LETTERS),
    }
    needs = show_need(job.needs, job.id)
    return {**line, "how": cut_text(str(needs["how"]), LETTERS)} if needs else line


def _encode_call(app: App, call: Invocation) -> dict[str, Any]:
    cause = find_own_cause(call, _find_bundle(app, call.entry) if call.failure else None)
    line = {"call": call.id, "tool": f"{call.entry}.{call.tool}", "ok": call.succeeded}
    task = {"task": cut_text(call.task, LETTERS)} if call.task else {}
    return {**line, **task, **({"cause": cut_text(cause.text, LETTERS)} if cause else {})}


def _find_bundle(app: App, server: str) -> Bundle | None:
    try:
        return app.roster.get_server(server).bundle
    except (UnknownTool, BundleInvalid, RegistryError):
        return None


def _describe_writer(app: App) -> str:
    """Who writes code for a forge that begins now, in words."""
    try:
        return app.authors.choose_for_job("", "", "").told
    except (OrchestratorError, RegistryError) as error:
        return str(error)
