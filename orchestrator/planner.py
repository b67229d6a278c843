"""A task in words as steps. Words alone never act, so splitting them is enough."""

from __future__ import annotations

import re

MAX_STEPS = 10
_JOINTS = re.compile(r"\s*(?:;|\n+|,?\s+(?:and\s+)?then\s+)\s*", re.IGNORECASE)
_BULLET = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)])\s+")


def plan(task: str) -> tuple[str, ...]:
    """The steps of a task in order, one to ten: split at lines, semicolons and `then`."""
    parts = (_BULLET.sub("", part).strip(" .") for part in _JOINTS.split(task))
    steps = tuple(part for part in parts if part)[:MAX_STEPS]
    return steps or (task,)
