"""Whose signature counts: the key that a process knew first, and the ones it named after itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from registry.errors import KeyChanged, PinUnusable
from registry.pin import former_keys, public_key, successors
from registry.signing import fingerprint


@dataclass
class Authority:
    """Holds the public half of the person's key, never more.

    `pin` is the PIN's file, `pinned` tells the fingerprint that the signed audit heads name, or ""
    where they name none yet. The first key that is accepted stays in memory: what is written into
    the file later counts only where that key signed it.
    """

    pin: Path
    pinned: Callable[[], str]
    _known: str = field(default="", repr=False)

    def key(self) -> str:
        """The public key, in hex.

        Raises PinUnusable where there is none yet, KeyChanged, and what `pinned` raises.
        """
        found = public_key(self.pin)
        if not self._known:
            self._check_pinned(found)
        elif found != self._known and found not in successors(self.pin, self._known):
            raise KeyChanged(fingerprint(self._known), _named(found))
        if not found:
            raise PinUnusable("the PIN has no key yet", "Enter it once: `toolwright setup --key`.")
        self._known = found
        return found

    def _check_pinned(self, found: str) -> None:
        """The first key has to be the one that the audit heads name, or to descend from it."""
        pinned = self.pinned()
        if not pinned or (found and fingerprint(found) == pinned):
            return
        for old in former_keys(self.pin):
            if fingerprint(old) == pinned and found in successors(self.pin, old):
                return
        raise KeyChanged(pinned, _named(found))


def _named(public: str) -> str:
    return fingerprint(public) if public else "none"
