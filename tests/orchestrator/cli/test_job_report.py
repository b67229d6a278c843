"""A waiting job is told in a few lines, with the ways to go on that there are."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import Any

import click
import pytest
from click.testing import CliRunner

from orchestrator.approvals.needs import describe_wait, engine_need
from orchestrator.cli.job_report import report_job
from orchestrator.cli.main import toolwright
from orchestrator.cli.resume import show_needs, tell_way_on
from orchestrator.cli.terminal import WAITING
from orchestrator.errors import WrongPin
from orchestrator.settings import Settings
from orchestrator.views.jobs import build_forge_result
from registry.jobs.pending import DraftLine, PendingForge, pending_json
from registry.models import Job
from registry.needs import (
    BudgetLine,
    BudgetNeed,
    CredentialNeed,
    HostNeed,
    Need,
    SuccessionNeed,
    UnfreezeNeed,
)
from registry.store import Store
from sandbox.errors import ComponentMissing
from tests.registry.samples import job

PARKED = replace(
    job(), state="waiting", stage="draft", owner="", result={"brief": "# Write it", "drafts": []}
)


def printed(capsys: pytest.CaptureFixture[str], held: Job, **how: Any) -> str:
    with pytest.raises(SystemExit) as left:
        report_job(held, **{"as_json": False, **how})
    assert left.value.code == WAITING
    return capsys.readouterr().out


def test_the_brief_is_printed_only_where_it_is_wanted(capsys: pytest.CaptureFixture[str]) -> None:
    short = printed(capsys, PARKED)
    assert "# Write it" not in short
    assert [line.partition(":")[0] for line in short.splitlines() if line.startswith("- ")] == [
        "- write it yourself",
        "- have a model write it",
        "- let an MCP client's model write it",
        "- or end it",
    ]
    assert "# Write it" in printed(capsys, PARKED, with_brief=True)
    assert "# Write it" in printed(capsys, PARKED, as_json=True)


@pytest.mark.parametrize(
    ("needs", "way"),
    [
        (
            BudgetNeed(BudgetLine("job", "tokens", 1001, 1000), 0),
            "- allow it: toolwright allow j1",
        ),
        (UnfreezeNeed(), "- toolwright unfreeze, then toolwright jobs j1 --resume"),
        (
            engine_need(ComponentMissing("none")),
            "- toolwright setup --engine-only --engine wasm, then toolwright jobs j1 --resume",
        ),
    ],
)
def test_what_a_job_needs_comes_first(
    capsys: pytest.CaptureFixture[str], needs: Need, way: str
) -> None:
    lines = printed(capsys, replace(PARKED, needs=needs)).splitlines()
    assert next(line for line in lines if line.startswith("- ")) == way


def test_no_model_is_offered_where_a_client_writes(capsys: pytest.CaptureFixture[str]) -> None:
    draft = DraftLine(1, "failed", "", "client", "")
    handed = replace(PARKED, result=pending_json(PendingForge("draft", drafts=(draft,))))
    chosen = replace(PARKED, request={"author": "client"})
    for held in (handed, chosen):
        assert "OPENAI_MODEL" not in printed(capsys, held)


def test_a_job_that_waits_without_a_draft_offers_none(capsys: pytest.CaptureFixture[str]) -> None:
    held = replace(PARKED, stage="engine", result=None, needs=engine_need(ComponentMissing("none")))
    out = printed(capsys, held)
    assert "--resume" in out
    assert "submit" not in out


def test_the_way_to_go_on_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    need = HostNeed("api.example:443")
    held = replace(PARKED, result=None, needs=need, message=describe_wait("j1", need))
    told = printed(capsys, held)
    assert told.count("toolwright allow j1") == 1
    assert told.startswith("first a person has to allow requests to api.example:443.")


def test_a_job_that_needs_a_credential_says_so_first(capsys: pytest.CaptureFixture[str]) -> None:
    asked = (
        "https://api.example/ asks for a credential (401). Store it, then: toolwright source add"
    )
    need = CredentialNeed("https://api.example/", asked)
    held = replace(PARKED, result=None, needs=need, message=describe_wait("j1", need))
    told = printed(capsys, held)
    assert told.startswith("a credential is missing.")
    assert " ".join(told.split()).count(asked) == 1


def test_a_forge_that_changed_nothing_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    result = {"server": "pets", "version": 2, "state": "active", "tools": [], "problems": []}
    report_job(replace(job(), state="done", result=result), False)
    assert "pets version 2 is active.\n" in capsys.readouterr().out
    report_job(replace(job(), state="done", result={**result, "unchanged": True}), False)
    assert "pets version 2 is active as before; nothing changed.\n" in capsys.readouterr().out


def test_a_forge_says_how_many_tools_there_are_where_it_names_only_some(
    capsys: pytest.CaptureFixture[str],
) -> None:
    named = [f"big.tool_{number}" for number in range(200)]
    result = {"server": "big", "version": 1, "state": "active", "tools": named, "problems": []}
    made = replace(job(), state="done", result={**result, "tool_count": 977})
    report_job(made, False)
    assert "977 tools; try: toolwright show big" in capsys.readouterr().out
    assert "and 957 more, which `find` shows" in build_forge_result(made)["content"][0]["text"]


def test_a_client_is_told_whether_a_forge_changed_anything() -> None:
    made = {"server": "pets", "version": 2, "tools": ["pets.list"], "problems": [], "learned": []}

    def tell(result: dict[str, Any]) -> str:
        told = build_forge_result(replace(job(), state="done", result=result, message=""))
        return str(told["content"][0]["text"])

    assert tell(made).startswith("Registered. Its tools: pets.list.")
    assert tell({**made, "unchanged": True}).startswith("Registered before, and nothing changed.")
    fits = {"state": "suggested", "candidates": [{"tool": "pets.list"}]}
    assert tell({**made, "task": fits}) == tell(made)
    asked = {"state": "suggested", "candidates": [], "nothing": ["remark"]}
    assert "What the task came to: The words ask for nothing" in tell({**made, "task": asked})


@pytest.mark.parametrize("ended", [click.Abort(), WrongPin("that is not the PIN")])
def test_who_ends_the_question_of_a_job_is_told_how_the_job_goes_on(
    capsys: pytest.CaptureFixture[str], ended: Exception
) -> None:
    with pytest.raises(type(ended)), tell_way_on("toolwright allow j1", job()):
        raise ended
    told = capsys.readouterr().err
    assert "Job j1 waits: `toolwright allow j1` goes on with it" in told
    assert "`toolwright jobs j1 --cancel` ends it" in told


def test_a_change_of_version_is_asked_for_in_words_and_names_the_other_way(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show_needs(job(), SuccessionNeed("pets", 1, ("GET /owners",), "d"))
    told = capsys.readouterr().err
    assert "your yes to a version of pets that does other things than version 1" in told
    assert "`--name NAME` makes a server beside it" in told
    assert "succession" not in told


def test_a_job_is_shown_in_a_few_lines_with_what_happened_and_what_lets_it_go_on(
    settings: Settings, store: Store
) -> None:
    def run(*words: str) -> str:
        environment = {"TOOLWRIGHT_HOME": str(settings.home), "COLUMNS": "200"}
        return CliRunner().invoke(toolwright, ["jobs", *words], env=environment).stdout

    made = replace(job("j1", time.time()), request={"task": "book a berth", "source": "http://h/"})
    store.jobs.create(made)
    claimed = store.jobs.claim("j1", "test", time.time())
    assert claimed is not None
    store.jobs.update_progress(
        "j1", claimed.attempt, time.time(), stage="find", progress=0.1, message="looking for it"
    )
    need = HostNeed("h:443")
    store.drafts.park_job("j1", claimed.attempt, {}, time.time(), "allow h:443", need, "host")
    first, asked, *more = run("j1").splitlines()
    assert (first, asked) == ("forge j1: waiting, begun now", "book a berth")
    assert "looking for it" in "\n".join(more)
    assert more[-1].startswith("- allow it: toolwright allow j1")
    assert json.loads(run("j1", "--json"))["job"] == "j1"
    assert "allow h:443" in run()
    assert run("j1", "--cancel") == "j1 is cancelled.\n"
    assert "To go on" not in run("j1")
    assert "allow h:443" not in run()
