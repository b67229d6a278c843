"""One-time links: whoever has one may do the one thing it is for, once, for a while.

They are made and taken by one process and sealed with a key that never leaves its memory: nothing
that lies in a file or in the database lets anyone make one or find one. They end with the process.
"""

from __future__ import annotations

import base64
import hmac
import json
import secrets
import threading
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from typing import Any, Literal, get_args

Act = Literal["approve", "reject", "freeze"]
Fault = Literal["foreign", "expired", "used"]
MAX_TOKEN = 2_000


@dataclass(frozen=True)
class Ticket:
    """What a link is for. `subject` is an approval's id and `digest` its request's, or both "".

    `expires` is in epoch seconds.
    """

    act: Act
    subject: str
    digest: str
    expires: float
    nonce: str


@dataclass
class Links:
    """`look` says what a link is for, `take` uses it up. Threads may share them."""

    _key: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)
    _used: dict[str, float] = field(default_factory=dict, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def make(self, act: Act, subject: str, digest: str, expires: float) -> str:
        """The token of a new link: letters that need no escaping in a URL."""
        ticket = Ticket(act, subject, digest, expires, secrets.token_hex(8))
        body = _encoded(json.dumps(asdict(ticket)).encode())
        return f"{body}.{self._seal(body)}"

    def look(self, token: str, now: float) -> Ticket | Fault:
        """The ticket of a link that can still be used, or what is wrong with it."""
        body, _, seal = token[:MAX_TOKEN].partition(".")
        if not hmac.compare_digest(seal.encode("utf-8", "replace"), self._seal(body).encode()):
            return "foreign"
        ticket = _ticket(json.loads(_decoded(body)))
        if ticket.nonce in self._used:
            return "used"
        return ticket if now < ticket.expires else "expired"

    def take(self, token: str, now: float) -> Ticket | Fault:
        """Use a link up. Of several at once exactly one gets the ticket."""
        with self._lock:
            self._used = {nonce: end for nonce, end in self._used.items() if end > now}
            found = self.look(token, now)
            if isinstance(found, Ticket):
                self._used[found.nonce] = found.expires
            return found

    def _seal(self, body: str) -> str:
        digest = hmac.new(self._key, body.encode("utf-8", "replace"), sha256).digest()
        return _encoded(digest)


def _encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _ticket(value: dict[str, Any]) -> Ticket:
    assert value["act"] in get_args(Act)
    return Ticket(**value)
