"""The PIN that a person types to approve, unfreeze or grant: its scrypt hash and a lock on disk."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from registry.errors import PinUnusable
from registry.files import locked, write_atomically

MIN_LENGTH = 6
ATTEMPTS = 5
LOCK_SECONDS = 60.0
_MEMORY = 64 * 1024 * 1024


@dataclass(frozen=True)
class PinCheck:
    """`locked_until` (epoch seconds) is set where the PIN was not even looked at."""

    ok: bool
    locked_until: float | None = None


@dataclass(frozen=True)
class _Record:
    salt: str
    hash: str
    n: int = 2**15
    r: int = 8
    p: int = 1
    failures: int = 0
    locked_until: float = 0.0


def set_pin(path: Path, pin: str) -> None:
    """Store the hash of a PIN (scrypt, RFC 7914), in place of any before.

    Raises PinUnusable for one of fewer than 6 characters: 5 tries a minute find a shorter one
    within days.
    """
    if len(pin) < MIN_LENGTH:
        raise PinUnusable(f"a PIN has at least {MIN_LENGTH} characters")
    blank = _Record(salt=os.urandom(16).hex(), hash="")
    with locked(path):
        _store(path, replace(blank, hash=_hash(blank, pin)))


def verify_pin(path: Path, pin: str, now: float) -> PinCheck:
    """Whether this is the PIN. The fifth wrong one in a row, and each after it, locks for 60 s.

    Raises PinUnusable where none is set or the file cannot be read.
    """
    with locked(path):
        record = _load(path)
        if now < record.locked_until:
            return PinCheck(False, record.locked_until)
        failures = record.failures + 1
        until = now + LOCK_SECONDS if failures >= ATTEMPTS else 0.0
        # Counted before it is checked, so that killing the check does not buy another try.
        _store(path, replace(record, failures=failures, locked_until=until))
        if not hmac.compare_digest(_hash(record, pin), record.hash):
            return PinCheck(False)
        _store(path, replace(record, failures=0, locked_until=0.0))
        return PinCheck(True)


def _hash(record: _Record, pin: str) -> str:
    salt = bytes.fromhex(record.salt)
    cost = {"n": record.n, "r": record.r, "p": record.p, "maxmem": _MEMORY}
    return hashlib.scrypt(pin.encode(), salt=salt, **cost).hex()


def _load(path: Path) -> _Record:
    try:
        return _Record(**json.loads(path.read_bytes()))
    except FileNotFoundError as error:
        raise PinUnusable("no PIN is set") from error
    except (OSError, ValueError, TypeError) as error:
        raise PinUnusable(f"the PIN's file {path} cannot be read ({error})") from error


def _store(path: Path, record: _Record) -> None:
    write_atomically(path, json.dumps(asdict(record)).encode())
