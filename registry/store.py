"""Everything we know about servers, and everything that was done with them, in one database."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Self

from registry.approvals import Approvals
from registry.database import Database
from registry.drafts import Drafts
from registry.entries import Entries
from registry.grants import Grants
from registry.health import Health
from registry.invocations import Invocations
from registry.overrides import Overrides
from registry.processes import Processes
from registry.recordings import KEPT_BYTES
from registry.rules import Rules
from registry.search import Search
from registry.signals import Watch
from registry.spending import Spending
from registry.standings import Standings
from registry.trail import Trail


class Store(
    Entries,
    Standings,
    Invocations,
    Approvals,
    Rules,
    Overrides,
    Drafts,
    Health,
    Spending,
    Processes,
    Grants,
    Search,
    Watch,
    Trail,
):
    """The registry. Threads of one process share a store; a child process opens its own.

    Every method is one transaction and returns when it is on disk. All raise DatabaseUnusable.
    """

    @classmethod
    def open(
        cls, location: str | Path, process: str = "", recordings_bytes: int = KEPT_BYTES
    ) -> Self:
        """Open or create the database at a path or a `sqlite:///` URL.

        `process` is the id under which this process writes its audit chain, `recordings_bytes` how
        much it keeps of what calls took in. Raises DatabaseUnusable, SchemaTooNew.
        """
        store = cls(Database(location), process)
        store.recordings_bytes = recordings_bytes
        return store

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._database.close()

    @property
    def path(self) -> Path:
        """The database's file."""
        return self._database.path
