"""Logins of the control page: one-time codes, and the browser sessions begun with them.

Codes, cookies and keys are random and known to this process alone, which is stronger than a signed
token: there is nothing to forge, a code can be used up, and a session be ended. Only the forms of a
page are signed, since there are many of them and each says itself what it posts to.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass, field

from itsdangerous import Signer

LINK_SECONDS = 120.0
SESSION_SECONDS = 12 * 3600.0
MAX_SESSIONS = 64


def _build_signer() -> Signer:
    return Signer(secrets.token_bytes(32), "form", digest_method=hashlib.sha384)


@dataclass(frozen=True)
class LoginSession:
    """A browser that is logged in, until `ends` (epoch seconds).

    `cookie` comes with every request to the page's host, whatever its port. `key` is known to the
    page's script alone: browsers keep it for the page's origin, port included. `forms` signs what
    the page offers to do.
    """

    ends: float
    cookie: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)
    key: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)
    forms: Signer = field(default_factory=_build_signer, repr=False)

    def sign_form(self, path: str) -> str:
        """The token of a form that posts to a path."""
        return self.forms.get_signature(path).decode()

    def is_form(self, path: str, token: str) -> bool:
        """Whether a token is that of a form that posts to a path, in constant time."""
        return self.forms.verify_signature(path.encode(), token.encode("utf-8", "replace"))


@dataclass
class Logins:
    """Kept in memory only, so that they end with the control plane. Times are epoch seconds."""

    _links: dict[str, float] = field(default_factory=dict)
    _sessions: dict[str, LoginSession] = field(default_factory=dict)

    def create_code(self, now: float) -> str:
        """A new code, which logs in once within two minutes."""
        self._links = {code: end for code, end in self._links.items() if end > now}
        code = secrets.token_urlsafe(24)
        self._links[code] = now + LINK_SECONDS
        return code

    def begin_session(self, code: str, now: float) -> LoginSession | None:
        """The session that a code begins; None where the code is unknown, used or expired."""
        if self._links.pop(code, 0.0) <= now:
            return None
        while len(self._sessions) >= MAX_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        session = LoginSession(now + SESSION_SECONDS)
        self._sessions[session.cookie] = session
        return session

    def end_session(self, session: LoginSession) -> None:
        """Log a browser out."""
        self._sessions.pop(session.cookie, None)

    def find_session(self, cookie: str, now: float) -> LoginSession | None:
        """The session of a cookie; None where there is none or it has ended."""
        session = self._sessions.get(cookie)
        return session if session is not None and session.ends > now else None
