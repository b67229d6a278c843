"""Table of running processes, the freeze (kill switch), and a cheap read of what changed."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, delete, insert, select, update

from registry.database import tables
from registry.database.audit_chain import Repository
from registry.database.canonical import clean_text
from registry.errors import RowNotFound
from registry.models import Freeze, Process
from sandbox.errors import Frozen

_TEXT = 2_000
_THAWED = Freeze(epoch=0, frozen=False, since=0.0, by="", reason="")


class ProcessTable(Repository):
    """The running processes and the freeze that each of them acknowledges."""

    def register(self, process: Process) -> None:
        """Add a process, replacing an earlier row of that id."""
        processes = tables.processes
        with self._database.write() as connection:
            connection.execute(delete(processes).where(processes.c.id == process.id))
            connection.execute(insert(processes), vars(process))

    def record_heartbeat(self, id: str, now: float) -> None:
        """Store the time at which a process was alive. Raises Unknown."""
        self._update_times(id, heartbeat=now)

    def acknowledge_freeze(self, id: str, epoch: int, now: float) -> None:
        """Store that a process has stopped everything for a freeze epoch. Raises Unknown."""
        self._update_times(id, heartbeat=now, acknowledged_epoch=epoch)

    def record_stalls(self, id: str, stalls: int, longest: float) -> None:
        """Store how often the process's event loop was held up, and for how many seconds at most.
        Raises Unknown.
        """
        self._update_times(id, stalls=stalls, longest_stall=longest)

    def find(self) -> tuple[Process, ...]:
        """All registered processes, oldest first."""
        processes = tables.processes
        query = select(processes).order_by(processes.c.started, processes.c.id)
        with self._database.read() as connection:
            return tuple(Process(**row) for row in connection.execute(query).mappings())

    def remove(self, id: str) -> None:
        """Forget a process; one that is not there is no error."""
        with self._database.write() as connection:
            connection.execute(delete(tables.processes).where(tables.processes.c.id == id))

    def freeze(self, now: float, by: str, reason: str = "") -> int:
        """Forbid every action from this commit on; the new epoch. Frozen twice is a new epoch."""
        with self._database.write() as connection:
            epoch = read_freeze(connection).epoch + 1
            state = Freeze(epoch, True, now, clean_text(by, _TEXT), clean_text(reason, _TEXT))
            _store_freeze(connection, state)
            payload = {"epoch": epoch, "by": state.by, "reason": state.reason}
            self._append_audit_row(connection, "freeze", str(epoch), payload, now)
        return epoch

    def unfreeze(self, now: float, by: str) -> Freeze:
        """Allow actions again. The epoch stays, so that a process that missed the
        freeze sees it.
        """
        with self._database.write() as connection:
            before = read_freeze(connection)
            if not before.frozen:
                return before
            state = Freeze(before.epoch, False, now, clean_text(by, _TEXT), "")
            _store_freeze(connection, state)
            self._append_audit_row(connection, "unfreeze", str(state.epoch), {"by": state.by}, now)
        return state

    def get_freeze(self) -> Freeze:
        """The current freeze state; epoch 0 where there never was a freeze."""
        with self._database.read() as connection:
            return read_freeze(connection)

    def _update_times(self, id: str, **values: float) -> None:
        query = update(tables.processes).where(tables.processes.c.id == id).values(**values)
        with self._database.write() as connection:
            if connection.execute(query).rowcount == 0:
                raise RowNotFound("process", id)


def read_freeze(connection: Connection) -> Freeze:
    freeze = tables.freeze
    columns = (freeze.c[name] for name in ("epoch", "frozen", "since", "by", "reason"))
    row = connection.execute(select(*columns)).mappings().first()
    return Freeze(**row) if row else _THAWED


def check_not_frozen(connection: Connection) -> None:
    """Raises sandbox.errors.Frozen."""
    if read_freeze(connection).frozen:
        raise Frozen


def _store_freeze(connection: Connection, state: Freeze) -> None:
    connection.execute(delete(tables.freeze))
    connection.execute(insert(tables.freeze), {"id": 1, **vars(state)})


_QUERY = """
SELECT
  coalesce((SELECT epoch FROM freeze), 0),
  coalesce((SELECT frozen FROM freeze), 0),
  (SELECT count(*) FROM jobs WHERE state = 'queued'),
  (SELECT count(*) FROM approvals WHERE state = 'approved'),
  coalesce((SELECT group_concat(name || ' ' || version || ' ' || state) FROM entries), '')
    || (SELECT ' ' || count(*) || ' ' || coalesce(max(changed), '') FROM overrides)
"""


@dataclass(frozen=True)
class SignalSnapshot:
    """`epoch` and `frozen` are the freeze's; `queued` counts jobs, `approved` approvals that nobody
    has claimed yet; `catalogue` changes when a server is published or changes its state, or a
    person classifies an operation.
    """

    epoch: int
    frozen: bool
    queued: int
    approved: int
    catalogue: str


# A revocation is in the audit, where it stays also if somebody puts the row back by hand. The
# subject of an audit row is its origin as `canonical.clean` leaves it.
_GRANTED = """
SELECT coalesce(group_concat(
  quote(origin) || quote(kind) || quote(granted_by) || quote(granted) || quote(detail)
    || quote(serial) || quote(signature) || coalesce((
      SELECT max(id) FROM audit WHERE kind = 'grant.removed'
        AND subject = substr(replace(origin, char(0), char(65533)), 1, 2000)
    ), 0), char(10)), '')
FROM grants
"""


class SignalReader(Repository):
    """What is asked so often that it must cost microseconds."""

    def read_data_version(self) -> int:
        """A number that changes whenever any process commits. Only those of one store compare.

        See https://www.sqlite.org/pragma.html#pragma_data_version.
        """
        return int(self._database.query_row("PRAGMA data_version")[0])

    def granted(self) -> str:
        """A text that changes whenever a grant is added, edited or taken away; "" where there is
        none.
        """
        return str(self._database.query_row(_GRANTED)[0])

    def read_signals(self) -> SignalSnapshot:
        """The present signals."""
        epoch, frozen, queued, approved, catalogue = self._database.query_row(_QUERY)
        return SignalSnapshot(int(epoch), bool(frozen), int(queued), int(approved), str(catalogue))
