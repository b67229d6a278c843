"""Servers of others, installed once into the cache by the clients of their registries."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

from tests.world.cache import cached, run

FASTMCP = "fastmcp==4.1.2"
CONVERTER = "swagger2openapi@7.0.8"
SECONDS = 600.0


def install_pip(*packages: str) -> Path:
    """The interpreter of a virtual environment that has these. Raises Unavailable."""

    def make(directory: Path) -> None:
        run((sys.executable, "-m", "venv", "venv"), directory)
        pip = ("venv/bin/python", "-m", "pip", "install", "--quiet", "--no-compile")
        run((*pip, "--disable-pip-version-check", *packages), directory, SECONDS)

    return cached(_name(packages), make) / "venv/bin/python"


def install_npm(*packages: str) -> Path:
    """The directory of modules that has these. Raises Unavailable."""

    def make(directory: Path) -> None:
        (directory / "package.json").write_text('{"private": true}\n')
        npm = ("npm", "install", "--no-audit", "--no-fund", "--no-progress", "--ignore-scripts")
        run((*npm, *packages), directory, SECONDS)

    return cached(_name(packages), make) / "node_modules"


def install_deb(*packages: str) -> Path:
    """A directory with the files of these Debian packages. Raises Unavailable."""

    def make(directory: Path) -> None:
        run(("apt-get", "download", *packages), directory, SECONDS)
        for package in sorted(directory.glob("*.deb")):
            run(("dpkg-deb", "-x", package.name, "root"), directory)

    return cached(_name(packages), make) / "root"


def _name(packages: tuple[str, ...]) -> str:
    pins = hashlib.sha256("\n".join(packages).encode()).hexdigest()
    plain = "".join(letter if letter.isalnum() else "-" for letter in packages[0])
    return f"reality-{plain.strip('-')}-{pins[:8]}"
