"""The package registries that are asked: PyPI and npm's, or those that the user's settings name.

Of the settings of pip and npm on this machine only these are read, and none goes into a fetching
container but as values of ours: the addresses of registries, and the certificates they are trusted
by.
"""

from __future__ import annotations

import configparser
import ipaddress
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from sandbox.bundle.target import NetworkTarget, parse_target
from sandbox.errors import PackageUnusable
from sandbox.packages.web_proxy import WebProxy, load_web_proxy
from sandbox.wire.policy import DEFAULT_PORTS

PYPI = "https://pypi.org/simple"
PYPI_FILES = "https://files.pythonhosted.org"
NPM = "https://registry.npmjs.org"
MORE_HOSTS = "TOOLWRIGHT_REGISTRY_HOSTS"
CERTIFICATES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS")
MAX_CERTIFICATES = 4 * 1024 * 1024
_METADATA = frozenset({"168.63.129.16", "fd00:ec2::254", "100.100.100.200", "192.0.0.192"})
"""Metadata services of clouds that are not at a link-local address."""


@dataclass(frozen=True)
class Registry:
    """Where packages come from: the `index`, further ones, and all hosts that are connected to.

    `chosen` are the hosts that a person named in the settings, which may have any address; `plain`
    those that are asked without TLS. `certificates` is a bundle to trust, empty for the client's
    own; `proxy` what this machine reaches the hosts through. An index may hold credentials, which
    are its registry's alone.
    """

    index: str
    more: tuple[str, ...]
    hosts: frozenset[NetworkTarget]
    chosen: frozenset[NetworkTarget] = frozenset()
    plain: frozenset[NetworkTarget] = frozenset()
    certificates: bytes = b""
    proxy: WebProxy | None = None


def load_pypi(environ: Mapping[str, str] | None = None) -> Registry:
    """The index that pip is set to use. Raises PackageUnusable for one that is no http(s) URL."""
    environ = os.environ if environ is None else environ
    settings = {**_read_pip_files(environ), **_read_variables(environ, "pip_")}
    more = [*settings.get("extra-index-url", "").split()]
    index = settings.get("index-url", "")
    if not index and settings.get("no-index", "").lower() in ("1", "true", "yes", "on"):
        raise PackageUnusable(
            "pip is set to use no index (no-index), and a fetching container sees no directory of "
            "yours. Serve it over http and name it with PIP_INDEX_URL."
        )
    found = _build_registry(index or PYPI, more, (PYPI_FILES,), PYPI, environ)
    return replace(
        found,
        certificates=_read_certificates(settings.get("cert", ""), environ),
        proxy=load_web_proxy(environ, settings.get("proxy", "")),
    )


def load_npm(environ: Mapping[str, str] | None = None) -> Registry:
    """The registry that npm is set to use. Raises PackageUnusable like `load_pypi`."""
    environ = os.environ if environ is None else environ
    settings = {**_read_npm_files(environ), **_read_variables(environ, "npm_config_")}
    index = settings.get("registry", "") or NPM
    found = _build_registry(index, (), (NPM,), NPM, environ)
    return replace(
        found,
        certificates=_read_certificates(settings.get("cafile", ""), environ),
        proxy=load_web_proxy(environ, settings.get("https-proxy") or settings.get("proxy", "")),
    )


def is_on_registry(url: str, registry: Registry) -> bool:
    """Whether a URL is at a host of the registry."""
    target = _find_target(url)
    return target is not None and target in registry.hosts


def is_ordinary_address(address: str) -> bool:
    """Whether a registry that nobody chose may be at this address: not on this machine, its link or
    a cloud's metadata service. A network of a firm may well answer for a public name by one of its
    own mirrors, and TLS tells whether that has the name's key.
    """
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    ip = getattr(ip, "ipv4_mapped", None) or ip
    special = ip.is_loopback or ip.is_link_local or ip.is_multicast or ip.is_unspecified
    return not special and str(ip) not in _METADATA


def _build_registry(
    index: str,
    more: Iterable[str],
    files: Iterable[str],
    usual: str,
    environ: Mapping[str, str],
) -> Registry:
    if _find_target(index) is None:
        raise PackageUnusable(
            f"{_hide_credentials(index)!r} is no registry that a fetching container can reach: it "
            "takes an http or https URL."
        )
    # An index in a directory (file:) is one of several, and cannot be seen from the container.
    further = tuple(url for url in more if _find_target(url) is not None)
    chosen = {_find_target(url) for url in (index, *further) if url != usual}
    named = [parse_target(word) for word in environ.get(MORE_HOSTS, "").replace(",", " ").split()]
    chosen |= {*named}
    hosts = chosen | {_find_target(url) for url in (index, *files)}
    plain = {_find_target(url) for url in (index, *further) if urlsplit(url).scheme == "http"}
    return Registry(
        index.rstrip("/"),
        further,
        _drop_none(hosts),
        _drop_none(chosen),
        _drop_none(plain),
    )


def _find_target(url: str) -> NetworkTarget | None:
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
        return parse_target(host, DEFAULT_PORTS[parts.scheme])
    except (KeyError, ValueError):
        return None


def _drop_none(targets: Iterable[NetworkTarget | None]) -> frozenset[NetworkTarget]:
    return frozenset(target for target in targets if target is not None)


def _hide_credentials(url: str) -> str:
    scheme, slashes, rest = url.partition("//")
    return f"{scheme}{slashes}{rest.rpartition('@')[2]}"[:200]


def _read_variables(environ: Mapping[str, str], prefix: str) -> dict[str, str]:
    """Settings from the environment, by their names in files."""
    return {
        name[len(prefix) :].lower().replace("_", "-"): value
        for name, value in environ.items()
        if name.lower().startswith(prefix) and value
    }


def _read_pip_files(environ: Mapping[str, str]) -> dict[str, str]:
    """pip's settings from files, later ones first of all (pip documentation, "Configuration")."""
    home = Path(environ.get("HOME", "~")).expanduser()
    users = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
    places = [Path("/etc/xdg/pip/pip.conf"), Path("/etc/pip.conf"), home / ".pip/pip.conf"]
    places += [users / "pip/pip.conf", Path(sys.prefix) / "pip.conf"]
    if named := environ.get("PIP_CONFIG_FILE", ""):
        places = [] if named == os.devnull else [*places, Path(named)]
    found: dict[str, str] = {}
    for path in places:
        parser = configparser.RawConfigParser()
        try:
            parser.read(path, encoding="utf-8")
        except (configparser.Error, OSError, UnicodeError):
            continue
        for section in ("global", "install"):
            if parser.has_section(section):
                found |= {name.replace("_", "-"): value for name, value in parser.items(section)}
    return found


def _read_npm_files(environ: Mapping[str, str]) -> dict[str, str]:
    """npm's settings from files, later ones first of all (npm documentation, "npmrc")."""
    named = _read_variables(environ, "npm_config_")
    home = Path(environ.get("HOME", "~")).expanduser()
    places = [Path("/etc/npmrc"), Path("/usr/local/etc/npmrc"), Path("/usr/etc/npmrc")]
    if "globalconfig" in named:
        places = [Path(named["globalconfig"])]
    places.append(Path(named.get("userconfig") or home / ".npmrc"))
    return {name: value for path in places for name, value in _read_npmrc(path)}


def _read_npmrc(path: Path) -> Iterator[tuple[str, str]]:
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError:
        return
    for line in lines:
        name, equals, value = line.partition("=")
        if equals and not line.lstrip().startswith(("#", ";")):
            yield name.strip(), value.strip().strip("\"'")


def _read_certificates(named: str, environ: Mapping[str, str]) -> bytes:
    """The bundle of certificates that this machine's clients trust; empty for their own."""
    path = next(filter(None, (named, *(environ.get(name, "") for name in CERTIFICATES))), "")
    if not path:
        return b""
    try:
        with open(path, "rb") as file:
            return file.read(MAX_CERTIFICATES)
    except OSError as error:
        raise PackageUnusable(f"the certificates of {path} cannot be read: {error}.") from error
