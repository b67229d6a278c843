"""A root file system of Debian packages, for machines that reach no image registry."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sandbox.errors import BaseImageBuildFailed

PACKAGES = ("python3", "base-files", "netbase", "tzdata", "media-types", "ca-certificates")
LEFT_OUT = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*", "/usr/share/info/*")
POCKETS = ("", "-updates", "-security")
SECONDS = 300.0
MAX_OUTPUT = 4000
SOURCES = Path("/etc/apt")
RELEASE = Path("/etc/os-release")


@dataclass(frozen=True)
class Mirrors:
    """A release and its `deb` lines for apt."""

    suite: str
    lines: tuple[str, ...]


def find_mirrors(sources: Path = SOURCES, release: Path = RELEASE) -> Mirrors:
    """The mirrors that this machine's apt is configured with, security updates included.

    Raises BaseImageBuildFailed if it is no Debian or names no mirror.
    """
    try:
        text = release.read_text()
    except OSError as error:
        raise _build_error(str(error)) from error
    named = re.search(r'^VERSION_CODENAME="?([a-z]+)"?$', text, re.MULTILINE)
    if not named:
        raise _build_error(f"{release} names no Debian release")
    suites = {named[1] + pocket for pocket in POCKETS}
    lines = tuple(
        dict.fromkeys(line for line, suite in _list_deb_lines(sources) if suite in suites)
    )
    if not lines:
        raise _build_error(f"{sources} names no mirror of {named[1]}")
    return Mirrors(named[1], lines)


def build_root(found: Mirrors, archive: Path, packages: Sequence[str] = PACKAGES) -> None:
    """Write a tar of these packages and their dependencies, without a package manager; by default
    with Python and without a shell.

    Raises BaseImageBuildFailed with the tool's last output. Takes about ten seconds.
    """
    program = shutil.which("mmdebstrap")
    if program is None:
        raise _build_error("mmdebstrap is not installed")
    options = [f"--dpkgopt=path-exclude={pattern}" for pattern in LEFT_OUT]
    command = [program, "--variant=extract", f"--include={','.join(packages)}", *options]
    try:
        done = subprocess.run(
            [*command, found.suite, str(archive), *found.lines],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BaseImageBuildFailed("mmdebstrap", str(error)[:MAX_OUTPUT]) from error
    if done.returncode:
        output = done.stderr.decode(errors="replace")
        raise BaseImageBuildFailed("mmdebstrap", output[-MAX_OUTPUT:])


def _build_error(reason: str) -> BaseImageBuildFailed:
    advice = (
        "Make python:3.12-slim available to the engine (docker pull or docker load), or run this "
        "on Debian or Ubuntu with the package mmdebstrap installed."
    )
    return BaseImageBuildFailed("unpacking Debian packages", f"{reason}. {advice}")


def _list_deb_lines(sources: Path) -> Iterator[tuple[str, str]]:
    """`deb` lines with their suite, of sections that have a `main` component."""
    for path in sorted(sources.glob("sources.list.d/*.sources")):
        for stanza in re.split(r"\n\s*\n", _read_text(path)):
            yield from _build_stanza_lines(_parse_fields(stanza))
    for path in (sources / "sources.list", *sorted(sources.glob("sources.list.d/*.list"))):
        for line in _read_text(path).splitlines():
            match = re.match(r"deb\s+(?:\[[^\]]*\]\s+)?\S+\s+(\S+)\s+(.*)", line.strip())
            if match and "main" in match[2].split():
                yield line.strip(), match[1]


def _build_stanza_lines(fields: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    # See sources.list(5), "DEB822-STYLE FORMAT".
    disabled = fields.get("enabled", "yes").lower() in ("no", "false", "0")
    parts = fields.get("components", "").split()
    if disabled or "deb" not in fields.get("types", "").split() or "main" not in parts:
        return
    keyring = fields.get("signed-by", "")
    option = f"[signed-by={keyring}] " if re.fullmatch(r"/\S+", keyring) else ""
    for uri in fields.get("uris", "").split():
        for suite in fields.get("suites", "").split():
            yield f"deb {option}{uri} {suite} main", suite


def _parse_fields(stanza: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    name = ""
    for line in stanza.splitlines():
        if line.startswith("#"):
            continue
        if line[:1].isspace():
            fields[name] = f"{fields.get(name, '')} {line.strip()}"
        elif ":" in line:
            name, _, value = line.partition(":")
            name = name.strip().lower()
            fields[name] = value.strip()
    return fields


def _read_text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
