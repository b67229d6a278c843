"""Table of classifications: a person's ruling that an operation reads, writes or destroys.

Stored by operation, across versions of its server. A level less strict than the server's own is
valid only where a person signed it for exactly these requests.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args
from urllib.parse import unquote, urlsplit

from sqlalchemy import Connection, Delete, bindparam, delete, insert, select

from registry.database import tables
from registry.database.audit_chain import SUBJECT, Repository
from registry.database.canonical import clean_text, to_canonical_json
from registry.database.rows import fetch_mappings, fetch_rows
from registry.errors import GrantStale, RowNotFound
from registry.search.index import mark_changed
from sandbox.bundle.model import RequestPattern, ToolDefinition, compute_operation_digest
from sandbox.wire.policy import parse_template_origin

Level = Literal["read", "write", "destructive"]
LEVELS: tuple[Level, ...] = get_args(Level)
"""From the least strict to the strictest."""
CLASSIFIED = "classified"
"""Kind of the audit rows of classifications; the subject is the server."""
_TEXT = 2_000
_RAISED = select(tables.overrides).where(tables.overrides.c.level != "read")
_SERVERS = select(tables.overrides.c.entry).distinct()
_OF_SERVER = select(tables.overrides).where(tables.overrides.c.entry == bindparam("server"))


@dataclass(frozen=True)
class Classification:
    """A signed classification. `requests` are the operation's methods and URL templates at the time
    of signing, `definition` the digest of all that decides what it does, GraphQL documents
    included, and `program` that of code which the compiler did not write.

    Each classification of an operation ends the one before it: a less strict one counts only where
    `serial` is the newest that the audit has for the operation.
    """

    server: str
    operation: str
    level: Level
    requests: tuple[tuple[str, str], ...]
    changed: float
    by: str
    definition: str = ""
    program: str = ""
    serial: int = 1
    signature: str = field(default="", repr=False)

    def to_signed_body(self) -> dict[str, Any]:
        """The signed JSON value."""
        return {
            "kind": "override",
            "server": self.server,
            "operation": self.operation,
            "level": self.level,
            "requests": [list(request) for request in self.requests],
            "definition": self.definition,
            "program": self.program,
            "serial": self.serial,
            "changed": self.changed,
            "by": self.by,
        }


class ClassificationTable(Repository):
    def store_classification(self, override: Classification) -> None:
        """Store a classification in place of the operation's earlier one. One that nobody signed
        gets its serial here. Raises RowNotFound, and GrantStale where the operation was classified
        since the serial of a signed one was taken.
        """
        with self._database.write() as connection:
            entries = tables.entries
            known = select(entries.c.name).where(entries.c.name == override.server)
            if connection.execute(known).first() is None:
                raise RowNotFound("server", override.server)
            serial = _find_serial(connection, override.server, override.operation) + 1
            if override.signature and override.serial != serial:
                raise GrantStale(f"{override.server} {override.operation}")
            row = _build_row(replace(override, serial=serial))
            connection.execute(_delete_row(override.server, override.operation))
            connection.execute(insert(tables.overrides), row)
            payload = {
                "operation": override.operation,
                "level": override.level,
                "by": row["by"],
                "serial": serial,
            }
            self._append_audit_row(
                connection, CLASSIFIED, override.server, payload, override.changed
            )
            mark_changed(connection, override.server)

    def get_next_serial(self, server: str, operation: str) -> int:
        """The serial number that a new classification of an operation has to be signed with."""
        with self._database.read() as connection:
            return _find_serial(connection, server, operation) + 1

    def find(self, server: str) -> Mapping[str, Classification]:
        """The classifications of a server by operation. Unreadable rows are left out."""
        with self._database.look() as connection:
            rows = fetch_mappings(connection, _OF_SERVER, {"server": server})
        return {one.operation: one for one in map(_parse_row, rows) if one is not None}

    def find_servers(self) -> frozenset[str]:
        """The servers that have any."""
        with self._database.look() as connection:
            return frozenset(name for (name,) in fetch_rows(connection, _SERVERS, {}))

    def find_raised(self) -> tuple[Classification, ...]:
        """Those of all servers that do not say that an operation reads."""
        with self._database.look() as connection:
            rows = fetch_mappings(connection, _RAISED, {})
        return tuple(filter(None, map(_parse_row, rows)))


def find_raised_level(raised: Iterable[Classification], server: str, tool: ToolDefinition) -> Level:
    """The strictest level that people gave an operation whose requests a tool of `server` may make,
    under whatever name; `read` where they gave none. Of its own server's operations one with a
    fixed word where the other has a placeholder is another one.
    """
    definition = compute_operation_digest(tool)
    found = [
        one.level
        for one in raised
        if one.definition == definition
        or any(
            _may_be_same(url, request, one.server == server and bool(tool.operation))
            for method, url in one.requests
            for request in tool.requests
            if method == request.method and not request.document
        )
    ]
    return max(found, key=LEVELS.index, default="read")


def _may_be_same(url: str, request: RequestPattern, is_described: bool) -> bool:
    """Whether a request of a template may be one of another template, as a server reads them."""
    origin, given, asked = parse_template_origin(url), _split_path(url), _split_path(request.url)
    if origin is None or origin != parse_template_origin(request.url) or len(given) != len(asked):
        return False
    return all(
        one == other or "{" in other or ("{" in one and not is_described)
        for one, other in zip(given, asked, strict=True)
    )


def _split_path(url: str) -> list[str]:
    return [unquote(part).lower() for part in urlsplit(url).path.split("/") if part]


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


def _build_row(override: Classification) -> dict[str, Any]:
    return {
        "entry": override.server,
        "operation": override.operation,
        "level": override.level,
        "body": to_canonical_json(override.to_signed_body()),
        "signature": override.signature,
        "changed": override.changed,
        "by": clean_text(override.by, _TEXT),
    }


def _find_serial(connection: Connection, server: str, operation: str) -> int:
    """The newest serial of an operation's classifications in the audit; 0 where there is none."""
    audit = tables.audit
    query = select(audit.c.payload).where(
        audit.c.subject == clean_text(server, SUBJECT), audit.c.kind == CLASSIFIED
    )
    said = map(json.loads, connection.execute(query).scalars())
    return max((int(one["serial"]) for one in said if one["operation"] == operation), default=0)


def _delete_row(server: str, operation: str) -> Delete:
    overrides = tables.overrides
    return delete(overrides).where(overrides.c.entry == server, overrides.c.operation == operation)


def _parse_row(row: Mapping[str, Any]) -> Classification | None:
    try:
        body = json.loads(row["body"])
        override = Classification(
            server=body["server"],
            operation=body["operation"],
            level=body["level"],
            requests=tuple((str(method), str(url)) for method, url in body["requests"]),
            changed=float(body["changed"]),
            by=str(body["by"]),
            definition=str(body.get("definition", "")),
            program=str(body.get("program", "")),
            serial=int(body.get("serial", 0)),
            signature=row["signature"],
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    told = (override.server, override.operation, override.level)
    same = told == (row["entry"], row["operation"], row["level"])
    return override if same and override.level in LEVELS else None
