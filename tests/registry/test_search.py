from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.search import MAX_TERMS, query_terms, words
from registry.store import Store
from tests.registry.samples import entry, tool

DNS = entry(
    "dns",
    1,
    tool("list_zones", "List all zones of a server.", parameters={"server_id": "The server"}),
    tool("get_zone", "One zone, with its records.", parameters={"zone_id": "The zone"}),
    tool("create_zone", "Create a zone on a server.", "write", {"rrsets": "Its TXT records"}),
    tool("delete_zone", "Delete a zone.", "write", {"zone_id": "The zone"}),
    tool("search_data", "Search in zones, records and comments."),
    tool("list_crypto_keys", "List the keys of a zone for DNSSEC."),
    title="PowerDNS",
)
PETS = entry(
    "pets",
    1,
    tool("findPetsByStatus", "Pets by their status.", parameters={"status": "sold or available"}),
    tool("place_order", "Order a pet.", "write"),
    title="Pet store",
)


@pytest.fixture
def found(store: Store) -> Any:
    store.publish(DNS, now=1.0)
    store.publish(PETS, now=1.0)
    return lambda task: [match.tool for match in store.search(task)]


@pytest.mark.parametrize(
    ("task", "tool_name"),
    [
        ("list the DNS zones", "list_zones"),
        ("show me every DNS zone on the server", "list_zones"),
        ("Could you display all of the zones?", "list_zones"),
        ("add a zone", "create_zone"),
        ("remove the zone example.org", "delete_zone"),
        ("which pets are available", "findPetsByStatus"),
        ("pets by status", "findPetsByStatus"),
        ("ordering pets", "place_order"),
        ("list_crypto_keys", "list_crypto_keys"),
        ("a TXT record", "create_zone"),
    ],
)
def test_a_task_in_words_finds_its_tool_first(found: Any, task: str, tool_name: str) -> None:
    assert found(task)[0] == tool_name


def test_a_match_says_what_the_tool_and_its_server_are(store: Store) -> None:
    store.publish(PETS, now=1.0)
    match = store.search("order a pet")[0]
    assert (match.entry, match.tool) == ("pets", "place_order")
    assert (match.description, match.title) == ("Order a pet.", "Pet store")
    assert match.entry_description == "The pets API"
    assert match.score > 0


@pytest.mark.parametrize("task", ["", "the of and", "?!…", "umbrella Oslo", "\0", "\ud800"])
def test_a_task_without_a_known_word_finds_nothing(found: Any, task: str) -> None:
    assert found(task) == []


@pytest.mark.parametrize(
    "task",
    [
        'zones"',
        '"zones" OR "',
        "zones NOT zones",
        "name:zones",
        "-zones ^zones zones*",
        "NEAR(zones, 2)",
        "{name description}: zones",
        "zones); DROP TABLE entries; --",
        "zones' UNION SELECT * FROM audit --",
        "zones \\",
        "AND OR NOT zones",
    ],
)
def test_nothing_in_a_task_is_read_as_query_syntax(found: Any, task: str) -> None:
    assert "list_zones" in found(task)


@given(st.text(max_size=60))
def test_only_letters_and_digits_are_ever_looked_for(task: str) -> None:
    assert all(term.word.isalnum() for term in query_terms(task))


def test_any_text_can_be_searched_for(found: Any) -> None:
    for code in (*range(0, 0x250), 0x2028, 0xFEFF, 0xFFFF, 0x1F600):
        found(f"zo{chr(code)}nes")


def test_a_very_long_task_is_cut_to_its_rarest_words(store: Store) -> None:
    common = [f"common{number}x" for number in range(MAX_TERMS)]
    tools = [tool(f"tool_{number}", " ".join(common)) for number in range(3)]
    store.publish(entry("many", 1, *tools, tool("other", "rare word")), now=1.0)
    found = store.search(f"{' '.join(common)} rare word {'x' * 10_000}")
    assert "other" in [match.tool for match in found]
    assert store.search(" ".join(common))[0].tool == "tool_0"


def test_a_word_that_nearly_every_tool_has_still_tells_them_apart(store: Store) -> None:
    tools = [tool(f"{verb}_zone", f"{verb} it") for verb in ("get", "make", "check")]
    store.publish(entry("dns", 1, tool("ping", "Ping the zone server."), *tools), now=1.0)
    assert store.search("the zone")[0].tool != "ping"


@pytest.mark.parametrize("state", ["quarantined", "archived"])
def test_a_server_out_of_use_is_not_found_until_it_is_back(store: Store, state: Any) -> None:
    store.publish(PETS, now=1.0)
    store.set_state("pets", state, 2.0, by="me")
    assert store.search("order a pet") == ()
    store.set_state("pets", "experimental", 3.0, by="me")
    assert store.search("order a pet")[0].tool == "place_order"


def test_equals_come_in_order_of_their_names(store: Store) -> None:
    for name in ("zeta", "alpha", "mid"):
        store.publish(entry(name, 1, tool("ping", "Ping."), title="X"), now=1.0)
    # The server's own name is indexed too, so the three are of equal length and frequency.
    assert [match.entry for match in store.search("ping")] == ["alpha", "mid", "zeta"]
    assert [match.entry for match in store.search("ping", k=1)] == ["alpha"]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("listZones", ["list", "zones"]),
        ("HTTPServerError", ["http", "server", "error"]),
        ("/servers/{server_id}/zones", ["servers", "server", "id", "zones"]),
        ("ipv4", ["ipv4", "ipv", "4"]),
        ("DNSSEC", ["dnssec"]),
        ("Über-Größe", ["über", "größe"]),
    ],
)
def test_identifiers_are_split_into_words(text: str, parts: list[str]) -> None:
    assert words(text) == parts


def test_odd_schemas_do_not_stop_registration(tmp_path: Path) -> None:
    odd = tool("odd", "An odd one.")
    schema = '{"name":"odd","description":"odd","inputSchema":{"properties":{"a":true,"b":[]}}}'
    with Store.open(tmp_path / "registry.db") as store:
        store.publish(entry("odd", 1, type(odd)("odd", "read", False, schema)), now=1.0)
        assert store.search("odd")[0].tool == "odd"
