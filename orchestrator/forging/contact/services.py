"""Public APIs that an order may mean: offered from the directory, chosen by a person, described by
their origin, the directory's package or pages that a search finds.

An entry is a stranger's word and grants nothing. Nothing is asked of anybody before a person chose.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from forge.addresses import find_locations
from forge.directory.package import read_description
from forge.directory.search import find_services
from forge.directory.service import (
    PREFIX,
    Directory,
    Service,
    find_host,
    is_local_host,
    load_directory,
)
from forge.errors import MemberMissing
from forge.readers.document import Document, parse_document
from forge.sources import ApiSource as Place
from forge.sources import Fetcher
from forge.text import sanitize_line
from orchestrator.approvals.grants import Grants
from orchestrator.approvals.needs import forge_waits
from orchestrator.errors import ForgeFailed
from orchestrator.forging.order import NO_SOURCE, ForgeOrder
from orchestrator.gateway.brokers import find_origins
from registry.database.canonical import hash_text
from registry.needs import HostNeed, OfferedService, ServiceDoubt, ServiceNeed
from sandbox.bundle.model import Bundle
from sandbox.wire.policy import Origin, parse_origin

MOST_OFFERED = 3
MAX_PAGES = 5
MAX_RESULTS = 2 * 1024 * 1024
_PREPOSITIONS = "at|by|from|in|into|of|on|through|to|using|via|with"
_NAME = re.compile(
    rf"\b(?:{_PREPOSITIONS})\s+((?:[A-Z][\w-]{{1,40}})(?:\s+[A-Z][\w-]{{1,40}}){{0,2}})"
)

PackageFetch = Callable[[], Awaitable[Path]]


@dataclass(frozen=True)
class DirectorySettings:
    """Where descriptions of the directory's services come from. `copy` is a local copy of its
    package, a tarball or a directory, which is asked alone; `search_url` the base URL of a SearXNG
    instance; `find_registry` returns the `host:port` that has the package, "" for none, and
    `fetch_package` gets it.
    """

    copy: Path | None = None
    search_url: str = ""
    find_registry: Callable[[], str] = lambda: ""
    fetch_package: PackageFetch | None = None


@dataclass(frozen=True)
class ServiceFinder:
    """Offers the services that an order may mean, and gets the description of the chosen one."""

    consents: Grants
    settings: DirectorySettings = field(default_factory=DirectorySettings)
    load: Callable[[], Directory] = load_directory

    def choose_service(self, order: ForgeOrder) -> Service | None:
        """The service that an order names, or that a person chose for its task; None where none is
        meant. Raises ForgeWaits where a person has to choose first, ForgeFailed for an unknown one.
        """
        digest = hash_text(order.task)
        if order.source.startswith(PREFIX):
            service = self._get_named(order.source)
            hosts = frozenset(self.list_hosts(service, order))
            if hosts <= self.consents.find_hosts() or self._is_meant(digest, service.location):
                return service
            raise forge_waits(ServiceNeed(digest, (self._offer(service, order),)))
        if order.source or order.document or not order.task.strip():
            return None
        found = find_services(order.task, MOST_OFFERED, self.load())
        for each in found:
            if self._is_meant(digest, each.service.location):
                return each.service
        if found:
            raise forge_waits(
                ServiceNeed(digest, tuple(self._offer(each.service, order) for each in found))
            )
        return None

    def find_chosen(self, order: ForgeOrder) -> Service | None:
        """The service that an order's description was taken of; asks for nothing."""
        if order.source.startswith(PREFIX):
            return self.load().get(order.source.removeprefix(PREFIX))
        if order.source or order.document or find_locations(order.task):
            return None
        digest = hash_text(order.task)
        found = find_services(order.task, MOST_OFFERED, self.load())
        meant = (f.service for f in found if self._is_meant(digest, f.service.location))
        return next(meant, None)

    def find_page(self, order: ForgeOrder) -> str:
        """The page of a search that a person chose for an order's task; "" for none."""
        if order.source == NO_SOURCE or (order.source and not order.source.startswith(PREFIX)):
            return ""
        digest = hash_text(order.task)
        registered = {source.url for source in self.consents.find_sources()}
        chosen = (g.detail for g in self.consents.find_grants("meant") if g.origin == digest)
        pages = (url for url in chosen if url.startswith("https://") and url not in registered)
        return next(pages, "")

    def list_hosts(self, service: Service, order: ForgeOrder) -> tuple[str, ...]:
        """The hosts that reading a service's description, and then calling it, asks. Only public
        ones, by https: others are asked for each by itself, and so is the order's own server.
        """
        hosts = (
            []
            if self.settings.copy
            else [_find_public(service.origin), self.settings.find_registry()]
        )
        server = "" if order.base_url else _find_public(service.server)
        return tuple(dict.fromkeys(filter(None, [*hosts, server])))

    async def load_package_document(self, service: Service) -> Document:
        """The description that the directory's package has of a service. Raises MemberMissing,
        DocumentError, SandboxError, ForgeWaits.
        """
        directory = self.load()
        copy, fetch = self.settings.copy, self.settings.fetch_package
        if copy is None:
            if fetch is None:
                raise MemberMissing("there is no copy of the directory's package")
            host = self.settings.find_registry()
            if host not in self.consents.find_hosts():
                raise forge_waits(HostNeed(host))
            copy = await fetch()
        args = (copy, service.identity, directory.package)
        content = await asyncio.to_thread(read_description, *args)
        document = await asyncio.to_thread(parse_document, content, service.location)
        return replace(document, believed=False)

    def find_origin(self, service: Service) -> Place | None:
        """Where a service's description was published, where that may be asked: without any
        credential.
        """
        host = _find_public(service.origin)
        if self.settings.copy is not None or host not in self.consents.find_hosts():
            return None
        return Place(service.origin)

    async def search_pages(
        self, order: ForgeOrder, name: str, build_fetch: Callable[[Place], Fetcher]
    ) -> ServiceNeed | None:
        """The choice among pages that the configured search finds for a service's name, all that
        leaves. None where no search is configured, or it finds none. Raises ForgeWaits where its
        host was not allowed, SandboxError.
        """
        base = self.settings.search_url.rstrip("/")
        host = find_host(base)
        if not host or not name:
            return None
        if host not in self.consents.find_hosts():
            told = f"a search for {name!r}, and no other word of the task, is sent there"
            raise forge_waits(HostNeed(host, told))
        asked = quote(f"{name} API documentation")
        url = f"{base}/search?q={asked}&format=json"
        answer = await build_fetch(Place(base))(url, (("Accept", "application/json"),))
        if answer.status != 200 or len(answer.body) > MAX_RESULTS:
            raise ForgeFailed(
                f"the search at {host} answers with HTTP {answer.status} and {len(answer.body)} "
                "bytes. SearXNG has to allow the format json (search.formats in settings.yml)."
            )
        pages = read_results(answer.body)
        return ServiceNeed(hash_text(order.task), pages) if pages else None

    def check_servers(self, bundle: Bundle, order: ForgeOrder) -> None:
        """Raises ForgeWaits where a description names another server than the service's entry did,
        also where that host was allowed for something else.
        """
        service = self.find_chosen(order)
        if service is None or order.base_url:
            return
        digest = hash_text(order.task)
        for origin in sorted(find_origins(bundle), key=str):
            host = f"{origin.host}:{origin.port}"
            location = f"{service.location} at {origin}"
            known = parse_origin(service.server)
            if origin == known or self._is_meant(digest, location):
                continue
            offered = OfferedService(
                location,
                service.title,
                f"{service.provider}, whose entry names {service.host or 'no server'},",
                host,
                operations=len(bundle.tools),
                scheme=origin.scheme,
                hosts=(host,) if _is_public(origin) else (),
                doubts=("other_host",),
            )
            raise forge_waits(ServiceNeed(digest, (offered,)))

    def _get_named(self, source: str) -> Service:
        service = self.load().get(source.removeprefix(PREFIX))
        if service is None:
            raise ForgeFailed(
                f"{source[:120]!r} is no entry of the directory. `toolwright find TASK` names "
                "those that fit a task."
            )
        return service

    def _is_meant(self, digest: str, location: str) -> bool:
        return self.consents.is_source_meant(digest, location)

    def _offer(self, service: Service, order: ForgeOrder) -> OfferedService:
        return OfferedService(
            service.location,
            service.title,
            service.provider,
            service.host,
            "the copy of the directory's package"
            if self.settings.copy
            else find_host(service.origin) or "the directory's package",
            service.updated,
            service.operations,
            service.scheme,
            self.list_hosts(service, order),
            () if order.base_url else list_doubts(service),
        )


def list_doubts(service: Service) -> tuple[ServiceDoubt, ...]:
    """Why a person has to choose the service by its number."""
    if not service.scheme:
        return ("no_server",)
    if service.is_local:
        return ("local",)
    doubts: list[ServiceDoubt] = [] if service.is_likely else ["other_host"]
    return (*doubts, *(("plain_http",) if service.scheme == "http" else ()))


def find_name(task: str) -> str:
    """The name in a task: capitalised words behind a word such as "at"; "" for none."""
    match = _NAME.search(task[:2_000])
    return match[1] if match else ""


def read_results(content: bytes) -> tuple[OfferedService, ...]:
    """The pages of a SearXNG answer that may be asked: public names, by https.
    https://docs.searxng.org/dev/search_api.html
    """
    try:
        value = json.loads(content)
        results = value["results"] if isinstance(value, Mapping) else []
    except (ValueError, KeyError, RecursionError):
        return ()
    pages: dict[str, OfferedService] = {}
    for result in results[:100] if isinstance(results, list) else ():
        page = _read_result(result)
        if page is not None:
            pages.setdefault(page.location, page)
    return tuple(pages.values())[:MAX_PAGES]


def _read_result(result: Any) -> OfferedService | None:
    url = result.get("url") if isinstance(result, Mapping) else None
    if not isinstance(url, str) or not url.isascii() or len(url) > 500 or not url.isprintable():
        return None
    host = _find_public(url)
    if not host or " " in url:
        return None
    title = sanitize_line(result.get("title"), 80) or url
    return OfferedService(
        url, title, host.partition(":")[0], host, host, hosts=(host,), doubts=("page",)
    )


def _find_public(url: str) -> str:
    """The `host:port` of a URL that may be asked on a stranger's word; "" for any other."""
    origin = parse_origin(url)
    if origin is None or "@" in urlsplit(url).netloc:
        return ""
    return f"{origin.host}:{origin.port}" if _is_public(origin) else ""


def _is_public(origin: Origin) -> bool:
    return origin.scheme == "https" and not is_local_host(origin.host)
