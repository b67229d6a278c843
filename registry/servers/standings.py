"""Trust as rows: loading a server's and an operation's record, and storing them again."""

from __future__ import annotations

from sqlalchemy import Connection, RowMapping, bindparam, insert, select, update

from registry import schema
from registry.audit import Ledger
from registry.errors import Unknown
from registry.jsontext import clean
from registry.records import EntryState
from registry.trust import Standing, TrustRecord, carried_over, level_of, standing_of

SERVER = ""
"""The `operation` of the record of a server as a whole."""
_REASON = 2_000

# Built once: building an UPDATE of all columns costs more than running it.
_INSERT = insert(schema.trust)
_UPDATE = update(schema.trust).where(
    schema.trust.c.entry == bindparam("of_entry"),
    schema.trust.c.operation == bindparam("of_operation"),
)


class Standings(Ledger):
    def standing(self, name: str) -> Standing:
        """Where a server stands on the ladder. Raises Unknown."""
        with self._database.read() as connection:
            return now(connection, name)[0]

    def operation_standing(self, name: str, tool: str) -> Standing:
        """Where one operation of a server stands; empty figures before its first call.

        Its level is its own record's. Raises Unknown for the server.
        """
        with self._database.read() as connection:
            return now(connection, name, tool)[0]

    def operation_standings(self, name: str) -> dict[str, Standing]:
        """The standing of every operation that was called, by tool name."""
        with self._database.read() as connection:
            records = load(connection, name)
        return {tool: standing_of(record) for tool, record in records.items() if tool != SERVER}


def start(connection: Connection, entry: str, version: int) -> None:
    """Carry the records of a server over to a new version, or begin them."""
    records = load(connection, entry)
    if not records:
        save(connection, entry, SERVER, TrustRecord(version, ladder_version=version), fresh=True)
        return
    repaired = level_of(records[SERVER]) == "degraded"
    for operation, record in records.items():
        save(connection, entry, operation, carried_over(record, version, repaired), fresh=False)


def load(connection: Connection, entry: str, *operations: str) -> dict[str, TrustRecord]:
    """The records of a server by operation; only of those named, where any are."""
    query = select(schema.trust).where(schema.trust.c.entry == entry)
    if operations:
        query = query.where(schema.trust.c.operation.in_(operations))
    rows = connection.execute(query.with_for_update()).mappings()
    return {row["operation"]: _record(row) for row in rows}


def _record(row: RowMapping) -> TrustRecord:
    return TrustRecord(
        **{name: value for name, value in row.items() if name not in ("entry", "operation")}
    )


def servers(connection: Connection) -> dict[str, TrustRecord]:
    """The records of all servers as wholes, by name."""
    rows = connection.execute(select(schema.trust).where(schema.trust.c.operation == SERVER))
    return {row["entry"]: _record(row) for row in rows.mappings()}


def save(
    connection: Connection, entry: str, operation: str, record: TrustRecord, fresh: bool
) -> None:
    values = {**vars(record), "last_failure_reason": clean(record.last_failure_reason, _REASON)}
    if fresh:
        connection.execute(_INSERT, {"entry": entry, "operation": operation, **values})
    else:
        connection.execute(_UPDATE, {"of_entry": entry, "of_operation": operation, **values})


def blank(server: TrustRecord) -> TrustRecord:
    """The record of an operation that was never called."""
    return TrustRecord(server.version, ladder_version=server.ladder_version)


def now(connection: Connection, entry: str, operation: str = SERVER) -> tuple[Standing, EntryState]:
    """The standing inside a transaction, and the server's state. Raises Unknown."""
    state = state_of(connection, entry)
    records = load(connection, entry, SERVER, operation)
    record = records.get(operation) or blank(records[SERVER])
    return standing_of(record, experimental=state == "experimental"), state


def state_of(connection: Connection, entry: str) -> EntryState:
    """The state of a server inside a transaction. Raises Unknown."""
    query = select(schema.entries.c.state).where(schema.entries.c.name == entry)
    state: EntryState | None = connection.execute(query).scalar()
    if state is None:
        raise Unknown("server", entry)
    return state
