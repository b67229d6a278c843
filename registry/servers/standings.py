"""Table of trust records, one for each server and one for each of its operations."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import fields

from sqlalchemy import Connection, RowMapping, bindparam, func, select, update

from registry.database import tables
from registry.database.audit_chain import Repository
from registry.database.canonical import clean_text, to_compact_json
from registry.database.rows import AnyConnection, fetch_rows, insert_rows, update_rows
from registry.errors import RowNotFound
from registry.models import EntryState
from registry.trust import (
    Standing,
    TrustRecord,
    carry_over_record,
    compute_level,
    compute_refusing_share,
    compute_standing,
)

SERVER = ""
"""The `operation` of the record of a server as a whole."""
_REASON = 2_000

# Built once: building an UPDATE of all columns costs more than running it.
_UPDATE = update(tables.trust).where(
    tables.trust.c.entry == bindparam("of_entry"),
    tables.trust.c.operation == bindparam("of_operation"),
)
_OF_SERVER = select(
    tables.trust.c.operation, *(tables.trust.c[field.name] for field in fields(TrustRecord))
).where(tables.trust.c.entry == bindparam("entry"))
_NAMED = func.json_each(bindparam("operations")).table_valued("value")
_OF_OPERATIONS = _OF_SERVER.where(tables.trust.c.operation.in_(select(_NAMED.c.value)))
_OF_SERVERS = (
    select(
        tables.entries.c.name,
        tables.entries.c.state,
        *(tables.trust.c[field.name] for field in fields(TrustRecord)),
    )
    .join(tables.trust, tables.trust.c.entry == tables.entries.c.name)
    .where(
        tables.trust.c.operation == SERVER,
        tables.entries.c.name.in_(
            select(func.json_each(bindparam("names")).table_valued("value").c.value)
        ),
    )
)
_STATE = select(tables.entries.c.state).where(tables.entries.c.name == bindparam("entry"))


class StandingTable(Repository):
    def get(self, name: str) -> Standing:
        """The standing of a server. Raises Unknown."""
        with self._database.look() as connection:
            return load_standing(connection, name)[0]

    def find_by_server(self, names: Collection[str]) -> dict[str, Standing]:
        """The standings of those of the servers that there are."""
        with self._database.look() as connection:
            rows = fetch_rows(connection, _OF_SERVERS, {"names": to_compact_json([*names])})
        return {
            name: compute_standing(TrustRecord(*record), experimental=state == "experimental")
            for name, state, *record in rows
        }

    def get_operation(self, name: str, tool: str) -> Standing:
        """The standing of one operation of a server; zero before its first call.

        Its level is that of its own record. Raises Unknown for the server.
        """
        with self._database.read() as connection:
            return load_standing(connection, name, tool)[0]

    def find_operations(self, name: str) -> dict[str, Standing]:
        """The standing of every operation that was called, by tool name."""
        with self._database.read() as connection:
            records = load_records(connection, name)
        return {
            tool: compute_standing(record) for tool, record in records.items() if tool != SERVER
        }


def start_records(
    connection: Connection, entry: str, version: int, quarantined: bool = False
) -> None:
    """Carry the records of a server over to a new version, or create them. The ladder starts again
    where the version before was `quarantined`.
    """
    records = load_records(connection, entry)
    if not records:
        save_record(
            connection, entry, SERVER, TrustRecord(version, ladder_version=version), fresh=True
        )
        return
    repaired = quarantined or compute_level(records[SERVER]) == "degraded"
    for operation, record in records.items():
        save_record(
            connection, entry, operation, carry_over_record(record, version, repaired), fresh=False
        )


def load_records(connection: AnyConnection, entry: str, *operations: str) -> dict[str, TrustRecord]:
    """The records of a server by operation; only of those named, where any are."""
    query, given = _OF_SERVER, {"entry": entry}
    if operations:
        query, given["operations"] = _OF_OPERATIONS, to_compact_json(operations)
    rows = fetch_rows(connection, query, given)
    return {operation: TrustRecord(*record) for operation, *record in rows}


def _parse_record(row: RowMapping) -> TrustRecord:
    return TrustRecord(
        **{name: value for name, value in row.items() if name not in ("entry", "operation")}
    )


def load_server_records(connection: Connection) -> dict[str, TrustRecord]:
    """The records of all servers, without those of operations, by name."""
    rows = connection.execute(select(tables.trust).where(tables.trust.c.operation == SERVER))
    return {row["entry"]: _parse_record(row) for row in rows.mappings()}


def find_refusing_tools(connection: Connection) -> dict[str, tuple[str, ...]]:
    """The tools that refuse more of their calls than is usual, by their server."""
    columns = tables.trust.c
    query = select(tables.trust).where((columns.operation != SERVER) & (columns.recent != ""))
    found: dict[str, tuple[str, ...]] = {}
    for row in connection.execute(query).mappings():
        if compute_refusing_share(_parse_record(row)) is not None:
            found[row["entry"]] = (*found.get(row["entry"], ()), row["operation"])
    return found


def save_record(
    connection: Connection, entry: str, operation: str, record: TrustRecord, fresh: bool
) -> None:
    save_records(connection, {(entry, operation): record}, fresh)


def save_records(
    connection: Connection, records: Mapping[tuple[str, str], TrustRecord], fresh: bool
) -> None:
    """Store records by (server, operation), all of which are `fresh` or none."""
    keys = ("entry", "operation") if fresh else ("of_entry", "of_operation")
    rows = [
        {
            **dict(zip(keys, of, strict=True)),
            **vars(record),
            "last_failure_reason": clean_text(record.last_failure_reason, _REASON),
        }
        for of, record in records.items()
    ]
    if fresh:
        insert_rows(connection, tables.trust, rows)
    else:
        update_rows(connection, _UPDATE, rows)


def create_blank_record(server: TrustRecord) -> TrustRecord:
    """The record of an operation that was never called."""
    return TrustRecord(server.version, ladder_version=server.ladder_version)


def load_standing(
    connection: AnyConnection, entry: str, operation: str = SERVER
) -> tuple[Standing, EntryState]:
    """The standing inside a transaction, and the server's state. Raises Unknown."""
    state = load_state(connection, entry)
    records = load_records(connection, entry, SERVER, operation)
    record = records.get(operation) or create_blank_record(records[SERVER])
    return compute_standing(record, experimental=state == "experimental"), state


def load_state(connection: AnyConnection, entry: str) -> EntryState:
    """The state of a server inside a transaction. Raises Unknown."""
    rows = fetch_rows(connection, _STATE, {"entry": entry})
    if not rows:
        raise RowNotFound("server", entry)
    state: EntryState = rows[0][0]
    return state
