"""All that an order needs is one question, and the job that asked it goes on as the same job."""

from __future__ import annotations

import asyncio
import json
import os
import pty
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from orchestrator.approvals.granting import allow_host
from orchestrator.approvals.grants import open_grants
from orchestrator.approvals.needs import forge_waits, is_met
from orchestrator.approvals.signed_policy import SignedPolicy
from orchestrator.approvals.signing_key import build_authority
from orchestrator.cli.main import toolwright
from orchestrator.cli.terminal import WAITING
from orchestrator.forging.order import Report
from orchestrator.jobs.runner import JobRunner
from orchestrator.settings import Settings, load_settings
from registry.models import Job
from registry.needs import HostNeed, OrderNeed
from registry.store import Store
from tests.functional.commands import command_server
from tests.functional.home import ROOT, type_answers
from tests.granted import PIN, person
from tests.world.loopback import Answering, served

SECONDS = 600
DOCUMENT = """
openapi: 3.0.3
info: {{title: two, version: '1'}}
servers: [{{url: "{first}"}}]
paths:
  /things: {{get: {{operationId: listThings, responses: {{200: {{description: ok}}}}}}}}
  /others:
    servers: [{{url: "{second}"}}]
    get: {{operationId: listOthers, responses: {{200: {{description: ok}}}}}}
"""


class _Plain(Answering):
    def do_GET(self) -> None:
        self.world.append(self.path)
        self.answer_json(200, {})


@pytest.fixture(scope="module")
def hosts() -> Iterator[tuple[str, str, list[str]]]:
    """Two APIs, and what was asked of them."""
    asked: list[str] = []

    def world(url: str) -> list[str]:
        asked.append(url)
        return asked

    with served(_Plain, world), served(_Plain, world):
        first, second = asked
        asked.clear()
        yield first, second, asked


@pytest.fixture
def settings(any_engine: str, tmp_path: Path) -> Settings:
    made = load_settings(home=tmp_path / "home", engine=any_engine)
    person(made.pin)
    return made


@pytest.fixture
def document(hosts: tuple[str, str, list[str]], tmp_path: Path) -> Path:
    path = tmp_path / "two.yaml"
    path.write_text(DOCUMENT.format(first=hosts[0], second=hosts[1]))
    return path


def run(settings: Settings, engine: str, *words: str) -> Result:
    home = {"TOOLWRIGHT_HOME": str(settings.home)}
    return CliRunner().invoke(
        toolwright, [*words, "--engine", engine], env=home, catch_exceptions=False
    )


def order(settings: Settings, engine: str, document: Path) -> Mapping[str, Any]:
    result = run(settings, engine, "forge", "things", "--source", str(document), "--json")
    assert result.exit_code == WAITING, result.output
    told: Mapping[str, Any] = json.loads(result.stdout)
    return told


def test_both_hosts_are_one_question_that_one_command_answers_and_the_same_job_goes_on(
    settings: Settings, any_engine: str, document: Path, hosts: tuple[str, str, list[str]]
) -> None:
    told = order(settings, any_engine, document)
    names = [part["host"] for part in told["needs"]["parts"]]
    assert sorted(f"http://{name}" for name in names) == sorted(hosts[:2])
    assert f"toolwright allow {told['job']}" in told["message"]
    assert hosts[2] == []
    pin = settings.home / "typed"
    pin.write_text(PIN)
    words = ("allow", told["job"], "--pin-file", str(pin), "--json")
    other = run(settings, any_engine, *words, "--digest", "0" * 64)
    assert (other.exit_code, "look at it again" in other.stderr) == (1, True)
    allowed = run(settings, any_engine, *words, "--digest", told["needs"]["digest"])
    assert allowed.exit_code == 0, allowed.output
    assert all(name in allowed.stderr for name in names)
    done = json.loads(allowed.stdout)
    assert (done["job"], done["state"]) == (told["job"], "done")
    with Store.open(settings.database_url) as store:
        assert [job.id for job in store.jobs.find()] == [told["job"]]


def test_a_wrong_pin_allows_nothing_and_the_job_still_waits(
    settings: Settings, any_engine: str, document: Path
) -> None:
    told = order(settings, any_engine, document)
    pin = settings.home / "typed"
    pin.write_text("not the PIN")
    assert run(settings, any_engine, "allow", told["job"], "--pin-file", str(pin)).exit_code == 1
    with Store.open(settings.database_url) as store:
        assert store.jobs.get(told["job"]).state == "waiting"
        assert store.grants.find_grants() == ()


@pytest.mark.parametrize(("answer", "state"), [("y", "done"), ("n", "waiting"), ("", "waiting")])
def test_at_a_terminal_it_is_asked_right_there(
    settings: Settings, any_engine: str, document: Path, answer: str, state: str
) -> None:
    words = ["forge", "things", "--source", str(document), "--engine", any_engine]
    environment = {**os.environ, "TOOLWRIGHT_HOME": str(settings.home), "PYTHONPATH": str(ROOT)}
    parent, child = pty.openpty()
    typed = [(b"[y/N]", answer), *([(b"PIN", PIN)] if answer == "y" else [])]
    with command_server().start(words, environment, child, child, child, True) as process:
        os.close(child)
        seen = type_answers(parent, typed)
        code = process.wait(SECONDS)
    os.close(parent)
    assert code == (0 if state == "done" else WAITING), seen.decode("utf-8", "replace")
    assert PIN.encode() not in seen
    with Store.open(settings.database_url) as store:
        (job,) = store.jobs.find()
        assert (job.state, bool(store.grants.find_grants())) == (state, state == "done")


def test_what_a_person_allows_while_the_job_looks_is_not_missed(settings: Settings) -> None:
    with Store.open(settings.database_url, "test") as store:
        consents = open_grants(SignedPolicy(store, build_authority(settings)))
        need = OrderNeed((HostNeed("a.example:443"), HostNeed("b.example:443")))
        looks: list[int] = []

        async def work(job: Job, report: Report) -> Mapping[str, Any]:
            looks.append(job.attempt)
            if not is_met(consents, Job("x", "forge", {}, 0, 0, needs=need)):
                for part in need.parts:
                    allow_host(store.grants, part.host, "ann", person(settings.pin))
                raise forge_waits(need)
            return {"server": "made"}

        async def changed() -> None:
            raise AssertionError("nobody else is to go on with it")

        runner = JobRunner(store, "p1", work, changed, met=lambda job: is_met(consents, job))
        begun = runner.create_job("forge", {})
        done = asyncio.run(runner.complete(begun))
        assert (done.id, done.state, looks) == (begun.id, "done", [1, 2])


def test_a_job_that_waits_is_nobodys_and_shows_all_that_it_needs(settings: Settings) -> None:
    with Store.open(settings.database_url, "test") as store:
        need = HostNeed("a.example:443")

        async def work(job: Job, report: Report) -> Mapping[str, Any]:
            raise forge_waits(need)

        async def changed() -> None: ...

        runner = JobRunner(store, "p1", work, changed)
        waiting = asyncio.run(runner.complete(runner.create_job("forge", {})))
        assert (waiting.state, waiting.owner, waiting.needs) == ("waiting", "", need)
        assert f"toolwright allow {waiting.id}" in waiting.message
        assert store.jobs.find_waiting() == (waiting,)
