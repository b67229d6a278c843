"""Which registries are asked, by what a user set for pip and npm."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from sandbox.bundle.target import NetworkTarget, parse_target
from sandbox.errors import PackageUnusable, UpstreamUnreachable
from sandbox.packages.registries import (
    is_on_registry,
    is_ordinary_address,
    load_npm,
    load_pypi,
)
from sandbox.packages.web_proxy import load_web_proxy

USUAL = {"pypi.org:443", "files.pythonhosted.org:443"}


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """A user who set nothing."""
    nothing = {"PIP_CONFIG_FILE": os.devnull, "NPM_CONFIG_GLOBALCONFIG": os.devnull}
    return {"HOME": str(tmp_path), **nothing}


def names(targets: frozenset[NetworkTarget]) -> set[str]:
    return set(map(str, targets))


def test_pypi_and_npm_are_asked_where_nothing_is_set(home: dict[str, str]) -> None:
    assert load_pypi(home).index == "https://pypi.org/simple"
    assert names(load_pypi(home).hosts) == USUAL
    assert names(load_npm(home).hosts) == {"registry.npmjs.org:443"}
    assert not load_pypi(home).chosen | load_pypi(home).plain | load_npm(home).chosen


@pytest.mark.parametrize(
    ("environment", "hosts", "plain"),
    [
        ({"PIP_INDEX_URL": "https://in.test/simple/"}, {"in.test:443"}, set()),
        ({"PIP_INDEX_URL": "http://u:p@10.0.0.1:81/"}, {"10.0.0.1:81"}, {"10.0.0.1:81"}),
        (
            {"PIP_EXTRA_INDEX_URL": "https://a.test/ file:///x"},
            {"pypi.org:443", "a.test:443"},
            set(),
        ),
        ({"TOOLWRIGHT_REGISTRY_HOSTS": "f.test, g.test:8"}, {"pypi.org:443", "f.test:443"}, set()),
    ],
)
def test_what_a_person_set_is_asked_too(
    home: dict[str, str], environment: Mapping[str, str], hosts: set[str], plain: set[str]
) -> None:
    found = load_pypi({**home, **environment})
    assert hosts <= names(found.hosts)
    assert names(found.hosts) - hosts <= {"files.pythonhosted.org:443", "g.test:8"}
    assert names(found.plain) == plain
    assert hosts - {"pypi.org:443"} <= names(found.chosen)


def test_settings_are_read_from_files_and_nothing_else_of_them(tmp_path: Path) -> None:
    (tmp_path / ".config/pip").mkdir(parents=True)
    (tmp_path / ".config/pip/pip.conf").write_text(
        "[global]\nindex_url = https://a.test/s\n[install]\nindex-url = https://b.test/s\n"
    )
    (tmp_path / ".npmrc").write_text(
        "# mine\nregistry = 'https://n.test/'\n//n.test/:_authToken=secret\ngit=./x.sh\n"
    )
    environment = {"HOME": str(tmp_path)}
    assert load_pypi(environment).index == "https://b.test/s"
    npm = load_npm(environment)
    assert npm.index == "https://n.test"
    assert "secret" not in repr(npm)
    assert "x.sh" not in repr(npm)
    assert load_npm({**environment, "NPM_CONFIG_REGISTRY": "https://e.test"}).index.endswith(
        "e.test"
    )


@pytest.mark.parametrize(
    "environment",
    [
        {"PIP_INDEX_URL": "file:///srv/simple"},
        {"PIP_INDEX_URL": "./here"},
        {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "/srv"},
    ],
)
def test_an_index_that_no_container_reaches_is_refused(
    home: dict[str, str], environment: Mapping[str, str]
) -> None:
    with pytest.raises(PackageUnusable, match="http"):
        load_pypi({**home, **environment})


def test_certificates_are_those_that_this_machine_s_clients_trust(
    home: dict[str, str], tmp_path: Path
) -> None:
    bundle = tmp_path / "ca.pem"
    bundle.write_text("pem")
    assert load_pypi(home).certificates == b""
    assert load_pypi({**home, "PIP_CERT": str(bundle)}).certificates == b"pem"
    assert load_npm({**home, "SSL_CERT_FILE": str(bundle)}).certificates == b"pem"
    with pytest.raises(PackageUnusable, match="certificates"):
        load_pypi({**home, "PIP_CERT": str(tmp_path / "gone")})


@pytest.mark.parametrize(
    ("url", "on"),
    [
        ("https://pypi.org/x.whl", True),
        ("https://files.pythonhosted.org:443/x.whl", True),
        ("http://pypi.org/x.whl", False),
        ("https://pypi.org:444/x.whl", False),
        ("https://pypi.org.evil.test/x.whl", False),
        ("https://pypi.org@evil.test/x.whl", False),
        ("https://evil.test/pypi.org", False),
        ("git+https://pypi.org/x", False),
        ("file:///x", False),
        ("", False),
    ],
)
def test_a_url_is_on_the_registry_by_its_scheme_host_and_port(
    home: dict[str, str], url: str, on: bool
) -> None:
    assert is_on_registry(url, load_pypi(home)) is on


@pytest.mark.parametrize(
    ("address", "ordinary"),
    [
        *((address, True) for address in ("151.101.0.223", "10.1.2.3", "2a04:4e42::223")),
        *((address, False) for address in ("127.0.0.1", "::1", "0.0.0.0", "169.254.169.254")),
        *((address, False) for address in ("fe80::1%eth0", "::ffff:127.0.0.1", "fd00:ec2::254")),
    ],
)
def test_a_registry_that_nobody_chose_is_not_on_this_machine_or_its_link(
    address: str, ordinary: bool
) -> None:
    assert is_ordinary_address(address) is ordinary


@pytest.mark.parametrize(
    "status", ["200 Connection established", "407 Proxy Authentication Required"]
)
def test_a_machine_s_web_proxy_is_asked_for_a_tunnel(status: str) -> None:
    heard: list[bytes] = []

    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(f"HTTP/1.1 {status}\r\n\r\nhello".encode())
        writer.close()

    async def work() -> bytes:
        async with await asyncio.start_server(proxy, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            environment = {
                "HTTPS_PROXY": f"http://me:p%40ss@127.0.0.1:{port}",
                "NO_PROXY": ".in.test",
            }
            found = load_web_proxy(environment)
            assert found is not None
            assert found.serves("pypi.org")
            assert not found.serves("a.in.test")
            target = parse_target("pypi.org")
            assert target is not None
            reader, writer = await found.connect(target)
            said = await reader.read()
            writer.close()
            return said

    if status.startswith("200"):
        assert asyncio.run(work()) == b"hello"
    else:
        with pytest.raises(UpstreamUnreachable, match="407"):
            asyncio.run(work())
    assert b"CONNECT pypi.org:443 HTTP/1.1\r\n" in heard[0]
    assert b"Proxy-Authorization: Basic bWU6cEBzcw==" in heard[0]


@pytest.mark.parametrize("url", ["", "https://proxy.test", "socks5://proxy.test:1080"])
def test_no_other_proxy_is_taken(url: str) -> None:
    assert load_web_proxy({"HTTPS_PROXY": url}) is None
