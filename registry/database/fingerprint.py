"""A digest of the stored servers and allowed hosts, taken without the libraries of the store."""

from __future__ import annotations

import hashlib
import sqlite3
from contextlib import closing
from pathlib import Path

from registry.database.readonly import connect_readonly

_ROWS = (
    "SELECT e.name, e.version, e.state, v.permissions FROM entries e JOIN versions v"
    " ON v.entry = e.name AND v.version = e.version ORDER BY e.name",
    "SELECT origin, kind, detail, serial, signature FROM grants"
    " WHERE kind IN ('host', 'private_host') ORDER BY origin, kind",
)
WAIT_SECONDS = 0.1


def compute_fingerprint(database: Path) -> str:
    """A digest, in hex, that is another one once a server is registered, changes its version, its
    state or its permissions, or a host is allowed or not any more. "" where the SQLite file cannot
    be read at once.
    """
    digest = hashlib.sha256()
    try:
        with closing(connect_readonly(database, WAIT_SECONDS)) as connection:
            for query in _ROWS:
                for row in connection.execute(query):
                    digest.update(repr(row).encode("utf-8", "surrogatepass"))
    except sqlite3.Error:
        return ""
    return digest.hexdigest()
