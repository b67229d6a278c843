"""An address with a user or password is refused wherever it may be given, and stored nowhere."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from orchestrator.app import open_app
from orchestrator.cli.main import toolwright
from orchestrator.control.answering import AnswerDesk
from orchestrator.errors import LoginInAddress
from orchestrator.frontends.server import ToolFront
from orchestrator.settings import Settings
from registry.needs import AnswerNeed
from registry.store import Store
from sandbox.plain_secrets import has_login
from tests.orchestrator.conftest import PIN
from tests.orchestrator.control.filled import SOURCE, ask_question
from tests.orchestrator.plane import Plane

PASSWORD = "hunter2-and-more"
ADDRESS = f"https://ada:{PASSWORD}@api.example/openapi.json"
NEXT_STEPS = ("Nothing was stored", "toolwright secret set NAME", "basic=@NAME")


@pytest.mark.parametrize(
    "text",
    [
        ADDRESS,
        "https://token@api.example",
        "HTTPS://ada:pa/ss@api.example/x",
        "https://ada:80@api.example/",
        "ht\ntps://ada:x@api.example",
        "https:\\\\ada:x@api.example",
        "ada:x@api.example/openapi.json",
        f"forge {ADDRESS} please",
    ],
)
def test_an_address_with_a_login_is_found(text: str) -> None:
    assert has_login(text)


@pytest.mark.parametrize(
    "text",
    [
        "https://api.example:8080/x@y",
        "https://api.example/?mail=ada@x.example",
        "api.example:443",
        "https://api.example:443 and mail ada@x.example",
        "/home/ada@work/openapi.json",
        "directory:hetzner.cloud",
        "list the mails of ada@x.example",
        "mail ada: x@y.example",
        "git@github.com:ada/x",
        "x" * 100_000,
        "https://" + "a:" * 50_000,
    ],
)
def test_an_address_without_a_login_is_let_be(text: str) -> None:
    assert not has_login(text)


def assert_stored_nowhere(home: Path) -> None:
    """No file of the home, the database's own included, holds the password."""
    files = [path for path in home.rglob("*") if path.is_file()]
    assert any(path.name.startswith("registry") or path.suffix == ".db" for path in files), files
    assert [path for path in files if PASSWORD.encode() in path.read_bytes()] == []


def test_clients_cannot_have_one_stored(settings: Settings) -> None:
    async def ask() -> list[Any]:
        async with open_app(settings, "do") as app:
            front = ToolFront(app)

            async def call(tool: str, **arguments: Any) -> Any:
                return await front.call_tool(tool, arguments, lambda *_: asyncio.sleep(0))

            return [
                await call("forge", task="list zones", source=ADDRESS),
                await call("forge", task=f"make a server of {ADDRESS}"),
                await call("forge", task="x", source="none", base_url=ADDRESS),
                await call("do", task="list zones", source=ADDRESS),
            ]

    for result in asyncio.run(ask()):
        assert result["isError"]
        told = result["content"][0]["text"]
        assert (PASSWORD in told, all(each in told for each in NEXT_STEPS)) == (False, True)
    assert_stored_nowhere(settings.home)


def test_a_terminal_cannot_have_one_stored(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    pin = settings.home / "typed"
    pin.write_text(PIN)
    monkeypatch.setenv("TOOLWRIGHT_HOME", str(settings.home))
    for words in (
        ("forge", ADDRESS),
        ("forge", "zones", "--source", ADDRESS),
        ("forge", "zones", "--source", "none", "--base-url", ADDRESS),
        ("do", "list zones", "--source", ADDRESS),
        ("source", "add", ADDRESS, "--pin-file", str(pin)),
    ):
        ended = CliRunner().invoke(toolwright, words)
        told = " ".join(ended.output.split())
        assert (ended.exit_code, "Nothing was stored" in told) == (1, True), told
        assert PASSWORD not in told
    assert_stored_nowhere(settings.home)


def test_the_page_cannot_have_one_stored(settings: Settings, store: Store, plane: Plane) -> None:
    for path, body in (
        ("/servers", {"source": ADDRESS}),
        ("/do", {"task": "list zones", "source": ADDRESS}),
        ("/sources", {"url": ADDRESS, "pin": PIN}),
    ):
        answer = plane.ask("POST", path, json=body)
        assert (answer.status_code, PASSWORD in answer.text) == (400, False)
        assert "Nothing was stored" in answer.json()["error"]
    assert not store.jobs.find()
    assert_stored_nowhere(settings.home)


def test_an_answer_cannot_have_one_stored(settings: Settings, store: Store) -> None:
    job = ask_question(store, SOURCE)
    assert isinstance(job.needs, AnswerNeed)
    desk = AnswerDesk(store, lambda: None)
    body = {"question": job.needs.question, "source": ADDRESS}
    with pytest.raises(LoginInAddress):
        desk._answer(job.id, body)
    assert store.jobs.get(job.id).state == "waiting"
    assert_stored_nowhere(settings.home)
