"""A registered server's files are broken by hand: the last good version goes on, and it is told."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from registry.models import AuditRow
from tests.crash.bundles import waiting
from tests.crash.client import served
from tests.crash.documents import OBJECT, described, reading
from tests.crash.installation import Installation, until
from tests.world.site import Page, site

FAILED = 1


def break_syntax(place: Path) -> None:
    (place / "server.py").write_text("def ready(:\n")


def delete_file(place: Path) -> None:
    (place / "tools.json").unlink()


def link_file(place: Path) -> None:
    code = place / "server.py"
    code.rename(place / "elsewhere.py")
    code.symlink_to(place / "elsewhere.py")


def cut_file(place: Path) -> None:
    (place / "bundle.toml").write_bytes(b"name = \xff")


BROKEN: Mapping[Callable[[Path], None], str] = {
    break_syntax: "waiting: changed",
    delete_file: "tools.json: No such file",
    link_file: "server.py: Too many levels of symbolic links",
    cut_file: "bundle.toml: UnicodeDecodeError",
}
"""How the files are broken, and what `doctor` has to say."""


@pytest.fixture
def two(installation: Installation) -> Installation:
    """Two servers, `waiting` and `other`."""
    installation.put(waiting())
    installation.put(replace(waiting(), name="other"))
    return installation


def files(installation: Installation) -> Path:
    return installation.home / "servers" / "waiting"


def refusals(installation: Installation) -> list[AuditRow]:
    with installation.store() as store:
        return [row for row in store.audit.find() if row.kind == "edit.refused"]


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_bundle_is_told_and_its_last_good_version_still_runs(
    broken: Callable[[Path], None], two: Installation
) -> None:
    before = versions(two)
    broken(files(two))
    troubles = two.troubles()
    assert [trouble.startswith("files: ") for trouble in troubles] == [True]
    assert BROKEN[broken] in troubles[0]
    for tool in ("waiting.ready", "other.ready"):
        result = two.run("call", tool)
        assert (result.exit_code, result.stdout) == (0, "{}\n")
    assert versions(two) == before


def test_a_server_whose_files_are_all_gone_is_named_and_keeps_its_record(two: Installation) -> None:
    files(two).rename(two.home / "elsewhere")
    result = two.run("call", "waiting.ready")
    assert result.exit_code == FAILED
    assert "the files are missing" in result.stderr
    assert "forge it again" in result.stderr
    assert two.run("call", "other.ready").exit_code == 0
    assert two.run("show", "waiting").exit_code == 0
    assert "waiting: missing" in two.troubles()[0]
    (two.home / "elsewhere").rename(files(two))
    assert two.run("call", "waiting.ready").exit_code == 0
    assert two.troubles() == []


def test_a_running_serve_refuses_a_broken_edit_and_publishes_a_mended_one(
    two: Installation,
) -> None:
    api = {
        "/openapi.json": Page(described({"/a": reading(OBJECT)})),
        "/a": Page(b'{"name": "x"}', headers=(("Content-Type", "application/json"),)),
    }
    with site(api) as pages, served(two) as client:
        two.allow(pages.url)
        assert client.forged(pages.url, name="edited")["state"] == "done"
        code = two.home / "servers" / "edited" / "server.py"
        good = code.read_text()
        break_syntax(code.parent)
        refused = until(lambda: refusals(two))
        assert "server.py" in json.loads(refused[0].payload)["reason"]
        assert client.value("call_read", tool="edited.get_a")["body"] == {"name": "x"}
        code.write_text(f"{good}\n# mended\n")
        until(lambda: versions(two)["edited"] == 2)
        assert client.value("call_read", tool="edited.get_a")["body"] == {"name": "x"}
        assert client.value("call_read", tool="other.ready") == {}
    assert versions(two) == {"edited": 2, "other": 1, "waiting": 1}
    assert two.troubles() == []


def versions(installation: Installation) -> dict[str, int]:
    return {entry["tool_id"]: entry["version"] for entry in installation.listed()}
