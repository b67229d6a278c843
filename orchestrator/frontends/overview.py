"""The overview of an installation that `status` answers with."""

from __future__ import annotations

from typing import Any

from orchestrator import views
from orchestrator.app import App
from orchestrator.approvals.grants import encode_void_grant
from orchestrator.errors import OrchestratorError
from registry.errors import RegistryError
from registry.health.causes import find_cause
from registry.models import Invocation


def build_overview(app: App) -> dict[str, Any]:
    """What goes on, for `status`, the page and scripts."""
    state = app.store.processes.get_freeze()
    return {
        "frozen": state.frozen,
        "frozen_by": state.by if state.frozen else "",
        "frozen_since": state.since if state.frozen else None,
        "running": [
            {"call": identity, "tool": call.name, "task": call.task}
            for identity, (call, _) in app.dispatch.running.items()
        ],
        "jobs": [
            views.encode_job_line(job)
            for state_name in ("queued", "running", "waiting")
            for job in app.store.jobs.find(state_name)
        ],
        "approvals": [views.encode_approval(a) for a in app.store.approvals.find("pending")],
        "approvals_held": app.signed_policy.find_obstacle(),
        "grants_void": [encode_void_grant(*void) for void in app.consents.find_void()],
        "repairs": [
            views.encode_job_line(job)
            for job in app.store.jobs.find(limit=50)
            if job.kind == "repair"
        ][:10],
        "recent": [
            {"call": i.id, "tool": f"{i.entry}.{i.tool}", "ok": i.succeeded, "task": i.task}
            | _encode_cause(i)
            for i in app.store.calls.find(limit=10)
        ],
        "servers": len(app.store.servers.find_summaries()),
        "writer": _describe_writer(app),
    }


def _describe_writer(app: App) -> str:
    """Who writes code for a forge that begins now, in words."""
    try:
        return app.authors.choose_for_job("", "", "").told
    except (OrchestratorError, RegistryError) as error:
        return str(error)


def _encode_cause(call: Invocation) -> dict[str, str]:
    """What is told of a failed call beside that it failed."""
    cause = find_cause(call)
    return {"cause": cause.text} if cause else {}
