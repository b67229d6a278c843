"""The first room: what waits, what runs, and the last day at a glance."""

from __future__ import annotations

from html import escape

from forge.text import inflect
from orchestrator.control.markup import (
    escape_text,
    render_empty,
    render_section,
    render_time,
)
from orchestrator.control.rooms.approvals import find_waiting_jobs
from orchestrator.control.rooms.jobs import find_jobs, render_progress
from orchestrator.control.rooms.place import ROOMS, Place, build_address
from registry.calls.invocations import COUNTED, CallCount
from registry.models import Job
from registry.processes import ProcessTable
from registry.store import Store

HOURS = 24
WIDTH, HEIGHT = 480, 96
RECENT = 50


def render_navigation(store: Store, place: Place) -> str:
    """Links to the rooms; how much waits stands beside Approvals."""
    count = len(store.approvals.find_ids("pending")) + len(find_waiting_jobs(store))
    return "".join(
        render_room_link(room, title, place, count if room == "approvals" else 0)
        for room, title in ROOMS.items()
    )


def render_room_link(room: str, title: str, place: Place, count: int = 0) -> str:
    """A link to a room, with how much waits in it."""
    here = ' aria-current="page"' if room == place.room else ""
    waits = f' <span class="count">{count}</span>' if count else ""
    return f'<a href="{build_address(room)}"{here}>{escape(title)}{waits}</a>'


def render_freeze(processes: ProcessTable) -> str:
    frozen = processes.get_freeze()
    if not frozen.frozen:
        return '<button class="kill" data-post="/kill">Freeze everything</button>'
    return (
        f'<p class="frozen" role="alert"><strong>Frozen</strong> {render_time(frozen.since)} by '
        f"{escape_text(frozen.by)}. {escape_text(frozen.reason)}</p>"
        '<button data-post="/unfreeze">Unfreeze (PIN)</button>'
    )


def render_running(store: Store) -> str:
    lines = [
        f'<li><span class="kind">write</span> {escape_text(f"{call.entry}.{call.tool}")}, '
        f"begun {render_time(call.started)}</li>"
        for call in store.calls.find(limit=RECENT)
        if call.state == "intended"
    ]
    lines += [_render_job_line(job) for job in find_jobs(store, ("queued", "running"))]
    lines += [
        f'<li><span class="kind">{escape_text(process.kind)}</span> '
        f"process {process.pid}, begun {render_time(process.started)}</li>"
        for process in store.processes.find()
    ]
    nothing = render_empty("Nothing. Start it for your client:", "toolwright serve")
    return render_section(
        "Running", f'<ul class="listed">{"".join(lines)}</ul>' if lines else nothing
    )


def _render_job_line(job: Job) -> str:
    asked = str(job.request.get("task") or job.request.get("source") or "")
    return (
        f'<li><span class="kind">{escape_text(job.kind)}</span> {escape_text(asked)} '
        f"{render_progress(job)}<small>{escape_text(job.stage)} {escape_text(job.message)}</small>"
        "</li>"
    )


def render_day(store: Store, now: float) -> str:
    """The calls of the last 24 hours by the hour, and what is registered."""
    since = (now // 3600 + 1 - HOURS) * 3600
    counts = store.calls.count_by_hour(since)
    servers = store.servers.find_summaries()
    good, bad = sum(each.succeeded for each in counts), sum(each.failed for each in counts)
    trusted = sum(server.standing.level == "trusted" for server in servers)
    held = sum(server.state == "quarantined" for server in servers)
    more = "+" if good + bad >= COUNTED else ""
    figures = "".join(
        f'<a class="figure" href="{address}"><b>{figure}</b> {told}</a>'
        for figure, told, address in (
            (
                f"{good + bad:,}{more}",
                inflect(good + bad, "call"),
                build_address("calls"),
            ),
            (f"{bad:,}{more}", "failed", build_address("calls") + "?outcome=failed"),
            (len(servers), inflect(len(servers), "server"), build_address("servers")),
            (trusted, "trusted", build_address("servers")),
            (held, "quarantined", build_address("servers")),
        )
    )
    nothing = render_empty("No call in the last day. Try one:", "toolwright call SERVER.TOOL")
    chart = _render_chart(counts, since) if good + bad else nothing
    return render_section("Last 24 hours", f'<div class="figures">{figures}</div>{chart}')


def _render_chart(counts: tuple[CallCount, ...], since: float) -> str:
    """Bars of calls by the hour, failed ones at the foot."""
    highest = max(each.succeeded + each.failed for each in counts)
    step = WIDTH / HOURS
    bars = []
    for each in counts:
        left = (each.hour - since) / 3600 * step + 1
        foot = each.failed * HEIGHT / highest
        top = each.succeeded * HEIGHT / highest
        bars.append(_render_bar("bad", left, step - 2, foot, 0.0))
        bars.append(_render_bar("good", left, step - 2, top, foot))
    told = f"Calls by the hour, at most {highest} in one; red: failed"
    return (
        f'<figure><svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{told}" '
        f'preserveAspectRatio="none">{"".join(bars)}</svg><figcaption>{told}.</figcaption></figure>'
    )


def _render_bar(kind: str, left: float, width: float, height: float, above: float) -> str:
    if not height:
        return ""
    top = HEIGHT - above - height
    return (
        f'<rect class="{kind}" x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" '
        f'height="{height:.1f}"/>'
    )
