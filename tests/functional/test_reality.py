"""Two real servers that others wrote, forged from their addresses and driven as a user does: the
cheap part of `scripts/reality`, without the peer.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bench.reality.model import RealServer
from bench.reality.servers import kinto, loopback
from bench.reality.trial import Trial, try_server
from tests.functional.home import Home, new_home

SERVERS = (kinto.SERVER, loopback.SERVER)


@pytest.fixture(scope="module")
def home(any_engine: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    with new_home(tmp_path_factory.mktemp("reality"), any_engine) as made:
        yield made


@pytest.fixture(scope="module", params=SERVERS, ids=lambda server: server.name)
def trial(
    request: pytest.FixtureRequest, home: Home, tmp_path_factory: pytest.TempPathFactory
) -> Trial:
    """What came of one server. Skips where its package cannot be had."""
    server: RealServer = request.param
    trial = try_server(home, server, tmp_path_factory.mktemp(server.name) / "trial", False)
    if trial.unavailable:
        pytest.skip(f"{server.name}: {trial.unavailable}")
    return trial


def test_every_scenario_of_a_real_server_does_what_it_says(trial: Trial) -> None:
    assert len(trial.ours) == len(trial.server.scenarios)
    assert [verdict for verdict in trial.ours if verdict.wrong] == []


def test_a_server_is_forged_by_the_commands_that_a_user_types(trial: Trial) -> None:
    first = trial.commands[0]
    assert first.startswith("forge ")
    assert "--source 127.0.0.1:" in first
    assert len(trial.commands) <= 4
