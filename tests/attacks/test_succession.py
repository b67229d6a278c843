"""A registered server's name is taken over by what it was made from, or by a person's word; what a
client can ask for over MCP moves neither the name nor a secret, nor what a person allowed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.functional.home import PIN, Home, new_home, until
from tests.functional.peer import Peer, text
from tests.world.loopback import Answering, served

CANARY = "bank-key-canary-4713"
NOTE = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


def reading(name: str, **more: Any) -> dict[str, Any]:
    told = {"description": "ok", "content": {"application/json": {"schema": {"type": "object"}}}}
    return {"get": {"operationId": name, "responses": {"200": told}}, **more}


def writing(name: str, **more: Any) -> dict[str, Any]:
    content = {"application/json": {"schema": NOTE}}
    body = {"required": True, "content": content}
    told = {"description": "made", "content": content}
    return {"post": {"operationId": name, "requestBody": body, "responses": {"201": told}}, **more}


def document(**paths: Any) -> dict[str, Any]:
    scheme = {"type": "apiKey", "in": "header", "name": "X-Key"}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Bank", "version": "1"},
        "servers": [{"url": "/"}],
        "security": [{"key": []}],
        "components": {"securitySchemes": {"key": scheme}},
        "paths": {
            "/balance": reading("getBalance"),
            "/notes": writing("addNote"),
            **{f"/{path}": item for path, item in paths.items()},
        },
    }


@dataclass
class Api:
    """An API that any request is right for. `heard` is all that reached it, beside questions
    without a secret for its description.
    """

    url: str
    document: dict[str, Any] = field(default_factory=document)
    heard: list[str] = field(default_factory=list)

    @property
    def host(self) -> str:
        return self.url.removeprefix("http://")

    def writes(self) -> list[str]:
        return [told for told in self.heard if told.startswith("POST")]


class _Answering(Answering):
    def do_GET(self) -> None:
        if self.path == "/openapi.json":
            self.answer_json(200, self.world.document)
            return
        known, told = self.path in self.world.document["paths"], str(self.headers.items())
        if known or CANARY in told:
            self.world.heard.append(f"GET {self.path} {told}")
        self.answer_json(200 if known else 404, {})

    def do_POST(self) -> None:
        body = self.body()
        self.world.heard.append(f"POST {self.path} {self.headers.items()} {body.decode()}")
        self.answer_json(201, json.loads(body))


@dataclass
class Bank:
    """A home with a client, where a person allowed both APIs."""

    home: Home
    client: Peer
    own: Api
    other: Api

    def forge(self, name: str, **order: Any) -> dict[str, Any]:
        """What came of a forge that the client asked for."""
        job = self.client.value("forge", task="the balance", name=name, **order)["job"]
        return {"job": job, **self.client.settled(job=job)}

    def open(self, name: str) -> None:
        """A registered server with its secret, made over MCP once the hosts are allowed."""
        self.own.document = document()
        done = self.forge(name, source=self.own.url)
        assert done["state"] == "done", done["message"]
        value = self.home.path.parent / "value"
        value.write_text(CANARY)
        self.home.person("secret", "set", f"{name}.key", "--value-file", str(value))
        self.own.heard.clear()
        self.other.heard.clear()

    def version(self, name: str) -> int:
        return int(self.home.read("show", name)["version"])

    def read(self, name: str, tool: str = "get_balance") -> dict[str, Any]:
        return self.client.call("call_read", tool=f"{name}.{tool}", arguments={})

    def note(self, name: str, words: str) -> Any:
        """What a client hears that asks for a write."""
        arguments = {"body": {"text": words}}
        return self.client.value("call_write", tool=f"{name}.add_note", arguments=arguments)


@pytest.fixture(scope="module")
def bank(any_engine: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bank]:
    with ExitStack() as stack:
        own, other = (stack.enter_context(served(_Answering, Api)) for _ in range(2))
        home = stack.enter_context(new_home(tmp_path_factory.mktemp("bank"), any_engine))
        home.person("source", "allow", own.host, other.host)
        yield Bank(home, stack.enter_context(Peer(home, "serve")), own, other)


def waits_for_a_person(bank: Bank, name: str, told: dict[str, Any]) -> None:
    """Nothing came of a forge: no version, and nothing that left."""
    assert told["state"] == "waiting", told["message"]
    assert f"toolwright allow {told['job']}" in told["message"]
    assert "another name" in told["message"]
    assert bank.version(name) == 1
    assert (bank.own.heard, bank.other.heard) == ([], [])


def test_another_base_url_makes_no_version_and_hears_nothing(bank: Bank) -> None:
    bank.open("based")
    told = bank.forge("based", source=bank.own.url, base_url=bank.other.url)
    assert bank.other.host in told["message"]
    waits_for_a_person(bank, "based", told)
    assert not bank.read("based").get("isError")
    assert CANARY in bank.own.heard[-1]


def test_another_source_makes_no_version_and_hears_nothing(bank: Bank) -> None:
    bank.open("sourced")
    told = bank.forge("sourced", source=bank.other.url)
    assert bank.other.url in told["message"]
    assert bank.own.url in told["message"]
    waits_for_a_person(bank, "sourced", told)


def test_a_document_that_a_client_hands_in_is_no_word_of_the_source_it_names(bank: Bank) -> None:
    bank.open("handed")
    begun = bank.forge("handed", source=bank.own.url)
    bank.own.heard.clear()
    evil = {**document(transfers=writing("transfer")), "servers": [{"url": bank.own.url}]}
    given = bank.client.value("submit", job=begun["job"], document=json.dumps(evil))
    told = {"job": given["job"], **bank.client.settled(job=given["job"])}
    assert "the submitted document" in told["message"]
    waits_for_a_person(bank, "handed", told)


def test_a_write_that_the_source_gained_waits(bank: Bank) -> None:
    bank.open("gaining")
    bank.own.document = document(transfers=writing("transfer"))
    told = bank.forge("gaining", source=bank.own.url)
    assert f"POST {bank.own.url}/transfers" in told["message"]
    waits_for_a_person(bank, "gaining", told)


def test_a_path_on_another_host_that_the_source_gained_waits(bank: Bank) -> None:
    bank.open("wandering")
    rates = reading("getRates", servers=[{"url": bank.other.url}])
    bank.own.document = document(rates=rates)
    waits_for_a_person(bank, "wandering", bank.forge("wandering", source=bank.own.url))


def test_another_place_for_the_secret_waits(bank: Bank) -> None:
    bank.open("placed")
    moved = document()
    scheme = {"type": "apiKey", "in": "query", "name": "X-Key"}
    moved["components"]["securitySchemes"]["key"] = scheme
    bank.own.document = moved
    waits_for_a_person(bank, "placed", bank.forge("placed", source=bank.own.url))


def test_a_changed_file_waits_for_what_it_gained_and_for_nothing_else(
    bank: Bank, tmp_path: Path
) -> None:
    path = tmp_path / "bank.json"
    bank.home.person("source", "allow", str(tmp_path))

    def forged(path: Path, **paths: Any) -> str:
        made = {**document(**paths), "servers": [{"url": bank.own.url}]}
        path.write_text(json.dumps(made))
        return str(bank.forge("filed", source=str(path))["state"])

    rates, elsewhere = reading("getRates"), tmp_path / "elsewhere.json"
    assert forged(path) == "done"
    assert forged(path, rates=rates) == "done"
    assert bank.version("filed") == 2
    assert forged(path, rates=rates, transfers=writing("transfer")) == "waiting"
    assert forged(elsewhere, rates=rates, more=reading("getMore")) == "waiting"
    assert bank.version("filed") == 2


@pytest.mark.parametrize("name", ["Cased", "c\uff41sed", "c\u0430sed", "cased ", "CASED"])
def test_a_name_that_only_looks_like_another_takes_nothing_over(bank: Bank, name: str) -> None:
    with bank.home.store() as store:
        known = {entry.name for entry in store.servers.find_summaries()}
    if "cased" not in known:
        bank.open("cased")
    told = bank.client.call("forge", task="x", name=name, source=bank.other.url)
    if not told.get("isError"):
        assert bank.client.settled(job=told["structuredContent"]["job"])["state"] != "done"
    assert bank.version("cased") == 1
    assert CANARY not in str(bank.other.heard)


def test_an_archived_server_keeps_its_name(bank: Bank) -> None:
    bank.open("archived")
    assert bank.home.run("archive", "archived").returncode == 0
    told = bank.forge("archived", source=bank.own.url, base_url=bank.other.url)
    waits_for_a_person(bank, "archived", told)
    assert bank.forge("archived", source=bank.own.url)["state"] == "done"
    assert not bank.read("archived").get("isError")


def test_code_that_a_client_writes_takes_no_registered_name(bank: Bank) -> None:
    bank.open("coded")
    told = bank.forge("coded", source="none")
    assert told["state"] == "failed"
    assert "there is a server coded already" in told["message"]
    assert bank.version("coded") == 1


@pytest.mark.parametrize("name", ["sources", "push"])
def test_no_server_has_the_name_of_a_section_of_the_vault(bank: Bank, name: str) -> None:
    told = bank.forge(name, source=bank.own.url)
    assert told["state"] == "failed"
    assert "no server is called" in told["message"]


def test_the_same_source_makes_the_next_version_with_more_to_read(bank: Bank) -> None:
    bank.open("growing")
    bank.own.document = document(rates=reading("getRates"))
    done = bank.forge("growing", source=bank.own.url)
    assert (done["state"], bank.version("growing")) == ("done", 2)
    assert not bank.read("growing", "get_rates").get("isError")
    assert CANARY in bank.own.heard[-1]


def test_a_person_lets_a_version_follow_and_the_secret_stays_until_they_move_it(
    bank: Bank,
) -> None:
    bank.open("moved")
    told = bank.forge("moved", source=bank.own.url, base_url=bank.other.url)
    bank.home.person("jobs", told["job"], "--allow")
    assert bank.version("moved") == 2
    assert CANARY not in str(bank.other.heard)
    refused = text(bank.read("moved"))
    assert "toolwright secret bind moved.key" in refused
    assert bank.own.url in refused
    assert bank.other.url in refused
    assert CANARY not in str(bank.other.heard)
    shown = bank.home.person("secret", "bind", "moved.key")
    assert bank.own.url in shown
    assert bank.other.url in shown
    assert not bank.read("moved").get("isError")
    assert CANARY in bank.other.heard[-1]


def test_a_job_that_a_person_allowed_on_the_page_goes_on_by_itself(bank: Bank) -> None:
    bank.open("paged")
    bank.own.document = document(transfers=writing("transfer"))
    waiting = bank.forge("paged", source=bank.own.url)
    job, digest = waiting["job"], waiting["needs"]["digest"]
    assert bank.home.post(f"/jobs/{job}/allow", pin="wrong", digest=digest).status_code == 403
    assert bank.version("paged") == 1
    assert bank.home.post(f"/jobs/{job}/allow", pin=PIN).status_code == 400
    assert bank.version("paged") == 1
    assert bank.home.post(f"/jobs/{job}/allow", pin=PIN, digest=digest).status_code == 200
    until(lambda: bank.version("paged") == 2, "the next version is registered")


def test_a_person_s_word_is_for_the_version_that_they_were_shown(bank: Bank) -> None:
    bank.open("swapped")
    bank.own.document = document(transfers=writing("transfer"))
    told = bank.forge("swapped", source=bank.own.url)
    bank.own.document = document(transfers=writing("transfer"), loans=writing("takeLoan"))
    done = bank.home.run("jobs", told["job"], "--allow", "--pin-file", str(bank.home.pin_file))
    assert done.returncode != 0
    assert "/loans" in done.stdout
    assert bank.version("swapped") == 1


def test_a_secret_is_moved_by_nobody_without_the_pin(bank: Bank, tmp_path: Path) -> None:
    bank.open("pinned")
    wrong = tmp_path / "wrong"
    wrong.write_text("not the PIN")
    told = bank.forge("pinned", source=bank.other.url)
    for words in (("secret", "bind", "pinned.key"), ("jobs", told["job"], "--allow")):
        assert bank.home.run(*words, "--pin-file", str(wrong)).returncode != 0
    waits_for_a_person(bank, "pinned", told)


def edited(bank: Bank, name: str, old: str, new: str) -> None:
    """Somebody edits the server's files; the next version is in use once it was proved."""
    place = bank.home.path / "servers" / name
    for file in ("bundle.toml", "server.py", "tools.json", "spec.json"):
        path = place / file
        path.write_text(path.read_text().replace(old, new))
    until(lambda: bank.version(name) == 2, "the edit is published")


def test_an_edit_by_hand_is_published_and_takes_no_secret_elsewhere(bank: Bank) -> None:
    bank.open("edited")
    edited(bank, "edited", bank.own.host, bank.other.host)
    assert "toolwright secret bind edited.key" in text(bank.read("edited"))
    assert CANARY not in str(bank.other.heard)


def test_an_edit_by_hand_on_the_same_host_keeps_its_secret(bank: Bank) -> None:
    bank.open("worded")
    edited(bank, "worded", "getBalance", "fetchBalance")
    assert not bank.read("worded").get("isError")
    assert CANARY in bank.own.heard[-1]


def ruled(bank: Bank, name: str) -> None:
    """A person approves a write and those like it, for any version."""
    pending = bank.note(name, "first")["approval"]
    words = ("--always", "--any-version", "--where", "body.text=*")
    bank.home.person("approve", pending, *words)
    assert len(bank.own.writes()) == 1


def test_a_rule_for_any_version_covers_the_next_one_of_the_same_source(bank: Bank) -> None:
    bank.open("ruled")
    ruled(bank, "ruled")
    bank.own.document = document(rates=reading("getRates"))
    assert bank.forge("ruled", source=bank.own.url)["state"] == "done"
    assert bank.version("ruled") == 2
    assert "approval" not in bank.note("ruled", "second")
    assert "second" in bank.own.writes()[-1]


def test_a_rule_for_any_version_covers_no_version_on_another_origin(bank: Bank) -> None:
    bank.open("leaving")
    ruled(bank, "leaving")
    told = bank.forge("leaving", source=bank.own.url, base_url=bank.other.url)
    bank.home.person("jobs", told["job"], "--allow")
    bank.home.person("secret", "bind", "leaving.key")
    assert bank.note("leaving", "elsewhere")["state"] == "pending"
    assert bank.other.writes() == []


def test_a_rule_for_any_version_covers_no_other_operation_under_the_same_name(bank: Bank) -> None:
    bank.open("renaming")
    bank.own.document = document(orders=writing("addOrder"))
    told = bank.forge("renaming", source=bank.own.url)
    bank.home.person("jobs", told["job"], "--allow")
    ruled(bank, "renaming")
    swapped = document(orders=writing("addNote"))
    swapped["paths"]["/notes"] = writing("addOrder")
    bank.own.document = swapped
    done = bank.forge("renaming", source=bank.own.url)
    assert done["state"] == "done", done["message"]
    assert bank.note("renaming", "mine")["state"] == "pending"
    assert len(bank.own.writes()) == 1
