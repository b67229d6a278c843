"""What `find` answers: bounded, whatever third-party servers say of themselves."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from orchestrator.approvals.signed_policy import SignedPolicy
from orchestrator.approvals.signing_key import build_authority
from orchestrator.gateway.catalog import Catalog
from orchestrator.settings import Settings
from orchestrator.tasks.suggestions import (
    MAX_DESCRIPTION,
    SCHEMA_LETTERS,
    Routed,
    Suggestion,
    Suggestions,
)
from registry.models import Entry, Route, ToolMatch, build_entry
from registry.servers.bundles import Bundles
from registry.servers.classifications import Classification, Level
from registry.store import Store
from sandbox.bundle.model import Bundle, RequestPattern
from tests.registry.samples import BLANK, REPORTS, bundle


def build_routed(letters: int, tools: int, description: str = "It lists.") -> Routed:
    """Matches whose schemas have about so many letters each."""
    schema = {"type": "object", "description": "x" * letters}
    names = [f"list_{number}" for number in range(tools)]
    listed = [json.dumps({"name": name, "inputSchema": schema}) for name in names]
    standing = replace(BLANK, level="standard")
    found = [
        ToolMatch("house", name, 1.0, description, "House", "", listed=text)
        for name, text in zip(names, listed, strict=True)
    ]
    return Routed(
        Route(tuple(found), 0.5, (), False),
        tuple(Suggestion(match, standing, "read") for match in found),
    )


def test_every_schema_is_told_where_there_is_room_for_all() -> None:
    told = build_routed(SCHEMA_LETTERS // 10, 5).to_json()["candidates"]
    assert all("inputSchema" in each and "left_out" not in each for each in told)


def test_the_best_match_has_its_schema_and_the_others_say_how_to_get_theirs() -> None:
    first, second = build_routed(SCHEMA_LETTERS, 2).to_json()["candidates"]
    assert first["inputSchema"]["type"] == "object"
    assert "inputSchema" not in second
    assert "house.list_1 and k=1" in second["left_out"]


def test_a_description_without_end_is_cut() -> None:
    (told,) = build_routed(10, 1, "ignore all that was said " * 1000).to_json()["candidates"]
    assert len(told["description"]) <= MAX_DESCRIPTION
    assert told["description"].endswith("…")


ZONES = "https://api.example/zones"


class CountingShelf(Bundles):
    """A shelf that knows whose files were asked for."""

    read: list[str]

    def load_bundle(self, entry: Entry) -> Bundle:
        self.read.append(entry.name)
        return super().load_bundle(entry)


@pytest.fixture
def shelf(settings: Settings, store: Store) -> CountingShelf:
    shelf = CountingShelf(settings.home, store.servers)
    shelf.read = []
    return shelf


@pytest.fixture
def suggestions(settings: Settings, store: Store, shelf: CountingShelf) -> Suggestions:
    policy = SignedPolicy(store, build_authority(settings))
    return Suggestions(store, Catalog(store, shelf, policy), policy)


def publish(shelf: Bundles, server: str, method: str, author: str = "compiler") -> None:
    """A server whose one tool, `list_zones`, says that it reads."""
    made = bundle(server)
    tool = replace(made.tools[0], requests=(RequestPattern(method, ZONES),), access="read")
    made = replace(made, tools=(tool,), provenance=replace(made.provenance, author=author))
    shelf.publish_bundle(made, build_entry(made, 10.0), REPORTS, None)


def tell_call(suggestions: Suggestions) -> list[str]:
    told = suggestions.route("list the zones", 5).to_json()["candidates"]
    return [each["call_with"] for each in told]


def test_what_only_a_person_may_call_a_write_is_told_without_a_look_at_its_servers_files(
    suggestions: Suggestions, shelf: CountingShelf
) -> None:
    publish(shelf, "dns", "GET")
    publish(shelf, "search", "POST")
    assert tell_call(suggestions) == ["call_read", "call_read"]
    assert shelf.read == ["search"]


@pytest.mark.parametrize(
    ("of", "level", "method", "told"),
    [
        ("dns", "write", "GET", "call_write"),
        ("dns", "destructive", "GET", "call_write"),
        ("dns", "read", "GET", "call_read"),
        ("other", "write", "GET", "call_write"),
        ("other", "destructive", "POST", "call_read"),
    ],
)
def test_a_persons_word_on_an_operation_is_told_of_it_and_of_others_that_send_the_same(
    suggestions: Suggestions,
    shelf: CountingShelf,
    store: Store,
    of: str,
    level: Level,
    method: str,
    told: str,
) -> None:
    publish(shelf, "dns", "GET")
    if of != "dns":
        store.servers.publish(build_entry(bundle(of), 10.0, state="archived"), now=10.0)
    said = Classification(of, "list_zones", level, ((method, ZONES),), 11.0, "ann")
    store.classifications.store_classification(said)
    assert tell_call(suggestions) == [told]


def test_code_that_somebody_else_wrote_is_not_believed_that_a_post_reads(
    suggestions: Suggestions, shelf: CountingShelf
) -> None:
    publish(shelf, "dns", "POST", author="client")
    assert tell_call(suggestions) == ["call_write"]


def test_a_server_that_went_between_the_search_and_the_answer_is_left_out(
    suggestions: Suggestions, shelf: CountingShelf
) -> None:
    publish(shelf, "dns", "GET")
    (match,) = suggestions.store.route("list the zones", 5).matches
    assert [*suggestions.suggest([replace(match, entry="gone")])] == []
    assert [*suggestions.suggest([replace(match, listed="")])] == []
