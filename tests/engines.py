"""Which engines a module's tests run on."""

from __future__ import annotations

import pytest

ANY = "any"
"""Docker where it answers, else WASM."""
ONE_ENGINE = pytest.mark.parametrize("engine_name", [ANY], indirect=True, scope="session")
"""For tests whose way is the same on every engine: what runs code is held in tests/engine."""
