"""Names and ids by their beginning, for who types them. Loads nothing but sqlite3: shells ask at
each press of a key.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Literal

from registry.database.readonly import connect_readonly

Kind = Literal["approval", "job", "call", "rule", "server", "tool"]

MOST = 1000
MIN_PREFIX = 3
"""Letters of an id that have to be given: fewer are a slip, with which something else would be
approved or revoked than was meant.
"""
WAIT_SECONDS = 2.0
_QUERIES: dict[Kind, str] = {
    "approval": "SELECT id AS found FROM approvals ORDER BY created DESC",
    "job": "SELECT id AS found FROM jobs ORDER BY created DESC",
    "call": "SELECT id AS found FROM invocations ORDER BY sequence DESC",
    "rule": "SELECT id AS found FROM rules",
    "server": "SELECT name AS found FROM entries ORDER BY name",
    "tool": (
        "SELECT tools.entry || '.' || tools.name AS found FROM tools JOIN entries ON "
        "entries.name = tools.entry AND entries.version = tools.version ORDER BY found"
    ),
}


def find_beginning(
    database: Path, kinds: Iterable[Kind], prefix: str, most: int = MOST
) -> list[str]:
    """The stored names or ids of these kinds that begin so, at most so many of each kind. Nothing
    where the database cannot be read: whoever asks for the row itself hears why.
    """
    found: list[str] = []
    try:
        with closing(connect_readonly(database, WAIT_SECONDS)) as connection:
            for kind in kinds:
                query = (
                    f"SELECT found FROM ({_QUERIES[kind]}) WHERE substr(found, 1, ?) = ? LIMIT ?"  # nosec B608 # of our own words
                )
                rows = connection.execute(query, (len(prefix), prefix, most))
                found += [str(row[0]) for row in rows]
    except sqlite3.Error:
        return []
    return list(dict.fromkeys(found))


def is_unusable(database: Path) -> bool:
    """Whether there is a database, or something in its place, that cannot be read."""
    try:
        os.stat(database)
        with closing(connect_readonly(database, WAIT_SECONDS)) as connection:
            connection.execute("SELECT 1 FROM approvals LIMIT 1").fetchone()
    except FileNotFoundError:
        return False
    except (OSError, sqlite3.Error):
        return True
    return False


def find_listing(database: Path, server: str, tool: str) -> str:
    """The JSON text with which `tools/list` shows a tool of a current version; "" where there is
    none or the database cannot be read.
    """
    query = (
        "SELECT tools.listed FROM tools JOIN entries ON entries.name = tools.entry AND "
        "entries.version = tools.version WHERE tools.entry = ? AND tools.name = ?"
    )
    try:
        with closing(connect_readonly(database, WAIT_SECONDS)) as connection:
            row = connection.execute(query, (server, tool)).fetchone()
    except sqlite3.Error:
        return ""
    return str(row[0]) if row else ""
