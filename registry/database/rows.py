"""Statements of the hot path, run by the driver itself within SQLAlchemy's transaction.

SQLAlchemy takes several times as long to run a small statement as SQLite does (`bench.call`).
Values go to the driver and come from it as they are: no column that is used here needs more.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, cast

from sqlalchemy import Connection, Select, Table, TextClause, Update, insert
from sqlalchemy.dialects import sqlite

Names = tuple[str, ...]
AnyConnection = Connection | sqlite3.Connection


def fetch_rows(
    connection: AnyConnection, query: Select[Any] | TextClause, values: Mapping[str, Any]
) -> list[tuple[Any, ...]]:
    """All rows of a query that is built once, as tuples. Raises sqlite3.Error."""
    statement, names, own = _compile_query(query)
    given = {**own, **values} if own else values
    return _get_driver(connection).execute(statement, [given[name] for name in names]).fetchall()


def fetch_mappings(
    connection: AnyConnection, query: Select[Any] | TextClause, values: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """All rows of a query that is built once, by the names of its columns. Raises sqlite3.Error."""
    statement, names, own = _compile_query(query)
    given = {**own, **values} if own else values
    found = _get_driver(connection).execute(statement, [given[name] for name in names])
    columns = [column[0] for column in found.description]
    return [dict(zip(columns, row, strict=True)) for row in found]


def insert_rows(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows, which have the same columns. Raises sqlite3.Error."""
    if rows:
        statement, names = _compile_insert(table, tuple(rows[0]))
        _get_driver(connection).executemany(
            statement, [[row[name] for name in names] for row in rows]
        )


def update_rows(connection: Connection, update: Update, rows: Sequence[Mapping[str, Any]]) -> None:
    """Run an update that is built once for each of the rows, which have the same keys: its
    parameters, and the columns that it sets. Raises sqlite3.Error.
    """
    if rows:
        statement, names = _compile_update(update, tuple(rows[0]))
        _get_driver(connection).executemany(
            statement, [[row[name] for name in names] for row in rows]
        )


def _get_driver(connection: AnyConnection) -> sqlite3.Connection:
    if isinstance(connection, sqlite3.Connection):
        return connection
    return cast(sqlite3.Connection, connection.connection.driver_connection)


@lru_cache(maxsize=64)
def _compile_query(query: Select[Any] | TextClause) -> tuple[str, Names, Mapping[str, Any]]:
    """The statement, its parameters in their order, and the values that it has of its own."""
    made = query.compile(dialect=sqlite.dialect())
    own = {name: value for name, value in made.params.items() if value is not None}
    return str(made), tuple(made.positiontup or ()), own


@lru_cache(maxsize=64)
def _compile_insert(table: Table, columns: Names) -> tuple[str, Names]:
    made = insert(table).inline().compile(dialect=sqlite.dialect(), column_keys=list(columns))
    return str(made), tuple(made.positiontup or ())


@lru_cache(maxsize=64)
def _compile_update(update: Update, names: Names) -> tuple[str, Names]:
    parameters = update.compile(dialect=sqlite.dialect(), column_keys=[]).params
    columns = [name for name in names if name not in parameters]
    made = update.compile(dialect=sqlite.dialect(), column_keys=columns)
    return str(made), tuple(made.positiontup or ())
