"""How a single server introduces itself while it is still being loaded."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.app import App, open_app
from orchestrator.frontends.early import FirstAnswers
from orchestrator.frontends.flat import FlatServer
from orchestrator.frontends.flat_greeting import (
    FOLDER,
    MAX_KEPT,
    FlatGreeting,
    ServerInfo,
    find_kept_greeting,
    keep_greeting,
)
from orchestrator.frontends.greeting import LEGACY, MODERN
from orchestrator.frontends.protocol import Answer, Peer
from orchestrator.settings import Settings
from registry.database.fingerprint import compute_server_fingerprint
from registry.models import build_entry
from registry.servers.classifications import Classification
from tests.engine.samples import bundle

CARD = ServerInfo("pets", "1", "Pets", "Pets of a shop.")
TOOLS = ({"name": "list_pets", "inputSchema": {"type": "object"}},)
REVISIONS = (*LEGACY, MODERN)
INFO = {"name": "test", "version": "1"}
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": INFO,
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Prompts:
    """`ExtraMethods` that declare what not each revision of the protocol has."""

    def list_capabilities(self, version: str) -> Mapping[str, Any]:
        return {"prompts": {}, **({"completions": {}} if version != LEGACY[0] else {})}

    def find_answer(self, method: str, modern: bool) -> Answer | None:
        return None


GREETING = FlatGreeting(
    CARD, TOOLS, {each: Prompts().list_capabilities(each) for each in REVISIONS}
)


async def call_nothing(tool: str, arguments: Mapping[str, Any], asker: Peer) -> dict[str, Any]:
    raise AssertionError(tool)


def ask_server(*messages: Mapping[str, Any]) -> list[Any]:
    """What the server proper answers."""

    async def ask() -> list[Any]:
        sent: list[Any] = []
        async with asyncio.TaskGroup() as tasks:
            flat = FlatServer(CARD, TOOLS, call_nothing, sent.append, tasks, Prompts())
            for message in messages:
                flat.receive_message(message)
        return sent

    return asyncio.run(ask())


def ask_early(*messages: Mapping[str, Any]) -> list[Any]:
    sent: list[Any] = []
    first = FirstAnswers(GREETING, lambda line: sent.append(json.loads(line)))
    for message in messages:
        first.take_line(json.dumps(message).encode() + b"\n")
    return sent


def request(identity: int, method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": identity, "method": method, "params": params}


def as_sent(answers: list[Any]) -> Any:
    return json.loads(json.dumps(answers))


@pytest.mark.parametrize("version", LEGACY)
def test_what_is_answered_early_is_what_the_server_answers(version: str) -> None:
    hello = {"protocolVersion": version, "capabilities": {}, "clientInfo": INFO}
    asked = request(1, "initialize", **hello), request(2, "tools/list"), request(3, "ping")
    early = ask_early(*asked)
    assert len(early) == 3
    assert early == as_sent(ask_server(*asked))


def test_so_it_is_in_the_modern_era() -> None:
    asked = (
        request(1, "server/discover", _meta=ENVELOPE),
        request(2, "tools/list", _meta=ENVELOPE),
    )
    early = ask_early(*asked)
    assert len(early) == 2
    assert early == as_sent(ask_server(*asked))


def publish(app: App, name: str) -> None:
    made = replace(bundle("", "count", pure=True), name=name)
    app.forge.shelf.publish_bundle(made, build_entry(made, time.time()), (), None)


def keep(settings: Settings) -> FlatGreeting:
    assert settings.database is not None
    keep_greeting(settings.home, compute_server_fingerprint(settings.database, "pets"), GREETING)
    kept = find_kept_greeting("pets", settings)
    assert kept is not None
    return kept


def classify(app: App, server: str) -> None:
    operation = app.store.servers.get(server).tools[0].name
    app.store.classifications.store_classification(
        Classification(server, operation, "write", (), 1.0, "test")
    )


@pytest.mark.parametrize(
    "change",
    [
        lambda app: app.store.servers.set_state("pets", "quarantined", 1.0, "test"),
        lambda app: classify(app, "pets"),
        lambda app: classify(app, "other"),
        lambda app: publish(app, "another"),
    ],
    ids=["state", "class", "another server's class", "another server"],
)
def test_a_kept_introduction_counts_until_a_server_changes(
    change: Callable[[App], None], settings: Settings
) -> None:
    async def work() -> None:
        async with open_app(settings, "run") as app:
            publish(app, "pets")
            publish(app, "other")
            assert as_sent([keep(settings).list_tools(modern=True)]) == as_sent(
                [GREETING.list_tools(modern=True)]
            )
            change(app)
            assert find_kept_greeting("pets", settings) is None

    asyncio.run(work())


@pytest.mark.parametrize(
    "damage",
    [
        lambda kept: "",
        lambda kept: kept[:-20],
        lambda kept: "[" * MAX_KEPT,
        lambda kept: json.dumps({**json.loads(kept), "card": {"name": "pets"}}),
        lambda kept: json.dumps({**json.loads(kept), "abilities": {}}),
        lambda kept: json.dumps({**json.loads(kept), "by": "0.0.1"}),
        lambda kept: json.dumps([kept]),
    ],
)
def test_a_damaged_introduction_is_none(damage: Callable[[str], str], settings: Settings) -> None:
    async def work() -> None:
        async with open_app(settings, "run") as app:
            publish(app, "pets")
        keep(settings)
        place = settings.home / FOLDER / "pets.json"
        place.write_text(damage(place.read_text()))
        assert find_kept_greeting("pets", settings) is None

    asyncio.run(work())


def test_a_long_list_of_tools_is_not_kept_nor_one_of_no_registered_server(
    settings: Settings, tmp_path: Path
) -> None:
    long = FlatGreeting(CARD, [{"name": "x" * MAX_KEPT}], GREETING.abilities)
    keep_greeting(tmp_path, "0", long)
    assert not (tmp_path / FOLDER).exists()
    assert settings.database is not None
    assert compute_server_fingerprint(settings.database, "pets") == ""
    assert compute_server_fingerprint(tmp_path / "none.db", "pets") == ""
