"""axe-core, which finds what people who cannot see, or use no mouse, cannot use in a page."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

from tests.world.cache import Unavailable, cached, run

PACKAGE = "axe-core@4.14.1"
TAGS = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")
GRAVE = ("serious", "critical")
_RUN = """async (only) => {
  const found = await axe.run(document, { runOnly: only, resultTypes: ["violations"] });
  return found.violations.map((each) => ({
    rule: each.id, impact: each.impact, nodes: each.nodes.map((node) => node.target.join(" ")),
  }));
}"""


@dataclass(frozen=True)
class AxeFinding:
    """A rule that a page breaks, and the CSS selectors of what breaks it."""

    rule: str
    impact: str
    nodes: tuple[str, ...]


def load_axe() -> str:
    """The script, fetched once from npm into the cache. Raises Unavailable."""
    return (cached(PACKAGE.replace("@", "-"), _install) / "axe.min.js").read_text("utf-8")


def _install(directory: Path) -> None:
    run(("npm", "pack", "--silent", PACKAGE), directory)
    (packed,) = directory.glob("*.tgz")
    run(("tar", "-xzf", packed.name, "--strip-components=1", "package/axe.min.js"), directory)
    packed.unlink()
    if not (directory / "axe.min.js").exists():
        raise Unavailable(f"{PACKAGE} holds no axe.min.js")


def find_grave(page: Page, script: str, *rules: str) -> list[AxeFinding]:
    """The serious and critical findings of what a page shows, by all rules or by these."""
    if not page.evaluate("typeof window.axe === 'object'"):
        page.evaluate(script)
    only = {"type": "rule", "values": rules} if rules else {"type": "tag", "values": TAGS}
    found: list[dict[str, Any]] = page.evaluate(_RUN, only)
    return [
        AxeFinding(each["rule"], each["impact"], tuple(each["nodes"]))
        for each in found
        if each["impact"] in GRAVE
    ]
