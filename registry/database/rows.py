"""Inserting many rows of one kind by the driver's own statement.

SQLAlchemy makes the parameters of each row anew, which takes longer than SQLite takes to store it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, Table, insert
from sqlalchemy.dialects import sqlite


def insert_rows(connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows, which have the same columns, with values as the driver takes them."""
    if not rows:
        return
    statement, columns = _compile_insert(table, tuple(rows[0]))
    values = [tuple(row[column] for column in columns) for row in rows]
    connection.exec_driver_sql(statement, values)


@lru_cache(maxsize=64)
def _compile_insert(table: Table, columns: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """The statement, and the columns in the order of its parameters."""
    made = insert(table).inline().compile(dialect=sqlite.dialect(), column_keys=list(columns))
    return str(made), tuple(made.positiontup or ())
