"""The tasks of computing tools, each with its hidden checks."""

from __future__ import annotations

from bench.author.task import Task
from bench.author.tasks import (
    access_log,
    business_days,
    csv_columns,
    durations,
    iban,
    roman,
    semver,
    settings_text,
    shares,
    tables,
    temperatures,
    words,
)

TASKS: tuple[Task, ...] = tuple(
    module.TASK
    for module in (
        access_log,
        business_days,
        csv_columns,
        durations,
        iban,
        roman,
        semver,
        settings_text,
        shares,
        tables,
        temperatures,
        words,
    )
)
