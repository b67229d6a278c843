"""Monitoring of calls: failures are counted by cause, repairs are queued, and a worse version on
trial is rolled back.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import structlog

from forge.errors import ForgeError
from orchestrator.called_tools import CalledTools
from orchestrator.errors import OrchestratorError
from orchestrator.healing.versions import plan_rollback, roll_back
from registry.errors import RegistryError
from registry.health.canary import CanaryTrial
from registry.health.causes import Cause, find_cause, find_drift
from registry.health.repairs import REPAIR
from registry.models import Invocation, Job, generate_id
from registry.servers.bundles import Bundles
from registry.servers.entries import ServerTable
from registry.store import Store
from sandbox.bundle.launch import AUTHOR
from sandbox.errors import SandboxError


def diagnose_call(servers: ServerTable, shelf: Bundles, call: Invocation) -> Cause | None:
    """The cause of a call's failure, or of a difference from its API's description; by what is
    stored of it alone where its version is gone.
    """
    tool = CalledTools(servers, shelf).find_tool(call)
    return find_drift(call, tool) or find_cause(call, tool)


def open_repair(store: Store, call: Invocation, cause: Cause, now: float) -> Job | None:
    """Queue a repair of what a call failed by, where its server may have one now."""
    request = {
        "server": call.entry,
        "version": call.version,
        "call": call.id,
        "cause": cause.text[:1000],
        "kind": cause.repair or cause.kind,
    }
    return store.repairs.queue_repair(Job(generate_id(), REPAIR, request, now, now), now)


ENOUGH = {"rate": 3, "widen": 2, "recompile": 2, "code": 3}
"""How many calls of one cause open a repair; one of a quarantined server opens it at once."""
MAX_COUNTED = 512
BROKEN = (OrchestratorError, ForgeError, RegistryError, SandboxError)

log = structlog.get_logger()


@dataclass
class Healing:
    """Counts failures by their cause and opens repairs; takes back a version on trial that does
    worse.

    `changed` is called when another version has taken its place; `on_trial` tells whether a
    server's version is, as this process knows.
    """

    store: Store
    shelf: Bundles
    changed: Callable[[], None]
    on_trial: Callable[[str], bool]
    now: Callable[[], float] = time.time
    _counted: dict[tuple[str, int, str, str], int] = field(default_factory=dict)

    def record_call(self, call: Invocation) -> None:
        """Take note of a stored call. Never raises: mending must not harm what it mends."""
        try:
            if call.access == "read" and call.counted and self.on_trial(call.entry):
                self._count_trial(call)
            if call.failure is not None or call.difference is not None:
                self._record_cause(call)
        except BROKEN as error:
            log.warning("a failure could not be looked into", call=call.id, reason=str(error))

    def _count_trial(self, call: Invocation) -> None:
        """Count a read of a version on trial, and take that version back where it does worse."""
        counted = self.store.canaries.count_outcome(
            call.entry, call.version, call.succeeded, self.now()
        )
        if counted is None or counted[1] == "going on":
            return
        trial, judgement = counted
        if judgement == "worse":
            self._take_back_version(trial)
        self.changed()

    def _take_back_version(self, trial: CanaryTrial) -> None:
        """Go back to the version before; a person has to where that may do more than this one."""
        plan = plan_rollback(self.store.servers, self.shelf, trial.entry, trial.previous)
        new, old = trial.new, trial.old
        reason = f"{new.failed} of {new.total} failed, {old.failed} of {old.total} before"
        if plan.gains:
            reason = f"{reason}; `toolwright rollback {trial.entry}` wants the PIN"
            self.store.servers.set_state(trial.entry, "quarantined", self.now(), "trial", reason)
            return
        roll_back(self.store, self.shelf, plan, "trial", reason, self.now())

    def _record_cause(self, call: Invocation) -> None:
        entry = self.store.servers.get(call.entry)
        if entry.version != call.version or entry.state == "archived":
            return
        if entry.created_by == AUTHOR:
            return
        if call.fault == "unclear" and self.store.standings.get(call.entry).suspected:
            self.open_check(call)
        cause = diagnose_call(self.store.servers, self.shelf, call)
        if cause is None or not cause.repair:
            return
        where = cause.host if cause.repair == "rate" else call.tool
        key = (call.entry, call.version, cause.repair, where)
        count = self._counted[key] = self._counted.pop(key, 0) + 1
        while len(self._counted) > MAX_COUNTED:
            del self._counted[next(iter(self._counted))]
        if count >= ENOUGH[cause.repair] or entry.state == "quarantined":
            self.open_repair(call, cause)

    def open_repair(self, call: Invocation, cause: Cause) -> Job | None:
        """Queue a repair, where the server may have one now."""
        return open_repair(self.store, call, cause, self.now())

    def open_check(self, call: Invocation) -> Job | None:
        """Queue a check of a server by its own cases, where it may have one now."""
        now = self.now()
        request = {
            "server": call.entry,
            "version": call.version,
            "call": call.id,
            "cause": "too many of its calls failed, and it is not clear by whose fault",
            "check": True,
        }
        return self.store.repairs.queue_repair(Job(generate_id(), REPAIR, request, now, now), now)

    def retry_repair(self) -> Job | None:
        """Queue a failed repair again that is due, if there is one."""
        now = self.now()
        due = self.store.repairs.find_due(now)
        if due is None:
            return None
        again = Job(generate_id(), REPAIR, due.request, now, now)
        return self.store.repairs.queue_repair(again, now)

    def queue_description_repair(self, server: str, reason: str) -> Job | None:
        """Queue a repair of a server whose API's description changed."""
        now = self.now()
        version = self.store.servers.get(server).version
        request = {
            "server": server,
            "version": version,
            "call": "",
            "cause": reason[:1000],
            "kind": "recompile",
        }
        return self.store.repairs.queue_repair(Job(generate_id(), REPAIR, request, now, now), now)
