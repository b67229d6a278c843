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

from registry.audit.search import AuditTable
from registry.database.audit_chain import GENESIS, BrokenLink, ChainHead
from registry.database.canonical import to_canonical_json
from registry.database.files import create_secret, lock_file
from registry.errors import SignedHeadsDamaged

HEADS, KEY = "heads.jsonl", "audit.key"
TAIL = 4 * 1024 * 1024


class HeadSigner:
    """The signing key and the file of signed heads in one directory.

    The key is created on first use, with mode 0600.
    """

    def __init__(self, directory: Path) -> None:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._path = directory / HEADS
        self._key = _load_key(directory / KEY)
        self._offset, self._last = 0, GENESIS
        self._signed: dict[str, ChainHead] = {}
        self._decisions = ""

    @property
    def directory(self) -> Path:
        """The directory of the heads, their key and the audit's archives."""
        return self._path.parent

    def find_pinned_fingerprint(self) -> str:
        """The fingerprint of the decision key that the file names last, or "".

        Checks the signature of that line only; verifying the audit checks all lines. Raises
        NotaryDamaged where the signature is invalid.
        """
        naming = [line for line in _read_lines(self._path, 0) if b'"decisions"' in line]
        if not naming:
            return ""
        reason = _seal_problem(naming[-1], self._key.public_key())
        if reason:
            raise SignedHeadsDamaged(str(self._path), reason)
        return str(json.loads(naming[-1]).get("decisions", ""))

    def sign_heads(
        self, audit: AuditTable, now: float, decisions: str = ""
    ) -> tuple[ChainHead, ...]:
        """Sign every head that has moved since it was last signed, and return those.

        `decisions` is the fingerprint of the decision key; it is written whenever it differs from
        the last one written. Raises NotaryDamaged where the file holds a line with an invalid
        signature or out of order.
        """
        with lock_file(self._path):
            self._read_new_lines()
            moved = tuple(h for h in audit.get_heads() if self._signed.get(h.chain) != h)
            named = decisions if decisions != self._decisions else ""
            if moved or named:
                _append_line(self._path, self._offset, self._build_line(moved, now, named))
        return moved

    def read_new_heads(self) -> tuple[ChainHead, ...]:
        """The heads that were signed since the last call; at first, the latest ones. Raises
        SignedHeadsDamaged.
        """
        return tuple(self._read_new_lines())

    def verify_audit(self, audit: AuditTable) -> BrokenLink | None:
        """The first broken link of the signed heads or of the store's chains, or None."""
        return self.verify_and_count(audit)[0]

    def verify_and_count(self, audit: AuditTable) -> tuple[BrokenLink | None, int]:
        """The first broken link, or None, and the number of rows that were checked."""
        signed: list[ChainHead] = []
        previous = GENESIS
        for number, line in enumerate(_read_lines(self._path, 0), 1):
            reason = _find_line_problem(line, previous, self._key.public_key())
            if reason:
                return BrokenLink(HEADS, number, reason), 0
            signed += _parse_heads(json.loads(line))
            previous = _hash_line(line)
        return audit.verify_and_count(signed, self.directory)

    def _read_new_lines(self) -> list[ChainHead]:
        found: list[ChainHead] = []
        if self._offset:
            lines, previous = _read_lines(self._path, self._offset), self._last
        else:
            self._offset, lines = _read_tail(self._path)
            previous = "" if self._offset else GENESIS
        for line, body in zip(lines, self._parse_lines(lines, previous), strict=True):
            heads = _parse_heads(body)
            found += heads
            self._signed.update({head.chain: head for head in heads})
            self._decisions = body.get("decisions") or self._decisions
            self._last = _hash_line(line)
            self._offset += len(line)
        return found

    def _parse_lines(self, lines: list[bytes], previous: str) -> list[Mapping[str, Any]]:
        """Lines that follow each other, the first one `previous` where that is known. Each holds
        the hash of the one before it, so the signature of the last one covers them all.

        Raises SignedHeadsDamaged.
        """
        reason = _seal_problem(lines[-1], self._key.public_key()) if lines else ""
        found = []
        for line in lines if not reason else ():
            reason = _find_place_problem(line, previous)
            if reason:
                break
            found.append(json.loads(line))
            previous = _hash_line(line)
        if reason:
            raise SignedHeadsDamaged(str(self._path), reason)
        return found

    def _build_line(self, heads: tuple[ChainHead, ...], now: float, decisions: str) -> bytes:
        body: dict[str, Any] = {
            "time": now,
            "heads": {head.chain: [head.sequence, head.hash] for head in heads},
            "previous": self._last,
            **({"decisions": decisions} if decisions else {}),
        }
        signature = self._key.sign(to_canonical_json(body).encode())
        return to_canonical_json({**body, "signature": signature.hex()}).encode() + b"\n"


def _load_key(path: Path) -> Ed25519PrivateKey:
    fresh = Ed25519PrivateKey.generate().private_bytes_raw()
    try:
        return Ed25519PrivateKey.from_private_bytes(create_secret(path, fresh))
    except (OSError, ValueError) as error:
        raise SignedHeadsDamaged(str(path), str(error)) from error


def _read_lines(path: Path, offset: int) -> list[bytes]:
    """The complete lines after an offset; a crash may have left a piece of one at the end."""
    try:
        with path.open("rb") as file:
            file.seek(offset)
            return [line for line in file if line.endswith(b"\n")]
    except FileNotFoundError:
        return []


def _read_tail(path: Path) -> tuple[int, list[bytes]]:
    """The last complete lines, some 4 MiB of them, and where they begin. What was signed before is
    left to `audit verify`, so that no process waits for years of signatures.
    """
    try:
        start = max(0, path.stat().st_size - TAIL)
    except FileNotFoundError:
        return 0, []
    lines = _read_lines(path, start)
    if not start or not lines:
        return start, lines
    return start + len(lines[0]), lines[1:]


def _hash_line(line: bytes) -> str:
    return hashlib.sha256(line).hexdigest()


def _parse_heads(line: Mapping[str, Any]) -> list[ChainHead]:
    return [ChainHead(chain, int(at), str(digest)) for chain, (at, digest) in line["heads"].items()]


def _append_line(path: Path, offset: int, line: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.truncate(offset)
        file.seek(offset)
        file.write(line)
        file.flush()
        os.fsync(descriptor)


def _find_line_problem(line: bytes, previous: str, key: Ed25519PublicKey) -> str:
    """What is wrong with a line or its place; "" where nothing is."""
    return _seal_problem(line, key) or _find_place_problem(line, previous)


def _find_place_problem(line: bytes, previous: str) -> str:
    """What is wrong with a line's place; "" where nothing is, or where that is not known."""
    try:
        body = json.loads(line)
        _parse_heads(body)
        follows = body["previous"] == (previous or body["previous"])
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        return f"the line cannot be read: {error}"
    return "" if follows else "the line does not follow the one before it"


def _seal_problem(line: bytes, key: Ed25519PublicKey) -> str:
    """What is wrong with a line by itself; "" where nothing is."""
    try:
        body = json.loads(line)
        signature = bytes.fromhex(body.pop("signature"))
        key.verify(signature, to_canonical_json(body).encode())
        _parse_heads(body)
        body["previous"]
    except InvalidSignature:
        return "the signature does not fit the line"
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        return f"the line cannot be read: {error}"
    return ""
