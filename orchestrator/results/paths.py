"""Paths into kept results, without the library that follows them (`jsonpaths.py`): most processes
never do.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class PathProblem:
    """Why a path finds nothing, in words."""

    reason: str


def find_value(value: Any, path: str) -> Any | PathProblem:
    """What a path finds in a value: one value, or a list of values unless it is singular."""
    return importlib.import_module("orchestrator.results.jsonpaths").find_value(value, path)
