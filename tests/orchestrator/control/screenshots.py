"""Pictures of every room of the control page: light, dark and on a phone; empty, full and frozen.

./scripts/screenshots FOLDER
./scripts/screenshots --docs       # those of the README and the documentation, into docs/
./scripts/screenshots --layout     # where the landmarks are, into layout.json beside this file
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
from playwright.sync_api import Browser, Page, expect, sync_playwright

from orchestrator.approvals.sending import Sending
from orchestrator.control.rooms.place import ROOMS, build_address
from orchestrator.control.server import ControlPlane
from orchestrator.settings import load_settings
from registry.secrets.pin import set_pin
from registry.store import Store
from tests.orchestrator.control.filled import fill_grants, fill_store
from tests.orchestrator.control.layout import measure_layout, save_layouts
from tests.orchestrator.plane import BEARER, TOKEN, listening

DOCS = Path(__file__).resolve().parents[3] / "docs"
PIN = "correct horse"
WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
LOOKS = {"light": ("light", WIDE), "dark": ("dark", WIDE), "phone": ("light", NARROW)}
ROOM_PLACES = tuple((room, build_address(room)) for room in ROOMS)
PLACES = (
    *ROOM_PLACES,
    ("server", build_address("servers", "dns")),
    ("tool", build_address("servers", "dns") + "?tool=create_zone"),
    ("version", build_address("servers", "dns") + "?version=2"),
    ("call", build_address("calls", f"{5:016x}")),
)


def open_room(page: Page, origin: str, path: str) -> None:
    """Go to a room and wait until its parts are there."""
    page.goto(origin + path)
    expect(page.locator("#link")).to_have_text("live")
    expect(page.locator("main section").last).not_to_be_empty()


@contextmanager
def running(state: str) -> Iterator[tuple[str, Store]]:
    """A control plane of a new home; its link to log in."""
    with tempfile.TemporaryDirectory() as home:
        own = {"TOOLWRIGHT_HOME": f"{home}/home", "TOOLWRIGHT_VAULT_KEY_FILE": f"{home}/key"}
        settings = load_settings(own)
        with Store.open(settings.database_url, "pictures") as store:
            if state != "empty":
                set_pin(settings.pin, PIN, cost=2**4)
                fill_store(store)
                fill_grants(settings, store, PIN)
            if state == "frozen":
                store.processes.freeze(time.time(), "ann", "a key leaked")
            control = ControlPlane(settings, store, TOKEN, lambda: 0, send=lambda _: Sending(True))
            with listening(control.build_application()) as url:
                yield url, store


def log_in(url: str, *, plain: bool = False) -> str:
    """A link that logs a browser in once."""
    with httpx.Client(trust_env=False, timeout=60) as client:
        answer = client.post(f"{url}/login", headers=BEARER, json={"plain": plain})
        return str(answer.json()["url"])


def take_pictures(browser: Browser, folder: Path) -> None:
    for state in ("empty", "full", "frozen"):
        with running(state) as (url, _):
            for look, (scheme, size) in LOOKS.items():
                with browser.new_context(color_scheme=scheme, viewport=size) as context:  # type: ignore[arg-type]
                    page = context.new_page()
                    page.goto(log_in(url))
                    origin = page.evaluate("location.origin")
                    for name, path in ROOM_PLACES if state == "empty" else PLACES:
                        open_room(page, origin, path)
                        page.screenshot(
                            path=folder / f"{state}-{look}-{name}.png", full_page=state != "empty"
                        )
                        wide = page.evaluate("document.documentElement.scrollWidth")
                        if wide > size["width"]:
                            print(f"{state} {look} {name} scrolls sideways: {wide}")
                    page.goto(log_in(url, plain=True))
                    page.get_by_role("button", name="Open the control page").click()
                    page.screenshot(path=folder / f"{state}-{look}-plain.png", full_page=True)
                    page.goto(f"{url}/")
                    page.screenshot(path=folder / f"{state}-{look}-logged-out.png")


def take_pictures_for_docs(browser: Browser, folder: Path) -> None:
    with running("full") as (url, _), browser.new_context(viewport=WIDE) as context:
        page = context.new_page()
        page.goto(log_in(url))
        origin = page.evaluate("location.origin")
        for name in ("home", "approvals"):
            open_room(page, origin, build_address(name))
            page.screenshot(path=folder / f"{name}.png")


def write_layouts(browser: Browser) -> None:
    """Measure where the landmarks of every room are, for `test_layout.py`."""
    layouts = {}
    with running("full") as (url, _), browser.new_context(viewport=WIDE) as context:
        page = context.new_page()
        page.goto(log_in(url))
        origin = page.evaluate("location.origin")
        for name, path in PLACES:
            page.set_viewport_size(WIDE)
            open_room(page, origin, path)
            for look, size in (("wide", WIDE), ("phone", NARROW)):
                page.set_viewport_size(size)
                layouts[f"{look} {name}"] = measure_layout(page)
                # As the test does, so that the second look is measured with it all open.
                open_all(page)
    save_layouts(layouts)


def open_all(page: Page) -> None:
    """Open what is folded."""
    page.evaluate("document.querySelectorAll('details').forEach((each) => (each.open = true))")


def main() -> None:
    is_docs = sys.argv[1] == "--docs"
    folder = DOCS if is_docs else Path(sys.argv[1])
    if sys.argv[1] != "--layout":
        folder.mkdir(parents=True, exist_ok=True)
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        expect.set_options(timeout=120_000)
        browser = playwright.chromium.launch(executable_path=chromium, args=arguments)
        if sys.argv[1] == "--layout":
            write_layouts(browser)
        else:
            (take_pictures_for_docs if is_docs else take_pictures)(browser, folder)
        browser.close()


if __name__ == "__main__":
    main()
