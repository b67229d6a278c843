"""Files of this machine that a client names as sources: none is read before a person said so."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from registry.servers.bundles import Bundles
from tests.functional.home import Home, new_home, until
from tests.functional.peer import MOVING, Peer

SECRET = "hunter2-correct-horse"
ENVIRONMENT = {"TOOLWRIGHT_ANSWER_SECONDS": "0"}
"""What is asked is answered with a handle at once."""
NOTES = (
    f"# Notes\n\nGET /v1/things lists things. The password is {SECRET}.\n\n    curl https://h/v1\n"
)
DOCUMENT = {
    "openapi": "3.1.0",
    "info": {"title": "Things", "version": "1"},
    "servers": [{"url": "http://127.0.0.1:9"}],
    "paths": {
        "/things": {
            "get": {
                "operationId": "listThings",
                "responses": {"200": {"description": "Things"}},
            }
        }
    },
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A person's directory: notes, a document that a client may have written, and other things."""
    made = tmp_path_factory.mktemp("person")
    (made / "notes.txt").write_text(NOTES)
    (made / "work").mkdir()
    (made / "work" / "api.json").write_text(json.dumps(DOCUMENT))
    (made / "work" / "link.txt").symlink_to(made / "notes.txt")
    (made / "work" / "up").symlink_to(made)
    (made / "work" / ".env").write_text(NOTES)
    reference = {"$ref": "../notes.txt#/password"}
    referring = {**DOCUMENT, "components": {"schemas": {"Thing": reference}}}
    (made / "work" / "referring.json").write_text(json.dumps(referring))
    os.mkfifo(made / "pipe")
    return made


@pytest.fixture(scope="module")
def home(
    component: object, tmp_path_factory: pytest.TempPathFactory, place: Path
) -> Iterator[Home]:
    with new_home(tmp_path_factory.mktemp("files"), "wasm", **ENVIRONMENT, HOME=str(place)) as made:
        yield made


@pytest.fixture(scope="module")
def client(home: Home) -> Iterator[Peer]:
    with Peer(home, "serve", "--no-control") as peer:
        yield peer


def told(client: Peer, tool: str, source: str) -> Any:
    """All that a client gets to know of a job whose source that is."""
    chosen = {"tool": "none"} if tool == "do" else {}
    started = client.call(tool, task="make it", source=source, **chosen)
    return settled(client, started["structuredContent"]["job"])


def settled(client: Peer, job: str) -> Any:
    """The job when it has ended or waits. `status` with `wait` would wait for the end."""

    def reached() -> Any:
        now = client.value("status", job=job)
        return None if now["state"] in MOVING else now

    return until(reached, "the job ends or waits")


@pytest.mark.parametrize(
    "source",
    [
        "{place}/notes.txt",
        "file://{place}/notes.txt",
        "file://localhost{place}/notes.txt",
        "{place}/work/../notes.txt",
        "{place}//notes.txt",
        "~/notes.txt",
        "{relative}/notes.txt",
        "{place}/work/link.txt",
        "{place}/pipe",
        "{place}/work",
        "{place}/missing.txt",
    ],
)
def test_a_file_that_a_client_names_is_not_read_and_not_told_of(
    client: Peer, place: Path, source: str
) -> None:
    relative = os.path.relpath(place)
    job = told(client, "forge", source.format(place=place, relative=relative))
    assert job["state"] == "waiting"
    assert f"toolwright source allow {place}" in job["message"]
    assert SECRET not in json.dumps(job)


def test_a_task_does_not_read_a_file_either(client: Peer, place: Path) -> None:
    job = told(client, "do", str(place / "notes.txt"))
    assert job["state"] == "waiting"
    assert SECRET not in json.dumps(job)


@pytest.mark.parametrize(
    "source",
    [
        "{place}",
        "/proc/self/environ",
        "/etc/passwd",
        "/dev/stdin",
        "/nonexistent/../etc/shadow",
        "~/.ssh/id_rsa",
        "//host/share/notes.txt",
        "file://host/etc/passwd",
        "FILE:///etc/passwd",
        "{place}/a\nb",
    ],
)
def test_a_path_that_nobody_could_allow_is_refused_unseen(
    client: Peer, place: Path, source: str
) -> None:
    job = told(client, "forge", source.format(place=place))
    assert job["state"] == "failed"
    assert "root:" not in json.dumps(job)
    assert "No such file" not in json.dumps(job)


def test_what_is_allowed_is_the_path_itself_and_no_link_or_neighbour(
    client: Peer, home: Home, place: Path
) -> None:
    refused = home.run(
        *("source", "allow", str(place / "work" / "link.txt")), "--pin-file", str(home.pin_file)
    )
    assert refused.returncode == 1
    assert str(place / "notes.txt") in refused.stderr.replace("\n", "")
    home.person("source", "allow", str(place / "work"))
    for name in ("link.txt", "up/notes.txt", "referring.json", "../notes.txt", ".env"):
        job = told(client, "forge", str(place / "work" / name))
        assert SECRET not in json.dumps(job), name
        assert job["state"] in ("failed", "waiting"), name
    assert home.run("source", "remove", str(place / "work")).returncode == 0
    assert told(client, "forge", str(place / "work" / "api.json"))["state"] == "waiting"


def test_a_submitted_description_does_not_bring_a_path_with_it(
    client: Peer, home: Home, place: Path
) -> None:
    job = told(client, "forge", str(place / "notes.txt"))["job"]
    handed = client.call("submit", job=job, document=json.dumps(DOCUMENT))
    waits = settled(client, handed["structuredContent"]["job"])
    assert "toolwright source allow 127.0.0.1:9" in waits["message"]
    home.person("source", "allow", "127.0.0.1:9")
    until_done(client, handed["structuredContent"]["job"])
    with home.store() as store:
        assert "notes.txt" not in store.servers.get("things").source


ACTING = {
    "/index.php": {"name": "action", "in": "query", "schema": {"type": "string"}},
    "/index2.php": {
        "name": "action",
        "in": "query",
        "required": True,
        "schema": {"const": "delete"},
    },
    "/things/delete/{id}": {
        "name": "id",
        "in": "path",
        "required": True,
        "schema": {"type": "string"},
    },
    "/run/{action}": {
        "name": "action",
        "in": "path",
        "required": True,
        "schema": {"type": "string"},
    },
    "/lamp": {"name": "turn", "in": "query", "schema": {"type": "string"}},
    "/plain": {"name": "limit", "in": "query", "schema": {"type": "integer"}},
}


def test_a_get_that_acts_is_no_read_by_the_word_of_a_client(client: Peer, home: Home) -> None:
    assert accesses(client, home, "acting").items() >= {
        ("GET /index.php", "write"),
        ("GET /index2.php", "write"),
        ("GET /things/delete/{id}", "write"),
        ("GET /run/{action}", "write"),
        ("GET /lamp", "write"),
    }


def test_a_get_that_a_client_describes_is_a_read_where_nothing_says_that_it_acts(
    client: Peer, home: Home
) -> None:
    assert accesses(client, home, "plainly")["GET /plain"] == "read"


def accesses(client: Peer, home: Home, name: str) -> dict[str, str]:
    """What the operations of a description are that a client wrote, each called a listing."""
    home.person("source", "allow", "127.0.0.1:9")
    answers = {"200": {"description": "Things"}}
    paths = {
        path: {
            "get": {
                "operationId": f"listThings{number}",
                "summary": "List the things",
                "parameters": [parameter],
                "responses": answers,
            }
        }
        for number, (path, parameter) in enumerate(ACTING.items())
    }
    job = client.value("forge", task="read my notes", source="none", name=name)["job"]
    settled(client, job)
    # Each has an API of its own, or they were one server.
    servers = [{"url": f"http://127.0.0.1:9/{name}"}]
    document = json.dumps({**DOCUMENT, "servers": servers, "paths": paths})
    handed = client.value("submit", job=job, document=document)["job"]
    until_done(client, handed)
    with home.store() as store:
        tools = (
            Bundles(home.settings.home, store.servers).load_bundle(store.servers.get(name)).tools
        )
    return {f"{tool.requests[0].method} {tool.path}": tool.access for tool in tools}


def test_a_file_that_a_person_allowed_is_forged_from(client: Peer, home: Home, place: Path) -> None:
    path = place / "work" / "named.json"
    servers = [{"url": "http://127.0.0.1:9/named"}]
    path.write_text(json.dumps({**DOCUMENT, "servers": servers}))
    home.person("source", "allow", "127.0.0.1:9")
    job = client.value("forge", task="list things", source=str(path), name="named")["job"]
    assert f"toolwright source allow {path}" in settled(client, job)["message"]
    allowed = home.person("source", "allow", str(path))
    assert str(path) in allowed.replace("\n", "")
    until_done(client, job)
    assert str(path) in home.run("source", "list", "--json").stdout


def test_a_file_that_a_person_types_is_forged_from_without_a_word(home: Home, place: Path) -> None:
    home.person("source", "allow", "127.0.0.1:9")
    path = str(place / "work" / "api.json")
    assert home.run("forge", "list things", "--source", path, "--name", "typed").returncode == 0


def until_done(client: Peer, job: str) -> None:
    while (now := client.value("status", job=job, wait=25))["state"] != "done":
        assert now["state"] in ("waiting", "queued", "running"), now
