"""What other processes may have changed that this one must act on, read in microseconds."""

from __future__ import annotations

from dataclasses import dataclass

from registry.audit import Ledger

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
class Signals:
    """`epoch` and `frozen` are the freeze's; `queued` counts jobs, `approved` approvals that nobody
    has claimed yet; `catalogue` changes when a server is published or changes its state, or a
    person classifies an operation.
    """

    epoch: int
    frozen: bool
    queued: int
    approved: int
    catalogue: str


class Watch(Ledger):
    def data_version(self) -> int:
        """A number that changes whenever any process commits. Costs microseconds, so poll it."""
        return self._database.data_version()

    def signals(self) -> Signals:
        """The present signals."""
        epoch, frozen, queued, approved, catalogue = self._database.peek(_QUERY)
        return Signals(int(epoch), bool(frozen), int(queued), int(approved), str(catalogue))
