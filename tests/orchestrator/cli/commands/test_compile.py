"""`toolwright compile` and `toolwright run DIR`, as processes, without a home or an engine."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.settings import load_settings
from registry.store import Store
from sandbox.bundle.model import read_bundle
from tests.functional.commands import command_server
from tests.world.harbour import HarbourApi, harbour_api

ROOT = Path(__file__).parents[4]
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test"}}
DOCUMENT = """
openapi: 3.0.3
info: {title: Pets, version: '1'}
paths:
  /pets: {get: {operationId: listPets, responses: {200: {description: ok}}}}
  /bad: {get: {parameters: [{$ref: '#/gone'}], responses: {200: {description: ok}}}}
"""


SECONDS = 300.0
ENVIRONMENT = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HOME": "/nonexistent"}


def toolwright(*words: object) -> subprocess.CompletedProcess[str]:
    return command_server().run([*map(str, words)], ENVIRONMENT, SECONDS)


@pytest.fixture
def document(tmp_path: Path) -> Path:
    path = tmp_path / "pets.yaml"
    path.write_text(DOCUMENT)
    return path


@pytest.fixture(scope="module")
def harbour(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HarbourApi]:
    with harbour_api(tmp_path_factory.mktemp("harbour")) as api:
        yield api


@pytest.fixture(scope="module")
def bundle(harbour: HarbourApi, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("bundles") / "harbour"
    source = f"{harbour.url}/openapi.json"
    made = toolwright("compile", source, "--base-url", harbour.url, "--out", out, "--allow-private")
    assert made.returncode == 0, made.stderr
    return out


def test_a_bundle_is_written_and_what_is_left_out_is_located(document: Path) -> None:
    out = document.parent / "out"
    made = toolwright("compile", document, "--base-url", "http://h.test/v1", "--out", out, "--json")
    told = json.loads(made.stdout)
    assert (made.returncode, told["tools"], told["base_url"]) == (0, 2, "http://h.test/v1")
    assert told["problems"][0]["file"] == "pets.yaml"
    assert told["problems"][0]["pointer"] == "/paths/~1bad/get/parameters/0"
    assert read_bundle(out).base_url == "http://h.test/v1"
    assert [path.name for path in document.parent.iterdir()] == ["pets.yaml", "out"] or sorted(
        path.name for path in document.parent.iterdir()
    ) == ["out", "pets.yaml"]


def test_nothing_is_fetched_while_everything_is_frozen(harbour: HarbourApi, tmp_path: Path) -> None:
    settings = load_settings(home=tmp_path / "home")
    with Store.open(settings.database_url) as store:
        store.processes.freeze(time.time(), "test")
    before = len(harbour.received("GET"))
    words = ["compile", f"{harbour.url}/openapi.json", "--out", str(tmp_path / "out")]
    given = {**ENVIRONMENT, "TOOLWRIGHT_HOME": str(settings.home)}
    refused = command_server().run([*words, "--allow-private"], given, SECONDS)
    assert (refused.returncode, "toolwright unfreeze" in refused.stderr) == (1, True)
    assert len(harbour.received("GET")) == before


def test_compiling_again_replaces_the_bundle(document: Path) -> None:
    out = document.parent / "out"
    for base in ("http://one.test", "http://two.test"):
        made = toolwright("compile", document, "--base-url", base, "--out", out)
        assert made.returncode == 0, made.stderr
    assert read_bundle(out).base_url == "http://two.test"


def test_a_directory_that_is_no_bundle_is_not_touched(document: Path) -> None:
    made = toolwright("compile", document, "--base-url", "http://h.test", "--out", document.parent)
    assert made.returncode == 1
    assert "is no bundle" in made.stderr
    assert document.read_text() == DOCUMENT


def test_a_refused_document_leaves_nothing_and_says_where_and_why(document: Path) -> None:
    out = document.parent / "out"
    made = toolwright("compile", document, "--out", out, "--json")
    told = json.loads(made.stdout)
    assert made.returncode == 1
    assert told["refused"]["file"] == "pets.yaml"
    assert "give a base URL" in told["problems"][0]["reason"]
    assert told["problems"][0]["pointer"] == "/paths/~1pets/get"
    assert not out.exists()


class Served:
    """A conversation with `toolwright run DIR --engine none` that is written in advance."""

    def __init__(self, directory: Path, *options: object) -> None:
        self._words = ("run", directory, "--engine", "none", *options)
        self._lines = [{"method": "initialize", "params": HELLO}]

    def ask(self, method: str, **params: Any) -> Served:
        self._lines.append({"method": method, "params": params})
        return self

    def call(self, name: str, **arguments: Any) -> Served:
        return self.ask("tools/call", name=name, arguments=arguments)

    def answers(self) -> list[Any]:
        """The results in the order of the questions, the handshake's left out.

        The line stays open until all are there: at its end a server gives up what still runs.
        """
        lines = [{"jsonrpc": "2.0", "id": at, **line} for at, line in enumerate(self._lines)]
        with (
            tempfile.TemporaryFile() as told,
            command_server().start(
                [*map(str, self._words)],
                ENVIRONMENT,
                subprocess.PIPE,
                subprocess.PIPE,
                told.fileno(),
            ) as process,
        ):
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write("".join(json.dumps(line) + "\n" for line in lines).encode())
            process.stdin.flush()
            answers = map(json.loads, itertools.islice(process.stdout, len(lines)))
            sent = {answer["id"]: answer for answer in answers}
            process.stdin.close()
            process.read_to_end(SECONDS)
            told.seek(0)
            assert b"WITHOUT A SANDBOX" in told.read()
        return [sent[at]["result"] for at in range(1, len(lines))]


def test_a_directory_is_listed_flat_with_method_and_path(bundle: Path) -> None:
    (listed,) = Served(bundle).ask("tools/list").answers()
    (read,) = [tool for tool in listed["tools"] if tool["name"] == "list_berths"]
    assert read["_meta"] == {"toolwright": {"method": "GET", "path": "/berths"}}
    assert "outputSchema" not in read


def test_a_read_is_carried_out(bundle: Path) -> None:
    (result,) = Served(bundle, "--allow-private").call("list_berths").answers()
    assert not result.get("isError")
    assert result["structuredContent"]["status"] == 200


def test_a_private_address_is_refused_unless_allowed(bundle: Path, harbour: HarbourApi) -> None:
    before = len(harbour.entries())
    (result,) = Served(bundle).call("list_berths").answers()
    assert result["isError"]
    assert "private address" in result["content"][0]["text"]
    assert len(harbour.entries()) == before


def test_a_write_is_refused_unless_allowed(bundle: Path, harbour: HarbourApi) -> None:
    berth = next(tool for tool in read_bundle(bundle).tools if tool.access == "write")
    before = len(harbour.entries())
    (result,) = Served(bundle, "--allow-private").call(berth.name).answers()
    assert result["isError"]
    assert "--allow-writes" in result["content"][0]["text"]
    assert len(harbour.entries()) == before


@pytest.mark.parametrize("option", ["--allow-writes", "--allow-private", "--engine=none"])
def test_a_registered_server_cannot_be_loosened(option: str) -> None:
    done = toolwright("run", "pets", option)
    assert done.returncode == 2
    assert "./pets" in done.stderr


def test_a_directory_that_is_no_bundle_is_told(tmp_path: Path) -> None:
    done = toolwright("run", tmp_path, "--engine", "none")
    assert done.returncode == 1
    assert "bundle.toml" in done.stderr


def test_an_unreadable_credentials_file_is_told(bundle: Path, tmp_path: Path) -> None:
    creds = tmp_path / "creds.json"
    creds.write_text("not json")
    done = toolwright("run", bundle, "--engine", "none", "--creds", creds)
    assert done.returncode == 1
    assert "creds.json" in done.stderr
