"""A real OpenID provider (npm `oidc-provider`) with an API that takes its tokens, and a person with
a browser at it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import httpx

from tests.world.cache import cached, run
from tests.world.node import node

PACKAGE = "oidc-provider@9.13.3"
SCRIPT = Path(__file__).with_name("provider.mjs")
SECONDS = 120.0


@dataclass(frozen=True)
class Provider:
    """Where the provider and its API answer, and an API that also asks for a token where its
    description is.
    """

    issuer: str
    api: str
    closed: str

    def counts(self) -> Any:
        """How many token requests came, how many calls the API refused, and its notes."""
        return httpx.get(f"{self.api}/-/counts", trust_env=False, timeout=SECONDS).json()

    def refuse(self) -> None:
        """Let the API refuse the access token that it took last, from the next call on."""
        httpx.get(f"{self.api}/-/refuse", trust_env=False, timeout=SECONDS)


def install() -> Path:
    """The directory of the package, fetched once. Raises Unavailable."""

    def fetch(directory: Path) -> None:
        (directory / "package.json").write_text('{"private": true}\n')
        run(("npm", "install", "--no-audit", "--no-fund", "--no-progress", PACKAGE), directory)

    return cached(PACKAGE.replace("@", "-"), fetch) / "node_modules"


@contextmanager
def provider() -> Iterator[Provider]:
    """Serve until the block ends."""
    with subprocess.Popen(
        (node(), str(SCRIPT), str(install())),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            yield Provider(**json.loads(process.stdout.readline()))
        finally:
            process.terminate()


class _Form(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.action, self.fields = "", dict[str, str]()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attributes}
        if tag == "form" and not self.action:
            self.action = given.get("action", "")
        if tag == "input" and given.get("name") and given.get("type") != "submit":
            self.fields[given["name"]] = given.get("value", "")


def browse(url: str, account: str, **typed: str) -> httpx.Response:
    """What a person's browser does from that page on: log in as the account, say yes to what is
    asked; the page that it ends with.
    """
    typed = {"login": account, "password": "any", **typed}
    with httpx.Client(trust_env=False, timeout=SECONDS, follow_redirects=True) as browser:
        page = browser.get(url)
        for _ in range(8):
            form = _Form()
            form.feed(page.text)
            if not form.action:
                return page
            fields = {**form.fields, **{k: v for k, v in typed.items() if k in form.fields}}
            page = browser.post(urljoin(str(page.url), form.action), data=fields)
    raise AssertionError(page.text)


def write_browser(path: Path, account: str) -> str:
    """A program for `BROWSER` that logs in as the account; its path."""
    root = Path(__file__).parents[2]
    path.write_text(
        f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(root)!r})\n"
        f"from tests.world.provider import browse\nbrowse(sys.argv[1], {account!r})\n"
    )
    path.chmod(0o700)
    return str(path)
