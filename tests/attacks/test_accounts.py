"""A write that waits is of one account: what a person saw it go through carries it out, or nothing
does.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from orchestrator.app import App, open_app
from orchestrator.approvals.decide import Decision, decide_with_pin
from orchestrator.approvals.granting import add_grant
from orchestrator.approvals.text import hash_approval, render_approval
from orchestrator.calls import Call, Done, Pending, RefusedCall, Reply
from orchestrator.settings import Settings, load_settings
from registry.models import Approval, build_entry
from registry.secrets.vault import Secret
from sandbox.bundle.credential import Credential
from sandbox.bundle.model import Bundle, RequestPattern, ToolDefinition
from sandbox.bundle.permissions import build_request_pattern
from tests.engine.samples import OBJECT, bundle
from tests.granted import PIN, allow, bind, person
from tests.world.loopback import Answering, served

POST = """
from toolwright import http, tool

@tool
def send(text):
    return http.request("POST", "/letters", json={"text": text})

@tool
def turn():
    return http.request("GET", "/turn")
"""
COMPOSITE = """
from toolwright import servers, tool

@tool
def relay(text):
    return servers.call(servers.call("ours.turn", {})["body"]["to"], {"text": text})
"""


@dataclass
class World:
    """An API: `to` is what it says whose turn it is, `got` the account and text of each letter."""

    url: str
    to: str = "ours.send"
    got: list[tuple[str, str]] = field(default_factory=list)


class _Answering(Answering):
    def do_GET(self) -> None:
        self.answer_json(200, {"to": self.world.to})

    def do_POST(self) -> None:
        letter = json.loads(self.body())
        self.world.got.append((str(self.headers.get("X-Key")), letter["text"]))
        self.answer_json(201, letter)


def letters(name: str, url: str, version: int = 1) -> Bundle:
    """A server of that API, with its own account."""
    made = bundle(POST, "send", "turn", pure=True)
    send, turn = (
        ToolDefinition(
            tool,
            "Letters.",
            OBJECT,
            OBJECT,
            access,  # type: ignore[arg-type]
            requests=(RequestPattern(method, f"{url}/{path}"),),
            security=(("key",),),
        )
        for tool, access, method, path in (
            ("send", "write", "POST", "letters"),
            ("turn", "read", "GET", "turn"),
        )
    )
    return replace(
        made,
        name=name,
        version=version,
        base_url=url,
        tools=(send, turn),
        permissions=(f"network:{url.removeprefix('http://')}",),
        credentials=(Credential("key", "apiKey", "header", "X-Key"),),
        description="" if version == 1 else "Changed.",
    )


def relay(*calls: str) -> Bundle:
    """A server that lets an API say which of these tools it calls."""
    asked = tuple(pattern for call in calls if (pattern := build_request_pattern(f"call:{call}")))
    (tool,) = bundle(COMPOSITE, "relay", pure=True).tools
    tool = replace(tool, requests=asked, access="write")
    made = bundle(COMPOSITE, "relay", pure=True)
    permissions = tuple(f"call:{call}" for call in calls)
    return replace(made, name="relay", tools=(tool,), permissions=permissions)


CALLS = ("ours.turn", "ours.send", "theirs.send")


@dataclass
class Place:
    """One open process on a home with both accounts and what calls them."""

    app: App
    settings: Settings
    world: World
    run: Callable[[Coroutine[Any, Any, Any]], Any]

    def publish(self, made: Bundle) -> None:
        self.app.forge.shelf.publish_bundle(made, build_entry(made, time.time()), (), None)
        self.app.roster.forget_servers()

    def ask(self, tool: str, text: str) -> Approval:
        server, _, name = tool.partition(".")
        reply: Reply = self.run(self.app.dispatch.call_tool(Call(server, name, {"text": text})))
        assert isinstance(reply, Pending), reply
        return self.app.store.approvals.get(reply.approval.id)

    def approve(self, shown: Approval) -> Reply:
        """What a person decides who sees exactly this, and what then becomes of it."""
        now, store = time.time(), self.app.store
        wanted = Decision(shown.id, True, PIN, "test", digest=hash_approval(shown))
        assert not decide_with_pin(self.settings, store, wanted, now).refused
        forgery = self.app.signed_policy.check_forgery
        claimed = store.approvals.claim(shown.id, self.app.process, now, forgery)
        assert claimed is not None
        reply: Reply = self.run(self.app.dispatch.carry_out_approval(claimed))
        return reply

    def state(self, approval: Approval) -> str:
        return self.app.store.approvals.get(approval.id).state


@pytest.fixture(scope="module")
def place(any_engine: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    settings = load_settings(home=tmp_path_factory.mktemp("accounts"), engine=any_engine)
    with served(_Answering, World) as world, asyncio.Runner() as runner:
        stack = AsyncExitStack()
        app = runner.run(stack.enter_async_context(open_app(settings, "do")))
        try:
            allow(settings, app.store, world.url)
            yield Place(app, settings, world, runner.run)
        finally:
            runner.run(stack.aclose())


@pytest.fixture(autouse=True)
def _accounts(place: Place) -> None:
    """Each test begins with both accounts as they were, and no letter sent."""
    place.world.to, place.world.got[:] = "ours.send", []
    held = {server.name for server in place.app.store.servers.find_summaries()}
    for name in ("ours", "theirs"):
        place.app.vault.put(name, "key", Secret(f"the key of {name}"))
        if name not in held:
            made = letters(name, place.world.url)
            place.publish(made)
            bind(place.settings, place.app.store, made)
    if "relay" not in held:
        place.publish(relay(*CALLS))
        for call in CALLS:
            signer = person(place.settings.pin)
            add_grant(place.app.store.grants, f"relay call:{call}", "permission", "test", signer)


def test_a_write_that_was_shown_through_one_account_is_not_sent_through_another(
    place: Place,
) -> None:
    shown = place.ask("relay.relay", "switched")
    place.world.to = "theirs.send"
    again = place.approve(shown)
    assert place.world.got == []
    assert place.state(shown) == "failed"
    # The other account is another question, which says so.
    assert isinstance(again, Pending)
    asked = place.app.store.approvals.get(again.approval.id)
    assert asked.wire.body == shown.wire.body
    assert "sent through theirs.send" in render_approval(asked)
    assert hash_approval(asked) != hash_approval(shown)


def test_a_write_is_sent_through_the_account_that_was_shown(place: Place) -> None:
    shown = place.ask("relay.relay", "straight")
    text = render_approval(shown)
    for said in ("relay.relay, version 1", "sent through ours.send, version 1", "ours.key"):
        assert said in text
    assert place.world.got == []
    done = place.approve(shown)
    assert isinstance(done, Done)
    assert (place.state(shown), place.world.got) == ("done", [("the key of ours", "straight")])


@pytest.mark.parametrize("tool", ["relay.relay", "ours.send"])
def test_a_write_whose_account_was_exchanged_after_it_was_shown_is_not_sent(
    tool: str, place: Place
) -> None:
    shown = place.ask(tool, "swapped")
    place.app.vault.put("ours", "key", Secret("the key of somebody else"))
    refused = place.approve(shown)
    assert isinstance(refused, RefusedCall)
    assert "credential" in refused.reason
    assert (place.state(shown), place.world.got) == ("failed", [])


@pytest.mark.parametrize("changed", ["ours", "theirs"])
def test_a_write_whose_inner_server_changed_after_it_was_approved_is_not_sent(
    changed: str, place: Place
) -> None:
    shown = place.ask("relay.relay", "changed")
    version = place.app.store.servers.get(changed).version
    place.publish(letters(changed, place.world.url, version + 1))
    refused = place.approve(shown)
    assert isinstance(refused, RefusedCall)
    assert "version" in refused.reason
    assert (place.state(shown), place.world.got) == ("failed", [])


def nested(depth: int) -> Any:
    value: Any = "x"
    for _ in range(depth):
        value = [value]
    return value


def test_a_write_with_arguments_that_nobody_can_be_shown_does_not_wait(place: Place) -> None:
    waiting = place.app.store.approvals.find("pending")
    for depth in (101, 5000):
        call = Call("ours", "send", {"text": nested(depth)})
        reply = place.run(place.app.dispatch.call_tool(call))
        assert isinstance(reply, RefusedCall)
        assert "nested deeper" in reply.reason
    assert place.app.store.approvals.find("pending") == waiting


def test_a_write_with_nested_arguments_waits_and_is_sent(place: Place) -> None:
    call = Call("ours", "send", {"text": nested(90)})
    reply = place.run(place.app.dispatch.call_tool(call))
    assert isinstance(reply, Pending)
    place.approve(place.app.store.approvals.get(reply.approval.id))
    assert place.world.got == [("the key of ours", nested(90))]


def test_an_account_that_was_set_again_to_what_it_was_is_the_same(place: Place) -> None:
    shown = place.ask("ours.send", "same")
    place.app.vault.put("ours", "key", Secret("the key of ours"))
    place.app.roster.forget_servers()
    assert isinstance(place.approve(shown), Done)
    assert place.world.got == [("the key of ours", "same")]
