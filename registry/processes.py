"""Table of running processes, the freeze (kill switch), and a cheap read of what changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection, delete, insert, select, update

from registry.database import tables
from registry.database.audit_chain import Repository
from registry.database.canonical import clean_text
from registry.database.commits import CommitWait
from registry.errors import RowNotFound
from registry.models import Freeze, Process
from sandbox.errors import Frozen

FROZE, FORGED = "freeze", "freeze.forged"
"""Kinds of audit rows: a freeze, and a lift that nobody signed. The subject is the epoch."""
_TEXT = 2_000
Sign = Callable[[Mapping[str, Any]], str]
"""Signs a JSON value: `registry.secrets.signing.Signer.sign`."""
_THAWED = Freeze(epoch=0, frozen=False, since=0.0, by="", reason="")


class ProcessTable(Repository):
    """The running processes and the freeze that each of them acknowledges."""

    def register(self, process: Process) -> None:
        """Add a process, replacing an earlier row of that id. The freeze that it acknowledged until
        then stays acknowledged: nobody asks it once more.
        """
        processes = tables.processes
        of_process = processes.c.id == process.id
        acknowledged = select(processes.c.acknowledged_epoch).where(of_process)
        with self._database.write() as connection:
            epoch = max(process.acknowledged_epoch, connection.execute(acknowledged).scalar() or 0)
            connection.execute(delete(processes).where(of_process))
            connection.execute(insert(processes), vars(replace(process, acknowledged_epoch=epoch)))

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

    def freeze(self, now: float, by: str, reason: str = "", after: int = 0) -> int:
        """Forbid every action from this commit on; the new epoch, which comes `after` that one.
        Frozen twice is a new epoch.
        """
        with self._database.write() as connection:
            return self._freeze(connection, by, reason, now, after)

    def _freeze(
        self, connection: Connection, by: str, reason: str, now: float, after: int = 0
    ) -> int:
        epoch = max(_find_next_epoch(connection), after + 1)
        state = Freeze(epoch, True, now, clean_text(by, _TEXT), clean_text(reason, _TEXT))
        _store_freeze(connection, state)
        payload = {"epoch": epoch, "by": state.by, "reason": state.reason}
        self._append_audit_row(connection, FROZE, str(epoch), payload, now)
        return epoch

    def unfreeze(self, now: float, by: str, sign: Sign) -> Freeze:
        """Allow actions again, signed by the person. The epoch stays, so that a process that missed
        the freeze sees it.
        """
        with self._database.write() as connection:
            before = read_freeze(connection)
            if not before.frozen:
                return before
            unsigned = Freeze(before.epoch, False, now, clean_text(by, _TEXT), "")
            state = replace(unsigned, lift=sign(unsigned.to_signed_body()))
            _store_freeze(connection, state)
            payload = {"by": state.by, "signature": state.lift}
            self._append_audit_row(connection, "unfreeze", str(state.epoch), payload, now)
        return state

    def replace_lift(self, found: Freeze, lift: str) -> None:
        """Store another signature of a lift, unless it is not the present state any more."""
        with self._database.write() as connection:
            if read_freeze(connection) == found:
                _store_freeze(connection, replace(found, lift=lift))

    def restore_freeze(self, found: Freeze, reason: str, now: float) -> int:
        """Freeze again, unless another process did already or the state is not that any more. The
        epoch.
        """
        with self._database.write() as connection:
            if read_freeze(connection) != found:
                return found.epoch
            payload = {"epoch": found.epoch, "frozen": found.frozen, "by": found.by}
            self._append_audit_row(connection, FORGED, str(found.epoch), payload, now)
            return self._freeze(connection, "toolwright", reason, now)

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
    columns = (freeze.c[name] for name in ("epoch", "frozen", "since", "by", "reason", "lift"))
    row = connection.execute(select(*columns)).mappings().first()
    return Freeze(**row) if row else _THAWED


def check_not_frozen(connection: Connection) -> None:
    """Raises sandbox.errors.Frozen."""
    if read_freeze(connection).frozen:
        raise Frozen


def _find_next_epoch(connection: Connection) -> int:
    """The epoch after the present one and all that the audit has: a lift of an earlier freeze fits
    no later one, also where somebody took the row away.
    """
    audit, following = tables.audit, read_freeze(connection).epoch + 1
    taken = select(audit.c.id).where(audit.c.subject == str(following), audit.c.kind == FROZE)
    if connection.execute(taken.limit(1)).first() is None:
        return following
    epochs = connection.execute(select(audit.c.subject).where(audit.c.kind == FROZE)).scalars()
    return max(map(int, epochs)) + 1


def _store_freeze(connection: Connection, state: Freeze) -> None:
    connection.execute(delete(tables.freeze))
    connection.execute(insert(tables.freeze), {"id": 1, **vars(state)})


_QUERY = """
SELECT
  freeze.epoch, freeze.frozen, freeze.since, freeze."by", freeze.reason, freeze.lift,
  (SELECT count(*) FROM jobs WHERE state = 'queued'),
  (SELECT count(*) FROM approvals WHERE state = 'approved'),
  (SELECT coalesce(max(id), 0) FROM search_changes)
    || (SELECT ' ' || count(*) || ' ' || coalesce(max(changed), '') FROM overrides)
FROM (SELECT 1) LEFT JOIN freeze
"""


@dataclass(frozen=True)
class SignalSnapshot:
    """`freeze` is its row's; `queued` counts jobs, `approved` approvals that nobody
    has claimed yet; `catalogue` changes when a server is published or changes its state, or a
    person classifies an operation. It is read after every commit of any process, so it is made of
    counters and not of the servers.
    """

    freeze: Freeze
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

    def open_commit_wait(self) -> CommitWait:
        """Says when it is worth reading the data version again. To be closed by the caller."""
        return CommitWait(self._database.path)

    def granted(self) -> str:
        """A text that changes whenever a grant is added, edited or taken away; "" where there is
        none.
        """
        return str(self._database.query_row(_GRANTED)[0])

    def read_signals(self) -> SignalSnapshot:
        """The present signals."""
        *row, queued, approved, catalogue = self._database.query_row(_QUERY)
        epoch, frozen, since, by, reason, lift = row
        freeze = _THAWED
        if epoch is not None:
            freeze = Freeze(int(epoch), bool(frozen), float(since), str(by), str(reason), str(lift))
        return SignalSnapshot(freeze, int(queued), int(approved), str(catalogue))
