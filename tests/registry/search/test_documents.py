"""What search keeps of servers: stored and read again, damaged, of an old home, by many writers."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.search.documents import (
    SearchDocument,
    ServerDocuments,
    WeightedField,
    pack_documents,
    pack_stems,
)
from registry.store import Store
from tests.registry.processes import race
from tests.registry.samples import entry, tool

FIELD = WeightedField(2.0, 0.75, 4)
WORDS = st.lists(st.sampled_from(("zone", "record", "berth", "boat", "tide")), max_size=6)
WRITERS, PUBLISHED = 4, 8


def write(path: Path, statement: str, *values: object) -> None:
    connection = sqlite3.connect(path)
    with connection:
        connection.execute(statement, values)
    connection.close()


@given(st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=5))
def test_what_is_packed_is_unpacked_again(texts: list[tuple[list[str], list[str]]]) -> None:
    documents = [
        SearchDocument(
            number,
            "dns",
            f"tool_{number}",
            "read" if number % 2 else "write",
            f"tool {number}",
            *pack_stems({FIELD: words}),
            pack_stems({FIELD: told})[0],
        )
        for number, (words, told) in enumerate(texts)
    ]
    (server,) = pack_documents(documents)
    assert ServerDocuments.read(tuple(server)) == server
    assert server.unpack() == documents


@pytest.mark.parametrize(
    "damage",
    [
        "postings = substr(postings, 2)",
        "postings = x''",
        "postings = 7",
        "postings = 'text'",
        "sizes = x'ff'",
        "sizes = x'ffffffff'",
        "example_sizes = x'7fffffff'",
        "ids = x''",
        "tools = 'a' || char(10) || 'b'",
        "words = x'00'",
        "access = 'x'",
        "access = ''",
    ],
)
def test_a_server_with_a_damaged_row_is_not_found_and_keeps_no_other_from_it(
    damage: str, tmp_path: Path
) -> None:
    path = tmp_path / "registry.db"
    with Store.open(path) as store:
        store.servers.publish(entry("dns", 1, tool("list_zones")), now=1.0)
        store.servers.publish(entry("other", 1, tool("list_zones")), now=1.0)
        write(path, f"UPDATE search_servers SET {damage} WHERE entry = 'dns'")
        assert [match.entry for match in store.search.find_tools("list zones")] == ["other"]
        store.search.describe_by_examples("dns", "list_zones", ["feed the cat"], 2.0)
        assert [match.entry for match in store.search.find_tools("list zones")] == ["other"]
        store.servers.publish(entry("dns", 2, tool("list_zones")), now=2.0)
        assert len(store.search.find_tools("list zones")) == 2


def test_a_tool_of_an_id_that_nothing_has_is_shown_without_texts(tmp_path: Path) -> None:
    path = tmp_path / "registry.db"
    with Store.open(path) as store:
        store.servers.publish(entry("dns", 1, tool("list_zones")), now=1.0)
        write(path, "UPDATE search_servers SET ids = x'ffffffffffffff7f'")
        (match,) = store.search.find_tools("list zones")
        assert (match.tool, match.description) == ("list_zones", "")
        assert store.search.judge("list zones", "dns", "list_zones").probability <= 1


def publish_many(path: Path, writer: int) -> int:
    with Store.open(path) as store:
        for number in range(PUBLISHED):
            name = f"writer{writer}x{number}"
            store.servers.publish(entry(name, 1, tool("list_zones"), tool("get_zone")), now=1.0)
            if writer == 0:
                store.servers.publish(entry("shared", 1 + number, tool("drop_zone")), now=1.0)
            assert store.search.find_tools("zones")
        return len(store.search.find_tools("list zones", 100))


def test_what_racing_processes_publish_is_all_found_once(tmp_path: Path) -> None:
    path = tmp_path / "registry.db"
    Store.open(path).close()
    race(lambda writer: publish_many(path, writer), WRITERS)
    with Store.open(path) as store:
        found = store.search.find_tools("list zones", 100)
    tools = [(match.entry, match.tool) for match in found]
    assert len(tools) == len(set(tools)) == 2 * WRITERS * PUBLISHED + 1


OLD = """
ALTER TABLE search_documents RENAME TO newer;
DROP INDEX ix_search_documents_entry;
DROP INDEX ix_search_documents_meaning;
CREATE TABLE search_documents (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    entry VARCHAR(40) NOT NULL,
    tool VARCHAR(40) NOT NULL,
    words TEXT NOT NULL,
    stems BLOB NOT NULL,
    worths BLOB NOT NULL,
    example_stems BLOB NOT NULL,
    meaning VARCHAR(64) NOT NULL,
    FOREIGN KEY(entry) REFERENCES entries (name)
);
CREATE INDEX ix_search_documents_entry ON search_documents (entry);
CREATE INDEX ix_search_documents_meaning ON search_documents (meaning);
ALTER TABLE tools DROP COLUMN self_evident;
UPDATE alembic_version SET version_num = '0003';
"""
"""Revision 0003, from that of today."""


def make_old(path: Path) -> None:
    """Give a home the tables of revision 0003, with the same documents."""
    connection = sqlite3.connect(path)
    rows = connection.execute(f"SELECT {', '.join(ServerDocuments._fields)} FROM search_servers")
    servers = [ServerDocuments.read(row) for row in rows]
    connection.executescript(OLD)
    for server in servers:
        for each in server.unpack() if server else ():
            connection.execute(
                "INSERT INTO search_documents SELECT id, entry, tool, ?, ?, ?, ?, meaning "
                "FROM newer WHERE id = ?",
                (each.words, each.stems, each.worths, each.example_stems, each.id),
            )
    connection.executescript("DROP TABLE newer; DROP TABLE search_servers;")
    connection.execute("UPDATE sqlite_sequence SET seq = 900 WHERE name = 'search_documents'")
    connection.commit()
    connection.close()


@pytest.mark.parametrize("damaged", [False, True])
def test_an_old_home_opens_and_finds_the_same(damaged: bool, tmp_path: Path) -> None:
    path = tmp_path / "registry.db"
    tasks = ("list zones", "feed the cat", "create a zone", "boats")
    with Store.open(path) as store:
        dns = entry("dns", 1, tool("list_zones"), tool("create_zone", access="write"))
        store.servers.publish(dns, now=1.0)
        store.servers.publish(entry("marina", 1, tool("list_boats")), now=1.0)
        store.servers.publish(entry("other", 1), now=1.0)
        store.search.describe_by_examples("marina", "list_boats", ["feed the cat"], 2.0)
        before = [store.search.route(task) for task in tasks]
    make_old(path)
    if damaged:
        write(path, "UPDATE search_documents SET worths = 'x', stems = x'00' WHERE entry = 'dns'")
    with Store.open(path) as store:
        if damaged:
            assert store.search.find_tools("list boats")[0].entry == "marina"
            store.servers.publish(entry("dns", 2, tool("list_zones")), now=3.0)
            assert store.search.find_tools("list zones")[0].entry == "dns"
            return
        assert [store.search.route(task) for task in tasks] == before
        store.servers.publish(entry("dns", 2, tool("list_zones")), now=3.0)
        assert store.search.find_tools("zones")
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT max(id) FROM search_documents").fetchone() == (901,)
    connection.close()
