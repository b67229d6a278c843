"""From an empty home to a first answer, by the commands that a new user types."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.newcomer import read_commands
from orchestrator.settings import load_settings
from registry.store import Store
from sandbox.engines.wasm.component import LoadedComponent
from tests.functional.home import PIN, ROOT, type_answers
from tests.world.harbour import HarbourApi, harbour_api

SECONDS = 600
BLOCK = """\
pipx install dist/*.whl                      # once
toolwright forge http://127.0.0.1:8080       # asks for a PIN
toolwright call harbour.list_berths"""


@pytest.fixture
def harbour(tmp_path: Path) -> Iterator[HarbourApi]:
    with harbour_api(tmp_path) as api:
        yield api


def environment(tmp_path: Path) -> dict[str, str]:
    given = {"TOOLWRIGHT_HOME": str(tmp_path / "home"), "TOOLWRIGHT_ENGINE": "wasm"}
    return {**os.environ, **given, "PYTHONPATH": str(ROOT)}


def run(tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "orchestrator", *words],
        env=environment(tmp_path),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def test_a_forge_sets_an_empty_home_up_and_names_the_call_that_answers(
    component: LoadedComponent, harbour: HarbourApi, tmp_path: Path
) -> None:
    parent, child = pty.openpty()
    asked = [(b"Choose a PIN", PIN), (b"confirmation", PIN), (b"[y/N]", "y"), (b"PIN", PIN)]
    with subprocess.Popen(
        [sys.executable, "-m", "orchestrator", "forge", harbour.url],
        stdin=child,
        stdout=child,
        stderr=child,
        env=environment(tmp_path),
        start_new_session=True,
    ) as process:
        os.close(child)
        seen = type_answers(parent, asked).decode("utf-8", "replace")
        code = process.wait(SECONDS)
    os.close(parent)
    assert code == 0, seen
    assert PIN not in seen
    assert seen.index("A PIN of at least 8 characters") < seen.index("Choose a PIN")
    assert seen.index("Choose a PIN") < seen.index("needs a host") < seen.index("is active")
    called = re.search(r"Call one: toolwright (call harbour\.\w+)", seen)
    assert called, seen
    answer = run(tmp_path, *called[1].split())
    assert answer.returncode == 0, answer.stderr
    assert harbour.received("POST") == []


def test_without_a_terminal_nothing_is_set_up_and_the_file_of_the_pin_is_asked_for(
    component: LoadedComponent, harbour: HarbourApi, tmp_path: Path
) -> None:
    waits = run(tmp_path, "forge", harbour.url)
    assert waits.returncode == 3, waits.stderr
    assert "--pin-file FILE" in waits.stderr
    settings = load_settings(environment(tmp_path))
    assert not settings.pin.exists()
    with Store.open(settings.database_url) as store:
        assert store.grants.find_grants() == ()
    assert harbour.entries() == []
    short = tmp_path / "short"
    short.write_text("1234")
    refused = run(tmp_path, "forge", harbour.url, "--pin-file", str(short))
    assert refused.returncode == 1
    assert not settings.pin.exists()


@pytest.mark.parametrize(
    "readme",
    [
        f"# T\n\n    {BLOCK}\n".replace("\ntool", "\n    tool"),
        f"# T\n\n```sh\n{BLOCK}\n```\nmore\n",
        f"    ls    # another block\n\ntext\n\n```\n{BLOCK}\n```",
    ],
)
def test_the_bench_types_the_first_block_that_installs(readme: str) -> None:
    assert read_commands(readme) == (
        "pipx install dist/*.whl",
        "toolwright forge http://127.0.0.1:8080",
        "toolwright call harbour.list_berths",
    )
