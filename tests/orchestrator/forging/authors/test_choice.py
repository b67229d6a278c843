"""Who writes is decided in one place, and said."""

from __future__ import annotations

import itertools
import subprocess
import sys
from typing import get_args

import pytest

from orchestrator.authorship import Able, Wanted, Writer, choose
from orchestrator.needs import host_needs

NOBODY = Able()
ENDPOINT = Able(endpoint="m at host:443")
CLIENT = Able(sampling=True)
BOTH = Able(endpoint="m at host:443", sampling=True)
POOR = Able(endpoint="m at host:443", sampling=True, spent="3 servers in 24 hours", budgets=2)
SHUT = Able(endpoint="m at host:443", lacks=host_needs("host:443"))


@pytest.mark.parametrize(
    ("wanted", "able", "writer", "told"),
    [
        ("", NOBODY, "client", "no model is configured"),
        ("", ENDPOINT, "openai", "m at host:443 writes"),
        ("", CLIENT, "sampling", "by sampling"),
        ("", BOTH, "openai", "m at host:443 writes"),
        ("", POOR, "client", "3 servers in 24 hours"),
        ("", SHUT, "client", "source allow host:443"),
        ("client", BOTH, "client", "submit"),
        ("none", BOTH, "none", "nobody"),
        ("openai", CLIENT, "client", "no endpoint is configured"),
        ("openai", BOTH, "openai", "writes"),
        ("sampling", ENDPOINT, "client", "no client"),
        ("sampling", BOTH, "sampling", "by sampling"),
        ("sampling", POOR, "client", "3 servers in 24 hours"),
    ],
)
def test_the_writer_is_who_is_wanted_and_able(
    wanted: Wanted, able: Able, writer: Writer, told: str
) -> None:
    choice = choose(wanted, able, "j1")
    assert choice.writer == writer
    assert told in choice.told


def test_a_spent_budget_says_what_a_person_can_do() -> None:
    needs = choose("", POOR, "j1").needs
    assert (needs["kind"], needs["how"]) == ("budget", "toolwright jobs j1 --allow")
    assert needs["had"] == "2"


@pytest.mark.parametrize("able", [NOBODY, BOTH, POOR])
def test_a_client_that_began_goes_on(able: Able) -> None:
    assert choose("", able, "j1", "client").writer == "client"
    assert choose("", BOTH, "j1", "openai").writer == "openai"


def test_only_who_asks_a_model_loads_its_package() -> None:
    loaded = (
        "import sys, orchestrator.cli, orchestrator.commands.call, orchestrator.commands.forge\n"
        "print([name for name in ('openai', 'mcp', 'httpx2') if name in sys.modules])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", loaded], capture_output=True, text=True, timeout=60, check=True
    )
    assert ran.stdout.strip() == "[]"


def test_no_model_is_ever_asked_that_is_not_able_or_not_wanted() -> None:
    ables = (NOBODY, ENDPOINT, CLIENT, BOTH, POOR, SHUT)
    for wanted, able in itertools.product(get_args(Wanted), ables):
        choice = choose(wanted, able, "j1")
        assert choice.told
        if choice.writer == "openai":
            assert able.endpoint
            assert not able.lacks
            assert not able.spent
            assert wanted in ("", "openai")
        if choice.writer == "sampling":
            assert able.sampling
            assert not able.spent
            assert wanted in ("", "sampling")
