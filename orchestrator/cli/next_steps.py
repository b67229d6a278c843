"""The overview of what runs and waits for a person, and the commands that may come next."""

from __future__ import annotations

import importlib
import json
import shlex
import time
from collections.abc import Iterator
from dataclasses import dataclass

from orchestrator.approvals.sending import build_send_command
from orchestrator.cli.terminal import print_text
from orchestrator.errors import OrchestratorError
from orchestrator.processes.control_client import ControlAddress, find_control
from orchestrator.processes.liveness import is_alive
from orchestrator.settings import Settings
from registry.jobs.drafts import awaits_draft
from registry.jobs.jobs import awaits_answer, awaits_client
from registry.models import Job
from registry.store import Store

SHOWN = 3


@dataclass(frozen=True)
class HomeState:
    """A home at a glance. The ids are the newest first, `running` kinds of live processes. `answer`
    is the command that answers the newest job, where that asks something. `asked` are runs whose
    question is for the model of the client that began them, `broken` the last repairs of servers
    that they did not mend, `frozen_for` the reason that was given with the freeze, `locked` targets
    of messages that get none.
    """

    has_pin: bool = True
    frozen_by: str = ""
    pending: tuple[str, ...] = ()
    unsent: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()
    answer: str = ""
    servers: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()
    running: tuple[str, ...] = ()
    control: str = ""
    frozen_for: str = ""
    locked: tuple[str, ...] = ()


def read_home_state(settings: Settings) -> HomeState:
    with Store.open(settings.database_url) as store:
        frozen = store.processes.get_freeze()
        held = store.jobs.find("waiting")
        address = find_control(settings)
        asked = [job for job in held if awaits_client(job)]
        waiting = [job for job in held if (job.needs or not awaits_draft(job)) and job not in asked]
        asks = bool(waiting) and awaits_answer(waiting[0])
        return HomeState(
            settings.pin.exists(),
            frozen.by or "somebody" if frozen.frozen else "",
            store.approvals.find_ids("pending"),
            store.approvals.find_ids("approved"),
            tuple(job.id for job in waiting),
            tuple(job.id for job in asked),
            render_answer_command(waiting[0]) if asks else "",
            tuple(each.name for each in store.servers.find_summaries()),
            tuple(job.id for job in store.repairs.find_failed(time.time())),
            tuple(sorted(each.kind for each in store.processes.find() if is_alive(each))),
            address.url if address else "",
            frozen.reason if frozen.frozen else "",
            _find_locked_targets(settings, address),
        )


def _find_locked_targets(settings: Settings, address: ControlAddress | None) -> tuple[str, ...]:
    if not settings.push.exists():
        return ()
    # What seals targets loads cryptography, which the overview does without.
    targets = importlib.import_module("orchestrator.control.notify.targets")
    until = address.links_until if address else 0.0
    try:
        locked: tuple[str, ...] = targets.find_locked_targets(settings.push, until, time.time())
    except OrchestratorError:
        return ()
    return locked


def render_answer_command(job: Job) -> str:
    """The command that answers what a run asks."""
    answer = json.dumps(job.result["answer_with"]["answer"], ensure_ascii=False)
    return shlex.join(["toolwright", "do", "--run", job.id, "--answer", answer])


def choose_next_commands(state: HomeState) -> tuple[str, ...]:
    """The three commands that are likely next, what blocks first."""
    return tuple(command for command, _ in zip(_list_commands(state), range(SHOWN), strict=False))


def _list_commands(state: HomeState) -> Iterator[str]:
    if not state.has_pin:
        yield "toolwright setup"
    if state.frozen_by:
        yield "toolwright unfreeze"
    if state.pending:
        yield f"toolwright approve {state.pending[0]}"
    if state.unsent and not state.frozen_by:
        yield build_send_command(state.unsent[0])
    if state.waiting:
        yield state.answer or f"toolwright jobs {state.waiting[0]}"
        if state.answer:
            yield f"toolwright jobs {state.waiting[0]} --cancel"
    if state.broken:
        yield f"toolwright jobs {state.broken[0]}"
    if state.servers:
        yield 'toolwright find "what you want"'
        yield f"toolwright show {state.servers[0]}"
    else:
        yield 'toolwright forge "what you want" --source URL'
        yield "toolwright demo"
    if "serve" not in state.running:
        yield "toolwright setup --client CLIENT"
    yield "toolwright control --open"


def render_home_state(state: HomeState) -> list[str]:
    """A line each for what runs and what waits."""
    jobs = "job that needs something" if len(state.waiting) == 1 else "jobs that need something"
    waits = (
        (len(state.pending), "to approve"),
        (len(state.unsent), "approved and not sent"),
        (len(state.waiting), jobs),
    )
    told = ", ".join(f"{count} {what}" for count, what in waits if count)
    page = f"; the page is at {state.control}" if state.control else ""
    lines = [
        f"Running: {', '.join(state.running) or 'nothing'}{page}",
        f"Waiting for you: {told or 'nothing'}",
        f"Servers: {len(state.servers)}",
    ]
    if state.asked:
        tasks = "task" if len(state.asked) == 1 else "tasks"
        lines.insert(2, f"Waiting for a client's model: {len(state.asked)} {tasks} in words")
    if state.broken:
        servers = "a server" if len(state.broken) == 1 else f"{len(state.broken)} servers"
        lines.append(f"Not mended: {servers}; `toolwright jobs {state.broken[0]}` says why")
    if state.locked:
        names = ", ".join(state.locked)
        lines.append(f"Push: locked, so {names} gets no message; `toolwright push unlock`")
    why = f": {state.frozen_for}" if state.frozen_for else ""
    return [f"Frozen by {state.frozen_by}{why}", *lines] if state.frozen_by else lines


def print_next_commands(state: HomeState) -> None:
    print_text("Next:")
    for command in choose_next_commands(state):
        print_text(f"  {command}")
