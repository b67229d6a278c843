"""Every room in a real browser, empty, full and frozen, on a wide screen and on a phone: nothing is
cut off or lies on something else, landmarks are where they were, and axe-core finds nothing grave.
"""

from __future__ import annotations

import time

import pytest
from playwright.sync_api import Browser

from orchestrator.settings import Settings
from registry.store import Store
from tests.orchestrator.conftest import PIN
from tests.orchestrator.control.filled import fill_grants, fill_store
from tests.orchestrator.control.layout import (
    Layout,
    compare_layouts,
    find_problems,
    load_layouts,
    measure_layout,
)
from tests.orchestrator.control.screenshots import (
    NARROW,
    PLACES,
    ROOM_PLACES,
    WIDE,
    log_in,
    open_all,
    open_room,
)
from tests.orchestrator.plane import Plane
from tests.world.axe import find_grave

LOOKS = (("wide", WIDE), ("phone", NARROW))


@pytest.mark.parametrize("state", ["empty", "full", "frozen"])
def test_every_room_lies_well_on_every_screen_and_is_usable_by_everybody(
    browser: Browser, plane: Plane, settings: Settings, store: Store, axe: str, state: str
) -> None:
    if state != "empty":
        fill_store(store)
        fill_grants(settings, store, PIN)
    if state == "frozen":
        store.processes.freeze(time.time(), "ann", "a key leaked")
    kept, problems = load_layouts(), list[str]()
    with browser.new_context(viewport=WIDE) as context:
        page = context.new_page()
        page.on("pageerror", lambda problem: problems.append(str(problem)))
        page.on(
            "console",
            lambda line: line.type in ("error", "warning") and problems.append(line.text),
        )
        page.goto(log_in(plane.url))
        origin = page.evaluate("location.origin")
        for name, path in ROOM_PLACES if state == "empty" else PLACES:
            page.set_viewport_size(WIDE)
            open_room(page, origin, path)
            for look, size in LOOKS:
                page.set_viewport_size(size)
                if state == "full":
                    told = compare_layouts(kept[f"{look} {name}"], measure_layout(page))
                    problems += [f"{look} {name}: {each}" for each in told]
                open_all(page)
                problems += [f"{look} {name}: {each}" for each in find_problems(page)]
            if page.get_by_text("cannot be shown").count():
                problems.append(f"{name}: a part cannot be shown")
            if state != "frozen" or name == "home":
                # A freeze changes the frame alone, which is the same in all rooms.
                problems += [f"{name}: {each}" for each in find_grave(page, axe)]
            if state == "full" or name == "home":
                page.emulate_media(color_scheme="dark")
                problems += [f"dark {name}: {e}" for e in find_grave(page, axe, "color-contrast")]
                page.emulate_media(color_scheme="light")
        for address in (log_in(plane.url, plain=True), f"{plane.url}/"):
            page.goto(address)
            for _, size in LOOKS:
                page.set_viewport_size(size)
                problems += [f"{address}: {each}" for each in find_problems(page)]
            problems += [f"{address}: {each}" for each in find_grave(page, axe)]
    # The page that is not logged in is answered with 401.
    assert [each for each in problems if "net::ERR" not in each and "401" not in each] == []


@pytest.mark.parametrize(
    ("html", "told"),
    [
        ("<p style='width: 3000px'>wide</p>", "scrolls sideways"),
        ("<p style='width: 0.5em; word-break: break-all'>letters</p>", "letters one below"),
        ("<p style='width: 3em; word-break: break-all'>terminal</p>", "breaks inside a word"),
        ("<p style='width: 4em; white-space: nowrap'>out of its box</p>", "runs out of its box"),
        ("<p style='margin-left: -3em; width: 20em'>cut off</p>", "cut off"),
        ("<button>one</button><button style='margin-left: -2em'>other</button>", "lies on"),
    ],
)
def test_what_lies_badly_is_found(browser: Browser, html: str, told: str) -> None:
    with browser.new_context(viewport=NARROW) as context:
        page = context.new_page()
        page.set_content(f"<body style='margin: 0'><p>right</p>{html}</body>")
        assert [each.partition(":")[0] for each in find_problems(page) if told in each]
        page.set_content("<body style='margin: 0'><p>right</p><p>too</p></body>")
        assert find_problems(page) == []


def test_a_landmark_that_moved_or_grew_is_told_and_one_that_breaks_its_lines_elsewhere_is_not() -> (
    None
):
    kept = Layout({"header": (0, 390, 60), "main": (0, 390, 600)})

    def tell(**boxes: tuple[float, float, float]) -> list[str]:
        return [*compare_layouts(kept, Layout({**kept.boxes, **boxes}))]

    assert tell(main=(0, 390, 700)) == []
    assert len(tell(main=(200, 390, 600))) == 1
    assert len(tell(main=(0, 300, 600))) == 1
    assert len(tell(header=(0, 390, 200))) == 1
    assert len([*compare_layouts(kept, Layout({"main": kept.boxes["main"]}))]) == 1
    moved = Layout(dict(reversed(kept.boxes.items())))
    assert len([*compare_layouts(kept, moved)]) == 1
