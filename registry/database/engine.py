"""The SQLite database: opening it, and read and write transactions."""

from __future__ import annotations

import importlib
import re
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, insert, inspect, select
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import (
    ArgumentError,
    DatabaseError,
    DataError,
    IntegrityError,
    ProgrammingError,
)

from registry.database.files import create_private_file
from registry.database.tables import HEAD, alembic_version, metadata
from registry.errors import DatabaseUnusable, SchemaUnknown

BUSY_SECONDS = 10.0
_UNSTORABLE = (
    IntegrityError,
    DataError,
    ProgrammingError,
    # As the driver raises them by itself (`registry.database.rows`).
    sqlite3.IntegrityError,
    sqlite3.DataError,
    sqlite3.ProgrammingError,
)


class Database:
    """One database, opened by one process. Threads may share it; a child process may not.

    Reads run side by side. Writes of a process queue on a lock, and those of all processes on
    SQLite's: every writing transaction starts with BEGIN IMMEDIATE, since a reader that turns
    writer fails at once where another one writes.
    """

    def __init__(self, location: str | Path) -> None:
        self._url = _parse_location(location)
        self.path = Path(str(self._url.database)).absolute()
        self._write_lock = threading.Lock()
        self._watch_lock = threading.Lock()
        self._engine = _create_engine(self._url)
        try:
            create_private_file(self.path)
            _switch_to_wal(self.path)
            self._migrate_schema()
            self._watch = sqlite3.connect(self.path, check_same_thread=False, isolation_level=None)
        except (OSError, sqlite3.Error, DatabaseError) as error:
            self._engine.dispose()
            raise self._build_error(error) from error

    def close(self) -> None:
        self._watch.close()
        self._engine.dispose()

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A consistent view. Raises DatabaseUnusable."""
        try:
            with self._engine.connect() as connection:
                yield connection
        except (DatabaseError, sqlite3.DatabaseError) as error:
            raise self._build_error(error) from error

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction that is on disk when the block ends and void when it raises.

        Not re-entrant. Raises DatabaseUnusable, also where the lock is not had in 10 s.
        """
        try:
            with self._write_lock, self._engine.connect() as connection:
                writing = connection.execution_options(immediate=True)
                with writing.begin():
                    yield writing
        except _UNSTORABLE:
            # What was to be stored is at fault, not the database: trying again would not help.
            raise
        except (DatabaseError, sqlite3.DatabaseError) as error:
            raise self._build_error(error) from error

    @contextmanager
    def look(self) -> Iterator[sqlite3.Connection]:
        """A connection for statements that read, each of which has a view of its own; without
        SQLAlchemy and its pool, which take several times as long. Raises DatabaseUnusable.
        """
        try:
            with self._watch_lock:
                yield self._watch
        except sqlite3.DatabaseError as error:
            raise self._build_error(error) from error

    def query_row(self, query: str) -> tuple[Any, ...]:
        """The first row of a query. Raises DatabaseUnusable."""
        # Every call asks so, and a context manager takes as long as the query.
        try:
            with self._watch_lock:
                row: tuple[Any, ...] = self._watch.execute(query).fetchone()
        except sqlite3.DatabaseError as error:
            raise self._build_error(error) from error
        return row

    def query_rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """All rows of a query. Raises DatabaseUnusable."""
        with self.look() as connection:
            return connection.execute(query, values).fetchall()

    def _migrate_schema(self) -> None:
        with self.write() as connection:
            found = _read_revision(connection)
            if found is None:
                metadata.create_all(connection)
                alembic_version.create(connection)
                connection.execute(insert(alembic_version).values(version_num=HEAD))
                connection.exec_driver_sql(f"PRAGMA user_version = {_encode_own_version()}")
            elif found != HEAD:
                # Alembic costs most of a second to import and is needed once per upgrade.
                migrate = importlib.import_module("registry.database.migrate")
                migrate.upgrade(connection, str(self.path), found)
            elif _read_columns(connection) != _list_columns():
                raise SchemaUnknown(str(self.path), _read_maker(connection))

    def _build_error(self, error: Exception) -> DatabaseUnusable:
        reason = str(getattr(error, "orig", None) or error)
        return DatabaseUnusable(str(self.path), reason)


def _parse_location(location: str | Path) -> URL:
    if isinstance(location, Path) or "://" not in location:
        return URL.create("sqlite", database=str(location))
    try:
        url = make_url(location)
    except ArgumentError as error:
        raise DatabaseUnusable(location, str(error)) from error
    if url.get_backend_name() != "sqlite":
        raise DatabaseUnusable(repr(url), "only sqlite:///PATH is supported by this version")
    if not url.database or url.database == ":memory:":
        raise DatabaseUnusable(repr(url), "a database in memory would be forgotten; name a file")
    return url


def _create_engine(url: URL) -> Engine:
    # The connection used last has its pages in memory still, as long as no other one writes.
    engine = create_engine(url, pool_use_lifo=True, connect_args={"timeout": BUSY_SECONDS})
    event.listen(engine, "connect", _configure_connection)
    event.listen(engine, "begin", _begin_transaction)
    return engine


def _configure_connection(connection: sqlite3.Connection, _record: object) -> None:
    # None keeps the driver from beginning transactions by itself; `_begin` does it.
    connection.isolation_level = None
    connection.execute("PRAGMA synchronous=FULL").close()
    connection.execute("PRAGMA foreign_keys=ON").close()


def _begin_transaction(connection: Connection) -> None:
    immediate = connection.get_execution_options().get("immediate", False)
    driver = connection.connection.driver_connection
    assert driver is not None
    driver.execute("BEGIN IMMEDIATE" if immediate else "BEGIN").close()


def _switch_to_wal(path: Path) -> None:
    deadline = time.monotonic() + BUSY_SECONDS
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
    try:
        while True:
            # SQLite does not call the busy handler for this switch (7 of 180 racing openers
            # failed at once), so whoever loses tries again.
            try:
                if connection.execute("PRAGMA journal_mode=WAL").fetchall() == [("wal",)]:
                    return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                    raise
            if time.monotonic() > deadline:
                raise sqlite3.OperationalError("the write-ahead log cannot be switched on")
            time.sleep(0.005)
    finally:
        connection.close()


def _read_revision(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    found = connection.execute(select(alembic_version.c.version_num)).scalar()
    return None if found is None else str(found)


_COLUMNS = """
SELECT m.name, p.name FROM sqlite_master AS m JOIN pragma_table_info(m.name) AS p
WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite%' AND m.name != 'alembic_version'
"""


def _read_columns(connection: Connection) -> set[tuple[str, str]]:
    """The table and name of each column that the database has."""
    return {(str(table), str(name)) for table, name in connection.exec_driver_sql(_COLUMNS)}


def _list_columns() -> set[tuple[str, str]]:
    """The table and name of each column that this build knows."""
    return {(table.name, name) for table in metadata.tables.values() for name in table.c.keys()}


# A build's version fits into SQLite's own number for it
# (https://www.sqlite.org/pragma.html#pragma_user_version): 1.2.3 is 1002003.
_STEP = 1000


def _encode_own_version() -> int:
    # Loading the packages' metadata takes longer than all else here, and a home is made once.
    found = importlib.import_module("importlib.metadata")
    try:
        version = found.version("toolwright")
    except found.PackageNotFoundError:  # a checkout that nobody installed
        version = "0"
    parts = [int(part) for part in re.findall(r"\d+", version)[:3]]
    major, minor, patch = (*parts, 0, 0, 0)[:3]
    return (major * _STEP + minor) * _STEP + patch


def _read_maker(connection: Connection) -> str:
    number = int(connection.exec_driver_sql("PRAGMA user_version").scalar_one())
    if not number:
        return "an earlier build of Toolwright"
    left, patch = divmod(number, _STEP)
    return f"another build of Toolwright ({left // _STEP}.{left % _STEP}.{patch})"
