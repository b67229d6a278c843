"""Progress of a job: one updating block with a summary on a terminal, plain lines elsewhere."""

from __future__ import annotations

import os
from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from orchestrator.cli.progress.job_progress import (
    SHOWN,
    ProgressPrinter,
    measure_steps,
    render_block,
    render_summary,
)
from orchestrator.cli.progress.working import WorkingLine
from registry.models import JobEvent
from registry.store import Store
from tests.registry.samples import job

EVENTS = (
    JobEvent(11.0, "find", "found OpenAPI"),
    JobEvent(11.5, "static", "passed, 12 \x1b[31mchecks\n" + "x" * 300),
    JobEvent(14.5, "live", "passed, 3 checks"),
)


def render(*parts: object, width: int = 80) -> str:
    console = Console(file=StringIO(), width=width, force_terminal=False)
    console.print(*parts)
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def test_the_block_has_a_line_a_step_with_its_seconds_and_how_far_the_job_is() -> None:
    shown = render(render_block(replace(job(), progress=0.5), EVENTS, 10.0, 16.0))
    lines = shown.splitlines()
    assert [line.split()[:3] for line in lines[:3]] == [
        ["find", "1.0", "s"],
        ["static", "0.5", "s"],
        ["live", "3.0", "s"],
    ]
    assert "6.0 s" in lines[3]
    assert "this step 1.5 s" in lines[3]
    assert max(map(len, lines)) <= 80
    assert len(lines) == 4
    assert "\x1b" not in shown


def test_a_long_job_keeps_its_block_short_and_says_how_much_came_before() -> None:
    shown = render(render_block(job(), EVENTS * 10, 10.0, 16.0)).splitlines()
    assert len(shown) == SHOWN + 2
    assert f"{30 - SHOWN} steps before these" in shown[0]


def test_the_summary_names_the_longest_steps() -> None:
    told = [str(line) for line in render_summary(EVENTS, 10.0, 16.0)]
    assert told == ["3 steps in 6.0 s; the longest: live 3.0 s, find 1.0 s, static 0.5 s"]
    assert render_summary((), 10.0, 16.0) == []
    twice = (JobEvent(10.4, "find", "a"), JobEvent(10.8, "find", "b"), JobEvent(10.81, "host", "c"))
    (told,) = map(str, render_summary(twice, 10.0, 11.0))
    assert told == "3 steps in 1.0 s; the longest: find 0.8 s"


def test_steps_that_took_no_time_are_not_summed_up() -> None:
    quick = (JobEvent(10.01, "find", "a"), JobEvent(10.02, "host", "b"))
    assert render_summary(quick, 10.0, 10.03) == []


def test_an_event_comes_at_the_end_of_its_step() -> None:
    assert measure_steps(EVENTS[:1], 12.0) == [("find", 0.0, "found OpenAPI")]


def test_where_it_is_no_terminal_each_event_is_a_line_and_json_has_none(
    store: Store, capfd: pytest.CaptureFixture[str]
) -> None:
    store.jobs.create(job())
    claimed = store.jobs.claim("j1", "test", 2.0)
    assert claimed is not None
    for quiet in (True, False):
        with ProgressPrinter(store, store.jobs.get("j1"), quiet):
            store.jobs.update_progress(
                "j1", claimed.attempt, 3.0, stage="static", progress=0.4, message="passed"
            )
    told = capfd.readouterr()
    assert told.err.splitlines() == ["  2.00 s  static    passed"]
    assert told.out == ""


def test_what_the_command_ends_with_is_left_to_the_command(
    store: Store, capfd: pytest.CaptureFixture[str]
) -> None:
    store.jobs.create(job())
    claimed = store.jobs.claim("j1", "test", 2.0)
    assert claimed is not None
    with ProgressPrinter(store, claimed):
        store.jobs.finish("j1", claimed.attempt, "failed", None, 3.0, "no answer")
    assert "no answer" not in capfd.readouterr().err


def test_a_terminal_is_told_that_something_is_done_and_wiped_after(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    ours, theirs = os.openpty()
    with os.fdopen(theirs, "w") as terminal, os.fdopen(ours, "rb", 0) as screen:
        monkeypatch.setattr("sys.stderr", terminal)
        with WorkingLine("dns.list_zones"):
            shown = screen.read(100)
        assert shown.startswith(b"\rdns.list_zones 0.")
        terminal.write("end\n")
        terminal.flush()
        left = b""
        while b"end" not in left:
            left += screen.read(100)
        assert left.rpartition(b"\r\x1b[K")[2].startswith(b"end")


def test_a_pipe_and_a_script_that_reads_json_are_told_nothing(
    capfd: pytest.CaptureFixture[str],
) -> None:
    for line in (WorkingLine("x"), WorkingLine("x", quiet=True)):
        with line:
            assert line._thread is None
    assert capfd.readouterr().err == ""
