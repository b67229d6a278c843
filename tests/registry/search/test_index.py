from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from registry.models import Entry
from registry.search.index import MAX_TERMS
from registry.search.words import parse_query, split_words
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


POWERDNS = {
    "error": "Will always generate an error. GET /error.",
    "list_servers": "List all servers. GET /servers.",
    "list_server": "List a server. GET /servers/{server_id}.",
    "cache_flush_by_name": "Flush a cache-entry by name. PUT /servers/{server_id}/cache/flush.",
    "list_zones": "List all Zones in a server. GET /servers/{server_id}/zones.",
    "create_zone": "Creates a new domain, returns the Zone on creation.",
    "list_zone": "zone managed by a server. GET /servers/{server_id}/zones/{zone_id}.",
    "put_zone": "Modifies basic zone data. Only its kind and masters can be modified.",
    "delete_zone": "Deletes this zone, all attached metadata and rrsets.",
    "patch_zone": "Creates/modifies/deletes RRsets present in the payload and their comments.",
    "notify_zone": "Send a DNS NOTIFY to all slaves. Fails when zone kind is not Master.",
    "axfr_retrieve_zone": "Retrieve slave zone from its master. Fails when zone kind is not Slave.",
    "axfr_export_zone": "Returns the zone in AXFR format.",
    "rectify_zone": "Rectify the zone data. Fails on slave zones and zones without DNSSEC.",
    "get_config": "Returns all ConfigSettings for a single server.",
    "get_config_setting": "Returns a specific ConfigSetting for a single server.",
    "get_stats": "Query statistics. Query PowerDNS internal statistics.",
    "search_data": "Search the data inside PowerDNS for search_term and return at most max_results."
    " This includes zones, records and comments.",
    "list_metadata": "Get all the Metadata associated with the zone.",
    "create_metadata": "Creates a set of metadata entries of given kind for the zone.",
    "get_metadata": "Get the content of a single kind of domain metadata as a Metadata object.",
    "modify_metadata": "Replace the content of a single kind of domain metadata. Creates a set.",
    "delete_metadata": "Delete all items of a single kind of domain metadata.",
    "list_cryptokeys": "Get all CryptoKeys for a zone, except the privatekey",
    "create_cryptokey": "Creates a Cryptokey. This method adds a new key to a zone.",
    "get_cryptokey": "Returns all data about the CryptoKey, including the privatekey.",
    "modify_cryptokey": "This method (de)activates a key from zone_name specified by cryptokey_id",
    "delete_cryptokey": "This method deletes a key specified by cryptokey_id.",
    "list_tsig_keys": "Get all TSIGKeys on the server, except the actual key",
    "create_tsig_key": "Add a TSIG key. This methods add a new TSIGKey to the server.",
    "get_tsig_key": "Get a specific TSIGKeys on the server, including the actual key",
    "put_tsig_key": "The TSIGKey at tsigkey_id can be changed in multiple ways.",
    "delete_tsig_key": "Delete the TSIGKey with tsigkey_id",
    "get_autoprimaries": "Get a list of autoprimaries",
    "create_autoprimary": "Add an autoprimary. This methods add a new autoprimary server.",
    "delete_autoprimary": "Delete the autoprimary entry",
}
"""The tools of the PowerDNS API, as the forge names and describes them."""
WRITING = ("create", "put", "delete", "patch", "notify", "modify", "cache", "rectify")
SERVER_ID = {"server_id": "The id of the server to retrieve"}
ZONE_ID = {"zone_id": "The id of the zone to retrieve"}
HARBOUR = Path(__file__).parents[3] / "examples" / "harbour" / "openapi.json"
THINGS = (
    "user group invoice order ticket release branch playlist album channel message webhook token "
    "customer product cart coupon shipment device alert dashboard metric bucket volume cluster"
).split()


def powerdns() -> Entry:
    tools = []
    for name, told in POWERDNS.items():
        of_zone = any(word in name for word in ("_zone", "metadata", "cryptokey"))
        takes = SERVER_ID | (ZONE_ID if of_zone else {})
        access = "write" if name.startswith(WRITING) else "read"
        tools.append(tool(name, told, access, takes))
    title = "PowerDNS Authoritative HTTP API"
    return entry("power_dns_authoritative_http", 1, *tools, title=title)


def harbour() -> Entry:
    """As the forge makes it, but of names, summaries and parameters only."""
    tools = []
    for path, operations in json.loads(HARBOUR.read_text())["paths"].items():
        for method, told in operations.items():
            name = "_".join(split_words(told["operationId"]))
            lead = f"{told['summary']}. {method.upper()} {path}. {told.get('description', '')}"
            named = [each for each in told.get("parameters", ()) if "name" in each]
            takes = {each["name"]: each.get("description", "") for each in named}
            tools.append(tool(name, lead, "read" if method == "get" else "write", takes))
    return entry("harbour", 1, *tools)


def unrelated(count: int) -> Iterator[Entry]:
    """Servers that show, list, book, create and free other things, at other places."""
    for number in range(count):
        tools = []
        for offset in range(3):
            thing = THINGS[(number + offset) % len(THINGS)]
            tools += [
                tool(f"list_{thing}s", f"List all {thing}s of the server. GET /{thing}s."),
                tool(f"get_{thing}", f"Show one {thing}. GET /{thing}s/{{id}}."),
                tool(f"create_{thing}", f"Create a new {thing}.", "write"),
                tool(f"cancel_{thing}", f"Cancel my {thing}, and free its place.", "write"),
            ]
        yield entry(f"other_{number}", 1, *tools)


@pytest.fixture
def found(store: Store) -> Any:
    store.servers.publish(DNS, now=1.0)
    store.servers.publish(PETS, now=1.0)
    return lambda task: [match.tool for match in store.search.find_tools(task)]


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
    store.servers.publish(PETS, now=1.0)
    match = store.search.find_tools("order a pet")[0]
    assert (match.entry, match.tool) == ("pets", "place_order")
    assert (match.description, match.title) == ("Order a pet.", "Pet store")
    assert match.entry_description == "The pets API"
    assert match.score > 0


@pytest.mark.parametrize(
    ("task", "tool_name"),
    [
        ("list the DNS zones", "list_zones"),
        ("show me the zones on the server", "list_zones"),
        ("show me every zone", "list_zones"),
        ("which zones do we have?", "list_zones"),
        ("show the zone example.org", "list_zone"),
        ("create a new zone", "create_zone"),
        ("add a zone", "create_zone"),
        ("delete the zone example.org", "delete_zone"),
        ("list all servers", "list_servers"),
        ("list the cryptokeys of zone example.org", "list_cryptokeys"),
        ("get the metadata of a zone", "get_metadata"),
        ("remove the metadata", "delete_metadata"),
        ("flush the cache", "cache_flush_by_name"),
        ("server statistics", "get_stats"),
        ("search the data for www", "search_data"),
    ],
)
def test_tools_that_are_all_about_zones_are_told_apart(
    store: Store, task: str, tool_name: str
) -> None:
    store.servers.publish(powerdns(), now=1.0)
    assert store.search.find_tools(task)[0].tool == tool_name


@pytest.mark.parametrize("others", [0, 60])
def test_an_everyday_wording_finds_its_tool_alone_and_in_a_crowd(store: Store, others: int) -> None:
    for other in (harbour(), *unrelated(others)):
        store.servers.publish(other, now=1.0)
    wanted = {
        "show me the free berths": "list_berths",
        "show me every berth in the harbour": "list_berths",
        "list the berths": "list_berths",
        "show berth 7": "get_berth",
        "book berth 4": "book_berth",
        "can you book a berth for my boat?": "book_berth",
        "cancel my booking": "cancel_booking",
        "which bookings are there?": "list_bookings",
        "find the boat Albatros": "search_boats",
    }
    found = {task: store.search.find_tools(task)[0] for task in wanted}
    assert {task: match.tool for task, match in found.items()} == wanted
    assert {match.entry for match in found.values()} == {"harbour"}


def test_a_task_that_wants_to_read_is_not_led_to_a_write(store: Store) -> None:
    writes = tool("book_berth", "Book a free berth.", "write")
    store.servers.publish(entry("harbour", 1, writes, tool("list_berths", "All berths.")), now=1.0)
    assert store.search.find_tools("show me the free berths")[0].tool == "list_berths"
    assert store.search.find_tools("free berths")[0].tool == "book_berth"


def test_a_name_with_words_that_were_not_asked_for_comes_later(store: Store) -> None:
    names = ("list_zone_transfer_keys", "list_zones", "list_zone_keys")
    store.servers.publish(entry("dns", 1, *(tool(name, "Zones.") for name in names)), now=1.0)
    found = [match.tool for match in store.search.find_tools("list zones")]
    assert found == ["list_zones", "list_zone_keys", "list_zone_transfer_keys"]


def test_words_that_no_tool_has_lower_the_score(store: Store) -> None:
    store.servers.publish(powerdns(), now=1.0)
    plain, strange = (
        store.search.find_tools(task)[0]
        for task in ("list zones", "list zones of umbrellas in Oslo")
    )
    assert (plain.tool, strange.tool) == ("list_zones", "list_zones")
    assert strange.score < plain.score / 2


@pytest.fixture(scope="module")
def dense(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with Store.open(tmp_path_factory.mktemp("dense") / "registry.db") as opened:
        opened.servers.publish(powerdns(), now=1.0)
        yield opened


VOCABULARY = sorted({word for pair in POWERDNS.items() for word in split_words(" ".join(pair))})


@given(task=st.lists(st.sampled_from([*VOCABULARY, "all", "every", "x", "7"]), max_size=30))
def test_scores_fall_from_at_most_one_to_at_least_zero(dense: Store, task: list[str]) -> None:
    scores = [match.score for match in dense.search.find_tools(" ".join(task), k=40)]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)


@pytest.mark.parametrize(("k", "count"), [(0, 0), (3, 3), (100, 100)])
def test_as_many_tools_as_asked_for_are_found(store: Store, k: int, count: int) -> None:
    tools = (tool(f"ping_{number:03}", "Ping.") for number in range(120))
    store.servers.publish(entry("many", 1, *tools), now=1.0)
    assert len(store.search.find_tools("ping", k)) == count


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
@example("\u0130")
def test_only_letters_and_digits_are_ever_looked_for(task: str) -> None:
    assert all(term.word.isalnum() for term in parse_query(task).terms)


def test_any_text_can_be_searched_for(found: Any) -> None:
    for code in (*range(0, 0x250), 0x2028, 0xFEFF, 0xFFFF, 0x1F600):
        found(f"zo{chr(code)}nes")


def test_a_very_long_task_is_cut_to_its_rarest_words(store: Store) -> None:
    common = [f"common{number}x" for number in range(MAX_TERMS)]
    tools = [tool(f"tool_{number}", " ".join(common)) for number in range(3)]
    store.servers.publish(entry("many", 1, *tools, tool("other", "rare word")), now=1.0)
    found = store.search.find_tools(f"{' '.join(common)} rare word {'x' * 10_000}")
    assert "other" in [match.tool for match in found]
    assert store.search.find_tools(" ".join(common))[0].tool == "tool_0"


def test_a_word_that_nearly_every_tool_has_still_tells_them_apart(store: Store) -> None:
    tools = [tool(f"{verb}_zone", f"{verb} it") for verb in ("get", "make", "check")]
    store.servers.publish(entry("dns", 1, tool("ping", "Ping the zone server."), *tools), now=1.0)
    assert store.search.find_tools("the zone")[0].tool != "ping"


@pytest.mark.parametrize("state", ["quarantined", "archived"])
def test_a_server_out_of_use_is_not_found_until_it_is_back(store: Store, state: Any) -> None:
    store.servers.publish(PETS, now=1.0)
    store.servers.set_state("pets", state, 2.0, by="me")
    assert store.search.find_tools("order a pet") == ()
    store.servers.set_state("pets", "experimental", 3.0, by="me")
    assert store.search.find_tools("order a pet")[0].tool == "place_order"


@pytest.mark.parametrize("state", ["quarantined", "archived"])
def test_what_would_fit_if_its_server_were_in_use_is_found_apart_and_nothing_less_fitting(
    store: Store, state: Any
) -> None:
    store.servers.publish(PETS, now=1.0)
    assert store.search.find_resting("order a pet") == ()
    store.servers.set_state("pets", state, 2.0, by="me")
    (found,) = store.search.find_resting("order a pet")
    assert (found.entry, found.tool, found.state) == ("pets", "place_order", state)
    assert store.search.find_resting("water the tulips in the greenhouse") == ()
    store.servers.set_state("pets", "active", 3.0, by="me")
    assert store.search.find_resting("order a pet") == ()


def test_many_tools_of_one_name_and_text_leave_places_to_others(store: Store) -> None:
    berths = tool("list_berths", "List the free berths of a harbour.")
    for name in ("anna", "bert", "carl", "dora", "emil", "fred"):
        store.servers.publish(entry(name, 1, berths, title="X"), now=1.0)
    near = tool("berths_list", "Berths that a harbour has in each of the months of a year.")
    store.servers.publish(entry("plan", 1, near), now=1.0)
    found = [match.entry for match in store.search.find_tools("list berths of the harbour", k=9)]
    # Two servers of one API are a choice, and neither is hidden.
    assert found[:2] == ["anna", "bert"]
    assert found[2] == "plan"
    assert set(found) >= {"anna", "bert", "carl", "dora", "emil", "fred"}


def test_tools_of_one_name_that_do_other_things_keep_their_places(store: Store) -> None:
    texts = ("Search the books of a library.", "Search flights by day.", "Search wrecks by depth.")
    for name, said in zip(("anna", "bert", "carl"), texts, strict=True):
        store.servers.publish(entry(name, 1, tool("search", said), title=name), now=1.0)
    assert store.search.find_tools("search wrecks")[0].entry == "carl"


def test_equals_come_in_order_of_their_names(store: Store) -> None:
    for name in ("zeta", "alpha", "mid"):
        store.servers.publish(entry(name, 1, tool("ping", "Ping."), title="X"), now=1.0)
    # The server's own name is indexed too, so the three are of equal length and frequency.
    assert [match.entry for match in store.search.find_tools("ping")] == ["alpha", "mid", "zeta"]
    assert [match.entry for match in store.search.find_tools("ping", k=1)] == ["alpha"]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("listZones", ["list", "zones"]),
        ("HTTPServerError", ["http", "server", "error"]),
        ("/servers/{server_id}/zones", ["servers", "server", "id", "zones"]),
        ("ipv4", ["ipv4", "ipv", "4"]),
        ("DNSSEC", ["dnssec"]),
        ("Über-Größe", ["über", "größe"]),
        ("\u0130stanbul \u0130", ["istanbul", "i"]),
    ],
)
def test_identifiers_are_split_into_words(text: str, parts: list[str]) -> None:
    assert split_words(text) == parts


def test_odd_schemas_do_not_stop_registration(tmp_path: Path) -> None:
    odd = tool("odd", "An odd one.")
    schema = '{"name":"odd","description":"odd","inputSchema":{"properties":{"a":true,"b":[]}}}'
    with Store.open(tmp_path / "registry.db") as store:
        store.servers.publish(entry("odd", 1, type(odd)("odd", "read", False, schema)), now=1.0)
        assert store.search.find_tools("odd")[0].tool == "odd"
