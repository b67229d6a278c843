"""The PIN that a person types, and the key that only it opens.

One file holds both: an Ed25519 public key, its private half sealed with AES-256-GCM under a key
that scrypt (RFC 7914) makes of the PIN, and the count of wrong PINs. A PIN is right where it opens
the seal. Whoever can read the file can try PINs on a machine of their own, so scrypt's cost and the
PIN's length are what it is worth (docs/security.md).
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from registry.errors import PinUnusable
from registry.files import locked, write_atomically
from registry.signing import Signer, fits

MIN_LENGTH = 8
ATTEMPTS = 5
LOCK_SECONDS = 60.0
COST = 2**17
"""scrypt's N, with r = 8: 128 MB and about half a second for each try."""
_MEMORY = 160 * 1024 * 1024
_FORMAT = b"toolwright-pin-2"


@dataclass(frozen=True)
class PinCheck:
    """`locked_until` (epoch seconds) is set where the PIN was not even looked at; `signer` is the
    person's key, where the PIN was right.
    """

    ok: bool
    locked_until: float | None = None
    signer: Signer | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class _Record:
    """`sealed` is nonce and ciphertext, in hex. Homes older than the key have `hash` instead.

    Each of `succession` is (old public key, new one, the old one's signature over both).
    """

    salt: str
    n: int = COST
    r: int = 8
    p: int = 1
    public: str = ""
    sealed: str = ""
    hash: str = ""
    succession: tuple[tuple[str, str, str], ...] = ()
    failures: int = 0
    locked_until: float = 0.0


def set_pin(path: Path, pin: str, *, cost: int = COST) -> Signer:
    """Choose the first PIN and make the key. Raises PinUnusable where there is one already."""
    _check_length(pin)
    signer = Signer.fresh()
    with locked(path):
        if path.exists():
            raise PinUnusable("a PIN is set already", "Change it with `setup --change-pin`.")
        _store(path, _sealed(_Record("", cost), signer, pin))
    return signer


def change_pin(path: Path, signer: Signer, pin: str) -> None:
    """Seal the same key under another PIN. Raises PinUnusable where it is not this file's key."""
    _check_length(pin)
    with locked(path):
        record = _own_record(path, signer)
        _store(path, replace(_sealed(record, signer, pin), failures=0, locked_until=0.0))


def replace_key(path: Path, signer: Signer, pin: str) -> Signer:
    """Make another key, sealed under this PIN, that the old one names as its successor.

    What the old key signed and is not carried out yet counts no more. Raises PinUnusable.
    """
    _check_length(pin)
    with locked(path):
        record = _own_record(path, signer)
        fresh = Signer.fresh()
        handed_on = (signer.public, fresh.public, signer.sign(_succession(signer, fresh)))
        _store(
            path,
            replace(_sealed(record, fresh, pin), succession=(*record.succession, handed_on)),
        )
    return fresh


def verify_pin(path: Path, pin: str, now: float) -> PinCheck:
    """Whether this is the PIN. The fifth wrong one in a row, and each after it, locks for 60 s.

    Where the home has no key yet, the right PIN makes one. Raises PinUnusable where none is set or
    the file cannot be read.
    """
    with locked(path):
        record = _load(path)
        if now < record.locked_until:
            return PinCheck(False, record.locked_until)
        failures = record.failures + 1
        until = now + LOCK_SECONDS if failures >= ATTEMPTS else 0.0
        # Counted before it is checked, so that killing the check does not buy another try.
        _store(path, replace(record, failures=failures, locked_until=until))
        opened = _opened(record, pin)
        if opened is None:
            return PinCheck(False)
        kept, signer = opened
        _store(path, replace(kept, failures=0, locked_until=0.0))
        return PinCheck(True, signer=signer)


def public_key(path: Path) -> str:
    """The public half of the person's key, in hex; "" where none was made yet.

    Raises PinUnusable where no PIN is set or the file cannot be read.
    """
    return _load(path).public


def successors(path: Path, public: str) -> tuple[str, ...]:
    """The keys that this one named after itself, and those named after them, oldest first.

    Only links whose signature fits count. Raises PinUnusable.
    """
    found: list[str] = []
    for old, new, signature in _load(path).succession:
        body = {"kind": "succession", "old": old, "new": new}
        if old == (found[-1] if found else public) and fits(old, body, signature):
            found.append(new)
    return tuple(found)


def former_keys(path: Path) -> tuple[str, ...]:
    """The keys that were replaced, oldest first, whether or not they signed that."""
    return tuple(old for old, _, _ in _load(path).succession)


def _succession(old: Signer, new: Signer) -> dict[str, str]:
    return {"kind": "succession", "old": old.public, "new": new.public}


def _check_length(pin: str) -> None:
    if len(pin) < MIN_LENGTH:
        raise PinUnusable(f"a PIN has at least {MIN_LENGTH} characters")


def _own_record(path: Path, signer: Signer) -> _Record:
    record = _load(path)
    if record.public != signer.public:
        raise PinUnusable(f"the key in {path} is another one than the PIN opened")
    return record


def _sealed(record: _Record, signer: Signer, pin: str) -> _Record:
    fresh = replace(record, salt=os.urandom(16).hex(), public=signer.public, hash="")
    nonce = os.urandom(12)
    cipher = AESGCM(_stretched(fresh, pin, 32))
    sealed = cipher.encrypt(nonce, signer.secret(), _FORMAT + bytes.fromhex(fresh.public))
    return replace(fresh, sealed=(nonce + sealed).hex())


def _opened(record: _Record, pin: str) -> tuple[_Record, Signer] | None:
    """The key that this PIN opens, and the record to keep; None for a wrong PIN."""
    if not record.sealed:
        if not hmac.compare_digest(_stretched(record, pin, 64).hex(), record.hash):
            return None
        signer = Signer.fresh()
        return _sealed(replace(record, n=COST), signer, pin), signer
    content = bytes.fromhex(record.sealed)
    cipher = AESGCM(_stretched(record, pin, 32))
    try:
        known = _FORMAT + bytes.fromhex(record.public)
        secret = cipher.decrypt(content[:12], content[12:], known)
        signer = Signer(Ed25519PrivateKey.from_private_bytes(secret))
    except (InvalidTag, ValueError):
        return None
    return (record, signer) if signer.public == record.public else None


def _stretched(record: _Record, pin: str, length: int) -> bytes:
    salt = bytes.fromhex(record.salt)
    cost = {"n": record.n, "r": record.r, "p": record.p, "maxmem": _MEMORY, "dklen": length}
    return hashlib.scrypt(pin.encode(), salt=salt, **cost)


def _load(path: Path) -> _Record:
    try:
        record = _Record(**json.loads(path.read_bytes()))
        links = tuple((str(old), str(new), str(by)) for old, new, by in record.succession)
        bytes.fromhex(record.salt + record.public + record.sealed)
        if (record.r, record.p) != (8, 1) or not 1 < record.n <= COST:
            raise ValueError("its cost is none of ours")
        return replace(record, succession=links)
    except FileNotFoundError as error:
        raise PinUnusable("no PIN is set") from error
    except (OSError, ValueError, TypeError) as error:
        raise PinUnusable(f"the PIN's file {path} cannot be read ({error})") from error


def _store(path: Path, record: _Record) -> None:
    write_atomically(path, json.dumps(asdict(record)).encode())
