"""Services of the directory of public APIs that could be forged for a task."""

from __future__ import annotations

import shlex

from forge.directory.search import suggest_services
from forge.text import render_count

MOST_SUGGESTED = 3
MAX_TASK = 120


def describe_suggestions(task: str) -> tuple[str, ...]:
    """A line a service that a task may mean, each with its command, at most `MOST_SUGGESTED`."""
    lines = []
    for each in suggest_services(task, MOST_SUGGESTED):
        service = each.service
        words = shlex.quote(" ".join(task.split())[:MAX_TASK].replace("`", "'"))
        source = shlex.quote(service.location)
        age = f", updated {service.updated}" if service.updated else ""
        server = service.host or "no server named"
        count = render_count(service.operations, "operation")
        lines.append(
            f"{service.title} ({server}, {count}{age}): toolwright forge {words} --source {source}"
        )
    return tuple(lines)
