"""The download of one npm package's tarball, as it is: nothing of it is run or unpacked here."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import os
import ssl
import tempfile
from pathlib import Path
from urllib.parse import unquote, urlsplit

import httpcore

from sandbox.broker.addresses import resolve_by_system
from sandbox.broker.live import LiveHttp
from sandbox.errors import PackageUnusable, UpstreamUnreachable
from sandbox.packages.registries import Registry, is_ordinary_address
from sandbox.packages.web_proxy import WebProxy
from sandbox.wire.exchange import WireRequest
from sandbox.wire.policy import Origin, parse_origin

MAX_TARBALL = 64 * 1024 * 1024
SECONDS = 300.0


def find_registry_origin(registry: Registry) -> Origin | None:
    """The origin that tarballs are asked of."""
    parts = urlsplit(registry.index)
    return parse_origin(f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}")


async def download_tarball(
    registry: Registry, name: str, version: str, integrity: str, place: Path
) -> Path:
    """The tarball of a package at `place`, once it is known to have that sha512 (as npm writes it);
    one that is there already is taken as it is, for whoever reads it to judge.

    Raises PackageUnusable, UpstreamUnreachable, ResponseTooLarge.
    """
    if place.exists():
        return place
    parts = urlsplit(registry.index)
    login, _, host = parts.netloc.rpartition("@")
    headers = (("Authorization", _encode_login(login)),) if login else ()
    own = name.rpartition("/")[2]
    path = f"{parts.path.rstrip('/')}/{name}/-/{own}-{version}.tgz"
    try:
        async with asyncio.timeout(SECONDS):
            content = await _get(registry, f"{parts.scheme}://{host}{path}", headers)
    except TimeoutError as error:
        raise UpstreamUnreachable(f"{host} did not send {name} in {SECONDS:g} s") from error
    digest = f"sha512-{base64.b64encode(hashlib.sha512(content).digest()).decode()}"
    if not hmac.compare_digest(digest, integrity):
        raise PackageUnusable(
            f"what {host} sent is not {name} {version}: it has another sha512. Nothing of it was "
            "used."
        )
    await asyncio.to_thread(_store, content, place)
    return place


async def _get(registry: Registry, url: str, headers: tuple[tuple[str, str], ...]) -> bytes:
    origin = parse_origin(url)
    if origin is None or not any(
        (each.host, each.port) == (origin.host, origin.port) for each in registry.hosts
    ):
        raise PackageUnusable(f"{url[:200]!r} is at no host of the registry.")
    proxy = registry.proxy
    if proxy is not None and proxy.serves(origin.host):
        status, body = await _get_by_proxy(proxy, _trust(registry), url, headers)
    else:
        private = frozenset(
            Origin(scheme, each.host, each.port)
            for each in registry.hosts
            for scheme in ("http", "https")
        )
        chosen = {(each.host, each.port) for each in registry.chosen}

        async def resolve(host: str, port: int) -> list[str]:
            found = await resolve_by_system(host, port)
            if (host, port) in chosen or all(map(is_ordinary_address, found)):
                return found
            raise UpstreamUnreachable(f"{host} is at {', '.join(found)[:200]}, no registry's place")

        async with LiveHttp(
            private, response_bytes=MAX_TARBALL, verify=_trust(registry), resolve=resolve
        ) as live:
            answer = await live.send(WireRequest("GET", url, headers, b""))
            status, body = answer.status, answer.body
    if status != 200:
        raise PackageUnusable(f"{origin} answers with HTTP {status} for {url[:200]}.")
    return body


async def _get_by_proxy(
    proxy: WebProxy, trusted: ssl.SSLContext, url: str, headers: tuple[tuple[str, str], ...]
) -> tuple[int, bytes]:
    sent = [("Proxy-Authorization", proxy.authorization)] if proxy.authorization else []
    try:
        async with (
            httpcore.AsyncHTTPProxy(
                f"http://{proxy.target}", proxy_headers=sent, ssl_context=trusted
            ) as pool,
            pool.stream("GET", url, headers=list(headers)) as response,
        ):
            parts, size = [], 0
            async for chunk in response.aiter_stream():
                size += len(chunk)
                if size > MAX_TARBALL:
                    raise PackageUnusable(f"the tarball has more than {MAX_TARBALL} bytes.")
                parts.append(chunk)
            return response.status, b"".join(parts)
    except (httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProxyError) as error:
        raise UpstreamUnreachable(f"the proxy {proxy.target}: {error}") from error


def _trust(registry: Registry) -> ssl.SSLContext:
    trusted = ssl.create_default_context()
    if registry.certificates:
        trusted.load_verify_locations(cadata=registry.certificates.decode("ascii", "ignore"))
    return trusted


def _encode_login(login: str) -> str:
    return f"Basic {base64.b64encode(unquote(login).encode()).decode()}"


def _store(content: bytes, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=place.parent, prefix=".directory-")
    with open(handle, "wb") as file:
        file.write(content)
    os.replace(name, place)
