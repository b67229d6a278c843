"""Finding and fetching API descriptions, with the grants and credentials that people registered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from forge.directory.service import PREFIX
from forge.discovery.challenge import CredentialChallenge
from forge.discovery.prefix import find_prefix, guess_prefix, is_below, may_be_own_server
from forge.discovery.search import (
    MAX_DOCUMENT_BYTES,
    FoundDocument,
    NotFound,
    discover_description,
    identify_document,
)
from forge.discovery.telling import Attempt, render_urls
from forge.documentation.gather import gather_pages, limit_pages
from forge.errors import DocumentError, ForgeError, SourceUnreachable
from forge.readers.document import Document, DocumentProblem, load_document, parse_document
from forge.readers.page import Page, parse_page
from forge.readers.recorded import curl
from forge.sources import FILE, FetchResponse, choose_sources
from forge.sources import ApiSource as Place
from orchestrator.approvals.granting import normalize_path
from orchestrator.approvals.grants import Grants
from orchestrator.approvals.needs import forge_waits
from orchestrator.errors import (
    ForgeFailed,
    ForgeWaits,
    ProseFound,
    SourceMissing,
    SourceUnconfirmed,
)
from orchestrator.forging.contact.registered_sources import find_meant_sources
from orchestrator.forging.contact.services import ServiceFinder, find_name
from orchestrator.forging.contact.source_credentials import mark_credentials
from orchestrator.forging.contact.source_logins import SourceLogins
from orchestrator.forging.fetch import GuardedFetch
from orchestrator.forging.order import NO_SOURCE, FileAccess, ForgeOrder, ForgeStep, Report
from orchestrator.gateway.brokers import find_origins
from registry.database.canonical import hash_text
from registry.models import CALLABLE, DocumentationSource
from registry.needs import CredentialNeed, FileNeed, HostNeed, SourceNeed, join_needs
from registry.secrets.vault import Vault
from sandbox.bundle.model import Bundle
from sandbox.bundle.permissions import find_path_problem
from sandbox.bundle.plain_files import read_plain_file
from sandbox.credentials.source import TokenExchange
from sandbox.errors import PackageUnusable, ResponseTooLarge, UpstreamUnreachable
from sandbox.killswitch import KillSwitch
from sandbox.wire.exchange import Upstream
from sandbox.wire.policy import Origin, parse_origin

SUBMITTED = "the submitted document"
"""The source of a description that came with its order."""
NETWORK = "network:"
"""How the permission to reach a host begins."""


def check_hosts(consents: Grants, bundle: Bundle, permissions: Iterable[str] = ()) -> None:
    """Raises ForgeWaits for the hosts that no person has named, of those that a bundle asks for and
    of those among permissions, all at once.
    """
    need = join_needs(find_unnamed(consents, bundle, permissions))
    if need is not None:
        raise forge_waits(need)


def find_unnamed(
    consents: Grants, bundle: Bundle, permissions: Iterable[str] = ()
) -> tuple[HostNeed, ...]:
    """The hosts that no person has named, as `check_hosts`."""
    named = (p.removeprefix(NETWORK) for p in permissions if p.startswith(NETWORK))
    hosts = filter(None, (parse_origin(f"https://{host}") for host in named))
    return _find_unnamed_origins(consents, find_origins(bundle) | frozenset(hosts))


def check_origins(consents: Grants, wanted: Iterable[Origin]) -> None:
    """Raises ForgeWaits for the origins that no person has named, all at once."""
    need = join_needs(_find_unnamed_origins(consents, wanted))
    if need is not None:
        raise forge_waits(need)


def _find_unnamed_origins(consents: Grants, wanted: Iterable[Origin]) -> tuple[HostNeed, ...]:
    named = consents.find_hosts()
    hosts = dict.fromkeys(f"{o.host}:{o.port}" for o in sorted(wanted, key=str))
    return tuple(HostNeed(host) for host in hosts if host not in named)


def check_file(consents: Grants, named: Path, files: FileAccess) -> str:
    """The plain path of a file that a client names as a source. Looks at no file. Raises ForgeWaits
    where no person granted it, ForgeFailed where none could.
    """
    path = normalize_path(str(named))
    problem = find_path_problem(path)
    if files != "granted" or problem:
        reason = problem or "no file of this machine is read for who asks over HTTP"
        raise ForgeFailed(
            f"{path[:300]!r} cannot be the source: {reason}. A person can name it at the terminal: "
            "`toolwright forge TASK --source PATH`."
        )
    if not consents.is_readable(path):
        raise forge_waits(FileNeed(path))
    return path


@dataclass(frozen=True)
class Descriptions:
    """Finds descriptions at the places and with the credentials that people registered. `upstream`
    is the live network with these origins' private addresses.

    Whatever reaches a host that no person has named, or that asks for a credential nobody gave,
    raises ForgeWaits; what cannot be reached or is frozen SandboxError.
    """

    consents: Grants
    vault: Vault
    kill_switch: KillSwitch
    upstream: Callable[[frozenset[Origin]], Upstream]
    services: ServiceFinder | None = None
    told: Callable[[TokenExchange], None] = lambda exchange: None
    """Receives a record of each request for a token of a source's log-in."""

    async def find_document(self, order: ForgeOrder, report: Report) -> Document:
        """The machine-readable description, from the order itself or from where it points. Raises
        as `orchestrator.forging.forge.Forge.forge_server`.
        """
        report(ForgeStep("find", 0.05, "looking for an API description"))
        if order.source == NO_SOURCE and not order.document:
            raise SourceMissing
        if order.document:
            submitted = await asyncio.to_thread(
                parse_document,
                order.document.encode(),
                SUBMITTED,
                url=self._find_url(order.source),
            )
            return replace(submitted, believed=False)
        if self.services is not None and (page := self.services.find_page(order)):
            return await self._search_places((Place(page),), order, report)
        if order.source.startswith(PREFIX):
            return await self._find_service_document(order, report)
        places = self._choose_places(order.task, order.source)
        if not places:
            return await self._find_service_document(order, report)
        return await self._search_places(places, order, report)

    async def _search_places(
        self, places: tuple[Place, ...], order: ForgeOrder, report: Report
    ) -> Document:
        later: list[Exception] = []
        for named in places:
            place = await self._renew_place(named)
            try:
                found = await self._search_place(place, order.files, order.task)
            except (DocumentError, SourceUnreachable, ForgeWaits) as error:
                # Another of the task's addresses may be the one that has the description.
                if len(places) == 1 or not _may_be_passed(error):
                    raise
                later.append(error)
                continue
            if isinstance(found, FoundDocument):
                page = await asyncio.to_thread(_find_prose_page, found)
                if page is None:
                    return await self._parse_found(found, place, order.files, report)
                later.append(ProseFound(place, (page,)))
            elif found.documentation:
                passed = _describe_passed(found.instead, found.documentation[0].location)
                for problem in passed:
                    report(ForgeStep("find", 0.06, str(problem)))
                later.append(ProseFound(place, found.documentation, passed))
            else:
                later.append(ForgeFailed(found.render()))
        raise _choose_outcome(later)

    async def _find_service_document(self, order: ForgeOrder, report: Report) -> Document:
        """The description of the public API that a person chose for an order: from where it was
        published, else from the directory's package, else from a page that a search finds. Raises
        SourceMissing where none is meant.
        """
        services = self.services
        chosen = services.choose_service(order) if services else None
        if services is None or chosen is None:
            if services is not None:
                await self._offer_pages(services, order, find_name(order.task))
            raise SourceMissing
        tried: list[str] = []
        origin = services.find_origin(chosen)
        if origin is not None:
            try:
                return await self._load_origin(origin, order, report)
            except (
                ForgeError,
                ForgeFailed,
                ForgeWaits,
                UpstreamUnreachable,
                ResponseTooLarge,
            ) as e:
                tried.append(str(e))
        try:
            document = await services.load_package_document(chosen)
            report(ForgeStep("find", 0.15, f"{chosen.title}, as the directory's package has it"))
            return document
        except (ForgeError, PackageUnusable, UpstreamUnreachable, ResponseTooLarge) as error:
            tried.append(str(error))
        await self._offer_pages(services, order, chosen.title)
        raise ForgeFailed(
            f"the description of {chosen.title} cannot be had. {' '.join(tried)[:1500]} Give the "
            "path or URL of it as the source."
        )

    async def _load_origin(self, place: Place, order: ForgeOrder, report: Report) -> Document:
        """The description at the place where an entry says that it was published. Of what is known
        here no credential goes there, and no private address is asked.
        """
        fetch = GuardedFetch(self.upstream(frozenset()), self.kill_switch)
        found = await discover_description(place, fetch, task=order.task)
        if not isinstance(found, FoundDocument):
            raise ForgeFailed(f"{place.location} has no description any more.")
        report(ForgeStep("find", 0.15, f"found {found.dialect} at {found.location}"))
        parsed = await asyncio.to_thread(
            parse_document, found.content, found.location, url=found.location
        )
        return replace(parsed, believed=False)

    async def _offer_pages(self, services: ServiceFinder, order: ForgeOrder, name: str) -> None:
        """Raises ForgeWaits where a search finds pages that a person may choose among."""
        need = await services.search_pages(order, name, self._build_fetch)
        if need is not None:
            raise forge_waits(need)

    async def load_document(self, location: str, report: Report) -> Document | str:
        """The description at a place where a server's was found, or why there is none."""
        if location.startswith(PREFIX):
            services, identity = self.services, location.removeprefix(PREFIX)
            service = services.load().get(identity) if services else None
            if services is None or service is None:
                return f"{location}: the directory has it no longer"
            return await services.load_package_document(service)
        place = await self._renew_place(self.find_place(location))
        files: FileAccess = "granted" if location.startswith(FILE) else "typed"
        found = await self._search_place(place, files)
        if isinstance(found, FoundDocument):
            return await self._parse_found(found, place, files, report)
        if found.documentation:
            return f"{place.location}: {ProseFound(place, found.documentation)}"
        return found.render()

    async def gather_pages(self, place: Place, pages: tuple[Page, ...]) -> tuple[Page, ...]:
        """The pages with those of the same origin that they lead to."""
        if place.path is not None:
            return limit_pages(pages)
        found = {parse_origin(page.location) for page in pages}
        headers = place.headers if found <= place.origins else ()
        return await gather_pages(pages, self._build_fetch(place), headers)

    def find_place(self, location: str) -> Place:
        """Where a description is, with the credential that is registered for it."""
        return self._choose_places("", location)[0]

    async def fetch_place(self, place: Place) -> FetchResponse:
        """What a place on the network answers."""
        place = await self._renew_place(place)
        return await self._build_fetch(place)(place.urls[0], place.headers)

    async def _search_place(
        self, place: Place, files: FileAccess, task: str = ""
    ) -> FoundDocument | NotFound:
        if place.path is not None and files != "typed":
            path = check_file(self.consents, place.path, files)
            content = await asyncio.to_thread(read_plain_file, path, MAX_DOCUMENT_BYTES)
            return await asyncio.to_thread(identify_document, f"{FILE}{path}", content)
        found = await discover_description(place, self._build_fetch(place), task=task)
        if isinstance(found, CredentialChallenge):
            had = await asyncio.to_thread(mark_credentials, self.consents, self.vault, found.url)
            raise forge_waits(CredentialNeed(found.url, found.render_question(), had))
        return found

    async def _parse_found(
        self, found: FoundDocument, place: Place, files: FileAccess, report: Report
    ) -> Document:
        others = f"; it also names {render_urls(found.also)}" if found.also else ""
        report(ForgeStep("find", 0.15, f"found {found.dialect} at {found.location}{others}"))
        passed = _describe_passed(found.instead, found.location)
        for problem in passed:
            report(ForgeStep("find", 0.15, str(problem)))
        if place.path is not None and files != "typed":
            path = Path(normalize_path(str(place.path)))
            return await asyncio.to_thread(parse_document, found.content, path.name, path=path)
        if place.path is not None:
            return await asyncio.to_thread(load_document, place.path)
        parsed = await asyncio.to_thread(
            parse_document, found.content, found.location, url=found.location
        )
        fetch = self._build_fetch(place)
        document = replace(
            parsed,
            served=await may_be_own_server(parsed, fetch),
            problems=(*passed, *parsed.problems),
        )
        prefix = find_prefix(document) or guess_prefix(document)
        if prefix and await is_below(document, prefix, fetch):
            report(ForgeStep("find", 0.18, f"the API answers below {prefix}"))
            return replace(document, prefix=prefix)
        return document

    def _find_url(self, source: str) -> str | None:
        """Where a submitted description says that it is from; never a file of this machine."""
        return source if source and self.find_place(source).path is None else None

    def _build_fetch(self, place: Place) -> GuardedFetch:
        """What fetches from a place, once a person has named its hosts."""
        if place.path is None:
            check_origins(self.consents, place.origins)
        private = frozenset(filter(self.consents.is_private, place.origins))
        return GuardedFetch(self.upstream(private), self.kill_switch)

    def _choose_places(self, task: str, location: str) -> tuple[Place, ...]:
        """Where to look, each with the credential registered for it: at the location and nowhere
        else; without one, at the task's addresses; without these, at the registered source that a
        person said the task means. () where no API is meant.

        Raises SourceUnconfirmed where the task may mean a registered source.
        """
        sources = self.consents.find_sources()
        places = tuple(map(self._build_place, sources))
        chosen = choose_sources(task, location or None, places)
        if chosen or not sources or not task.strip():
            return chosen
        store, digest = self.consents.store, hash_text(task)
        meant = find_meant_sources(
            task, sources, store.servers.find(CALLABLE), store.search.route(task)
        )
        for each in meant:
            if self.consents.is_source_meant(digest, each.url):
                return choose_sources(task, each.url, places)
        if not meant:
            return ()
        if len(meant) > 1:
            named = ", ".join(each.url for each in meant)
            raise ForgeFailed(
                f"the task names no API, and several registered sources may be meant: {named}. "
                "`forge` again with one of them as the source, or with the source `none`."
            )
        raise SourceUnconfirmed(SourceNeed(meant[0].url, meant[0].words, digest))

    def _build_place(self, source: DocumentationSource) -> Place:
        return Place(source.url, self._open_logins().build_headers(source))

    async def _renew_place(self, place: Place) -> Place:
        """The place with a token that has not expired, where a source's log-in goes there."""
        logins = self._open_logins()
        for source in self.consents.find_sources() if place.headers else ():
            if source.secret and parse_origin(source.url) in place.origins:
                before = await asyncio.to_thread(logins.build_headers, source)
                if before == place.headers:
                    return replace(place, headers=await logins.renew_headers(source))
        return place

    def _open_logins(self) -> SourceLogins:
        return SourceLogins(self.consents, self.vault, self.kill_switch, self.upstream, self.told)


def _describe_passed(named: Attempt | None, used: str) -> tuple[DocumentProblem, ...]:
    """What is to be known where a guess was used and not the address that was named."""
    if named is None:
        return ()
    reason = f"it answered {named.outcome}; {used} was used instead"
    return (DocumentProblem(named.url, "", reason),)


def _may_be_passed(error: Exception) -> bool:
    """Whether what keeps one address from being read says nothing of the others."""
    return not isinstance(error, ForgeWaits) or isinstance(error.need, CredentialNeed)


def _choose_outcome(found: Sequence[Exception]) -> Exception:
    """What a search comes to that found no description: documentation before a credential that is
    wanted, this before what was tried everywhere.
    """
    for kind in (ProseFound, ForgeWaits):
        first = next((each for each in found if isinstance(each, kind)), None)
        if first is not None:
            return first
    tried = " ".join(f"{str(each).rstrip('.')}." for each in found)
    return ForgeFailed(
        f"no API description was found. {tried} Give another source: the path or URL of an OpenAPI "
        "document, the URL of a GraphQL endpoint or of a page that documents the API, or a file of "
        "requests that work (curl commands, HAR, Postman); or `none`, where no API is needed."
    )


def _find_prose_page(found: FoundDocument) -> Page | None:
    """The page that curl commands stand in; None where it is all commands, or no such document."""
    if found.dialect != curl.KEY:
        return None
    page = parse_page(found.location, found.content)
    return page if page and not curl.starts_with_curl(page.text) else None
