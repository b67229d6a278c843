"""What a tool asks the host for besides HTTP, each by a permission: `call:SERVER.TOOL`.

Such a permission stands among the tool's requests too, with the method that goes with it.
"""

from __future__ import annotations

from collections.abc import Mapping

from sandbox.bundle import RequestPattern

METHODS: Mapping[str, str] = {"call": "CALL"}
"""By the kind of permission."""
READING = frozenset({"CALL"})
"""Methods that a reading tool may have; whether a called tool writes, its own class says."""


def pattern_of(permission: str) -> RequestPattern | None:
    """The request that stands for a permission; None for one that is of no such kind."""
    method = METHODS.get(permission.partition(":")[0])
    return RequestPattern(method, permission) if method else None


def is_asked(request: RequestPattern) -> bool:
    """Whether a declared request is one of these."""
    return pattern_of(request.url) == request
