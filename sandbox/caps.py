"""What one exchange may use."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Caps:
    """Sizes are bytes after decompression, times are seconds. `attempts` and the waits between
    them, `retry_budget_seconds` in all, are for requests that may be sent again.
    """

    request_bytes: int = 8 * 1024 * 1024
    response_bytes: int = 8 * 1024 * 1024
    url_bytes: int = 16 * 1024
    headers: int = 64
    header_bytes: int = 16 * 1024
    seconds: float = 30.0
    attempts: int = 3
    retry_budget_seconds: float = 20.0
    redirects: int = 3
    exchanges: int = 1000
