"""What a person says an operation does, whatever its description says: read, write or destructive.

Kept by operation, across versions of its server. A level that is less strict than the server's own
counts only where a person signed it for exactly these requests.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from sqlalchemy import Delete, RowMapping, delete, insert, select

from registry import schema
from registry.audit import Ledger
from registry.errors import Unknown
from registry.jsontext import canonical, clean
from sandbox.bundle import ToolDefinition

Level = Literal["read", "write", "destructive"]
LEVELS: tuple[Level, ...] = get_args(Level)
"""From the least strict to the strictest."""
_TEXT = 2_000


@dataclass(frozen=True)
class Override:
    """`requests` are the operation's methods and URL templates at the time it was signed."""

    server: str
    operation: str
    level: Level
    requests: tuple[tuple[str, str], ...]
    changed: float
    by: str
    signature: str = field(default="", repr=False)

    def body(self) -> dict[str, Any]:
        """What is signed."""
        return {
            "kind": "override",
            "server": self.server,
            "operation": self.operation,
            "level": self.level,
            "requests": [list(request) for request in self.requests],
            "changed": self.changed,
            "by": self.by,
        }


class Overrides(Ledger):
    def set_override(self, override: Override) -> None:
        """Store what a person says, in place of what they said before. Raises Unknown."""
        row = {
            "entry": override.server,
            "operation": override.operation,
            "level": override.level,
            "body": canonical(override.body()),
            "signature": override.signature,
            "changed": override.changed,
            "by": clean(override.by, _TEXT),
        }
        with self._database.write() as connection:
            entries = schema.entries
            known = select(entries.c.name).where(entries.c.name == override.server)
            if connection.execute(known).first() is None:
                raise Unknown("server", override.server)
            connection.execute(_delete(override.server, override.operation))
            connection.execute(insert(schema.overrides), row)
            payload = {"operation": override.operation, "level": override.level, "by": row["by"]}
            self._append(connection, "classified", override.server, payload, override.changed)

    def remove_override(self, server: str, operation: str, by: str, now: float) -> bool:
        """Let the server's own word count again; False where it did already."""
        with self._database.write() as connection:
            if connection.execute(_delete(server, operation)).rowcount == 0:
                return False
            payload = {"operation": operation, "level": "", "by": clean(by, _TEXT)}
            self._append(connection, "classified", server, payload, now)
        return True

    def overrides(self, server: str) -> Mapping[str, Override]:
        """What people said of a server's operations, by operation. Unreadable rows are left out."""
        overrides = schema.overrides
        query = select(overrides).where(overrides.c.entry == server)
        with self._database.read() as connection:
            found = map(_override, connection.execute(query).mappings())
            return {one.operation: one for one in found if one is not None}


def level_of(tool: ToolDefinition) -> Level:
    """What the server itself says of a tool."""
    if tool.access == "read":
        return "read"
    return "destructive" if tool.destructive else "write"


def operation_of(tool: ToolDefinition) -> str:
    """What a tool's classification is kept under."""
    return tool.operation or tool.name


def requests_of(tool: ToolDefinition) -> tuple[tuple[str, str], ...]:
    return tuple((request.method, request.url) for request in tool.requests)


def looser(level: Level, than: Level) -> bool:
    return LEVELS.index(level) < LEVELS.index(than)


def _delete(server: str, operation: str) -> Delete:
    overrides = schema.overrides
    return delete(overrides).where(overrides.c.entry == server, overrides.c.operation == operation)


def _override(row: RowMapping) -> Override | None:
    try:
        body = json.loads(row["body"])
        override = Override(
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
