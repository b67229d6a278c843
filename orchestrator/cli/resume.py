"""A job's progress at the terminal, live."""

from __future__ import annotations

import threading
from types import TracebackType

from orchestrator.terminal import err
from registry.store import Store
from sandbox.cleantext import clean_text

PERIOD_SECONDS = 0.05


class Progress:
    """Prints each event of a job as it comes, for the time of the block, on stderr."""

    def __init__(self, store: Store, job: str, quiet: bool = False) -> None:
        self._store, self._job, self._quiet = store, job, quiet
        self._shown = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Progress:
        if not self._quiet:
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        if not self._quiet:
            self._thread.join()
            self._show()

    def _watch(self) -> None:
        while not self._stop.wait(PERIOD_SECONDS):
            self._show()

    def _show(self) -> None:
        job = self._store.job(self._job)
        for event in job.log[self._shown :]:
            took = event.time - job.created
            err.print(f"[dim]{took:6.2f} s[/dim]  {event.stage:<9}", end=" ")
            err.print(clean_text(event.message), markup=False)
        self._shown = len(job.log)
