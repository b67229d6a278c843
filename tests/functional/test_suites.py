"""Tests before code: a specification is kept, and its code is held to it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from forge.drafts.brief import EXAMPLE, EXAMPLE_CODE, EXAMPLE_TESTS
from tests.functional.home import Home, until
from tests.functional.peer import Peer
from tests.functional.test_drafts import settled

SPECIFICATION = {key: EXAMPLE[key] for key in ("tools", "cases", "tests")}
VACUOUS = (
    EXAMPLE_TESTS + "\n\ndef test_nothing():\n    assert from_roman(numeral='I') is not None\n"
)
FORGETFUL = EXAMPLE_CODE.replace("if not values or 0 in values", "if 0 in values")
LOOSE = EXAMPLE_TESTS.replace('("I", 1)', '("II", 2)')


@dataclass
class Written:
    vacuous: dict[str, Any] = field(default_factory=dict)
    specified: dict[str, Any] = field(default_factory=dict)
    wrong: dict[str, Any] = field(default_factory=dict)
    loosened: dict[str, Any] = field(default_factory=dict)
    other: dict[str, Any] = field(default_factory=dict)
    registered: dict[str, Any] = field(default_factory=dict)
    called: dict[str, Any] = field(default_factory=dict)


@pytest.fixture(scope="module")
def client(toolwright_home: Home) -> Iterator[Peer]:
    with Peer(toolwright_home, "serve") as peer:
        yield peer


@pytest.fixture(scope="module")
def written(client: Peer, toolwright_home: Home) -> Written:
    seen = Written()
    job = client.value("forge", task="Roman numerals", name="numbering", source="none")["job"]
    settled(client, job)
    client.value("submit", job=job, why="what it is to be", **{**SPECIFICATION, "tests": VACUOUS})
    seen.vacuous = settled(client, job)
    client.value("submit", job=job, why="drop test_nothing", tests=EXAMPLE_TESTS)
    seen.specified = settled(client, job)
    client.value("submit", job=job, why="the code", code=FORGETFUL)
    seen.wrong = settled(client, job)
    seen.loosened = client.call("submit", job=job, why="better", code=FORGETFUL, tests=LOOSE)
    why = "no numeral is none; test_normal: two is the better example"
    client.value("submit", job=job, why=why, code=EXAMPLE_CODE, tests=LOOSE)
    seen.other = settled(client, job)
    toolwright_home.person("jobs", job, "--allow")
    seen.registered = settled(client, job)
    numeral = {"numeral": "MCMXC"}
    seen.called = client.value("call_read", tool="numbering.from_roman", arguments=numeral)
    return seen


def test_a_test_that_proves_nothing_is_sent_back_before_there_is_code(written: Written) -> None:
    assert written.vacuous["state"] == "waiting"
    assert "test_nothing" in written.vacuous["message"]
    assert "proves nothing" in written.vacuous["message"]


def test_a_specification_is_kept_and_its_code_awaited(written: Written) -> None:
    assert written.specified["state"] == "waiting"
    assert "specification is kept" in written.specified["message"]
    assert written.specified["result"]["drafts"][-1]["verdict"] == "passed"


def test_code_that_fails_a_test_is_told_what_went_in_and_what_came_out(written: Written) -> None:
    said = written.wrong["message"]
    assert "[suite] from_roman, test_error_no_numeral[]" in said
    assert "given: from_roman(numeral='')" in said


def test_no_test_is_weakened_without_a_word(written: Written) -> None:
    assert written.loosened["isError"]
    (problem,) = written.loosened["structuredContent"]["problems"]
    assert "test_normal" in problem["reason"]


def test_code_that_passes_other_tests_than_before_waits_for_a_person(written: Written) -> None:
    assert written.other["state"] == "waiting"
    assert "other tests than before (test_normal)" in written.other["message"]


def test_the_code_that_passes_is_registered_with_its_tests(
    written: Written, toolwright_home: Home
) -> None:
    assert written.registered["state"] == "done"
    assert written.called == {"number": 1990}
    kept = toolwright_home.path / "servers" / "numbering" / "tests" / "test_server.py"
    assert kept.read_text() == LOOSE
    report = toolwright_home.path / "servers" / "numbering" / "reports" / "suite.json"
    assert '"passed"' in report.read_text()


def test_who_edits_the_files_is_held_to_the_tests(written: Written, toolwright_home: Home) -> None:
    place = toolwright_home.path / "servers" / "numbering" / "server.py"
    (place).write_text(FORGETFUL)
    with toolwright_home.store() as store:
        mine = ("edit.refused", "numbering")
        refused = until(
            lambda: [a for a in store.audit.find() if (a.kind, a.subject) == mine], "it is refused"
        )
        assert "suite failed" in str(refused[-1].payload)
        assert store.servers.get("numbering").version == 1
    place.write_text(EXAMPLE_CODE)
