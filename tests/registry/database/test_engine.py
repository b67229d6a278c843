from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path
from threading import Thread

import pytest

from registry.database import migrate
from registry.database.engine import Database
from registry.errors import DatabaseUnusable, SchemaTooNew, SchemaUnknown
from registry.store import Store
from tests.registry.processes import race
from tests.registry.samples import entry, invocation

HEAVY = ("alembic", "cryptography", "jsonschema", "mcp", "Stemmer")


def described(path: Path) -> list[tuple[str, str, str]]:
    """Every table, index and trigger with its SQL, white space evened out."""
    connection = sqlite3.connect(path)
    rows = connection.execute("SELECT type, name, sql FROM sqlite_master ORDER BY 1, 2").fetchall()
    connection.close()
    return [(kind, name, " ".join((sql or "").split())) for kind, name, sql in rows]


def test_the_migrations_and_the_tables_make_the_same_schema(tmp_path: Path) -> None:
    Database(tmp_path / "fresh.db").close()
    empty = Database(tmp_path / "migrated.db")
    with empty.write() as connection:
        for kind in ("TRIGGER", "TABLE"):
            names = connection.exec_driver_sql(
                "SELECT name FROM sqlite_master WHERE type = ? AND name NOT LIKE 'sqlite_%'",
                (kind.lower(),),
            ).scalars()
            connection.exec_driver_sql("PRAGMA defer_foreign_keys=ON")
            for name in names.all():
                connection.exec_driver_sql(f"DROP {kind} {name}")
        migrate.upgrade(connection, "migrated", None)
    empty.close()
    assert described(tmp_path / "migrated.db") == described(tmp_path / "fresh.db")
    with Store.open(tmp_path / "migrated.db") as store:
        store.servers.publish(entry(), now=1.0)
        assert store.servers.get("dns") == entry()


def test_a_database_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "registry.db"
    Database(path).close()
    connection = sqlite3.connect(path)
    connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.commit()
    connection.close()
    before = described(path)
    with pytest.raises(SchemaTooNew, match="9999"):
        Store.open(path)
    assert described(path) == before


@pytest.mark.parametrize(
    "change",
    ["ALTER TABLE freeze DROP COLUMN lift", "ALTER TABLE jobs ADD x TEXT", "DROP TABLE recordings"],
)
@pytest.mark.parametrize(
    ("number", "maker"),
    [(0, "an earlier build"), (1_002_003, "another build of Toolwright (1.2.3)")],
)
def test_a_database_of_another_build_is_told_as_such_and_left_alone(
    change: str, number: int, maker: str, tmp_path: Path
) -> None:
    path = tmp_path / "registry.db"
    Database(path).close()
    connection = sqlite3.connect(path)
    connection.execute(change)
    connection.execute(f"PRAGMA user_version = {number}")
    connection.commit()
    connection.close()
    before = described(path)
    with pytest.raises(SchemaUnknown) as raised:
        Store.open(path)
    assert maker in str(raised.value)
    assert "TOOLWRIGHT_HOME" in str(raised.value)
    assert described(path) == before


def test_opening_an_up_to_date_database_imports_nothing_heavy(tmp_path: Path) -> None:
    program = (
        "import sys; from registry.store import Store\n"
        f"for _ in range(2): Store.open({str(tmp_path / 'registry.db')!r}).close()\n"
        f"heavy = set({HEAVY!r}) & set(sys.modules)\n"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    root = Path(__file__).parents[3]
    subprocess.run([sys.executable, "-c", program], cwd=root, check=True)


@pytest.mark.parametrize(
    "location",
    [
        "sqlite://",
        "sqlite:///:memory:",
        "postgresql://u:hunter2@h/db",
        "nonsense://x",
        "://",
        "/nonexistent/registry.db",
    ],
)
def test_an_unusable_location_is_named_without_its_password(location: str) -> None:
    with pytest.raises(DatabaseUnusable) as raised:
        Store.open(location)
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize("content", [b"not a database" * 100, b"SQLite format 3\0" + b"x" * 5000])
def test_a_file_that_is_no_database_is_refused_and_kept(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "registry.db"
    path.write_bytes(content)
    with pytest.raises(DatabaseUnusable):
        Store.open(path)
    assert path.read_bytes() == content


def test_a_path_a_string_and_a_url_open_the_same_file(tmp_path: Path) -> None:
    path = tmp_path / "registry.db"
    for location in (path, str(path), f"sqlite:///{path}"):
        with Store.open(location) as store:
            store.processes.freeze(1.0, by="me")
            assert store.path == path
    with Store.open(path) as store:
        assert store.processes.get_freeze().epoch == 3


def test_the_database_is_private_and_flushes_every_commit(tmp_path: Path) -> None:
    path = tmp_path / "registry.db"
    database = Database(path)
    assert path.stat().st_mode & 0o777 == 0o600
    with database.read() as connection:
        pragma = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        }
    database.close()
    assert pragma == {
        "journal_mode": "wal",
        "synchronous": 2,
        "foreign_keys": 1,
        "busy_timeout": 10_000,
    }


def test_a_second_store_of_a_process_leaves_the_locks_of_its_first(tmp_path: Path) -> None:
    path = tmp_path / "toolwright.db"
    program = f"import sqlite3; sqlite3.connect({str(path)!r}).execute('SELECT * FROM freeze')"
    with Store.open(path, "first") as first:
        Store.open(path, "second").close()
        subprocess.run([sys.executable, "-c", program], check=True)
        # The other process would have taken it away, had it been the last one.
        assert path.with_name("toolwright.db-wal").exists()
        first.processes.freeze(1.0, "first")
        assert first.processes.get_freeze().frozen


def test_racing_processes_can_create_the_database_together(tmp_path: Path) -> None:
    def create(number: int) -> int:
        with Store.open(tmp_path / "registry.db", f"p{number}") as store:
            return store.processes.freeze(1.0, by=str(number))

    assert sorted(race(create, 6)) == [1, 2, 3, 4, 5, 6]


def test_racing_writers_lose_nothing_and_keep_their_chains_whole(tmp_path: Path) -> None:
    path = tmp_path / "registry.db"
    with Store.open(path) as store:
        store.servers.publish(entry(), now=1.0)

    def write(number: int) -> int:
        with Store.open(path, f"p{number}") as store:
            for count in range(20):
                store.calls.record(invocation(f"c{number}-{count}"), now=2.0)
        return number

    race(write, 4)
    with Store.open(path) as store:
        assert store.standings.get("dns").total == 80
        assert {head.sequence for head in store.audit.get_heads()} == {20, 1}
        assert store.audit.verify_chains() is None


def test_threads_read_while_another_one_writes(dns: Store) -> None:
    totals: list[list[int]] = [[], []]

    def read(seen: list[int]) -> None:
        while not seen or seen[-1] < 30:
            seen.append(dns.standings.get("dns").total)

    readers = [Thread(target=read, args=(seen,)) for seen in totals]
    for reader in readers:
        reader.start()
    for number in range(30):
        dns.calls.record(invocation(f"c{number}"), now=2.0)
    for reader in readers:
        reader.join()
    assert all(seen == sorted(seen) for seen in totals)


def test_a_failed_transaction_leaves_no_trace(dns: Store) -> None:
    before = dns.audit.find()

    def fail() -> None:
        with dns._database.write() as connection:
            connection.exec_driver_sql("DELETE FROM search_documents")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert dns.audit.find() == before
    assert dns.search.find_tools("list zones")
