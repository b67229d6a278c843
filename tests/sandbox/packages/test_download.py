"""The download of one package's tarball from a registry on loopback."""

from __future__ import annotations

import asyncio
import hashlib
from base64 import b64encode
from pathlib import Path

import pytest

from sandbox.errors import PackageUnusable
from sandbox.packages.download import download_tarball, find_registry_origin
from sandbox.packages.registries import load_npm
from tests.world.site import Page, Site, site

TARBALL = b"a tarball" * 100
PATH = "/npm/descriptions/-/descriptions-1.0.0.tgz"


def digest(content: bytes) -> str:
    return f"sha512-{b64encode(hashlib.sha512(content).digest()).decode()}"


def download(here: Site, place: Path, integrity: str, login: str = "") -> Path:
    url = here.url.replace("://", f"://{login}@") if login else here.url
    environ = {"npm_config_registry": f"{url}/npm/", "HOME": str(place.parent)}
    registry = load_npm(environ)
    return asyncio.run(download_tarball(registry, "descriptions", "1.0.0", integrity, place))


def test_the_tarball_of_that_digest_is_kept_and_not_asked_for_again(tmp_path: Path) -> None:
    place = tmp_path / "cache" / "p.tgz"
    with site({PATH: Page(TARBALL)}) as here:
        for _ in range(2):
            assert download(here, place, digest(TARBALL)).read_bytes() == TARBALL
        assert here.paths == [PATH]


def test_another_digest_is_refused_and_nothing_kept(tmp_path: Path) -> None:
    place = tmp_path / "cache" / "p.tgz"
    with site({PATH: Page(TARBALL + b"!")}) as here:
        with pytest.raises(PackageUnusable, match="another sha512"):
            download(here, place, digest(TARBALL))
    assert not place.exists()


def test_a_redirect_is_not_followed(tmp_path: Path) -> None:
    with site({"/other": Page(TARBALL)}) as other, site() as here:
        here.pages[PATH] = Page(b"", 302, (("Location", f"{other.url}/other"),))
        with pytest.raises(PackageUnusable, match="HTTP 302"):
            download(here, tmp_path / "p.tgz", digest(TARBALL))
        assert other.asked == []


def test_a_registrys_own_login_goes_to_it(tmp_path: Path) -> None:
    with site({PATH: Page(TARBALL)}) as here:
        download(here, tmp_path / "p.tgz", digest(TARBALL), "ann:pass")
        assert here.asked[0].headers["authorization"] == "Basic YW5uOnBhc3M="


def test_the_registrys_origin_has_no_login() -> None:
    registry = load_npm({"npm_config_registry": "https://a:b@npm.example/x/", "HOME": "/none"})
    assert str(find_registry_origin(registry)) == "https://npm.example"
