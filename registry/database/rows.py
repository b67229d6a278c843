"""Statements of the hot path, run by the driver itself within SQLAlchemy's transaction.

SQLAlchemy takes several times as long to run a small statement as SQLite does (`bench.call`).
Values go to the driver and come from it as they are: no column that is used here needs more.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

from sqlalchemy import ClauseElement, Connection, Select, Table, Update, insert
from sqlalchemy.dialects import sqlite


@dataclass(frozen=True)
class Compiled:
    """A statement and the names of its parameters in their order; some have values of its own."""

    statement: str
    names: tuple[str, ...]
    own: Mapping[str, Any]

    def list_values(self, values: Mapping[str, Any]) -> list[Any]:
        given = {**self.own, **values} if self.own else values
        return [given[name] for name in self.names]


def fetch_rows(
    connection: Connection, query: Select[Any], values: Mapping[str, Any]
) -> list[tuple[Any, ...]]:
    """All rows of a query that is built once, as tuples. Raises sqlite3.Error."""
    compiled = _compile_query(query)
    driver = _get_driver(connection)
    return driver.execute(compiled.statement, compiled.list_values(values)).fetchall()


def insert_rows(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows, which have the same columns. Raises sqlite3.Error."""
    if rows:
        _run_many(connection, _compile_insert(table, tuple(rows[0])), rows)


def update_rows(
    connection: Connection, statement: Update, rows: Sequence[Mapping[str, Any]]
) -> None:
    """Run an update that is built once for each of the rows, which have the same keys: its
    parameters, and the columns that it sets. Raises sqlite3.Error.
    """
    if rows:
        _run_many(connection, _compile_update(statement, tuple(rows[0])), rows)


def _run_many(
    connection: Connection, compiled: Compiled, rows: Sequence[Mapping[str, Any]]
) -> None:
    driver = _get_driver(connection)
    driver.executemany(compiled.statement, map(compiled.list_values, rows))


def _get_driver(connection: Connection) -> sqlite3.Connection:
    return cast(sqlite3.Connection, connection.connection.driver_connection)


@lru_cache(maxsize=64)
def _compile_query(query: Select[Any]) -> Compiled:
    return _compile(query)


@lru_cache(maxsize=64)
def _compile_insert(table: Table, columns: tuple[str, ...]) -> Compiled:
    return _compile(insert(table).inline(), columns)


@lru_cache(maxsize=64)
def _compile_update(statement: Update, names: tuple[str, ...]) -> Compiled:
    parameters = _compile(statement, ()).names
    return _compile(statement, [name for name in names if name not in parameters])


def _compile(statement: ClauseElement, columns: Iterable[str] | None = None) -> Compiled:
    keys = {} if columns is None else {"column_keys": list(columns)}
    made: Any = statement.compile(None, sqlite.dialect(), **keys)
    own = {name: value for name, value in made.params.items() if value is not None}
    return Compiled(str(made), tuple(made.positiontup or ()), own)
