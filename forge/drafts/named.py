"""Tools that a task asks for by name."""

from __future__ import annotations

import re
from collections.abc import Collection

MAX_TASK = 4_000
MAX_NAMED = 20
_CLAUSE = re.compile(r"\btools?\b[^.;:!?\n]{0,10}[:]?[^.;!?\n]{0,300}", re.IGNORECASE)
_NAME = re.compile(r"(?<![\w./-])[a-z][a-z0-9]*(?:_[a-z0-9]+)+(?![\w/-])")


def find_missing_tools(task: str, tools: Collection[str]) -> tuple[str, ...]:
    """The names that a task gives behind the word `tool`, such as `move_zone`, and that none of the
    tools has; in the task's order.
    """
    named = [name for clause in _CLAUSE.findall(task[:MAX_TASK]) for name in _NAME.findall(clause)]
    return tuple(name for name in dict.fromkeys(named) if name not in tools)[:MAX_NAMED]
