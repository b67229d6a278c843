"""Signing the heads of the audit chains into a file outside the database (Ed25519, RFC 8032).

The file `heads.jsonl` is append-only: one JSON object a line, each holding the hash of the line
before it, so that lines cannot be dropped from its middle. Lines also name the key of people's
decisions by its fingerprint, so that another key is seen to be another. Whoever can rewrite the
database *and* this file *and* read the key can still forge; copies of the last line elsewhere close
that.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import (
    Ed25519PrivateKey,
    Ed25519PublicKey,
)

from registry.audit import GENESIS, Broken, Head
from registry.errors import NotaryDamaged
from registry.files import create_secret, locked
from registry.jsontext import canonical
from registry.store import Store

HEADS, KEY = "heads.jsonl", "audit.key"
_OUT_OF_ORDER = "the line does not follow the one before it"


class Notary:
    """The signing key and the signed heads in one directory. The key is made on first use, 0600."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._path = directory / HEADS
        self._key = _load_key(directory / KEY)
        self._offset, self._last = 0, GENESIS
        self._signed: dict[str, Head] = {}
        self._decisions = ""

    @property
    def directory(self) -> Path:
        """Where the heads, their key and the audit's archives lie."""
        return self._path.parent

    def pinned(self) -> str:
        """The fingerprint of the key of people's decisions that was named last, or "".

        Only the line that names it is checked, as `verify` checks all. Raises NotaryDamaged where
        its signature does not fit.
        """
        naming = [line for line in _lines(self._path, 0) if b'"decisions"' in line]
        if not naming:
            return ""
        reason = _line_problem(naming[-1], "", self._key.public_key())
        if reason and reason != _OUT_OF_ORDER:
            raise NotaryDamaged(str(self._path), reason)
        return str(json.loads(naming[-1]).get("decisions", ""))

    def sign_heads(self, store: Store, now: float, decisions: str = "") -> tuple[Head, ...]:
        """Sign every head that has moved since it was last signed, and return those.

        `decisions` is the fingerprint of the key of people's decisions, which is named whenever it
        is not the one that was named last. Raises NotaryDamaged where the file holds a line that is
        none of ours.
        """
        with locked(self._path):
            self._catch_up()
            moved = tuple(h for h in store.audit_heads() if self._signed.get(h.chain) != h)
            named = decisions if decisions != self._decisions else ""
            if moved or named:
                _append_line(self._path, self._offset, self._line(moved, now, named))
        return moved

    def verify(self, store: Store) -> Broken | None:
        """The first broken link of the signed heads or of the store's chains, or None."""
        return self.verified(store)[0]

    def verified(self, store: Store) -> tuple[Broken | None, int]:
        """`verify`, and how many rows were checked."""
        signed: list[Head] = []
        previous = GENESIS
        for number, line in enumerate(_lines(self._path, 0), 1):
            reason = _line_problem(line, previous, self._key.public_key())
            if reason:
                return Broken(HEADS, number, reason), 0
            signed += _heads(json.loads(line))
            previous = _digest(line)
        return store.count_verified(signed, self.directory)

    def _catch_up(self) -> None:
        for line in _lines(self._path, self._offset):
            reason = _line_problem(line, self._last, self._key.public_key())
            if reason:
                raise NotaryDamaged(str(self._path), reason)
            body = json.loads(line)
            self._signed.update({head.chain: head for head in _heads(body)})
            self._decisions = body.get("decisions") or self._decisions
            self._last = _digest(line)
            self._offset += len(line)

    def _line(self, heads: tuple[Head, ...], now: float, decisions: str) -> bytes:
        body: dict[str, Any] = {
            "time": now,
            "heads": {head.chain: [head.sequence, head.hash] for head in heads},
            "previous": self._last,
            **({"decisions": decisions} if decisions else {}),
        }
        signature = self._key.sign(canonical(body).encode())
        return canonical({**body, "signature": signature.hex()}).encode() + b"\n"


def _load_key(path: Path) -> Ed25519PrivateKey:
    fresh = Ed25519PrivateKey.generate().private_bytes_raw()
    try:
        return Ed25519PrivateKey.from_private_bytes(create_secret(path, fresh))
    except (OSError, ValueError) as error:
        raise NotaryDamaged(str(path), str(error)) from error


def _lines(path: Path, offset: int) -> list[bytes]:
    """The complete lines after an offset; a crash may have left a piece of one at the end."""
    try:
        with path.open("rb") as file:
            file.seek(offset)
            return [line for line in file if line.endswith(b"\n")]
    except FileNotFoundError:
        return []


def _digest(line: bytes) -> str:
    return hashlib.sha256(line).hexdigest()


def _heads(line: Mapping[str, Any]) -> list[Head]:
    return [Head(chain, int(at), str(digest)) for chain, (at, digest) in line["heads"].items()]


def _append_line(path: Path, offset: int, line: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.truncate(offset)
        file.seek(offset)
        file.write(line)
        file.flush()
        os.fsync(descriptor)


def _line_problem(line: bytes, previous: str, key: Ed25519PublicKey) -> str:
    try:
        body = json.loads(line)
        signature = bytes.fromhex(body.pop("signature"))
        key.verify(signature, canonical(body).encode())
        _heads(body)
    except InvalidSignature:
        return "the signature does not fit the line"
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        return f"the line cannot be read: {error}"
    return "" if body["previous"] == previous else _OUT_OF_ORDER
