"""Table of classifications: a person's ruling that an operation reads, writes or destroys.

Stored by operation, across versions of its server. A level less strict than the server's own is
valid only where a person signed it for exactly these requests.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from sqlalchemy import Delete, RowMapping, delete, insert, select

from registry.database import tables
from registry.database.audit_chain import Repository
from registry.database.canonical import clean_text, to_canonical_json
from registry.errors import RowNotFound
from sandbox.bundle.model import ToolDefinition

Level = Literal["read", "write", "destructive"]
LEVELS: tuple[Level, ...] = get_args(Level)
"""From the least strict to the strictest."""
_TEXT = 2_000


@dataclass(frozen=True)
class Classification:
    """A signed classification. `requests` are the operation's methods and URL templates at the time
    of signing.
    """

    server: str
    operation: str
    level: Level
    requests: tuple[tuple[str, str], ...]
    changed: float
    by: str
    signature: str = field(default="", repr=False)

    def to_signed_body(self) -> dict[str, Any]:
        """The signed JSON value."""
        return {
            "kind": "override",
            "server": self.server,
            "operation": self.operation,
            "level": self.level,
            "requests": [list(request) for request in self.requests],
            "changed": self.changed,
            "by": self.by,
        }


class ClassificationTable(Repository):
    def store_classification(self, override: Classification) -> None:
        """Store a classification, replacing the operation's earlier one. Raises Unknown."""
        row = {
            "entry": override.server,
            "operation": override.operation,
            "level": override.level,
            "body": to_canonical_json(override.to_signed_body()),
            "signature": override.signature,
            "changed": override.changed,
            "by": clean_text(override.by, _TEXT),
        }
        with self._database.write() as connection:
            entries = tables.entries
            known = select(entries.c.name).where(entries.c.name == override.server)
            if connection.execute(known).first() is None:
                raise RowNotFound("server", override.server)
            connection.execute(_delete_row(override.server, override.operation))
            connection.execute(insert(tables.overrides), row)
            payload = {"operation": override.operation, "level": override.level, "by": row["by"]}
            self._append_audit_row(
                connection, "classified", override.server, payload, override.changed
            )

    def find(self, server: str) -> Mapping[str, Classification]:
        """The classifications of a server by operation. Unreadable rows are left out."""
        overrides = tables.overrides
        query = select(overrides).where(overrides.c.entry == server)
        with self._database.read() as connection:
            found = map(_parse_row, connection.execute(query).mappings())
            return {one.operation: one for one in found if one is not None}


def get_level(tool: ToolDefinition) -> Level:
    """The level that the bundle itself declares for a tool."""
    if tool.access == "read":
        return "read"
    return "destructive" if tool.destructive else "write"


def get_operation_key(tool: ToolDefinition) -> str:
    """The key of a tool's classification: the operation's id, or the tool's name without one."""
    return tool.operation or tool.name


def list_requests(tool: ToolDefinition) -> tuple[tuple[str, str], ...]:
    return tuple((request.method, request.url) for request in tool.requests)


def is_looser(level: Level, than: Level) -> bool:
    return LEVELS.index(level) < LEVELS.index(than)


def _delete_row(server: str, operation: str) -> Delete:
    overrides = tables.overrides
    return delete(overrides).where(overrides.c.entry == server, overrides.c.operation == operation)


def _parse_row(row: RowMapping) -> Classification | None:
    try:
        body = json.loads(row["body"])
        override = Classification(
            server=body["server"],
            operation=body["operation"],
            level=body["level"],
            requests=tuple((str(method), str(url)) for method, url in body["requests"]),
            changed=float(body["changed"]),
            by=str(body["by"]),
            signature=row["signature"],
        )
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    told = (override.server, override.operation, override.level)
    same = told == (row["entry"], row["operation"], row["level"])
    return override if same and override.level in LEVELS else None
