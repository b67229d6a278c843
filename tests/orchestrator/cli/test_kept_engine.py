"""Where servers run: the home keeps what `setup --engine` was told, and what goes before that."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.cli.commands.doctor import _check_engine
from orchestrator.cli.preparation import keep_engine
from orchestrator.errors import OrchestratorError
from orchestrator.settings import ENGINE_FILE, Settings, describe_kept_engine, load_settings
from registry.store import Store


def load(settings: Settings, engine: str | None = None, **environment: str) -> Settings:
    return load_settings(environment, home=settings.home, engine=engine)


def test_a_home_keeps_the_engine_that_setup_was_told_until_it_is_taken_back(
    settings: Settings,
) -> None:
    assert (load(settings).engine, load(settings).kept_engine) == ("auto", None)
    keep_engine(settings, "wasm")
    assert load(settings).engine == "wasm"
    assert "servers run on wasm" in describe_kept_engine(load(settings))
    keep_engine(settings, "auto")
    assert (load(settings).engine, load(settings).kept_engine) == ("auto", None)
    assert not (settings.home / ENGINE_FILE).exists()


def test_the_environment_and_the_option_go_before_the_kept_engine(settings: Settings) -> None:
    keep_engine(settings, "wasm")
    by_environment = load(settings, TOOLWRIGHT_ENGINE="docker")
    assert (by_environment.engine, by_environment.kept_engine) == ("docker", "wasm")
    assert "this time on docker" in describe_kept_engine(by_environment)
    assert load(settings, "auto", TOOLWRIGHT_ENGINE="docker").engine == "auto"
    assert load(settings, TOOLWRIGHT_ENGINE="").engine == "wasm"


@pytest.mark.parametrize("content", [b"sparc", b"", b"\xff", b"wasm" * 10_000])
def test_a_file_that_names_no_engine_is_told_with_its_place(
    settings: Settings, content: bytes
) -> None:
    path: Path = settings.home / ENGINE_FILE
    path.write_bytes(content)
    with pytest.raises(OrchestratorError, match=str(path)):
        load(settings)


def test_doctor_tells_the_kept_engine(settings: Settings, store: Store) -> None:
    keep_engine(settings, "wasm")
    found = [check.found for check in _check_engine(load(settings), store.processes)]
    assert found[0].startswith("servers run on wasm, as `toolwright setup` was told")
