"""A how-to page's commands are typed at a terminal and print what the page shows.

One page, since each command takes its time: `scripts/howto.py` runs all of them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.settings import load_settings
from sandbox.engines.wasm.component import LoadedComponent
from scripts.howto import PAGES, find_difference, read_page, run_page


def test_a_write_is_approved_and_another_rejected_as_the_page_shows(
    component: LoadedComponent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLWRIGHT_CACHE", str(load_settings().cache))
    page = read_page((PAGES / "approve.md").read_text("utf-8"))
    shown = list(run_page(page, tmp_path))
    assert [each.step for each in shown] == list(page.steps)
    differences = {
        each.step.command: (difference, each.lines)
        for each in shown
        if (difference := find_difference(each.step.printed, each.lines))
    }
    assert differences == {}
