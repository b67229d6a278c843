from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash.installation import Installation


@pytest.fixture
def installation(tmp_path: Path, base_image: str) -> Installation:
    return Installation.made(tmp_path / "home", TOOLWRIGHT_SPARES="0")
