"""What the repository's own files promise: the lock, the compose file, the scripts."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from sandbox.plain_secrets import PlainSecret, find_secrets_in_code

ROOT = Path(__file__).parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
LOCK = (ROOT / "requirements.lock").read_text()
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SCRIPTS = (
    *(f"scripts/{n}" for n in ("setup.sh", "test", "check", "demo", "fuzz", "without-docker")),
    "scripts/compose-check",
    ".ci/run",
)


def canonical(requirement: str) -> str:
    """The name in a requirement as PEP 503 writes it."""
    match = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert match, requirement
    return re.sub(r"[-_.]+", "-", match.group()).lower()


def requirements() -> Iterator[str]:
    yield from PROJECT["project"]["dependencies"]
    yield from PROJECT["dependency-groups"]["dev"]
    yield from PROJECT["build-system"]["requires"]


@pytest.mark.parametrize("requirement", list(requirements()))
def test_every_requirement_is_locked(requirement: str) -> None:
    assert re.search(rf"^{re.escape(canonical(requirement))}==", LOCK, re.MULTILINE)


def test_the_projects_own_code_holds_no_secret() -> None:
    folders = ("examples", "forge", "images", "orchestrator", "registry", "sandbox", "scripts")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    told = [(path.name, secret) for path in files for secret in _find_secrets(path)]
    assert files
    assert told == []


def _find_secrets(path: Path) -> tuple[PlainSecret, ...]:
    return find_secrets_in_code(path.read_text(encoding="utf-8"))


def test_every_locked_package_has_one_version_and_hashes_and_no_address() -> None:
    entries = re.split(r"\n(?=\S)", LOCK.strip())
    assert all(re.match(r"[a-z0-9-]+==\S+", entry) for entry in entries)
    assert all("--hash=sha256:" in entry for entry in entries)
    assert "://" not in LOCK


def test_the_lock_of_the_image_is_a_part_of_the_lock_without_what_development_needs() -> None:
    lock = (ROOT / "images/toolwright/requirements.lock").read_text()
    marker = r" ;[^\n]*?(?= \\\n)"
    entries = re.split(r"\n(?=\S)", re.sub(marker, "", lock).strip())
    whole = {entry.strip() for entry in re.split(r"\n(?=\S)", re.sub(marker, "", LOCK).strip())}
    assert [entry.split()[0] for entry in entries if entry.strip() not in whole] == []
    locked = set(re.findall(r"^([\w.-]+)==", lock, re.MULTILINE))
    wanted = (*PROJECT["project"]["dependencies"], *PROJECT["build-system"]["requires"])
    assert {canonical(each) for each in wanted} <= locked
    assert not {"pytest", "mypy", "playwright", "mkdocs-material", "onnxruntime"} & locked


def test_the_control_plane_is_published_on_this_machine_only() -> None:
    assert COMPOSE["version"] == "2.4"
    for service in COMPOSE["services"].values():
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))
    assert COMPOSE["services"]["control"]["command"][:3] == ["control", "--host", "0.0.0.0"]


def test_serve_speaks_on_its_standard_streams_and_shares_its_home_with_the_control_plane() -> None:
    control, serve = COMPOSE["services"]["control"], COMPOSE["services"]["serve"]
    assert serve["stdin_open"] is True
    assert "tty" not in serve
    assert serve["command"] == ["serve"]
    home = "home:/var/lib/toolwright"
    assert home in control["volumes"]
    assert home in serve["volumes"]
    assert "home" in COMPOSE["volumes"]


def test_the_containers_of_compose_have_no_privileges_of_their_own() -> None:
    for service in COMPOSE["services"].values():
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert service["read_only"] is True
        assert not service.get("privileged")
    dockerfile = ROOT / COMPOSE["services"]["control"]["build"]["dockerfile"]
    assert re.search(r"^USER 10001:10001$", dockerfile.read_text(), re.MULTILINE)


def test_the_image_of_compose_is_given_all_that_its_wheel_is_built_of(tmp_path: Path) -> None:
    recipe = (ROOT / COMPOSE["services"]["control"]["build"]["dockerfile"]).read_text()
    copied = [line.split()[1:-1] for line in recipe.splitlines() if line.startswith("COPY ")]
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    seen = {line.removeprefix("!") for line in ignored if line.startswith("!")}
    for name in (each for line in copied for each in line):
        if any(name.startswith(f"{each}/") for each in seen):
            continue
        assert name in seen, f"{name} is kept from the build"
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).symlink_to(ROOT / name)
    places = ("packages", "force-include")
    wanted = [name for place in places for name in _read_wheel_target()[place]]
    wanted.append(_read_wheel_target()["hooks"]["custom"]["path"])
    assert [name for name in wanted if not (tmp_path / name).exists()] == []


def _read_wheel_target() -> dict[str, Any]:
    found: dict[str, Any] = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
    return found


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_parses_and_stops_at_the_first_error(script: str) -> None:
    subprocess.run(["bash", "-n", ROOT / script], check=True, stdin=subprocess.DEVNULL)
    if script != "scripts/setup.sh":
        assert "\nset -euo pipefail\n" in (ROOT / script).read_text()
        assert os.access(ROOT / script, os.X_OK)
