"""A service that is only named: offered at the terminal and to scripts, and forged after a yes."""

from __future__ import annotations

import json
import os
import pty
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from orchestrator.cli.main import toolwright
from orchestrator.cli.terminal import WAITING
from orchestrator.settings import Settings, load_settings
from registry.store import Store
from tests.forge.directory.samples import description
from tests.functional.commands import command_server
from tests.functional.home import ROOT, type_answers
from tests.granted import PIN, person
from tests.world.site import Page, Site, site

SECONDS = 600
TASK = "manage DNS records at Hetzner"


@pytest.fixture
def settings(any_engine: str, tmp_path: Path) -> Settings:
    made = load_settings(home=tmp_path / "home", engine=any_engine)
    person(made.pin)
    return made


@pytest.fixture
def api() -> Iterator[Site]:
    with site({"/berths": Page(b"[]", headers=(("Content-Type", "application/json"),))}) as here:
        yield here


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """An unpacked copy of the directory's package with one description."""
    place = tmp_path / "copy"
    place.mkdir()
    document = description("Hetzner Cloud API", "https://api.hetzner.cloud/v1")
    (place / "hetzner.cloud.json").write_text(json.dumps(document))
    return place


def environment(settings: Settings, copy: Path) -> dict[str, str]:
    return {"TOOLWRIGHT_HOME": str(settings.home), "TOOLWRIGHT_DIRECTORY": str(copy)}


def run(settings: Settings, copy: Path, *words: str) -> Result:
    return CliRunner().invoke(
        toolwright, words, env=environment(settings, copy), catch_exceptions=False
    )


def test_a_job_names_the_candidates_and_goes_on_with_the_chosen_one(
    settings: Settings, any_engine: str, copy: Path, api: Site
) -> None:
    words = ("forge", TASK, "--base-url", api.url, "--json", "--engine", any_engine)
    waits = run(settings, copy, *words)
    assert waits.exit_code == WAITING, waits.output
    told: Mapping[str, Any] = json.loads(waits.stdout)
    first = told["needs"]["services"][0]
    assert (told["needs"]["kind"], first["location"]) == ("service", "directory:hetzner.cloud")
    assert (first["host"], first["operations"] > 100) == ("api.hetzner.cloud:443", True)
    assert f"toolwright allow {told['job']}" in told["message"]
    assert api.asked == []
    pin = settings.home / "typed"
    pin.write_text(PIN)
    allow = ("allow", told["job"], "--pin-file", str(pin), "--json", "--engine", any_engine)
    wrong = run(settings, copy, *allow, "--choice", "9")
    assert (wrong.exit_code, "choices 1 to" in wrong.stderr) == (1, True)
    chosen = run(settings, copy, *allow, "--choice", "1")
    assert chosen.exit_code == WAITING, chosen.output
    # Its own server is no word of the directory's, and so a question of its own.
    assert json.loads(chosen.stdout)["needs"]["kind"] == "host"
    done = run(settings, copy, *allow)
    assert done.exit_code == 0, done.output
    ended = json.loads(done.stdout)
    assert (ended["job"], ended["state"]) == (told["job"], "done")
    with Store.open(settings.database_url) as store:
        (entry,) = store.servers.find()
        assert entry.source == "directory:hetzner.cloud"
        assert entry.base_url == api.url
        assert {grant.origin for grant in store.grants.find_grants()} & {
            "api.hetzner.cloud:443"
        } == set()


@pytest.mark.parametrize(("answer", "state"), [("1", "done"), ("none", "waiting")])
def test_at_a_terminal_the_best_are_shown_and_one_is_chosen_there(
    settings: Settings, any_engine: str, copy: Path, api: Site, answer: str, state: str
) -> None:
    words = ["forge", TASK, "--base-url", api.url, "--engine", any_engine]
    typed = [(b"none", answer)]
    if state == "done":
        typed += [(b"PIN", PIN), (b"[y/N]", "y"), (b"PIN", PIN)]
    parent, child = pty.openpty()
    given = {**os.environ, **environment(settings, copy), "PYTHONPATH": str(ROOT)}
    with command_server().start(words, given, child, child, child, True) as process:
        os.close(child)
        seen = type_answers(parent, typed).decode("utf-8", "replace")
        code = process.wait(SECONDS)
    os.close(parent)
    assert code == (0 if state == "done" else WAITING), seen
    shown = " ".join(seen.split())
    assert "Hetzner Cloud API of hetzner.cloud: api.hetzner.cloud:443" in shown
    assert "Which one is meant?" in shown
    with Store.open(settings.database_url) as store:
        (job,) = store.jobs.find()
        assert (job.state, bool(store.grants.find_grants())) == (state, state == "done")


def test_where_no_tool_fits_it_is_said_what_could_be_forged(
    settings: Settings, any_engine: str, copy: Path
) -> None:
    found = run(settings, copy, "find", "trello cards")
    lines = [line for line in found.stdout.splitlines() if "directory:" in line]
    assert 1 <= len(lines) <= 3
    assert "--source directory:trello.com" in " ".join(found.stdout.split())
    done = run(settings, copy, "do", "trello cards", "--engine", any_engine)
    assert "--source directory:trello.com" in " ".join(done.stdout.split())
    nothing = run(settings, copy, "find", "compute the first hundred primes")
    assert "directory:" not in nothing.stdout
