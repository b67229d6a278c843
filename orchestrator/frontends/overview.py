"""What goes on in an installation."""

from __future__ import annotations

from typing import Any

from orchestrator import answers
from orchestrator.app import App
from orchestrator.consents import void_json
from orchestrator.errors import OrchestratorError
from registry.cause import cause_of
from registry.errors import RegistryError
from registry.records import Invocation


def overview(app: App) -> dict[str, Any]:
    """What goes on, for `status`, the page and scripts."""
    state = app.store.freeze_state()
    return {
        "frozen": state.frozen,
        "frozen_by": state.by if state.frozen else "",
        "frozen_since": state.since if state.frozen else None,
        "running": [
            {"call": identity, "tool": call.name, "task": call.task}
            for identity, (call, _) in app.dispatch.running.items()
        ],
        "jobs": [
            answers.job_line(job)
            for state_name in ("queued", "running", "waiting")
            for job in app.store.jobs(state_name)
        ],
        "approvals": [answers.approval_json(a) for a in app.store.approvals("pending")],
        "approvals_held": app.clearance.held(),
        "grants_void": [void_json(*void) for void in app.consents.void()],
        "repairs": [
            answers.job_line(job) for job in app.store.jobs(limit=50) if job.kind == "repair"
        ][:10],
        "recent": [
            {"call": i.id, "tool": f"{i.entry}.{i.tool}", "ok": i.succeeded, "task": i.task}
            | _why(i)
            for i in app.store.invocations(limit=10)
        ],
        "servers": len(app.store.summaries()),
        "writer": _writer(app),
    }


def _writer(app: App) -> str:
    """Who writes code for a forge that begins now, in words."""
    try:
        return app.authors.choice("", "", "").told
    except (OrchestratorError, RegistryError) as error:
        return str(error)


def _why(call: Invocation) -> dict[str, str]:
    """What is told of a failed call beside that it failed."""
    cause = cause_of(call)
    return {"cause": cause.text} if cause else {}
