"""What becomes of the writes of one call."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Release:
    """One write may leave: the request with this digest, or, where it is None, the first one."""

    digest: str | None


@dataclass(frozen=True)
class Capture:
    """Writes are captured and not sent."""


WriteMode = Release | Capture | None
