"""Who writes is decided in one place, and said."""

from __future__ import annotations

import itertools
import subprocess
import sys
from typing import get_args

import pytest

from orchestrator.forging.authors.choice import AuthorOptions, Wanted, Writer, choose_author
from registry.needs import BudgetLine, BudgetNeed, HostNeed

NOBODY = AuthorOptions()
ENDPOINT = AuthorOptions(endpoint="m at host:443")
CLIENT = AuthorOptions(sampling=True)
BOTH = AuthorOptions(endpoint="m at host:443", sampling=True)
LINE = BudgetLine("day", "forges", 4, 3)
POOR = AuthorOptions(endpoint="m at host:443", sampling=True, spent=LINE, budgets=2)
SHUT = AuthorOptions(endpoint="m at host:443", lacks=HostNeed("host:443"))


@pytest.mark.parametrize(
    ("wanted", "able", "writer", "told"),
    [
        ("", NOBODY, "client", "no model is configured"),
        ("", ENDPOINT, "openai", "m at host:443 writes"),
        ("", CLIENT, "sampling", "by sampling"),
        ("", BOTH, "openai", "m at host:443 writes"),
        ("", POOR, "client", "3 forges had a model write"),
        ("", SHUT, "client", "source allow host:443"),
        ("client", BOTH, "client", "submit"),
        ("none", BOTH, "none", "nobody"),
        ("openai", CLIENT, "client", "no endpoint is configured"),
        ("openai", BOTH, "openai", "writes"),
        ("sampling", ENDPOINT, "client", "no client"),
        ("sampling", BOTH, "sampling", "by sampling"),
        ("sampling", POOR, "client", "3 forges had a model write"),
    ],
)
def test_the_writer_is_who_is_wanted_and_able(
    wanted: Wanted, able: AuthorOptions, writer: Writer, told: str
) -> None:
    choice = choose_author(wanted, able, "j1")
    assert choice.writer == writer
    assert told in choice.told


def test_a_spent_budget_says_what_a_person_can_do() -> None:
    choice = choose_author("", POOR, "j1")
    assert choice.needs == BudgetNeed(LINE, 2)
    assert "toolwright allow j1" in choice.told


@pytest.mark.parametrize("able", [NOBODY, BOTH, POOR])
def test_a_client_that_began_goes_on(able: AuthorOptions) -> None:
    assert choose_author("", able, "j1", "client").writer == "client"
    assert choose_author("", BOTH, "j1", "openai").writer == "openai"


def test_only_who_asks_a_model_loads_its_package() -> None:
    loaded = (
        "import sys, orchestrator.cli.main\n"
        "import orchestrator.cli.commands.call, orchestrator.cli.commands.forge\n"
        "print([name for name in ('openai', 'mcp', 'httpx2') if name in sys.modules])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", loaded], capture_output=True, text=True, timeout=300, check=True
    )
    assert ran.stdout.strip() == "[]"


def test_no_model_is_ever_asked_that_is_not_able_or_not_wanted() -> None:
    ables = (NOBODY, ENDPOINT, CLIENT, BOTH, POOR, SHUT)
    for wanted, able in itertools.product(get_args(Wanted), ables):
        choice = choose_author(wanted, able, "j1")
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
