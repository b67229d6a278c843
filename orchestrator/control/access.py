"""Access to the control plane: by its token, or by a browser at the page's own origin.

Cookies know no ports: what a browser keeps for 127.0.0.1 it shows to every server there. So none
counts under the common names of this machine; the page has a name of its own, new at every start.
Names below `localhost` are this machine's (RFC 6761 section 6.3), and browsers resolve them
themselves.
"""

from __future__ import annotations

import hmac
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from starlette.requests import Request

from orchestrator.control.logins import Logins, LoginSession

COOKIE = "toolwright"
KEY_HEADER, FORM_HEADER = "x-toolwright-key", "x-toolwright-form"
LOCAL_NAMES = frozenset({"127.0.0.1", "localhost", "[::1]"})


def _generate_name() -> str:
    return f"tw-{secrets.token_hex(8)}.localhost"


@dataclass(frozen=True)
class Refusal:
    """The HTTP status and the reason of a refusal."""

    status: int
    reason: str


@dataclass(frozen=True)
class ControlAccess:
    """Judges requests. `page_name` is the host name of the page's origin."""

    token: str = field(repr=False)
    logins: Logins = field(default_factory=Logins)
    page_name: str = field(default_factory=_generate_name)

    def check_request(self, request: Request) -> Refusal | None:
        """Why a request is refused; None where it has the token, or comes from the page."""
        if not self.is_own_site(request):
            return Refusal(403, "wrong Host or Origin")
        if self.has_token(request):
            return None
        session = self.find_session(request)
        if session is None:
            return Refusal(401, "the token is missing or wrong")
        key = request.headers.get(KEY_HEADER, "")
        if not hmac.compare_digest(key.encode(), session.key.encode()):
            return Refusal(401, "the page's key is missing or wrong; open the page anew")
        if request.method in ("GET", "HEAD"):
            return None
        # A browser names the origin of every POST (Fetch standard, "origin-serialized").
        if "origin" not in request.headers:
            return Refusal(403, "the Origin is missing")
        if not session.is_form(request.url.path, request.headers.get(FORM_HEADER, "")):
            return Refusal(403, "this is no form that the page showed")
        return None

    def check_view(self, request: Request) -> Refusal | None:
        """Why a page that holds nothing of the user's is not shown; None where it is.

        A browser that is led to it can send its cookie and no key.
        """
        if not self.is_own_site(request):
            return Refusal(403, "wrong Host or Origin")
        if self.has_token(request) or self.find_session(request) is not None:
            return None
        return Refusal(401, "open the page with `toolwright control --open`")

    def find_plain_session(
        self, request: Request, fields: Mapping[str, str], form: str
    ) -> LoginSession | None:
        """The session whose page showed the form of that name that was posted without script, with
        its key and token as fields; None where anything of it is missing or wrong.
        """
        if not self.is_own_site(request) or "origin" not in request.headers:
            return None
        session = self.find_session(request)
        if session is None:
            return None
        own = hmac.compare_digest(fields.get("key", "").encode(), session.key.encode())
        return session if own and session.is_form(form, fields.get("form", "")) else None

    def is_own_site(self, request: Request) -> bool:
        """Whether Host is a name of this machine or the page's, and Origin, if any, is this host
        (against DNS rebinding).
        """
        whole = request.headers.get("host", "")
        origin = request.headers.get("origin")
        own = {*LOCAL_NAMES, self.page_name}
        return _cut_port(whole) in own and (origin is None or origin == f"http://{whole}")

    def is_page_origin(self, request: Request) -> bool:
        return _cut_port(request.headers.get("host", "")) == self.page_name

    def has_token(self, request: Request) -> bool:
        scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
        given = bearer if scheme.lower() == "bearer" else ""
        return hmac.compare_digest(given.encode(), self.token.encode())

    def find_session(self, request: Request) -> LoginSession | None:
        """The browser's session; None under a name that other servers of this machine share."""
        if not self.is_page_origin(request):
            return None
        return self.logins.find_session(request.cookies.get(COOKIE, ""), time.time())

    def build_page_url(self, request: Request, rest: str) -> str:
        """The URL of the page on the port that this request came to, with a path and query."""
        port = request.headers.get("host", "").rpartition(":")[2]
        return f"http://{self.page_name}{f':{port}' if port.isdigit() else ''}{rest}"


def _cut_port(host: str) -> str:
    return host.rpartition(":")[0] or host
