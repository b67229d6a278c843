"""Trust on first use of the key that signs decisions, and its signed successors."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from registry.database.audit_chain import ChainHead
from registry.errors import KeyChanged, PinUnusable
from registry.secrets.pin import find_successors, list_former_keys, read_public_key
from registry.secrets.signing import compute_fingerprint


@dataclass
class Authority:
    """The public key that decisions are verified with. Never holds the private key.

    `pin` is the PIN's file. `pinned` returns the fingerprint that the signed audit heads name, or
    "" where they name none yet, `heads` the heads that were signed since the last call. The first
    accepted key stays in memory; a key that is written into the file later is accepted only where
    the known key signed it as its successor.
    """

    pin: Path
    pinned: Callable[[], str]
    heads: Callable[[], Iterable[ChainHead]] = tuple
    _known: str = field(default="", repr=False)
    _seen: tuple[int, ...] = field(default=(), repr=False)

    def load_key(self) -> str:
        """The public key, in hex.

        Raises PinUnusable where there is none yet, KeyChanged, and what `pinned` raises.
        """
        state = _state(self.pin)
        if state and state == self._seen:
            return self._known
        found = read_public_key(self.pin)
        if not self._known:
            self._check_pinned(found)
        elif found != self._known and found not in find_successors(self.pin, self._known):
            raise KeyChanged(compute_fingerprint(self._known), _format_fingerprint(found))
        if not found:
            raise PinUnusable("the PIN has no key yet", "Enter it once: `toolwright setup --key`.")
        self._known, self._seen = found, state
        return found

    def list_known_keys(self) -> tuple[str, ...]:
        """The key and those that it succeeds. Raises what `load_key` raises."""
        key = self.load_key()
        former = list_former_keys(self.pin)
        return key, *(old for old in former if key in find_successors(self.pin, old))

    def _check_pinned(self, found: str) -> None:
        """Raises KeyChanged unless the audit heads name this key or one that it succeeds."""
        pinned = self.pinned()
        if not pinned or (found and compute_fingerprint(found) == pinned):
            return
        for old in list_former_keys(self.pin):
            if compute_fingerprint(old) == pinned and found in find_successors(self.pin, old):
                return
        raise KeyChanged(pinned, _format_fingerprint(found))


def _state(path: Path) -> tuple[int, ...]:
    """What is not the same any more once a file was written, also in place; () where it is none."""
    try:
        found = path.stat()
    except OSError:
        return ()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _format_fingerprint(public: str) -> str:
    return compute_fingerprint(public) if public else "none"
