"""Who is running, and whether anything may act."""

from __future__ import annotations

from sqlalchemy import Connection, delete, insert, select, update

from registry import schema
from registry.audit import Ledger
from registry.errors import Unknown
from registry.jsontext import clean
from registry.records import Freeze, Process
from sandbox.errors import Frozen

_TEXT = 2_000
_THAWED = Freeze(epoch=0, frozen=False, since=0.0, by="", reason="")


class Processes(Ledger):
    """The running processes and the freeze that each of them acknowledges."""

    def register_process(self, process: Process) -> None:
        """Add a process, replacing an earlier row of that id."""
        processes = schema.processes
        with self._database.write() as connection:
            connection.execute(delete(processes).where(processes.c.id == process.id))
            connection.execute(insert(processes), vars(process))

    def heartbeat(self, id: str, now: float) -> None:
        """Say that a process is alive. Raises Unknown."""
        self._touch(id, heartbeat=now)

    def acknowledge(self, id: str, epoch: int, now: float) -> None:
        """Say that a process has stopped everything for a freeze epoch. Raises Unknown."""
        self._touch(id, heartbeat=now, acknowledged_epoch=epoch)

    def processes(self) -> tuple[Process, ...]:
        """All registered processes, oldest first."""
        processes = schema.processes
        query = select(processes).order_by(processes.c.started, processes.c.id)
        with self._database.read() as connection:
            return tuple(Process(**row) for row in connection.execute(query).mappings())

    def remove_process(self, id: str) -> None:
        """Forget a process; one that is not there is no error."""
        with self._database.write() as connection:
            connection.execute(delete(schema.processes).where(schema.processes.c.id == id))

    def freeze(self, now: float, by: str, reason: str = "") -> int:
        """Forbid every action from this commit on; the new epoch. Frozen twice is a new epoch."""
        with self._database.write() as connection:
            epoch = freeze_now(connection).epoch + 1
            state = Freeze(epoch, True, now, clean(by, _TEXT), clean(reason, _TEXT))
            _store(connection, state)
            payload = {"epoch": epoch, "by": state.by, "reason": state.reason}
            self._append(connection, "freeze", str(epoch), payload, now)
        return epoch

    def unfreeze(self, now: float, by: str) -> Freeze:
        """Allow actions again. The epoch stays, so that who slept through the freeze sees it."""
        with self._database.write() as connection:
            before = freeze_now(connection)
            if not before.frozen:
                return before
            state = Freeze(before.epoch, False, now, clean(by, _TEXT), "")
            _store(connection, state)
            self._append(connection, "unfreeze", str(state.epoch), {"by": state.by}, now)
        return state

    def freeze_state(self) -> Freeze:
        """The freeze as it is; epoch 0 where there never was one."""
        with self._database.read() as connection:
            return freeze_now(connection)

    def _touch(self, id: str, **values: float) -> None:
        query = update(schema.processes).where(schema.processes.c.id == id).values(**values)
        with self._database.write() as connection:
            if connection.execute(query).rowcount == 0:
                raise Unknown("process", id)


def freeze_now(connection: Connection) -> Freeze:
    freeze = schema.freeze
    columns = (freeze.c[name] for name in ("epoch", "frozen", "since", "by", "reason"))
    row = connection.execute(select(*columns)).mappings().first()
    return Freeze(**row) if row else _THAWED


def check_not_frozen(connection: Connection) -> None:
    """Raises sandbox.errors.Frozen."""
    if freeze_now(connection).frozen:
        raise Frozen


def _store(connection: Connection, state: Freeze) -> None:
    connection.execute(delete(schema.freeze))
    connection.execute(insert(schema.freeze), {"id": 1, **vars(state)})
