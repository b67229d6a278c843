"""Digests of the stored servers and allowed hosts, taken without the libraries of the store."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from registry.database.readonly import connect_readonly

_ROWS = (
    "SELECT e.name, e.version, e.state, v.permissions FROM entries e JOIN versions v"
    " ON v.entry = e.name AND v.version = e.version ORDER BY e.name",
    "SELECT origin, kind, detail, serial, signature FROM grants"
    " WHERE kind IN ('host', 'private_host') ORDER BY origin, kind",
)
_SERVER_ROWS = (
    "SELECT e.name, e.version, e.state, v.digest FROM entries e JOIN versions v"
    " ON v.entry = e.name AND v.version = e.version WHERE e.name = :name",
    # A person's word on one server's operation may hold for another's.
    "SELECT max(id) FROM search_changes",
)
WAIT_SECONDS = 0.1


def compute_fingerprint(database: Path) -> str:
    """A digest, in hex, that is another one once a server is registered, changes its version, its
    state or its permissions, or a host is allowed or not any more. "" where the SQLite file cannot
    be read at once.
    """
    rows = _read_rows(database, _ROWS, {})
    return "" if rows is None else _digest_rows(rows)


def compute_server_fingerprint(database: Path, name: str) -> str:
    """A digest, in hex, that is another one once the server of that name changes its version or its
    state, or an operation of any server its class. "" where there is none, or the SQLite file
    cannot be read at once.
    """
    rows = _read_rows(database, _SERVER_ROWS, {"name": name})
    return _digest_rows(rows) if rows and rows[0][0] == name else ""


def _read_rows(
    database: Path, queries: Iterable[str], parameters: Mapping[str, str]
) -> list[Any] | None:
    try:
        with closing(connect_readonly(database, WAIT_SECONDS)) as connection:
            return [row for query in queries for row in connection.execute(query, parameters)]
    except sqlite3.Error:
        return None


def _digest_rows(rows: Iterable[Any]) -> str:
    digest = hashlib.sha256()
    for row in rows:
        digest.update(repr(row).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()
