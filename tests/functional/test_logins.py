"""Logging in to a real OpenID provider: by a browser, refreshed, as several people, and out again."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from registry.secrets.vault import Secret, open_vault
from tests.functional.home import PIN, Home, new_home
from tests.world.cache import Unavailable
from tests.world.provider import Provider, browse, install, provider, write_browser

SECRET = "cl1ent-canary-4711"


@pytest.fixture(scope="module")
def notes(node_modules: Path) -> Iterator[Provider]:
    try:
        install()
    except Unavailable as reason:
        pytest.skip(f"the provider from npm: {reason}")
    with provider() as made:
        yield made


@pytest.fixture(scope="module")
def home(
    any_engine: str, notes: Provider, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Home]:
    """A home with the server `notes`, whose provider a person allowed to be asked."""
    directory = tmp_path_factory.mktemp("logins")
    with new_home(directory, any_engine) as made:
        hosts = [url.removeprefix("http://") for url in (notes.api, notes.issuer)]
        made.person("source", "allow", *hosts)
        made.person("forge", "list notes", "--source", f"{notes.api}/openapi.json")
        yield made


def log_in(home: Home, person: str, *words: str) -> str:
    """What `login` says while that person uses the browser."""
    browser = write_browser(home.path.parent / f"browser-{person}", person)
    home.environment["BROWSER"] = browser
    return home.person("login", "notes", *words)


def held(home: Home, name: str = "notes") -> dict[str, Any]:
    """The secret of a log-in as the vault has it."""
    secret = open_vault(home.settings).get("notes", name)
    assert secret is not None
    found: dict[str, Any] = json.loads(secret.reveal())
    return found


def call(home: Home, *words: str) -> Any:
    done = home.run("call", "notes.list_notes", *words, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)["structuredContent"]["body"]


def audit(home: Home) -> str:
    with home.store() as store:
        return str([(row.kind, row.payload) for row in store.audit.find(500)])


def test_a_person_logs_in_with_the_browser_and_every_call_has_their_token(
    home: Home, notes: Provider
) -> None:
    said = log_in(home, "alice", "--client-id", "public-app")
    assert f"log-in page      {notes.issuer}/auth" in said
    assert "notes:read notes:write offline_access" in said
    assert f"resource         {notes.api}" in said
    assert "notes is logged in." in said
    assert call(home)["by"] == "alice"
    kept = held(home)
    for token in (kept["access_token"], kept["refresh_token"]):
        assert token not in said + audit(home)
    assert "/token" in audit(home)
    assert home.run("audit", "verify").returncode == 0
