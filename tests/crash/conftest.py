from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash.installation import Installation


@pytest.fixture
def installation(tmp_path: Path, any_engine: str) -> Installation:
    return Installation.made(tmp_path / "home", any_engine, TOOLWRIGHT_SPARES="0")
