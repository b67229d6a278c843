"""Descriptions of APIs: where an order's is, and what is fetched of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from forge.challenge import NeedsCredential
from forge.discover import Found, NotFound, discover
from forge.document import Document, load, parse
from forge.prosedocs.gathering import gather, within
from forge.prosedocs.page import Page, page_of
from forge.recorded import curl
from forge.sources import Fetched, choose
from forge.sources import Source as Place
from orchestrator.brokers import SOURCES
from orchestrator.consents import Consents
from orchestrator.errors import ForgeFailed, ForgeWaits, ProseFound, SourceMissing
from orchestrator.fetching import GuardedFetch
from orchestrator.hosts import check_origins
from orchestrator.orders import NO_SOURCE, Order, Report, Step
from registry.records import Source
from registry.vault import Vault
from sandbox.brake import Brake
from sandbox.exchange import Upstream
from sandbox.policy import Origin


@dataclass(frozen=True)
class Descriptions:
    """Finds descriptions at the places and with the credentials that people registered. `upstream`
    is the live network with these origins' private addresses.

    Whatever reaches a host that no person has named, or that asks for a credential nobody gave,
    raises ForgeWaits; what cannot be reached or is frozen SandboxError.
    """

    consents: Consents
    vault: Vault
    brake: Brake
    upstream: Callable[[frozenset[Origin]], Upstream]

    async def find(self, order: Order, report: Report) -> Document:
        """The machine-readable description, from the order itself or from where it points. Raises
        as `orchestrator.forging.Forge.forge`.
        """
        report(Step("find", 0.05, "looking for an API description"))
        if order.source == NO_SOURCE and not order.document:
            raise SourceMissing
        if order.document:
            return await asyncio.to_thread(
                parse, order.document.encode(), "the submitted document", url=order.source or None
            )
        reasons = []
        for place in self._places(order.task, order.source):
            found = await self._look(place)
            if isinstance(found, Found):
                page = await asyncio.to_thread(_prose_of, found)
                if page is not None:
                    raise ProseFound(place, (page,))
                return await self._opened(found, place, report)
            if found.documentation:
                raise ProseFound(place, found.documentation)
            reasons.append(f"{place.location}: {found.reason}")
        if not reasons:
            raise SourceMissing
        raise ForgeFailed(
            f"no API description was found ({'; '.join(reasons)}). Give the path or URL of an "
            "OpenAPI document as the source."
        )

    async def at(self, location: str, report: Report) -> Document | str:
        """The description at a place, or why there is none."""
        place = self.place_of(location)
        found = await self._look(place)
        if isinstance(found, Found):
            return await self._opened(found, place, report)
        if found.documentation:
            return f"{place.location}: {ProseFound(place, found.documentation)}"
        return f"{place.location}: {found.reason}"

    async def documentation(self, place: Place, pages: tuple[Page, ...]) -> tuple[Page, ...]:
        """The pages with those of the same origin that they lead to."""
        if place.path is not None:
            return within(pages)
        return await gather(pages, self._fetch(place), place.headers)

    def place_of(self, location: str) -> Place:
        """Where a description is, with the credential that is registered for it."""
        return self._places("", location)[0]

    async def fetched(self, place: Place) -> Fetched:
        """What a place on the network answers."""
        return await self._fetch(place)(place.urls[0], place.headers)

    async def _look(self, place: Place) -> Found | NotFound:
        found = await discover(place, self._fetch(place))
        if isinstance(found, NeedsCredential):
            raise ForgeWaits("credential", found.url, found.question())
        return found

    async def _opened(self, found: Found, place: Place, report: Report) -> Document:
        report(Step("find", 0.15, f"found {found.dialect} at {found.location}"))
        if place.path is not None:
            return await asyncio.to_thread(load, place.path)
        return await asyncio.to_thread(parse, found.content, found.location, url=found.location)

    def _fetch(self, place: Place) -> GuardedFetch:
        """What fetches from a place, once a person has named its hosts."""
        if place.path is None:
            check_origins(self.consents, place.origins)
        private = frozenset(filter(self.consents.is_private, place.origins))
        return GuardedFetch(self.upstream(private), self.brake)

    def _places(self, task: str, location: str) -> tuple[Place, ...]:
        """Where to look, likeliest first, each with the credential registered for it."""
        return choose(task, location or None, map(self._place, self.consents.sources()))

    def _place(self, source: Source) -> Place:
        secret = self.vault.get(SOURCES, source.secret) if source.secret else None
        headers = ((source.header, secret.reveal()),) if secret else ()
        return Place(source.url, headers)


def _prose_of(found: Found) -> Page | None:
    """The page that curl commands stand in; None where it is all commands, or no such document."""
    if found.dialect != curl.KEY:
        return None
    page = page_of(found.location, found.content)
    return page if page and not curl.starts_with_curl(page.text) else None
