"""Logins of the control page: one-time codes, and the browser sessions begun with them."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field

LINK_SECONDS = 120.0
SESSION_SECONDS = 12 * 3600.0
MAX_SESSIONS = 64


@dataclass
class Logins:
    """Kept in memory only, so that they end with the control plane. Times are epoch seconds."""

    _links: dict[str, float] = field(default_factory=dict)
    _sessions: dict[str, float] = field(default_factory=dict)

    def create_code(self, now: float) -> str:
        """A new code, which logs in once within two minutes."""
        self._links = {code: end for code, end in self._links.items() if end > now}
        code = secrets.token_urlsafe(24)
        self._links[code] = now + LINK_SECONDS
        return code

    def begin_session(self, code: str, now: float) -> str | None:
        """The session that a code begins; None where the code is unknown, used or expired."""
        if self._links.pop(code, 0.0) <= now:
            return None
        while len(self._sessions) >= MAX_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        session = secrets.token_urlsafe(24)
        self._sessions[session] = now + SESSION_SECONDS
        return session

    def has_session(self, session: str, now: float) -> bool:
        return self._sessions.get(session, 0.0) > now
