"""Python's `random` in the WASM engine: seeded where a call first asks for a random number.

Seeding takes 2.5 kB and as long as a tenth of a short call, and most calls need none of it.
"""

from __future__ import annotations

import os
import random
from typing import Any

SEED_BYTES = 32


class LateRandom(random.Random):
    """A generator that is seeded, from the call's randomness, when it is first used in a call."""

    _stale = False

    def expect(self) -> None:
        """A call begins."""
        self._stale, self.gauss_next = True, None

    def random(self) -> float:
        self._settle()
        return super().random()

    def getrandbits(self, k: int) -> int:
        self._settle()
        return super().getrandbits(k)

    def getstate(self) -> tuple[Any, ...]:
        self._settle()
        return super().getstate()

    def setstate(self, state: Any) -> None:
        self._stale = False
        super().setstate(state)

    def seed(self, *given: Any, **named: Any) -> None:
        self._stale = False
        super().seed(*given, **named)

    def _settle(self) -> None:
        if self._stale:
            self.seed(int.from_bytes(os.urandom(SEED_BYTES), "big"))


def install() -> LateRandom:
    """Put one in the place of the module's own generator."""
    made = LateRandom(0)
    for name in random.__all__:
        if getattr(getattr(random, name), "__self__", None) is random._inst:
            setattr(random, name, getattr(made, name))
    random._inst = made
    return made
