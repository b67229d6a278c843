"""Retry delays: from an answer's headers, or exponential backoff with jitter."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from sandbox.wire.exchange import WireResponse

LIMITED = frozenset({429, 503})
"""Statuses that refuse for now, whatever the request is."""

BACKOFF_BASE = 0.5
BACKOFF_CAP = 8.0
MAX_WAIT = 10.0**7
"""Seconds; a longer hint is ignored as nonsense."""

_RESETS = ("ratelimit-reset", "x-ratelimit-reset", "x-rate-limit-reset")
_NUMBER = re.compile(r"[0-9]{1,14}(?:\.[0-9]{1,9})?\Z")
_RESET_PART = re.compile(r"(?:^|[;,\s])(?:reset|t)=([0-9]{1,9})(?![0-9.])")
_LEAP_SECOND = re.compile(r":60(?= )")
_SHORT_YEAR = re.compile(r"-[0-9]{2} ")
MAX_DATE = 64


def read_advised_wait(response: WireResponse, wall: float) -> float | None:
    """Seconds that a refusal asks to wait: Retry-After, or if that is absent or unreadable, the
    time until its rate limit is reset. None if it asks for nothing.

    `wall` is the present time; the answer's `Date` is preferred, being of the same clock.
    """
    now = parse_http_date(response.get_header("date") or "", wall) or wall
    found = _parse_retry_after(response, now)
    if found is None and response.status in LIMITED:
        found = _parse_reset(response, now)
    return None if found is None or found > MAX_WAIT else found


def compute_backoff(attempt: int, random: float) -> float:
    """Seconds to wait after an attempt (1 is the first): exponential with full jitter, so that
    clients refused together do not retry together. `random` is in 0..1.
    """
    return random * min(BACKOFF_CAP, BACKOFF_BASE * 2.0 ** min(attempt - 1, 30))


def parse_http_date(text: str, now: float) -> float | None:
    """A date in any of the three forms of RFC 9110 section 5.6.7 as seconds since 1970, or None.
    Other dates of mail are read too, as that section encourages; a zone that is not known is none.

    A two-digit year that lies more than 50 years ahead of `now` is one of the last century.
    """
    text = text.strip()[:MAX_DATE]
    if not text.isascii():
        return None
    # The form of C's asctime names no zone, and means GMT. `datetime` has no leap seconds.
    text = _LEAP_SECOND.sub(":59", text if text.endswith("GMT") else f"{text} GMT")
    try:
        found = parsedate_to_datetime(text)
        # `email.utils` takes every short year as one of 1969 to 2068.
        if _SHORT_YEAR.search(text) and found.year + 100 <= _get_year(now) + 50:
            found = found.replace(year=found.year + 100)
    except (ValueError, OverflowError, TypeError, IndexError):
        return None
    return None if found.tzinfo is None else found.timestamp()


def _get_year(now: float) -> int:
    return datetime.fromtimestamp(now, UTC).year


def add_retry_hint(response: WireResponse, wait: float | None) -> WireResponse:
    """The refusal with a Retry-After added, if its hint is in other headers only."""
    if wait is None or response.status not in LIMITED or response.get_header("retry-after"):
        return response
    headers = (*response.headers, ("retry-after", str(math.ceil(wait))))
    return WireResponse(response.status, headers, response.body)


def _parse_retry_after(response: WireResponse, now: float) -> float | None:
    """RFC 9110 section 10.2.3: seconds, or a date."""
    value = (response.get_header("retry-after") or "").strip()
    if value.isascii() and value.isdigit() and len(value) < 9:
        return float(value)
    until = parse_http_date(value, now)
    return None if until is None else max(0.0, until - now)


def _parse_reset(response: WireResponse, now: float) -> float | None:
    """The reset of a rate limit: seconds, or (as some APIs have it) a time in s or ms since 1970;
    also as the parameter of a `RateLimit` header (draft-ietf-httpapi-ratelimit-headers).
    """
    for name in _RESETS:
        value = (response.get_header(name) or "").strip()
        if _NUMBER.match(value):
            number = float(value)
            # Past 1e11 it must be milliseconds since 1970, past 1e9 seconds, else a duration.
            if number > 10.0**11:
                number /= 1000
            return max(0.0, number - now) if number > 10.0**9 else number
    found = _RESET_PART.search((response.get_header("ratelimit") or "")[:500])
    return float(found[1]) if found else None
