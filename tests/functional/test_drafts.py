"""The client's model writes a server, is told what is wrong, mends it, and changes it later."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from forge.drafts.brief import EXAMPLE
from tests.functional.home import Home, until
from tests.functional.peer import Peer, text

LENGTHS = '''
from toolwright import tool

METRES = {"m": 1.0, "ft": 0.3048, "km": 1000.0}


@tool
def convert(value, source, target):
    """A length in another unit."""
    return {"value": value * METRES[source] / METRES[target]}
'''
UPSIDE_DOWN = LENGTHS.replace("METRES[source] / METRES[target]", "METRES[target] / METRES[source]")
UNIT = {"type": "string", "enum": ["m", "ft", "km"]}
BOUNDED = {"type": "number", "minimum": -1e300, "maximum": 1e300}
CONVERT = {
    "name": "convert",
    "description": "Convert a length between metres, feet and kilometres.",
    "input_schema": {
        "type": "object",
        "properties": {"value": BOUNDED, "source": UNIT, "target": UNIT},
        "required": ["value", "source", "target"],
        "additionalProperties": False,
    },
    "output_schema": {
        "type": "object",
        "properties": {"value": {"type": "number"}},
        "required": ["value"],
    },
}
LENGTH_CASES = [
    {
        "tool": "convert",
        "arguments": {"value": 10, "source": "ft", "target": "m"},
        "result": {"value": 3.048},
    },
    {
        "tool": "convert",
        "arguments": {"value": 2, "source": "km", "target": "m"},
        "result": {"value": 2000},
    },
]
TEMPERATURES = '''
from toolwright import tool


@tool
def to_celsius(fahrenheit):
    """Degrees Fahrenheit in degrees Celsius."""
    return {"celsius": (fahrenheit - 32) / 1.8}
'''
TO_CELSIUS = {
    "name": "to_celsius",
    "description": "Convert degrees Fahrenheit to degrees Celsius.",
    "input_schema": {
        "type": "object",
        "properties": {"fahrenheit": BOUNDED},
        "required": ["fahrenheit"],
        "additionalProperties": False,
    },
    "output_schema": {"type": "object", "properties": {"celsius": {"type": "number"}}},
}
TEMPERATURE_CASES = [
    {"tool": "to_celsius", "arguments": {"fahrenheit": 212}, "result": {"celsius": 100}},
    {"tool": "to_celsius", "arguments": {"fahrenheit": -40}, "result": {"celsius": -40}},
]


@dataclass
class Authoring:
    """What the client's model saw on the way."""

    brief: dict[str, Any] = field(default_factory=dict)
    no_draft: dict[str, Any] = field(default_factory=dict)
    diagnosis: dict[str, Any] = field(default_factory=dict)
    again: dict[str, Any] = field(default_factory=dict)
    found_between: list[Any] = field(default_factory=list)
    repeated: dict[str, Any] = field(default_factory=dict)
    registered: dict[str, Any] = field(default_factory=dict)
    late: dict[str, Any] = field(default_factory=dict)
    result: Any = None
    second_brief: dict[str, Any] = field(default_factory=dict)
    mutant: dict[str, Any] = field(default_factory=dict)
    mutants_results: list[Any] = field(default_factory=list)
    next_version: dict[str, Any] = field(default_factory=dict)


def settled(peer: Peer, job: str) -> dict[str, Any]:
    """A job when it has ended or waits for its client."""
    return peer.settled(job=job)


@pytest.fixture(scope="module")
def client(toolwright_home: Home) -> Iterator[Peer]:
    with Peer(toolwright_home, "serve") as peer:
        yield peer


@pytest.fixture(scope="module")
def authoring(client: Peer) -> Authoring:
    seen = Authoring()
    job = client.value(
        "forge", task="convert lengths between units", name="lengths", source="none"
    )["job"]
    seen.brief = settled(client, job)
    seen.no_draft = client.call("submit", job=job, code="x = 1", tools=[{"name": "convert"}])
    first = {"tools": [CONVERT], "cases": LENGTH_CASES, "why": "first"}
    client.value("submit", job=job, code=UPSIDE_DOWN, **first)
    seen.diagnosis = settled(client, job)
    seen.again = client.value("status", job=job, brief="composite")
    seen.found_between = client.value("find", task="convert a length to metres")["candidates"]
    seen.repeated = client.call("submit", job=job, code=UPSIDE_DOWN, **first)
    client.value("submit", job=job, code=LENGTHS, **{**first, "why": "the factor the other way"})
    seen.registered = settled(client, job)
    seen.late = client.call("submit", job=job, code=LENGTHS, **first)
    miles = {"value": 5, "source": "km", "target": "ft"}
    seen.result = client.value("call_read", tool="lengths.convert", arguments=miles)
    changed = client.value("forge", task="also Fahrenheit", parent="lengths", name="units")["job"]
    seen.second_brief = settled(client, changed)
    both = [{"name": "convert"}, TO_CELSIUS]
    more = {"code": TEMPERATURES, "tools": both, "cases": TEMPERATURE_CASES}
    client.value("submit", job=changed, why="temperatures", **more)
    seen.mutant = settled(client, changed)
    seen.mutants_results = [
        client.value("call_read", tool="units.to_celsius", arguments={"fahrenheit": 50}),
        client.value("call_read", tool="units.convert", arguments=miles),
    ]
    again = client.value("forge", task="temperatures alone", parent="units", name="units")["job"]
    settled(client, again)
    client.value("submit", job=again, why="fewer", tools=[{"name": "to_celsius"}])
    seen.next_version = settled(client, again)
    return seen


def test_what_only_computes_waits_for_code_with_a_brief(authoring: Authoring) -> None:
    waiting = authoring.brief
    assert (waiting["state"], waiting["stage"]) == ("waiting", "draft")
    assert "# Done when" in waiting["result"]["brief"]
    assert waiting["job"] in waiting["result"]["brief"]
    assert waiting["result"]["diagnosis"] == ""


def test_what_is_no_draft_is_refused_with_each_place_and_kept_nowhere(
    authoring: Authoring, toolwright_home: Home
) -> None:
    assert authoring.no_draft["isError"]
    problems = authoring.no_draft["structuredContent"]["problems"]
    assert "/tools/0/input_schema" in {problem["pointer"] for problem in problems}
    kept = toolwright_home.read("jobs", authoring.brief["job"])["drafts"]
    assert [draft["verdict"] for draft in kept] == ["failed", "passed"]


def test_a_draft_that_fails_is_diagnosed_by_case_and_nothing_is_registered(
    authoring: Authoring,
) -> None:
    assert authoring.diagnosis["state"] == "waiting"
    told = authoring.diagnosis["result"]["diagnosis"]
    assert "[cases] convert, case 1" in told
    assert '{"value": 3.048}' in told
    assert not [c for c in authoring.found_between if c["tool"].startswith("lengths.")]


def test_the_brief_is_told_once_and_again_when_it_is_asked_for(authoring: Authoring) -> None:
    assert "# Done when" not in json.dumps(authoring.diagnosis)
    assert "# Done when" in authoring.again["brief"]
    assert "# Tools of other servers" in authoring.again["brief"]
    assert authoring.diagnosis["needs"]["how"] == f"`submit` with job={authoring.brief['job']}"


def test_the_same_draft_twice_is_refused(authoring: Authoring) -> None:
    assert authoring.repeated["isError"]
    assert "the same draft" in text(authoring.repeated)


def test_a_draft_that_holds_is_registered_and_answers(authoring: Authoring) -> None:
    assert authoring.registered["state"] == "done"
    assert authoring.registered["result"]["tools"] == ["lengths.convert"]
    assert authoring.result["value"] == pytest.approx(16404.199475)
    assert authoring.late["isError"]


def test_every_draft_is_kept_with_its_reports(authoring: Authoring, toolwright_home: Home) -> None:
    job = authoring.brief["job"]
    first = toolwright_home.read("jobs", job, "--draft", "1")
    assert first["content"]["code"] == UPSIDE_DOWN
    assert [report["stage"] for report in first["reports"]] == ["static", "cases"]
    assert toolwright_home.read("jobs", job, "--draft", "2")["reports"][1]["verdict"] == "passed"


def test_a_mutant_begins_from_its_parent_and_keeps_what_it_is_not_told_to_change(
    authoring: Authoring, toolwright_home: Home
) -> None:
    brief = authoring.second_brief["result"]["brief"]
    assert "def convert(value, source, target):" in brief
    assert '"result": {"value": 3.048}' in brief
    assert authoring.mutant["result"]["tools"] == ["units.convert", "units.to_celsius"]
    assert authoring.mutants_results[0] == {"celsius": 10}
    assert authoring.mutants_results[1] == authoring.result
    kept = toolwright_home.path / "servers" / "lengths" / "tests" / "cases.json"
    assert len(json.loads(kept.read_text())["cases"]) == 2


def test_the_parents_own_name_makes_its_next_version(
    authoring: Authoring, toolwright_home: Home
) -> None:
    result = authoring.next_version["result"]
    assert (result["server"], result["version"]) == ("units", 2)
    assert result["tools"] == ["units.to_celsius"]
    earlier = toolwright_home.path / "servers" / "units" / "history" / "1" / "tests" / "cases.json"
    assert "convert" in earlier.read_text()


@pytest.mark.usefixtures("authoring")
def test_the_lineage_is_drawn_from_the_first_ancestor(toolwright_home: Home) -> None:
    (tree,) = toolwright_home.read("show", "units")["lineage"]
    assert (tree["version"], tree["author"], tree["state"]) == ("lengths@1", "client", "active")
    (mutant,) = tree["children"]
    assert (mutant["version"], mutant["here"], mutant["current"]) == ("units@1", True, False)
    assert [child["version"] for child in mutant["children"]] == ["units@2"]
    drawn = toolwright_home.run("show", "lengths").stdout
    assert "lengths@1" in drawn
    assert "└─ units@1" in drawn


@pytest.mark.usefixtures("authoring")
@pytest.mark.parametrize(
    ("order", "told"),
    [
        ({"name": "lengths"}, "give its name as the parent"),
        ({"parent": "nobody"}, "no server 'nobody'"),
    ],
)
def test_a_job_that_cannot_begin_says_why(client: Peer, order: dict[str, str], told: str) -> None:
    job = client.value("forge", task="convert", source="none", **order)["job"]
    ended = settled(client, job)
    assert ended["state"] == "failed"
    assert told in ended["message"]


@pytest.mark.usefixtures("authoring")
def test_a_mutant_gets_no_more_rights_than_its_parent(client: Peer, toolwright_home: Home) -> None:
    job = client.value("forge", task="phone home", parent="lengths")["job"]
    assert settled(client, job)["result"]["name"] == "lengths_2"
    asking = {"name": "convert", "permissions": ["clock"]}
    client.value("submit", job=job, tools=[asking])
    assert "more than lengths may do" in settled(client, job)["result"]["diagnosis"]
    reaching = {"name": "convert", "permissions": ["network:evil.example"]}
    client.value("submit", job=job, tools=[reaching])
    waiting = settled(client, job)
    assert "toolwright source allow evil.example:443" in waiting["message"]
    assert waiting["stage"] != "draft"
    toolwright_home.run("jobs", job, "--cancel")
    assert not (toolwright_home.path / "servers" / "lengths_2").exists()


def test_a_brief_at_the_terminal_is_answered_with_a_file(toolwright_home: Home) -> None:
    begun = toolwright_home.run("forge", "Roman numerals", "--source", "none", "--name", "roman")
    assert begun.returncode == 3
    assert "# Done when" not in begun.stdout
    assert len(begun.stdout) < 1500
    for way in ("--brief", "toolwright submit ", "OPENAI_MODEL", "`status` with job="):
        assert way in begun.stdout
    job = begun.stdout.rpartition("toolwright submit ")[2].split()[0]
    assert "# Done when" in toolwright_home.run("jobs", job, "--brief").stdout
    draft = toolwright_home.path.parent / "draft"
    draft.mkdir()
    (draft / "server.py").write_text(EXAMPLE["code"].replace("def from_roman(numeral):", "def ("))
    (draft / "tools.json").write_text(json.dumps({"tools": EXAMPLE["tools"], "permissions": []}))
    (draft / "cases.json").write_text(json.dumps(EXAMPLE["cases"]))
    refused = toolwright_home.run("submit", job, str(draft))
    assert refused.returncode == 1
    assert "tools.json has permissions" in refused.stdout + refused.stderr
    (draft / "tools.json").write_text(json.dumps(EXAMPLE["tools"]))
    failed = toolwright_home.run("submit", job, str(draft))
    assert failed.returncode == 3
    assert "draft 1 failed" in failed.stdout
    assert "# Done when" not in failed.stdout
    whole = draft.with_suffix(".json")
    whole.write_text(json.dumps(EXAMPLE))
    done = toolwright_home.read("submit", job, str(whole))
    assert done["result"]["tools"] == ["roman.from_roman"]
    called = toolwright_home.read("call", "roman.from_roman", '{"numeral": "MMXXVI"}')
    assert called["structuredContent"] == {"number": 2026}


def test_a_client_may_decline_in_place_of_a_draft(client: Peer) -> None:
    job = client.value("forge", task="forge invoices", source="none", name="invoices")["job"]
    settled(client, job)
    both = client.call("submit", job=job, decline="it is fraud", code="x = 1")
    assert [each["pointer"] for each in both["structuredContent"]["problems"]] == ["/decline"]
    ended = client.value("submit", job=job, decline="it is fraud")
    assert ended["state"] == "failed"
    assert "the client declined: it is fraud" in ended["message"]
    assert client.call("submit", job=job, decline="it is fraud")["isError"]


def test_a_permission_of_this_machine_waits_for_a_person(
    client: Peer, toolwright_home: Home
) -> None:
    job = client.value("forge", task="numerals of files", source="none", name="filed")["job"]
    settled(client, job)
    tools = [{**EXAMPLE["tools"][0], "permissions": ["fs:/srv/numerals:ro", "env:NUMERALS"]}]
    given = {**{key: EXAMPLE[key] for key in ("code", "cases")}, "tools": tools}
    client.value("submit", job=job, **given)
    waiting = settled(client, job)
    lines = waiting["message"].splitlines()
    assert lines[0].startswith("filed asks for env:NUMERALS, to read the value")
    assert lines[1].strip().startswith("and for fs:/srv/numerals:ro, to read the file /srv/num")
    with toolwright_home.store() as store:
        assert "filed" not in [summary.name for summary in store.servers.find_summaries()]
    toolwright_home.person("jobs", job, "--allow")
    assert settled(client, job)["state"] == "done"


def test_an_edit_by_hand_is_held_to_the_cases_and_named_in_the_lineage(
    client: Peer, toolwright_home: Home
) -> None:
    job = client.value("forge", task="numerals", source="none", name="numerals")["job"]
    settled(client, job)
    client.value("submit", job=job, **{key: EXAMPLE[key] for key in ("code", "tools", "cases")})
    assert settled(client, job)["state"] == "done"
    code = toolwright_home.path / "servers" / "numerals" / "server.py"
    written = code.read_text()
    code.write_text(written.replace('"X": 10', '"X": 11'))
    with toolwright_home.store() as store:
        until(lambda: [a for a in store.audit.find() if a.kind == "edit.refused"], "it is refused")
        code.write_text(written.replace('"""Roman numerals."""', '"""Roman numerals, edited."""'))
        until(lambda: store.servers.get("numerals").version == 2, "it is published")
    (tree,) = toolwright_home.read("show", "numerals")["lineage"]
    (edited,) = tree["children"]
    assert (edited["version"], edited["author"]) == ("numerals@2", "person")
    assert (code.parent / "tests" / "cases.json").exists()


def test_a_waiting_job_outlives_the_process_that_asked(toolwright_home: Home) -> None:
    with Peer(toolwright_home, "serve") as first:
        job = first.value("forge", task="upper case", source="none", name="upper")["job"]
        settled(first, job)
    with Peer(toolwright_home, "serve") as second:
        assert settled(second, job)["stage"] == "draft"
        given = {key: EXAMPLE[key] for key in ("code", "tools", "cases")}
        second.value("submit", job=job, **given)
        ended = settled(second, job)
        assert ended["state"] == "done", ended["message"]
