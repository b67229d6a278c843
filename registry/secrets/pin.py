"""The PIN of a person, and the private key that it unlocks.

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

from registry.database.files import lock_file, write_atomically
from registry.errors import PinUnusable
from registry.secrets.signing import Signer, verify_signature

MIN_LENGTH = 8
ATTEMPTS = 5
LOCK_SECONDS = 60.0
COST = 2**17
"""scrypt's N, with r = 8: 128 MB and about half a second for each try."""
_MEMORY = 160 * 1024 * 1024
_FORMAT = b"toolwright-pin-2"


@dataclass(frozen=True)
class PinCheck:
    """The result of checking a PIN. `locked_until` (epoch seconds) is set where the PIN was not
    checked because of earlier failures; `signer` is the person's key, where the PIN was right;
    `failures` are the wrong ones in a row, this one included.
    """

    ok: bool
    locked_until: float | None = None
    signer: Signer | None = field(default=None, compare=False, repr=False)
    failures: int = field(default=0, compare=False)


@dataclass(frozen=True)
class _PinRecord:
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
    """Set the first PIN and create the key. Raises PinUnusable where a PIN is set or too short."""
    _check_length(pin)
    signer = Signer.generate()
    with lock_file(path):
        if path.exists():
            raise PinUnusable("a PIN is set already", "Change it with `setup --change-pin`.")
        _store_record(path, _seal_key(_PinRecord("", cost), signer, pin))
    return signer


def change_pin(path: Path, signer: Signer, pin: str) -> None:
    """Seal the same key under another PIN. Raises PinUnusable where it is not this file's key."""
    _check_length(pin)
    with lock_file(path):
        record = _load_own_record(path, signer)
        _store_record(path, replace(_seal_key(record, signer, pin), failures=0, locked_until=0.0))


def replace_key(path: Path, signer: Signer, pin: str) -> Signer:
    """Create a new key, sealed under this PIN, that the old key signs as its successor.

    Decisions of the old key that are not carried out yet become invalid. Raises PinUnusable.
    """
    _check_length(pin)
    with lock_file(path):
        record = _load_own_record(path, signer)
        fresh = Signer.generate()
        handed_on = (signer.public, fresh.public, signer.sign(_build_succession(signer, fresh)))
        _store_record(
            path,
            replace(_seal_key(record, fresh, pin), succession=(*record.succession, handed_on)),
        )
    return fresh


def verify_pin(path: Path, pin: str, now: float) -> PinCheck:
    """Check a PIN. The fifth wrong one in a row, and each after it, locks for 60 s.

    Where the home has no key yet, the right PIN creates one. Raises PinUnusable where none is set
    or the file cannot be read.
    """
    with lock_file(path):
        record = _load_record(path)
        if now < record.locked_until:
            # A clock that was set back must not make a lock of a minute one of a year.
            until = min(record.locked_until, now + LOCK_SECONDS)
            if until != record.locked_until:
                _store_record(path, replace(record, locked_until=until))
            return PinCheck(False, until)
        failures = record.failures + 1
        until = now + LOCK_SECONDS if failures >= ATTEMPTS else 0.0
        # Counted before it is checked, so that killing the check does not buy another try.
        _store_record(path, replace(record, failures=failures, locked_until=until))
        opened = _open_key(record, pin)
        if opened is None:
            return PinCheck(False, failures=failures)
        kept, signer = opened
        _store_record(path, replace(kept, failures=0, locked_until=0.0))
        return PinCheck(True, signer=signer)


def check_set(path: Path) -> None:
    """Raises PinUnusable where no PIN is set or the file cannot be read."""
    _load_record(path)


def read_public_key(path: Path) -> str:
    """The public half of the person's key, in hex; "" where none was made yet.

    Raises PinUnusable where no PIN is set or the file cannot be read.
    """
    return _load_record(path).public


def find_successors(path: Path, public: str) -> tuple[str, ...]:
    """The successors of a key, and their successors, oldest first.

    Only links with a valid signature count. Raises PinUnusable.
    """
    found: list[str] = []
    for old, new, signature in _load_record(path).succession:
        body = {"kind": "succession", "old": old, "new": new}
        if old == (found[-1] if found else public) and verify_signature(old, body, signature):
            found.append(new)
    return tuple(found)


def list_former_keys(path: Path) -> tuple[str, ...]:
    """The keys that the file says were replaced, oldest first; signatures are not checked."""
    return tuple(old for old, _, _ in _load_record(path).succession)


def _build_succession(old: Signer, new: Signer) -> dict[str, str]:
    return {"kind": "succession", "old": old.public, "new": new.public}


def _check_length(pin: str) -> None:
    if len(pin) < MIN_LENGTH:
        raise PinUnusable(f"a PIN has at least {MIN_LENGTH} characters")


def _load_own_record(path: Path, signer: Signer) -> _PinRecord:
    record = _load_record(path)
    if record.public != signer.public:
        raise PinUnusable(f"the key in {path} is another one than the PIN opened")
    return record


def _seal_key(record: _PinRecord, signer: Signer, pin: str) -> _PinRecord:
    fresh = replace(record, salt=os.urandom(16).hex(), public=signer.public, hash="")
    nonce = os.urandom(12)
    cipher = AESGCM(_derive_key(fresh, pin, 32))
    sealed = cipher.encrypt(nonce, signer.export_secret(), _FORMAT + bytes.fromhex(fresh.public))
    return replace(fresh, sealed=(nonce + sealed).hex())


def _open_key(record: _PinRecord, pin: str) -> tuple[_PinRecord, Signer] | None:
    """The key that this PIN opens, and the record to keep; None for a wrong PIN."""
    if not record.sealed:
        if not hmac.compare_digest(_derive_key(record, pin, 64).hex(), record.hash):
            return None
        signer = Signer.generate()
        return _seal_key(replace(record, n=COST), signer, pin), signer
    content = bytes.fromhex(record.sealed)
    cipher = AESGCM(_derive_key(record, pin, 32))
    try:
        known = _FORMAT + bytes.fromhex(record.public)
        secret = cipher.decrypt(content[:12], content[12:], known)
        signer = Signer(Ed25519PrivateKey.from_private_bytes(secret))
    except (InvalidTag, ValueError):
        return None
    return (record, signer) if signer.public == record.public else None


def _derive_key(record: _PinRecord, pin: str, length: int) -> bytes:
    salt = bytes.fromhex(record.salt)
    cost = {"n": record.n, "r": record.r, "p": record.p, "maxmem": _MEMORY, "dklen": length}
    return hashlib.scrypt(pin.encode(), salt=salt, **cost)


def _load_record(path: Path) -> _PinRecord:
    try:
        record = _PinRecord(**json.loads(path.read_bytes()))
        links = tuple((str(old), str(new), str(by)) for old, new, by in record.succession)
        bytes.fromhex(record.salt + record.public + record.sealed)
        if (record.r, record.p) != (8, 1) or not 1 < record.n <= COST:
            raise ValueError("its cost is none of ours")
        return replace(record, succession=links)
    except FileNotFoundError as error:
        raise PinUnusable("no PIN is set") from error
    except (OSError, ValueError, TypeError) as error:
        raise PinUnusable(f"the PIN's file {path} cannot be read ({error})") from error


def _store_record(path: Path, record: _PinRecord) -> None:
    write_atomically(path, json.dumps(asdict(record)).encode())
