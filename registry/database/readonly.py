"""Reading an SQLite file without the libraries that the store needs, and without changing it."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from urllib.parse import quote


def connect_readonly(database: Path, seconds: float) -> sqlite3.Connection:
    """A connection that cannot write and waits so long for a lock. Raises sqlite3.Error."""
    address = f"file:{quote(str(database))}?mode=ro"
    return sqlite3.connect(address, timeout=seconds, uri=True)
