"""The store: all tables of the registry in one database."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Self

from registry.approvals.approvals import ApprovalTable
from registry.approvals.grants import GrantTable
from registry.approvals.rules import RuleTable
from registry.audit.search import AuditTable
from registry.calls.invocations import CallTable
from registry.calls.recordings import KEPT_BYTES
from registry.database.engine import Database
from registry.health.repairs import CanaryTable, DescriptionTable, RepairTable
from registry.jobs.drafts import DraftTable
from registry.jobs.jobs import JobTable
from registry.jobs.model_usage import ModelUsageTable
from registry.models import Route
from registry.processes import ProcessTable, SignalReader
from registry.search.index import SearchIndex
from registry.servers.classifications import ClassificationTable
from registry.servers.entries import ServerTable
from registry.servers.quarantine import QuarantineTable
from registry.servers.standings import StandingTable
from registry.sessions.kept_results import KeptResultTable
from registry.sessions.memory import SessionTable


class Store:
    """The registry's tables. Threads of one process share a store; a child process opens its own.

    Every method of a table is one transaction and returns when it is on disk. All raise
    DatabaseUnusable. Pass a caller the one table that it needs.
    """

    def __init__(self, database: Database, process: str = "", recordings_bytes: int = KEPT_BYTES):
        """`process` is the id under which this process writes its audit chain."""
        self._database = database
        self.servers = ServerTable(database, process)
        self.standings = StandingTable(database, process)
        self.quarantine = QuarantineTable(database, process)
        self.classifications = ClassificationTable(database, process)
        self.search = SearchIndex(database, process)
        self.calls = CallTable(database, process, recordings_bytes)
        self.kept_results = KeptResultTable(database, process)
        self.sessions = SessionTable(database, process)
        self.approvals = ApprovalTable(database, process)
        self.rules = RuleTable(database, process)
        self.grants = GrantTable(database, process)
        self.jobs = JobTable(database, process)
        self.drafts = DraftTable(database, process)
        self.model_usage = ModelUsageTable(database, process)
        self.repairs = RepairTable(database, process)
        self.canaries = CanaryTable(database, process)
        self.descriptions = DescriptionTable(database, process)
        self.processes = ProcessTable(database, process)
        self.signals = SignalReader(database, process)
        self.audit = AuditTable(database, process)

    @classmethod
    def open(
        cls, location: str | Path, process: str = "", recordings_bytes: int = KEPT_BYTES
    ) -> Self:
        """Open or create the database at a path or a `sqlite:///` URL.

        `process` is the id under which this process writes its audit chain, `recordings_bytes` how
        much it keeps of what calls took in. Raises DatabaseUnusable, SchemaTooNew.
        """
        return cls(Database(location), process, recordings_bytes)

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

    def route(self, task: str, k: int = 10) -> Route:
        """Where a task in words may go: `SearchIndex.route`."""
        return self.search.route(task, k)

    @property
    def path(self) -> Path:
        """The database's file."""
        return self._database.path
