"""One-time links: sealed tokens that allow one action, once, until they expire.

One process makes and checks them, with a key that never leaves its memory, so nothing in a file or
in the database lets anyone forge or recover one. They end with the process.
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
class OneTimeLinks:
    """Creates, checks and uses up links. Thread-safe."""

    _key: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)
    _used: dict[str, float] = field(default_factory=dict, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def create_token(self, act: Act, subject: str, digest: str, expires: float) -> str:
        """The token of a new link, which needs no escaping in a URL (RFC 4648 section 5)."""
        ticket = Ticket(act, subject, digest, expires, secrets.token_hex(8))
        body = _encode_base64(json.dumps(asdict(ticket)).encode())
        return f"{body}.{self._compute_seal(body)}"

    def check_token(self, token: str, now: float) -> Ticket | Fault:
        """The ticket of a link that can still be used, or what is wrong with it."""
        body, _, seal = token[:MAX_TOKEN].partition(".")
        if not hmac.compare_digest(
            seal.encode("utf-8", "replace"), self._compute_seal(body).encode()
        ):
            return "foreign"
        ticket = _parse_ticket(json.loads(_decode_base64(body)))
        if ticket.nonce in self._used:
            return "used"
        return ticket if now < ticket.expires else "expired"

    def use_token(self, token: str, now: float) -> Ticket | Fault:
        """Use up a link; of several concurrent calls exactly one gets the ticket."""
        with self._lock:
            self._used = {nonce: end for nonce, end in self._used.items() if end > now}
            found = self.check_token(token, now)
            if isinstance(found, Ticket):
                self._used[found.nonce] = found.expires
            return found

    def _compute_seal(self, body: str) -> str:
        digest = hmac.new(self._key, body.encode("utf-8", "replace"), sha256).digest()
        return _encode_base64(digest)


def _encode_base64(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def _decode_base64(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _parse_ticket(value: dict[str, Any]) -> Ticket:
    assert value["act"] in get_args(Act)
    return Ticket(**value)
