"""The documentation: generated pages are current, lines short, and every page is in the site."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from scripts.reference import render_commands, render_json_page, render_runtime, render_schemas

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
WIDTH = 100
# Its figures are edited with each measurement.
UNHELD = frozenset({"benchmarks.md"})
PAGES = [
    *(page for page in sorted(DOCS.glob("*.md")) if page.name not in UNHELD),
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
]


@pytest.mark.parametrize(
    ("name", "render"),
    [
        ("commands.md", render_commands),
        ("runtime.md", render_runtime),
        ("json.md", render_json_page),
    ],
)
def test_a_page_of_reference_is_as_the_code_says(name: str, render: Any) -> None:
    told = (DOCS / name).read_text("utf-8")
    assert told == render(), "run `.venv/bin/python scripts/reference.py --write`"


def test_the_schemas_are_those_that_the_page_names_and_no_others() -> None:
    written = {f"json/{path.name}": path.read_text("utf-8") for path in DOCS.glob("json/*")}
    assert written == render_schemas(), "run `.venv/bin/python scripts/reference.py --write`"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_line_but_a_tables_is_longer_than_a_terminal_is_wide(page: Path) -> None:
    lines = enumerate(page.read_text("utf-8").splitlines(), 1)
    assert [at for at, line in lines if len(line) > WIDTH and not line.startswith("|")] == []


def test_every_page_is_in_the_navigation_of_the_site() -> None:
    site: Mapping[str, Any] = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))
    assert set(_list_pages(site["nav"])) == {page.name for page in DOCS.glob("*.md")}


def test_the_pictures_are_small() -> None:
    pictures = sorted(DOCS.glob("*.png"))
    assert [picture.name for picture in pictures] == ["approvals.png", "home.png"]
    assert [picture.name for picture in pictures if picture.stat().st_size > 150_000] == []


def _list_pages(entries: Any) -> Iterator[str]:
    if isinstance(entries, str):
        yield entries
    elif isinstance(entries, Mapping):
        for below in entries.values():
            yield from _list_pages(below)
    else:
        for entry in entries:
            yield from _list_pages(entry)
