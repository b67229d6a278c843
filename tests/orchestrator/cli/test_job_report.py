"""A waiting job is told in a few lines, with the ways to go on that there are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.jobreport import tell
from orchestrator.needs import budget_needs, engine_needs, unfreeze_needs
from orchestrator.terminal import WAITING
from registry.records import Job
from sandbox.errors import ComponentMissing
from tests.registry.samples import job

PARKED = replace(
    job(), state="waiting", stage="draft", owner="", result={"brief": "# Write it", "drafts": []}
)


def printed(capsys: pytest.CaptureFixture[str], held: Job, **how: Any) -> str:
    with pytest.raises(SystemExit) as left:
        tell(held, **{"as_json": False, **how})
    assert left.value.code == WAITING
    return capsys.readouterr().out


def test_the_brief_is_printed_only_where_it_is_wanted(capsys: pytest.CaptureFixture[str]) -> None:
    short = printed(capsys, PARKED)
    assert "# Write it" not in short
    assert [line.partition(":")[0] for line in short.splitlines() if line.startswith("- ")] == [
        "- write it yourself",
        "- have a model write it",
        "- let an MCP client's model write it",
    ]
    assert "# Write it" in printed(capsys, PARKED, with_brief=True)
    assert "# Write it" in printed(capsys, PARKED, as_json=True)


@pytest.mark.parametrize(
    ("needs", "way"),
    [
        (budget_needs("j1", "tokens", 0), "- allow it: toolwright jobs j1 --allow"),
        (unfreeze_needs(), "- toolwright unfreeze, then toolwright jobs j1 --resume"),
        (
            engine_needs(ComponentMissing("none")),
            "- toolwright setup --engine-only --engine wasm, then toolwright jobs j1 --resume",
        ),
    ],
)
def test_what_a_job_needs_comes_first(
    capsys: pytest.CaptureFixture[str], needs: Mapping[str, str], way: str
) -> None:
    lines = printed(capsys, replace(PARKED, needs=needs)).splitlines()
    assert next(line for line in lines if line.startswith("- ")) == way


def test_no_model_is_offered_where_a_client_writes(capsys: pytest.CaptureFixture[str]) -> None:
    handed = replace(PARKED, result={"brief": "", "drafts": [{"author": "client"}]})
    chosen = replace(PARKED, request={"author": "client"})
    for held in (handed, chosen):
        assert "OPENAI_MODEL" not in printed(capsys, held)


def test_a_job_that_waits_without_a_draft_offers_none(capsys: pytest.CaptureFixture[str]) -> None:
    held = replace(
        PARKED, stage="engine", result=None, needs=engine_needs(ComponentMissing("none"))
    )
    out = printed(capsys, held)
    assert "--resume" in out
    assert "submit" not in out
