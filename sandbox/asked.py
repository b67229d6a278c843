"""What a tool asks the host for besides HTTP, each by a permission: `call:SERVER.TOOL`,
`tls:HOST:PORT`, `dns:ZONE`, `tcp:HOST:PORT`.

Such a permission stands among the tool's requests too, with the method that goes with it.
"""

from __future__ import annotations

from collections.abc import Mapping

from sandbox.bundle import RequestPattern
from sandbox.permissions import permissions_of

METHODS: Mapping[str, str] = {"call": "CALL", "tls": "READ", "dns": "READ", "tcp": "TALK"}
"""By the kind of permission."""
READING = frozenset({"CALL", "READ"})
"""Methods that a reading tool may have; whether a called tool writes, its own class says."""


def pattern_of(permission: str) -> RequestPattern | None:
    """The request that stands for a permission in its plain form; None for one that is of no such
    kind.
    """
    method = METHODS.get(permission.partition(":")[0])
    plain = (str(each) for each in permissions_of((permission,)))
    return RequestPattern(method, permission) if method and permission in plain else None


def is_asked(request: RequestPattern) -> bool:
    """Whether a declared request is one of these."""
    return pattern_of(request.url) == request
