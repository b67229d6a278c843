"""When a refused request may be sent again: what the answer says, or a growing random wait."""

from __future__ import annotations

import math
import re
from calendar import timegm

from sandbox.exchange import WireResponse

LIMITED = frozenset({429, 503})
"""The statuses that say "not now" and nothing of the request itself."""

BACKOFF_BASE = 0.5
BACKOFF_CAP = 8.0
MAX_WAIT = 10.0**7
"""Seconds. Beyond it a hint is nonsense."""

_RESETS = ("ratelimit-reset", "x-ratelimit-reset", "x-rate-limit-reset")
_NUMBER = re.compile(r"[0-9]{1,14}(?:\.[0-9]{1,9})?\Z")
_RESET_PART = re.compile(r"(?:^|[;,\s])(?:reset|t)=([0-9]{1,9})(?![0-9.])")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = "(?P<month>" + "|".join(_MONTHS) + ")"
_TIME = r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)"
_DATES = tuple(
    re.compile(form, re.IGNORECASE | re.ASCII)
    for form in (
        rf"[a-z]{{3}}, (?P<day>\d\d) {_MONTH} (?P<year>\d{{4}}) {_TIME} GMT\Z",
        rf"[a-z]{{6,9}}, (?P<day>\d\d)-{_MONTH}-(?P<year>\d\d) {_TIME} GMT\Z",
        rf"[a-z]{{3}} {_MONTH} (?P<day>[ \d]\d) {_TIME} (?P<year>\d{{4}})\Z",
    )
)


def advised_wait(response: WireResponse, wall: float) -> float | None:
    """Seconds that a refusal asks to wait: Retry-After, or where that is absent or unreadable, the
    time at which its rate limit is reset. None where it says nothing.

    `wall` is the present time; a `Date` of the answer goes before it, being the same clock's.
    """
    now = http_date(response.header("date") or "", wall) or wall
    found = _retry_after(response, now)
    if found is None and response.status in LIMITED:
        found = _reset(response, now)
    return None if found is None or found > MAX_WAIT else found


def backoff(attempt: int, random: float) -> float:
    """The wait after the given attempt (1 is the first): exponential, with full jitter, so that
    clients that were refused together do not come back together. `random` is in 0..1.
    """
    return random * min(BACKOFF_CAP, BACKOFF_BASE * 2.0 ** min(attempt - 1, 30))


def http_date(text: str, now: float) -> float | None:
    """A date in any of the three forms of RFC 9110 section 5.6.7 as seconds since 1970, or None.

    A two-digit year that lies more than 50 years ahead of `now` is one of the last century.
    """
    for form in _DATES if text else ():
        found = form.match(text.strip()[:64])
        if found is None:
            continue
        part = {key: value.lower() for key, value in found.groupdict().items()}
        month = _MONTHS.index(part["month"]) + 1
        year, day, *clock = (int(part[key]) for key in ("year", "day", "hour", "minute", "second"))
        if len(part["year"]) == 2:
            this = 1970 + int(now / 31_556_952)
            year += this - this % 100
            year -= 100 if year > this + 50 else 0
        if not (1 <= day <= 31 and clock[0] < 24 and clock[1] < 60 and clock[2] <= 60):
            return None
        return float(timegm((year, month, day, *clock)))
    return None


def with_hint(response: WireResponse, wait: float | None) -> WireResponse:
    """The refusal with a Retry-After where it gives its hint in other headers only."""
    if wait is None or response.status not in LIMITED or response.header("retry-after"):
        return response
    headers = (*response.headers, ("retry-after", str(math.ceil(wait))))
    return WireResponse(response.status, headers, response.body)


def _retry_after(response: WireResponse, now: float) -> float | None:
    """RFC 9110 section 10.2.3: seconds, or a date."""
    value = (response.header("retry-after") or "").strip()
    if value.isascii() and value.isdigit() and len(value) < 9:
        return float(value)
    until = http_date(value, now)
    return None if until is None else max(0.0, until - now)


def _reset(response: WireResponse, now: float) -> float | None:
    """The reset of a rate limit: seconds, or (as some APIs have it) a time in s or ms since 1970;
    also as the parameter of a `RateLimit` header (draft-ietf-httpapi-ratelimit-headers).
    """
    for name in _RESETS:
        value = (response.header(name) or "").strip()
        if _NUMBER.match(value):
            number = float(value)
            if number > 10.0**11:
                number /= 1000
            return max(0.0, number - now) if number > 10.0**9 else number
    found = _RESET_PART.search((response.header("ratelimit") or "")[:500])
    return float(found[1]) if found else None
