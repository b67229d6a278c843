"""Which jobs' clients are connected to this process and let their own model be asked."""

from __future__ import annotations

from dataclasses import dataclass, field

from forge.author import Author

MAX_JOBS = 1000


@dataclass
class Samplers:
    """The authors of jobs whose clients can sample, while this process lives."""

    _authors: dict[str, Author] = field(default_factory=dict)

    def attach(self, job: str, author: Author) -> None:
        """Let the client that asked for a job be asked for its code."""
        while len(self._authors) >= MAX_JOBS:
            del self._authors[next(iter(self._authors))]
        self._authors[job] = author

    def author(self, job: str) -> Author | None:
        return self._authors.get(job)
