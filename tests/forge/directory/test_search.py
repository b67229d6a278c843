"""Which services a task may mean: measured on tasks, and what strangers' words cannot do."""

from __future__ import annotations

import csv
from fnmatch import fnmatch
from pathlib import Path

import pytest

from forge.directory.search import MAX_FOUND, find_services, suggest_services
from forge.directory.service import load_directory
from tests.forge.directory.samples import description, directory

TASKS = Path(__file__).with_name("tasks.csv")


def read_tasks(*sets: str) -> list[tuple[str, list[str]]]:
    with TASKS.open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["set"] in sets]
    return [(row["task"], (row["services"] or "").split()) for row in rows]


def rate(*sets: str) -> tuple[float, float, float]:
    """hit@1 and hit@5 of the tasks that a service fits, and how many others say none."""
    first = five = none = 0
    tasks = read_tasks(*sets)
    fitting = sum(bool(wanted) for _, wanted in tasks)
    for task, wanted in tasks:
        found = [each.service.identity for each in find_services(task, 5, load_directory())]
        hits = [any(fnmatch(name, pattern) for pattern in wanted) for name in found]
        first += bool(wanted) and hits[:1] == [True]
        five += any(hits)
        none += not wanted and not found
    return first / fitting, five / fitting, none / (len(tasks) - fitting)


def test_the_measured_hits_and_refusals_hold() -> None:
    """docs/benchmarks.md has the figures; these are their floors."""
    assert len(read_tasks("first")) >= 98
    first, five, none = rate("first")
    assert first >= 0.95
    assert five >= 0.95
    assert none >= 0.93
    first, five, none = rate("second", "unseen")
    assert first >= 0.5
    assert none >= 0.9


@pytest.mark.parametrize(
    ("task", "wanted"),
    [
        ("manage DNS records at Hetzner", "hetzner.cloud"),
        ("trello cards", "trello.com"),
        ("Stack Exchange questions", "stackexchange.com"),
        ("list EC2 instances on AWS", "amazonaws.com/ec2"),
    ],
)
def test_a_service_is_found_by_its_name(task: str, wanted: str) -> None:
    found = suggest_services(task)
    assert (found[0].service.identity, found[0].reason) == (wanted, "named")


@pytest.mark.parametrize(
    "task",
    [
        "validate an IBAN",
        "Write a tool that validates IBANs",
        "check whether an IBAN is valid",
        "normalize the IBANs of a list",
        "A tool `check_iban(text)` that says whether the digits of an IBAN are right",
    ],
)
def test_what_only_computes_means_no_service_that_is_called_like_its_subject(task: str) -> None:
    assert suggest_services(task) == ()


@pytest.mark.parametrize(
    ("task", "wanted"),
    [
        ("validate an IBAN with ibanapi", "ibanapi.com"),
        ("summarize GitHub issues", "github.com"),
        ("a tool that lists GitHub issues", "github.com"),
    ],
)
def test_a_task_of_computing_may_name_a_service_all_the_same(task: str, wanted: str) -> None:
    assert wanted in suggest_services(task)[0].service.identity


def test_weather_by_coordinates_finds_services_about_weather() -> None:
    found = suggest_services("weather by coordinates")
    assert found
    assert {each.reason for each in found} == {"fits"}
    assert all("weather" in each.words for each in found)


@pytest.mark.parametrize("task", ["", "   ", "the of and", "!!!", "x" * 100_000, "\0\ud800"])
def test_a_task_that_says_nothing_finds_nothing(task: str) -> None:
    assert suggest_services(task) == ()


def test_a_long_task_is_read_to_a_bound_and_gives_no_more_than_were_asked_for() -> None:
    task = "trello cards " + "weather forecast geolocation " * 50_000
    assert len(find_services(task, 10_000, load_directory())) <= MAX_FOUND
    assert suggest_services(task)[0].service.identity == "trello.com"


def test_the_same_task_finds_the_same_services() -> None:
    task = "send an SMS with Twilio"
    assert suggest_services(task) == suggest_services(task)


def test_a_name_in_a_task_beats_every_word_of_what_others_are_about(tmp_path: Path) -> None:
    here = directory(
        tmp_path / "p.tgz",
        {
            "mooring.example": description(),
            "boats.example": description("Berths and moorings of harbours", text="Berths, harbour"),
        },
    )
    found = find_services("berths of harbours at Mooring", 5, here)
    assert [each.service.identity for each in found] == ["mooring.example"]


def test_what_belongs_to_the_asker_is_no_public_service() -> None:
    assert suggest_services("backup my database") == ()
    assert suggest_services("orders of our shop") == ()
