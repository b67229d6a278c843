"""Task runs as a client and a person at a terminal meet them: asked, answered, gone on with."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from orchestrator.cli.terminal import WAITING
from orchestrator.results.shape import count_tokens
from registry.search.encoder import is_installed
from tests.functional.asking import UNSURE
from tests.functional.home import SECONDS, Home, new_home, until
from tests.functional.peer import Peer
from tests.functional.test_task_questions import PLAN, THREE, WRITTEN
from tests.world.site import Site
from tests.world.zones import ZONES, owners_api, zones_api


@dataclass(frozen=True)
class Place:
    """A home with the server `zones`, and the sites."""

    home: Home
    zones: Site
    owners: Site


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, any_engine: str) -> Iterator[Place]:
    directory = tmp_path_factory.mktemp("clients")
    with zones_api() as zones, owners_api() as owners, new_home(directory, any_engine) as home:
        allowed = ("--allow", zones.url.removeprefix("http://"))
        home.person("forge", "zones server", "--source", zones.url, "--name", "zones", *allowed)
        home.person("source", "allow", owners.url.removeprefix("http://"))
        yield Place(home, zones, owners)


@pytest.fixture
def client(place: Place) -> Iterator[Peer]:
    place.zones.asked.clear()
    with Peer(place.home, "serve") as peer:
        yield peer


def test_a_client_answers_in_one_round_trip_a_step(place: Place, client: Peer) -> None:
    asked = client.value("do", task=UNSURE)
    assert asked["state"] == "asking"
    # The process may look whether the description has changed.
    assert "/zones" not in place.zones.paths
    with_answer = asked["answer_with"]
    wrong = client.call("do", run=with_answer["run"], answer={"confirm": "maybe"})
    assert wrong["isError"]
    assert "/answer" in wrong["content"][0]["text"]
    ended = client.value("do", **with_answer)
    assert ended["body"] == ZONES
    again = client.call("do", **with_answer)
    assert again["isError"]
    assert place.zones.paths.count("/zones") == 1


def test_what_waits_for_somebody_is_told_at_once(client: Peer) -> None:
    asked = client.value("do", task=UNSURE)
    shown = client.value("status", job=asked["run"], wait=25)
    assert shown["question"] == asked["question"]
    assert client.value("do", run=asked["run"])["question"] == asked["question"]


def test_do_without_a_task_or_a_run_says_what_it_takes(client: Peer) -> None:
    refused = client.call("do")
    assert refused["isError"]
    assert "`task`" in refused["content"][0]["text"]


def test_a_clients_plan_reads_writes_once_approved_and_goes_on(place: Place, client: Peer) -> None:
    asked = client.value("do", task=THREE)
    answer = {"question": asked["question"]["id"], "steps": WRITTEN}
    pending = client.value("do", run=asked["run"], answer=answer)
    assert pending["state"] == "pending"
    assert [each.method for each in place.zones.asked] == ["GET"]
    assert place.home.approve(pending["approval"]).status_code == 200

    def rest() -> dict[str, object] | None:
        told: dict[str, object] = client.value("status", job=pending["next"], wait=5)
        return told if "body" in told else None

    assert until(rest, "the rest is done")["body"] == [{"name": "www", "content": "192.0.2.1"}]
    assert [each.method for each in place.zones.asked].count("POST") == 1


def test_without_a_terminal_the_question_is_printed_with_the_command_that_answers(
    place: Place,
) -> None:
    asked = place.home.run("do", UNSURE, "--json")
    assert asked.returncode == WAITING, asked.stderr
    told = json.loads(asked.stdout)
    question = told["result"]["question"]
    printed = place.home.run("do", UNSURE)
    assert "toolwright do --run" in printed.stdout
    answer = json.dumps({"question": question["id"], "confirm": True})
    ended = place.home.run("do", "--run", told["job"], "--answer", answer, "--json")
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["structuredContent"]["body"] == ZONES
    again = place.home.run("do", "--run", told["job"], "--answer", answer)
    assert again.returncode != 0
    assert "does not take this answer" in again.stderr


@pytest.mark.parametrize(
    ("task", "typed", "said"),
    [
        (UNSURE, [(b"[y/N]", "y")], "example.org"),
        (UNSURE, [(b"[y/N]", "n"), (b"Number", "1")], "example.org"),
        (UNSURE, [(b"[y/N]", "n"), (b"Number", "0"), (b"Source", "stop")], "no server"),
        ("list the records of a zone", [(b"zone_id", "z-4711")], "192.0.2.1"),
    ],
)
def test_a_person_at_the_terminal_is_asked_right_there(
    place: Place, task: str, typed: list[tuple[bytes, str]], said: str
) -> None:
    words = ["do", task]
    if "records" in task:
        words += ["--tool", "zones.list_records"]
    seen, _ = place.home.type_command(*words, answers=typed)
    assert said in seen


def reads_terminal(process: int) -> bool:
    """Whether a process is in the system call that reads its standard input (proc(5))."""
    number, first, *_ = [*Path(f"/proc/{process}/syscall").read_text().split(), ""]
    return (number, first) in {("0", "0x0"), ("63", "0x0")}  # x86_64, aarch64


def test_ctrl_c_at_a_question_ends_the_command_and_calls_nothing(place: Place) -> None:
    place.zones.asked.clear()
    with place.home.open_terminal("do", UNSURE) as (process, terminal):
        seen = b""
        while b"[y/N]" not in seen:
            seen += os.read(terminal, 65_536)
        # Between the question and the wait for its answer Python looks for no signal.
        until(lambda: reads_terminal(process.pid), "it waits for what is typed")
        process.send_signal(signal.SIGINT)
        status = process.wait(SECONDS)
    assert status != 0
    assert "/zones" not in place.zones.paths


@pytest.mark.skipif(not is_installed(), reason="the extra `semantic` is not installed")
def test_a_home_that_only_a_terminal_uses_finds_tools_by_their_meaning(place: Place) -> None:
    environment = {**place.home.environment, "TOOLWRIGHT_SEMANTIC": "on"}
    told = replace(place.home, environment=environment).run("do", UNSURE, "--json")
    assert told.returncode == WAITING, told.stderr
    with place.home.store() as store:
        found = store.route(UNSURE)
        store.search.clear_vectors()
    assert found.by_meaning
    (why,) = json.loads(told.stdout)["result"]["question"]["shown"]["why"]
    assert "meanings" not in why


def test_a_forge_of_an_api_that_has_a_server_makes_no_twin(place: Place, client: Peer) -> None:
    before = client.value("status")["servers"]
    made = client.value("forge", task="a zones server", source=place.zones.url)
    made = client.settled(job=made["job"])
    assert (made["state"], made["result"]["server"]) == ("done", "zones")
    assert client.value("status")["servers"] == before


def test_a_forges_result_tells_what_its_task_comes_to(place: Place, client: Peer) -> None:
    order = {"task": "count the owners", "source": place.owners.url, "name": "owners"}
    with_patience = client.call("forge", **order)
    # On a machine that is too busy for the answer's seconds, the job says the same later.
    ended = with_patience["structuredContent"]
    if ended["state"] not in ("queued", "running"):
        assert "owners.count_owners" in with_patience["content"][0]["text"]
        assert count_tokens(json.dumps(ended)) <= 1_500
    ended = client.settled(job=ended["job"])
    assert ended["state"] == "done", ended["message"]
    task = ended["result"]["task"]
    assert task["state"] in ("answered", "suggested")
    assert "owners.count_owners" in json.dumps(task)
    assert place.owners.paths.count("/count") <= 2


def test_a_forge_is_answered_with_its_end_or_with_what_a_person_must_do(
    place: Place, client: Peer
) -> None:
    with owners_api() as unknown:
        host = unknown.url.removeprefix("http://")
        order = {"task": "another register", "source": unknown.url, "name": "another"}
        asked = client.call("forge", **order)
        told = asked["structuredContent"]
        assert told["state"] == "waiting"
        assert told["needs"]
        assert host in asked["content"][0]["text"]
        assert unknown.asked == []
        meta = {"progressToken": "mine"}
        follows = {"name": "forge", "arguments": order, "_meta": meta}
        begun = client.request("tools/call", follows)["result"]["structuredContent"]
        assert begun.keys() == {"job", "state"}
        for job in (told["job"], begun["job"]):
            place.home.run("jobs", job, "--cancel")


def test_a_task_without_a_plan_of_the_client_follows_the_order_of_its_words(
    place: Place, client: Peer
) -> None:
    asked = client.value("do", task="list the zones, then list the records of the first one")
    steps = asked["question"]["shown"]["steps"]
    assert [step["after"] for step in steps] == [[], ["s1"]]
    answer = {"question": asked["question"]["id"], "steps": PLAN}
    assert client.value("do", run=asked["run"], answer=answer)["body"]
