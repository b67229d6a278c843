"""Everything we know about servers, and everything that was done with them, in one database."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Self

from registry.approvals import Approvals
from registry.database import Database
from registry.entries import Entries
from registry.grants import Grants
from registry.invocations import Invocations
from registry.jobs import Jobs
from registry.processes import Processes
from registry.search import Search
from registry.signals import Watch
from registry.standings import Standings


class Store(Entries, Standings, Invocations, Approvals, Jobs, Processes, Grants, Search, Watch):
    """The registry. Threads of one process share a store; a child process opens its own.

    Every method is one transaction and returns when it is on disk. All raise DatabaseUnusable.
    """

    @classmethod
    def open(cls, location: str | Path, process: str = "") -> Self:
        """Open or create the database at a path or a `sqlite:///` URL.

        `process` is the id under which this process writes its audit chain. Raises
        DatabaseUnusable, SchemaTooNew.
        """
        return cls(Database(location), process)

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
