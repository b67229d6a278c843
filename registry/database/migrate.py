"""Migration of an older database. Imports alembic, so it is loaded only when needed."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from registry.database.tables import HEAD
from registry.errors import SchemaTooNew

MIGRATIONS = Path(__file__).parent / "migrations"


def upgrade(connection: Connection, url: str, found: str | None) -> None:
    """Run all migrations that are missing, inside the connection's transaction.

    `found` is the revision the database has, None for an empty one. Raises SchemaTooNew where it
    is unknown.
    """
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    if found is not None and found not in known:
        raise SchemaTooNew(url, found, HEAD)
    config.attributes["connection"] = connection
    command.upgrade(config, HEAD)
