from __future__ import annotations

from pathlib import Path

import pytest

from sandbox.engines.docker.rootfs import find_mirrors
from sandbox.errors import BaseImageBuildFailed

DEB822 = """
Types: deb deb-src
URIs: http://mirror.test/debian
Suites: bookworm bookworm-updates bookworm-backports
Components: main contrib
Signed-By: /usr/share/keyrings/debian.gpg

# the security archive
Types: deb
URIs: http://mirror.test/security
  http://second.test/security
Suites: bookworm-security
Components: main

Types: deb
URIs: https://vendor.test/linux
Suites: bookworm
Components: stable

Types: deb
Enabled: no
URIs: https://off.test/debian
Suites: bookworm
Components: main

Types: deb
URIs: https://vendor.test/node
Suites: nodistro
Components: main
"""


def machine(directory: Path, release: str, **files: str) -> tuple[Path, Path]:
    (directory / "sources.list.d").mkdir()
    for name, text in files.items():
        path = name.replace("__", "/").replace("_", ".")
        (directory / path).write_text(text)
    (directory / "os-release").write_text(release)
    return directory, directory / "os-release"


def test_the_mirrors_are_this_machine_s_own_with_their_security_updates(tmp_path: Path) -> None:
    release = 'NAME="Debian"\nVERSION_CODENAME=bookworm\n'
    found = find_mirrors(*machine(tmp_path, release, sources_list_d__debian_sources=DEB822))
    signed = "deb [signed-by=/usr/share/keyrings/debian.gpg] http://mirror.test/debian"
    assert found.suite == "bookworm"
    assert found.lines == (
        f"{signed} bookworm main",
        f"{signed} bookworm-updates main",
        "deb http://mirror.test/security bookworm-security main",
        "deb http://second.test/security bookworm-security main",
    )


def test_one_line_sources_are_understood_too(tmp_path: Path) -> None:
    lines = (
        "# deb http://old.test/debian bookworm main\n"
        "deb [arch=amd64] http://mirror.test/ubuntu jammy main universe\n"
        "deb http://mirror.test/ubuntu jammy-security main\n"
        "deb-src http://mirror.test/ubuntu jammy main\n"
        "deb http://vendor.test/x jammy stable\n"
    )
    found = find_mirrors(*machine(tmp_path, 'VERSION_CODENAME="jammy"', sources_list=lines))
    assert found.lines == (
        "deb [arch=amd64] http://mirror.test/ubuntu jammy main universe",
        "deb http://mirror.test/ubuntu jammy-security main",
    )


@pytest.mark.parametrize("release", ["", "VERSION_CODENAME=alien", "VERSION_CODENAME=../x"])
def test_a_machine_without_a_mirror_is_told_what_to_do(tmp_path: Path, release: str) -> None:
    place = machine(tmp_path, release, sources_list_d__debian_sources=DEB822)
    with pytest.raises(BaseImageBuildFailed, match="docker pull or docker load"):
        find_mirrors(*place)


def test_a_machine_that_is_no_debian_is_told_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(BaseImageBuildFailed, match="mmdebstrap"):
        find_mirrors(tmp_path, tmp_path / "absent")
