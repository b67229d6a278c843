"""The first answers of `serve`: the very same as the server's own, and given before it is there."""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import mcp.types as types
import pytest
from click.testing import CliRunner
from mcp.shared.message import SessionMessage

from orchestrator.app import App, open_app
from orchestrator.cli.main import toolwright
from orchestrator.cli.registering import open_registering
from orchestrator.frontends.early import (
    MAX_LINE,
    MAX_SENT,
    EarlyAnswers,
    FirstAnswers,
    FrontGreeter,
)
from orchestrator.frontends.greeting import (
    FILE,
    INSTRUCTIONS,
    LEGACY,
    MODERN,
    find_kept_instructions,
)
from orchestrator.frontends.instructions import load_instructions
from orchestrator.frontends.server import build_front_server
from orchestrator.settings import Settings, load_settings
from registry.database.fingerprint import compute_fingerprint
from registry.models import Grant, build_entry
from tests.engine.samples import bundle
from tests.functional.peer import ENVELOPE
from tests.orchestrator.conftest import PIN

Message = dict[str, Any]
INFO = {"name": "test", "version": "1"}


def request(identity: int | str, method: str, **params: Any) -> Message:
    return {"jsonrpc": "2.0", "id": identity, "method": method, "params": params}


def introduction(version: str, identity: int | str = 1, **capabilities: Any) -> Message:
    given = {"protocolVersion": version, "capabilities": capabilities, "clientInfo": INFO}
    return request(identity, "initialize", **given)


def line(message: Message) -> bytes:
    return json.dumps(message).encode() + b"\n"


@dataclass
class Early:
    """First answers that are written down."""

    instructions: str | None = INSTRUCTIONS
    sent: list[Message] = field(default_factory=list)

    def __post_init__(self) -> None:
        greeter = FrontGreeter(lambda: self.instructions)
        self.answers = FirstAnswers(greeter, lambda each: self.sent.append(json.loads(each)))

    def take(self, *messages: Message) -> list[Message]:
        """The answers to these messages."""
        before = len(self.sent)
        for message in messages:
            self.answers.take_line(line(message))
        return self.sent[before:]


def ask_server(home: Path, *messages: Message) -> list[Message]:
    """What the server proper answers, message after message."""

    async def ask() -> list[Message]:
        async with open_app(load_settings(home=home), "serve") as app:
            return await converse(app, *messages)

    return asyncio.run(ask())


async def converse(app: App, *messages: Message) -> list[Message]:
    to_server, inbound = anyio.create_memory_object_stream[SessionMessage | Exception](9)
    outbound, from_server = anyio.create_memory_object_stream[SessionMessage](9)
    server, answered = build_front_server(app), []
    async with anyio.create_task_group() as tasks, to_server, from_server:
        tasks.start_soon(server.run, inbound, outbound, server.create_initialization_options())
        for message in messages:
            parsed = types.jsonrpc_message_adapter.validate_json(line(message), by_name=False)
            await to_server.send(SessionMessage(parsed))
            if "id" in message:
                said = (await from_server.receive()).message
                answered.append(said.model_dump(mode="json", by_alias=True, exclude_unset=True))
        tasks.cancel_scope.cancel()
    return answered


@pytest.mark.parametrize("version", LEGACY)
def test_what_is_answered_early_is_what_the_server_answers(version: str, tmp_path: Path) -> None:
    wanted = introduction(version, roots={"listChanged": True}, sampling={}, elicitation={})
    told = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    asked = (wanted, told, request("a", "tools/list"), request(2, "ping"))
    early = Early()
    assert early.take(*asked) == ask_server(tmp_path, *asked)
    assert len(early.sent) == 3
    # The server is still to learn of its client, and what it says to that is not sent twice.
    assert early.answers.kept == [line(wanted), line(told)]
    assert early.answers.answered == {1}


def test_so_it_is_in_the_modern_era(tmp_path: Path) -> None:
    asked = (
        request(1, "server/discover", _meta=ENVELOPE),
        request(2, "tools/list", _meta=ENVELOPE),
    )
    early = Early()
    assert early.take(*asked) == ask_server(tmp_path, *asked)
    assert (early.answers.kept, early.answers.answered) == ([], set())


@pytest.mark.parametrize(
    "message",
    [
        request(1, "tools/call", name="find", arguments={"task": "x"}),
        request(1, "tools/list"),
        request(1, "ping"),
        request(1, "server/discover"),
        request(1, "server/discover", _meta={**ENVELOPE, "more": 1}),
        introduction(MODERN),
        introduction("1999-01-01"),
        introduction(LEGACY[-1], roots=5),
        introduction(LEGACY[-1], sampling={"tools": 5}),
        {**introduction(LEGACY[-1]), "jsonrpc": "1.0"},
        {**introduction(LEGACY[-1]), "id": None},
        {**introduction(LEGACY[-1]), "id": True},
        {**introduction(LEGACY[-1]), "params": []},
        {**introduction(LEGACY[-1]), "method": ["initialize"]},
    ],
)
def test_all_else_waits_for_the_server(message: Message) -> None:
    early = Early()
    assert early.take(message) == []
    assert early.answers.kept == [line(message)]
    assert early.answers.answered == set()


def test_nothing_is_told_that_may_be_out_of_date() -> None:
    early = Early(instructions=None)
    asked = introduction(LEGACY[-1]), request(2, "server/discover", _meta=ENVELOPE)
    assert early.take(*asked) == []
    assert early.answers.kept == list(map(line, asked))


def test_no_more_is_written_than_a_pipe_holds_nor_read_than_a_line_may_have() -> None:
    early = Early()
    early.take(introduction(LEGACY[-1]), *(request(n, "tools/list") for n in range(2, 100)))
    assert len(b"".join(map(line, early.sent))) < 1.1 * MAX_SENT
    assert len(early.sent) + len(early.answers.kept) == 100
    long = Early()
    assert long.take(introduction(LEGACY[-1], "x" * MAX_LINE)) == []


def test_what_came_meanwhile_is_handed_over_to_the_letter() -> None:
    source, client = os.pipe()
    answers, sink = os.pipe()
    early = EarlyAnswers(source, sink, FrontGreeter(lambda: INSTRUCTIONS))
    first, later = line(introduction(LEGACY[-1])), b'{"jsonrpc": "2.0", "me'
    os.write(client, first + line(request(2, "ping")) + b"no json\n" + later)
    early.start()
    told = b""
    while told.count(b"\n") < 2:
        told += os.read(answers, MAX_LINE)
    taken = early.stop()
    os.write(client, b"thod")
    assert [json.loads(each)["id"] for each in told.splitlines()] == [1, 2]
    assert taken.unread == first + b"no json\n" + later
    assert taken.answered == {1}
    assert os.read(source, 9) == b"thod"
    for end in (source, client, answers, sink):
        os.close(end)


def test_instructions_are_kept_for_what_is_registered_and_granted_and_nothing_else(
    tmp_path: Path,
) -> None:
    settings = load_settings(home=tmp_path)
    database = settings.database
    assert database is not None

    async def keep_then_grant() -> str:
        async with open_app(settings, "serve") as app:
            told = load_instructions(settings, app.store, app.consents)
            known = compute_fingerprint(database)
            assert find_kept_instructions(tmp_path, known) == told == INSTRUCTIONS
            app.store.grants.add_grant(Grant("dns.token", "secret", "test", 1.0))
            assert compute_fingerprint(database) == known
            app.store.grants.add_grant(Grant("api.example:443", "host", "test", 1.0))
            return known

    known = asyncio.run(keep_then_grant())
    assert find_kept_instructions(tmp_path, compute_fingerprint(database)) is None
    (tmp_path / FILE).write_text('{"of": "' + known + '", "instructions": 5}')
    assert find_kept_instructions(tmp_path, known) is None
    assert compute_fingerprint(tmp_path / "none.db") == ""


def test_what_a_command_registers_is_kept_for_the_first_answer_of_the_next_serve(
    tmp_path: Path,
) -> None:
    settings = load_settings(home=tmp_path)

    async def register() -> None:
        async with open_registering(settings, "forge", quiet=True) as app:
            made = bundle("", "count", pure=True)
            app.forge.shelf.publish_bundle(made, build_entry(made, 1.0), (), None)

    asyncio.run(register())
    assert settings.database is not None
    kept = find_kept_instructions(tmp_path, compute_fingerprint(settings.database))
    assert kept == f"{INSTRUCTIONS} 1 server is registered."


@pytest.mark.parametrize(
    "typed",
    ["source add https://x.test/api.json", "source allow x.test:443", "source remove y.test:443"],
)
def test_what_a_command_allows_or_takes_away_is_kept_for_the_first_answer_of_the_next_serve(
    settings: Settings, typed: str
) -> None:
    assert settings.database is not None
    words = [*typed.split(), "--pin-file", "-"]
    given = {"TOOLWRIGHT_HOME": str(settings.home)}
    ran = CliRunner().invoke(toolwright, words, env=given, input=PIN, catch_exceptions=False)
    assert ran.exit_code == 0, ran.output
    kept = find_kept_instructions(settings.home, compute_fingerprint(settings.database))
    assert kept == INSTRUCTIONS
