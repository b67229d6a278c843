"""One-time links: signed tokens that allow one action, once, until they expire.

One process makes and checks them, with a key that never leaves its memory, so nothing in a file or
in the database lets anyone forge or recover one. They end with the process.

A link ends when its approval does, which is no age: so its end is a part of what is signed, and the
serializer is the one without a time of its own.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import threading
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args

from itsdangerous import BadData, URLSafeSerializer

Act = Literal["approve", "reject", "freeze"]
Fault = Literal["foreign", "expired", "used"]
_TOKEN = re.compile(r"[A-Za-z0-9_.-]{1,2000}")
"""Decoders of base64 take other letters for these too, or skip them: a token is written in one way.
"""


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


def _build_signer() -> URLSafeSerializer:
    # The 48 bytes of SHA-384 are whole letters of base64, so that no signature can be written in
    # two ways. The salt keeps these tokens apart from others that a key may come to sign.
    return URLSafeSerializer(
        secrets.token_bytes(32), "one-time link", signer_kwargs={"digest_method": hashlib.sha384}
    )


@dataclass
class OneTimeLinks:
    """Creates, checks and uses up links. Thread-safe."""

    _signer: URLSafeSerializer = field(default_factory=_build_signer, repr=False)
    _used: dict[str, float] = field(default_factory=dict, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def create_token(self, act: Act, subject: str, digest: str, expires: float) -> str:
        """The token of a new link, which needs no escaping in a URL (RFC 4648 section 5)."""
        ticket = Ticket(act, subject, digest, expires, secrets.token_hex(8))
        return self._signer.dumps(asdict(ticket))

    def check_token(self, token: str, now: float) -> Ticket | Fault:
        """The ticket of a link that can still be used, or what is wrong with it."""
        if not _TOKEN.fullmatch(token):
            return "foreign"
        try:
            # Nothing of a token is read before its signature is right.
            ticket = _parse_ticket(self._signer.loads(token))
        except BadData:
            return "foreign"
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


def _parse_ticket(value: dict[str, Any]) -> Ticket:
    assert value["act"] in get_args(Act)
    return Ticket(**value)
