"""Parts of a process that its task runs take."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from orchestrator.calls import Call, Reply
from orchestrator.forging.authors.authors import Authors
from orchestrator.gateway.catalog import Catalog
from orchestrator.jobs.runner import Work
from orchestrator.results.keeper import ResultKeeper
from orchestrator.settings import DecisionBands
from orchestrator.tasks.suggestions import Suggestions


@dataclass(frozen=True)
class TaskParts:
    """`checkpoints` is the file of their states; `prepare` opens a tool's session beside what is
    done until its call; `call` makes a call under an id, a write once;
    `forge` carries out the forging of a job (`ForgeJobRunner.run_forge_job`), `repair` that of a
    server whose call failed (`AwaitedRepairs.repair`); `results` are those kept for sessions.
    """

    checkpoints: Path
    roster: Catalog
    suggestions: Suggestions
    authors: Authors
    prepare: Callable[[str, str], None]
    call: Callable[[Call, str], Awaitable[Reply]]
    forge: Work
    repair: Callable[[str], Awaitable[bool]]
    bands: DecisionBands
    results: ResultKeeper
