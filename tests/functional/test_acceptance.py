"""Code whose own tests agree with its mistake is found out by another reading of the task."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from forge.drafts.brief import EXAMPLE, EXAMPLE_CODE, EXAMPLE_TESTS
from orchestrator.app import App
from orchestrator.settings import Settings, load_settings
from registry.models import Job
from tests.functional.test_authors import SPECIFICATION, carried, registered, story
from tests.world.model import Model, Said, purpose, said

TASK = (
    "A tool from_roman(numeral) that gives the number a Roman numeral stands for. Letters add up; "
    "a smaller letter before a larger one is subtracted. The letters may be in any order."
)
SAYS = "a smaller letter before a larger one is subtracted"
ADDING = EXAMPLE_CODE.replace("-one if one < after else one", "one")
AGREEING = {
    **SPECIFICATION,
    "tests": EXAMPLE_TESTS.replace('("XIV", 14)', '("XIV", 16)'),
    "cases": [
        {"tool": "from_roman", "arguments": {"numeral": "XLII"}, "result": {"number": 62}},
        {"tool": "from_roman", "arguments": {"numeral": "mcml"}, "result": {"number": 2150}},
        {"tool": "from_roman", "arguments": {"numeral": "abc"}, "failure": "tool"},
    ],
}
MISREAD = {**AGREEING, "code": ADDING}


def claim(numeral: str, number: int, says: str = SAYS) -> dict[str, Any]:
    arguments = {"numeral": numeral}
    return {
        "says": says,
        "tool": "from_roman",
        "arguments": arguments,
        "result": {"number": number},
    }


WHY = "test_normal: XIV was misread"
READING = {"claims": [claim("IX", 9), claim("VI", 6, "Letters add up")]}


def answering(
    *drafts: Mapping[str, Any], reading: Any = READING, right: str = ""
) -> Callable[[Mapping[str, Any]], Said]:
    """A model that gives these drafts, one after the other, reads the task so, and where readings
    differ says that `right` is: `reader`, `server`, or a verdict as it is.
    """
    coming = itertools.chain(drafts, itertools.repeat(drafts[-1]))

    def answer(request: Mapping[str, Any]) -> Said:
        wanted = purpose(request)
        if wanted == "acceptance":
            return reading if isinstance(reading, Said) else said(reading)
        if wanted == "verdict":
            return said({"verdicts": [_verdict(request["messages"][-1]["content"], right)]})
        draft = dict(next(coming))
        if wanted == "specification":
            draft.pop("code", None)
        return said({**draft, "why": WHY})

    return answer


def _verdict(prompt: str, right: str) -> dict[str, Any]:
    first = prompt.partition("   A: ")[2].partition("\n")[0]
    if right in ("reader", "server"):
        right = "A" if ('"number": 9' in first) == (right == "reader") else "B"
    return {"number": 1, "says": SAYS, "work": "X is larger than I", "right": right}


@pytest.fixture
def settings(tmp_path: Path, any_engine: str) -> Settings:
    return load_settings({}, home=tmp_path / "home", engine=any_engine)


async def forged(app: App, **more: Any) -> Job:
    given = {"task": TASK, "name": "roman", "source": "none", **more}
    return await carried(app, app.jobs.create_job("forge", given))


def test_a_mistake_that_its_own_tests_agree_with_is_mended_without_a_person(
    settings: Settings,
) -> None:
    async def told(app: App, here: Model) -> None:
        job = await forged(app)
        assert job.state == "done", job.message
        assert here.purposes() == [
            *("specification", "code", "acceptance", "verdict", "repair"),
        ]
        _, misread, mended = app.store.drafts.find(job.id)
        assert [misread.verdict, mended.verdict] == ["failed", "passed"]
        (diagnosis,) = misread.diagnosis
        assert diagnosis["stage"] == "acceptance"
        assert SAYS in diagnosis["reason"]
        assert diagnosis["expected"] == '{"number": 9}'
        assert mended.reports[-1].verdict == "passed"
        assert mended.reports[-1].code == "read_independently"
        assert "read by openai" in mended.reports[-1].note

    right = {key: EXAMPLE[key] for key in ("code", "tests", "cases")}
    story(settings, answering(MISREAD, MISREAD, right, right="reader"), told)


def test_an_author_that_keeps_to_its_mistake_gets_nothing_registered(settings: Settings) -> None:
    async def told(app: App, here: Model) -> None:
        job = await forged(app)
        assert job.state == "failed"
        assert SAYS in job.message
        assert registered(app) == []

    story(settings, answering(MISREAD, right="reader"), told)


@pytest.mark.parametrize(("right", "cell"), [("server", "passed"), ("open", "inconclusive")])
def test_a_reading_that_another_does_not_uphold_stands_in_nobodys_way(
    settings: Settings, right: str, cell: str
) -> None:
    async def told(app: App, here: Model) -> None:
        job = await forged(app)
        assert job.state == "done", job.message
        (report,) = [
            r for r in app.store.drafts.find(job.id)[-1].reports if r.stage == "acceptance"
        ]
        assert [case.verdict for case in report.cases] == [cell, "passed"]
        told = " ".join(job.result["problems"])
        assert ('it gives {"number": 11}' in told) == (right == "open")

    story(settings, answering(MISREAD, right=right), told)


@pytest.mark.parametrize(
    "reading",
    [
        {"claims": [claim("IX", 9, "all numerals are subtracted")]},
        Said("I would rather not."),
    ],
)
def test_a_reading_that_says_nothing_is_told_as_none(settings: Settings, reading: Any) -> None:
    async def told(app: App, here: Model) -> None:
        job = await forged(app)
        assert job.state == "done", job.message
        report = app.store.drafts.find(job.id)[-1].reports[-1]
        assert (report.stage, report.verdict) == ("acceptance", "skipped")
        assert "said nothing" in report.note

    story(settings, answering(EXAMPLE, reading=reading), told)


def test_a_model_does_not_judge_its_own_code_by_claims_that_it_sends_along(
    settings: Settings,
) -> None:
    async def told(app: App, here: Model) -> None:
        job = await forged(app)
        assert job.state == "failed"
        assert not any("acceptance" in row.content for row in app.store.drafts.find(job.id))

    sent = {**MISREAD, "acceptance": [claim("IX", 11)]}
    story(settings, answering(sent, right="reader"), told)


def test_what_waits_for_its_reader_is_not_registered_and_goes_on_with_it(
    settings: Settings,
) -> None:
    async def told(app: App, here: Model) -> None:
        good = here.answer
        here.answer = lambda request: (
            Said(status=401, body=b"{}") if purpose(request) == "acceptance" else good(request)
        )
        job = await forged(app)
        assert job.state == "waiting"
        assert registered(app) == []
        here.answer, before = good, len(here.asked)
        app.store.jobs.resume(job.id, "test", 0.0)
        assert (await carried(app, app.store.jobs.get(job.id))).state == "done"
        assert here.purposes()[before:] == ["acceptance"]

    story(settings, answering(EXAMPLE), told)


def handed_in(settings: Settings, *drafts: Mapping[str, Any], **order: Any) -> list[Job]:
    """What a job came to after each draft that a client handed in."""
    jobs: list[Job] = []

    async def told(app: App, here: Model) -> None:
        job = await forged(app, author="client", **order)
        for draft in drafts:
            taken = app.submissions.submit_draft(job.id, draft)
            assert not isinstance(taken, tuple), taken
            jobs.append(await carried(app, app.store.jobs.get(job.id)))
        assert here.asked == []

    story(settings, answering(EXAMPLE), told)
    return jobs


def test_a_client_may_hand_in_another_reading_which_its_draft_is_held_against(
    settings: Settings,
) -> None:
    reading = [claim("IX", 9)]
    right = {key: EXAMPLE[key] for key in ("code", "tests", "cases")}
    refused, waiting = handed_in(
        settings, {**MISREAD, "acceptance": reading}, {**right, "why": WHY}
    )
    assert refused.state == "waiting"
    assert SAYS in refused.message
    # The reading is of the same hand as the tests: to change these is a person's to allow.
    assert (waiting.state, waiting.needs and waiting.needs.kind) == ("waiting", "tests")


def test_a_reading_without_the_tasks_words_is_no_draft(settings: Settings) -> None:
    async def told(app: App, here: Model) -> None:
        job = await forged(app, author="client")
        wrong = [claim("IX", 9, "says who?")]
        taken = app.submissions.submit_draft(job.id, {**MISREAD, "acceptance": wrong})
        assert isinstance(taken, tuple)
        assert taken[0].where == "/acceptance/0"
        assert app.store.drafts.find(job.id) == ()

    story(settings, answering(EXAMPLE), told)


def test_a_server_that_only_its_author_read_the_task_of_says_so(settings: Settings) -> None:
    (done,) = handed_in(settings, EXAMPLE)
    assert done.state == "done", done.message
    assert "only its author has read the task" in "".join(event.message for event in done.log)
