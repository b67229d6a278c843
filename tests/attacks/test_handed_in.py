"""Secrets in what somebody hands in: told by place and kind, and stored and shown nowhere."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from forge.drafts.brief import EXAMPLE
from orchestrator.errors import AddFailed
from orchestrator.forging.edits import EditWatcher
from orchestrator.forging.secret_scan import OF_THE_VAULT, SecretScan, check_source
from orchestrator.forging.thirdparty.source import ScriptSource, parse_command
from registry.secrets.vault import FileVault, Secret
from registry.servers.bundles import Bundles
from registry.store import Store
from sandbox.bundle.model import write_bundle
from sandbox.plain_secrets import find_secrets, find_secrets_in_code, find_secrets_in_words
from tests.functional.home import Home
from tests.functional.peer import Peer
from tests.orchestrator.forging.test_edits import CODE, Place, Stages, server

GITHUB = "ghp_" + "R7kQz2VtX9mLw4YbN8cHs3JfD6gPa1EuKo5T"
PASSWORD = "k9Vt2-Lq7Zx4-Hb8"
KEPT = "plain words that nobody guesses"
"""A secret of the vault that has no form to know it by."""
HIDDEN = base64.b64encode(KEPT.encode()).decode()
CONTENT: dict[str, Any] = {**EXAMPLE, "why": "first draft"}


@pytest.fixture
def vault(tmp_path: Path) -> FileVault:
    made = FileVault(tmp_path / "secrets.vault")
    made.put("house", "TOKEN", Secret(KEPT))
    made.put("house", "short", Secret("tool"))
    return made


def with_code(line: str) -> dict[str, Any]:
    return {**CONTENT, "code": f"{CONTENT['code']}\n{line}\n"}


HANDED_IN: dict[str, tuple[dict[str, Any], str]] = {
    "a key in the code": (with_code(f"KEY = {GITHUB!r}"), "/code"),
    "a key in a comment": (with_code(f"# {GITHUB}"), "/code"),
    "a key in parts": (with_code(f"KEY = {GITHUB[:9]!r} + {GITHUB[9:]!r}"), "/code"),
    "a key in the tests": ({**CONTENT, "tests": f"KEY = {GITHUB!r}\n"}, "/tests"),
    "a key in base64": (
        with_code(f"KEY = {base64.b64encode(GITHUB.encode()).decode()!r}"),
        "/code",
    ),
    "a password in a case": (
        {**CONTENT, "cases": [{"tool": "x", "arguments": {"password": PASSWORD}}]},
        "/cases/0/arguments/password",
    ),
    "a key as the name of a value": (
        {**CONTENT, "cases": [{GITHUB: {"password": PASSWORD}}]},
        "/cases",
    ),
    "a key in a schema's example": (
        {**CONTENT, "tools": [{"input_schema": {"examples": [GITHUB]}}]},
        "/tools/0/input_schema/examples/0",
    ),
    "a key in the reason": ({**CONTENT, "why": f"uses {GITHUB}"}, "/why"),
    "a secret of the vault": (with_code(f"WORDS = {KEPT!r}"), "/code"),
    "a secret of the vault in base64": (with_code(f"WORDS = {HIDDEN!r}"), "/code"),
    "a secret of the vault in a case": (
        {**CONTENT, "cases": [{"tool": "x", "arguments": {"text": KEPT}}]},
        "/cases/0/arguments/text",
    ),
}


@pytest.mark.parametrize("name", sorted(HANDED_IN))
def test_a_secret_that_is_handed_in_is_told_by_place_and_kind(vault: FileVault, name: str) -> None:
    content, place = HANDED_IN[name]
    problems = SecretScan(vault).find_problems(content)
    assert place in {problem.where for problem in problems}
    told = " ".join(f"{problem.where} {problem.reason}" for problem in problems)
    assert "toolwright secret set" in told
    assert PASSWORD not in told
    assert KEPT not in told
    assert GITHUB not in told


@pytest.mark.parametrize("name", sorted(HANDED_IN))
def test_what_a_model_wrote_is_kept_without_the_part_that_holds_a_secret(
    vault: FileVault, name: str
) -> None:
    content, place = HANDED_IN[name]
    kept = SecretScan(vault).mask_content(content)
    assert place.split("/")[1] not in kept
    assert SecretScan(vault).find_problems(kept) == ()


def test_a_draft_without_secrets_is_let_be(vault: FileVault) -> None:
    assert SecretScan(vault).find_problems(CONTENT) == ()
    assert SecretScan(vault).mask_content(CONTENT) == CONTENT


def test_a_secret_of_the_vault_is_told_by_its_line_and_not_by_its_name(vault: FileVault) -> None:
    code = f"A = 1\nB = 2\nC = {KEPT!r}\n"
    (problem,) = SecretScan(vault).find_problems({"code": code})
    assert problem.reason.startswith(f"line 3: {OF_THE_VAULT}")
    assert "TOKEN" not in problem.reason


@pytest.mark.parametrize(
    "text",
    [
        "9fceb02d0ae598e95dc970b74767f19372d61af8",
        "3f2504e0-4f89-41d3-9a0c-0305e82c3301",
        "api_key: <your key>",
        "token=$TOKEN",
        'token = "{{ secrets.TOKEN }}"',
        "AKIAIOSFODNN7EXAMPLE",
        "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "https://user:secret@example.org/",
        "https://example.org/path@2x.png:80/",
        'password = input("the password of the harbour")',
        'secret_name = "harbour.TOKEN"',
        "sk-learn-contrib-imbalanced-learn",
        "Authorization: Bearer YOUR_TOKEN_GOES_HERE",
        "-----BEGIN PRIVATE KEY-----",
    ],
)
def test_examples_and_identifiers_are_no_secrets(text: str) -> None:
    assert find_secrets(text) == ()
    assert find_secrets_in_code(f"X = {text!r}\n") == ()


def test_a_hostile_text_is_looked_through_in_bounded_steps() -> None:
    for piece in ("password=", "token: ", "eyJ.", "://:", "-----BEGIN ", "AKIA", "bearer ", "A1b2"):
        assert len(find_secrets(piece * 20_000)) <= 20


@pytest.fixture
def place(tmp_path: Path, store: Store, vault: FileVault) -> Place:
    stages = Stages(store, Bundles(tmp_path, store.servers))
    edits = EditWatcher(
        tmp_path,
        store,
        stages.shelf,
        lambda: stages,
        lambda *_: None,
        SecretScan(vault),
        stages.now,
    )  # type: ignore[arg-type]
    return Place(tmp_path, store, stages, edits)


@pytest.mark.parametrize("line", [f"KEY = {GITHUB!r}", f"# {KEPT}"])
def test_an_edited_server_with_a_secret_is_refused_and_the_audit_does_not_hold_it(
    place: Place, line: str
) -> None:
    place.drop(replace(server(), source_code=f"{CODE}\n\n{line}\n"))
    place.look(3)
    assert place.store.servers.find_summaries() == ()
    (note,) = [row for row in place.store.audit.find() if row.kind == "edit.refused"]
    assert "server.py, line 8" in str(note.payload)
    assert GITHUB not in str(note.payload)
    assert KEPT not in str(note.payload)


@pytest.mark.parametrize("file", ["bundle.toml", "tests/cases.json"])
def test_a_secret_in_another_file_of_a_server_is_refused(place: Place, file: str) -> None:
    place.drop(server())
    path = place.at("one") / file
    path.parent.mkdir(exist_ok=True)
    before = path.read_text() if path.exists() else ""
    path.write_text(f"{before}\n# {GITHUB}\n")
    place.look(3)
    assert place.store.servers.find_summaries() == ()
    assert place.refused() == ["one"]


def test_an_edited_server_without_secrets_is_published(place: Place) -> None:
    place.drop(server())
    place.look()
    write_bundle(replace(server(), source_code=f"{CODE}\n\nLIMIT = 2\n"), place.at("one"))
    place.look()
    assert place.store.servers.get("one").version == 2


@pytest.mark.parametrize(
    "words",
    [
        ["npx", "-y", "server", "--token", PASSWORD],
        ["npx", "-y", "server", f"--api-key={PASSWORD}"],
        ["uvx", "server", GITHUB],
        ["python", "-m", "server", "postgres://admin:q8Zt4Lw9Xc2V@db.harbour.dev/prod"],
    ],
)
def test_a_command_that_holds_a_secret_is_not_added(words: list[str]) -> None:
    source = parse_command(words, ["server"] if words[0] == "python" else ())
    with pytest.raises(AddFailed, match="--env KEY=@KEY") as raised:
        check_source(source)
    assert PASSWORD not in str(raised.value)
    assert GITHUB not in str(raised.value)


def test_a_script_that_holds_a_secret_is_not_added(tmp_path: Path) -> None:
    path = tmp_path / "server.py"
    path.write_text(f"import os\nKEY = {GITHUB!r}\n")
    with pytest.raises(AddFailed, match=r"server\.py line 2"):
        check_source(ScriptSource(path))


def test_a_plain_command_is_added(tmp_path: Path) -> None:
    path = tmp_path / "server.py"
    path.write_text("import os\nKEY = os.environ['KEY']\n")
    check_source(ScriptSource(path, ("--token-file", "/run/token-of-the-house")))
    check_source(parse_command(["npx", "-y", "@scope/server@1.2.3", "--key-env", "HARBOUR_KEY"]))
    assert find_secrets_in_words(["--verbose", "--port", "8080", "--name=token"]) == ()


@pytest.fixture(scope="module")
def client(toolwright_home: Home) -> Iterator[Peer]:
    with Peer(toolwright_home, "serve") as peer:
        yield peer


def is_on_disk(home: Path, text: str) -> bool:
    return any(text.encode() in path.read_bytes() for path in home.rglob("*") if path.is_file())


def test_a_secret_that_a_client_submits_is_on_no_disk(client: Peer, toolwright_home: Home) -> None:
    job = client.value("forge", task="convert Roman numerals", name="handed_in", source="none")
    client.settled(job=job["job"])
    content = {**with_code(f"KEY = {GITHUB!r}"), "why": "x"}
    refused = client.call("submit", job=job["job"], **content)
    assert refused["isError"]
    problems = refused["structuredContent"]["problems"]
    assert {problem["pointer"] for problem in problems} == {"/code"}
    assert "a GitHub token" in str(problems)
    assert GITHUB not in str(refused)
    assert toolwright_home.read("jobs", job["job"])["drafts"] == []
    assert not is_on_disk(toolwright_home.path, GITHUB)
    client.value("submit", job=job["job"], **CONTENT)
    assert client.settled(job=job["job"])["state"] == "done"
    assert is_on_disk(toolwright_home.path, "IIII")


CURL = "curl https://x.test/z -H 'Authorization: Bearer 9f8a7c6b5d4e'  # or ?api_key=q1w2e3r4t5"


def test_a_token_that_stood_in_the_task_stands_in_no_draft() -> None:
    scan = SecretScan()
    code = {"code": 'KEY = "9f8a7c6b5d4e"\n'}
    (problem,) = scan.find_problems(code, (CURL,))
    assert problem.where == "/code"
    assert "9f8a7c6b5d4e" not in problem.reason
    assert "shows" in problem.reason
    described = {"tools": [{"name": "x", "description": "Sends q1w2e3r4t5."}]}
    assert [p.where for p in scan.find_problems(described, (CURL,))] == ["/tools/0/description"]
    assert "code" not in scan.mask_content(code, (CURL,))


def test_placeholders_of_a_task_are_no_tokens() -> None:
    task = (
        "curl -H 'Authorization: Bearer $TOKEN' -u user:password https://x.test?token=YOUR_TOKEN1"
    )
    code = {"code": 'print("user", "password", "TOKEN", "YOUR_TOKEN1")\n'}
    assert SecretScan().find_problems(code, (task,)) == ()
    assert SecretScan().find_problems({"code": "n = 1\n"}, (CURL,)) == ()
