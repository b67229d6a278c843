from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from tests.world.axe import load_axe
from tests.world.cache import Unavailable

SECONDS = 120_000


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A real browser for a module. It holds an event loop as long as it is open: no longer."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("about the page in a browser, and no Chromium is installed")
    with sync_playwright() as playwright:
        expect.set_options(timeout=SECONDS)
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        started = playwright.chromium.launch(executable_path=chromium, args=arguments)
        yield started
        started.close()


@pytest.fixture(scope="session")
def axe() -> str:
    """The script of axe-core. Skips where it cannot be had."""
    try:
        return load_axe()
    except Unavailable as reason:
        pytest.skip(f"axe-core from npm: {reason}")
