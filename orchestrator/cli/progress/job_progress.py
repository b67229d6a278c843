"""Progress of a job in this process: one updating block on a terminal, a line an event elsewhere.

Messages quote APIs and generated code: they are shown as text, without what nobody sees, and cut.
"""

from __future__ import annotations

import threading
import time
from types import TracebackType

from rich.console import Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from orchestrator.cli.terminal import err, get_screen
from registry.models import Job, JobEvent
from registry.store import Store
from sandbox.sanitize import clean_text

PERIOD_SECONDS = 0.05
SHOWN = 12
"""Lines of the block; what came before is counted."""
SLOWEST = 3
LEAST_SECONDS = 0.05
"""What is shown as 0.0 s is no time."""
BAR_COLUMNS = 40
STAGE_COLUMNS, SECONDS_COLUMNS = 10, 7
REFRESHES = 8
"""A second."""
ENDED = ("done", "failed", "waiting", "cancelled")


class ProgressPrinter:
    """Context manager that shows a job's events on standard error as they come: on a terminal in
    one block that ends in a summary, elsewhere a line each. Nothing with `quiet`.
    """

    def __init__(self, store: Store, job: Job, quiet: bool = False) -> None:
        self._store, self._job, self._quiet = store, job, quiet
        self._began, self._told = time.time(), len(job.log)
        self._before = len(job.log)
        self._live: Live | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch_job, daemon=True)

    def __enter__(self) -> ProgressPrinter:
        if self._quiet:
            return self
        if err.is_terminal and not err.is_dumb_terminal:
            self._live = Live(
                console=get_screen().err,
                transient=True,
                refresh_per_second=REFRESHES,
                get_renderable=self._render,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._live.start()
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._quiet:
            return
        self._stop.set()
        self._thread.join()
        self._follow()
        if self._live:
            self._live.stop()
            for line in render_summary(self._events, self._began, time.time()):
                err.print(line)

    @property
    def _events(self) -> tuple[JobEvent, ...]:
        """What was reported since this process goes on with the job."""
        return self._job.log[self._before :]

    def _watch_job(self) -> None:
        while not self._stop.wait(PERIOD_SECONDS):
            self._follow()

    def _follow(self) -> None:
        self._job = self._store.jobs.get(self._job.id)
        if self._live:
            return
        for event in self._drop_last_words(self._job.log[self._told :]):
            err.print(render_event(event, self._job.created))
        self._told = len(self._job.log)

    def _drop_last_words(self, events: tuple[JobEvent, ...]) -> tuple[JobEvent, ...]:
        """The events without that whose message the command itself ends with."""
        job = self._job
        is_told = bool(events) and job.state in ENDED and events[-1].message == job.message
        return events[:-1] if is_told else events

    def _render(self) -> Group:
        events = self._drop_last_words(self._events)
        return render_block(self._job, events, self._began, time.time())


def render_event(event: JobEvent, began: float) -> Text:
    """An event as a line of its own."""
    line = Text(f"{event.time - began:6.2f} s", style="dim")
    return line.append(f"  {event.stage:<9} {clean_text(event.message)}", style="not dim")


def render_block(job: Job, events: tuple[JobEvent, ...], began: float, now: float) -> Group:
    """The latest steps of a job with the seconds that each took, how far it is and for how long it
    has run.
    """
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True, min_width=STAGE_COLUMNS)
    table.add_column(no_wrap=True, min_width=SECONDS_COLUMNS, justify="right")
    table.add_column(no_wrap=True, overflow="ellipsis")
    steps = measure_steps(events, began)
    if len(steps) > SHOWN:
        table.add_row("", "", Text(f"{len(steps) - SHOWN} steps before these", style="dim"))
    for stage, seconds, message in steps[-SHOWN:]:
        told = " ".join(clean_text(message).split())
        table.add_row(Text(stage), Text(f"{seconds:.1f} s", style="dim"), Text(told))
    state = Table.grid(padding=(0, 2))
    bar = ProgressBar(total=1.0, completed=min(max(job.progress, 0.0), 1.0), width=BAR_COLUMNS)
    last = events[-1].time if events else began
    state.add_row(bar, Text(f"{now - began:.1f} s"), Text(f"this step {now - last:.1f} s", "dim"))
    return Group(table, state)


def render_summary(events: tuple[JobEvent, ...], began: float, now: float) -> list[Text]:
    """How many steps there were, how long they took, and which stages took longest; nothing where
    none took a time that is shown.
    """
    steps = measure_steps(events, began)
    stages: dict[str, float] = {}
    for stage, seconds, _ in steps:
        stages[stage] = stages.get(stage, 0.0) + seconds
    longest = sorted(stages.items(), key=lambda each: -each[1])[:SLOWEST]
    slow = [(stage, seconds) for stage, seconds in longest if seconds >= LEAST_SECONDS]
    if not slow:
        return []
    told = ", ".join(f"{stage} {seconds:.1f} s" for stage, seconds in slow)
    count = f"{len(steps)} step{'s' * (len(steps) != 1)}"
    return [Text(f"{count} in {now - began:.1f} s; the longest: {told}", style="dim")]


def measure_steps(events: tuple[JobEvent, ...], began: float) -> list[tuple[str, float, str]]:
    """(stage, seconds, message) of each step. An event comes at the end of its step."""
    times = [began, *(event.time for event in events)]
    return [
        (event.stage, max(0.0, event.time - before), event.message)
        for event, before in zip(events, times, strict=False)
    ]
