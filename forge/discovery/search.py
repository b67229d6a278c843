"""Finding an API's machine-readable description, from a file, a URL or just a host."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urljoin, urlsplit

from forge.challenge import NeedsCredential, read_challenge
from forge.errors import (
    DocumentEmpty,
    DocumentTooLarge,
    DocumentUnreadable,
    NotAnApiDescription,
    SourceUnreachable,
)
from forge.graphql.reader import introspection_url
from forge.leads import decoded, dialect_of, is_page, leads_in
from forge.prosedocs.page import Page, page_of
from forge.recorded import curl
from forge.sources import Fetch, Fetched, Source
from sandbox.errors import ResponseTooLarge, UpstreamUnreachable
from sandbox.exchange import first
from sandbox.policy import Origin, origin_of

MAX_REQUESTS = 24
MAX_AT_ONCE = 4
MAX_LEAD_DEPTH = 3
MAX_TEXTS = 8
MAX_DOCUMENT_BYTES = 32 * 1024 * 1024
WELL_KNOWN = (
    "/openapi.json",
    "/.well-known/api-catalog",
    "/swagger.json",
    "/api/docs",
    "/openapi.yaml",
    "/v3/api-docs",
    "/api/openapi.json",
    "/api-docs",
    "/docs/openapi.json",
    "/swagger.yaml",
    "/v2/api-docs",
    "/docs",
    "/api/swagger.json",
    "/swagger/v1/swagger.json",
    "/.well-known/openapi.json",
    "/api/v1/openapi.json",
    "/api/schema/",
    "/swagger/doc.json",
    "/openapi.yml",
    "/swagger-resources",
    "/api-json",
)
BESIDE = ("openapi.json", "swagger.json", "api-docs", "docs")
"""What is tried under the path of a base URL, before the host's well-known places."""
ACCEPT = (
    "Accept",
    "application/openapi+json, application/vnd.oai.openapi+json, application/linkset+json, "
    "application/json;q=0.9, application/yaml;q=0.8, text/html;q=0.5, */*;q=0.4",
)


@dataclass(frozen=True)
class Found:
    """A document: where it is, its bytes, and its dialect such as `openapi 3.1.0`.

    `also` are other descriptions that the host named and that were not fetched.
    """

    location: str
    content: bytes = field(repr=False)
    dialect: str
    also: tuple[str, ...] = ()


@dataclass(frozen=True)
class Attempt:
    """One request that was made, and what came of it in a few words."""

    url: str
    outcome: str


@dataclass(frozen=True)
class NotFound:
    """No machine-readable description. `pages` are HTML pages that were there; `elsewhere` are
    descriptions that the host names on another origin, which only a person can choose to follow;
    `documentation` are texts for people that document requests.
    """

    location: str
    reason: str
    tried: tuple[Attempt, ...] = ()
    pages: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()
    documentation: tuple[Page, ...] = ()


Discovery = Found | NeedsCredential | NotFound


async def discover(source: Source, fetch: Fetch, *, seconds: float = 30.0) -> Discovery:
    """Look for the description that `source` means, with at most `MAX_REQUESTS` requests to its own
    origin, `MAX_AT_ONCE` at a time, within `seconds`.

    A document always wins over a page. Raises DocumentError for a location or file that cannot be
    used, SourceUnreachable where the host gives no answer at all.
    """
    if source.path is not None:
        return _read_file(source.path)
    if not source.urls:
        raise DocumentUnreadable(source.location, "it is neither a file, an http(s) URL nor a host")
    search = _Search(source, fetch, seconds)
    try:
        async with asyncio.timeout(seconds):
            await search.run()
    except TimeoutError:
        search.ended = f"the time of {seconds:g} s was up"
    return search.verdict(await asyncio.to_thread(search.documentation))


def _read_file(path: Path) -> Found | NotFound:
    """The document in a local file, read once and only as far as the cap."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise DocumentUnreadable(str(path), "it is not a plain file")
            content = file.read(MAX_DOCUMENT_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise DocumentUnreadable(str(path), reason) from error
    if len(content) > MAX_DOCUMENT_BYTES:
        raise DocumentTooLarge(str(path), f"it is larger than {MAX_DOCUMENT_BYTES} bytes")
    if not content.strip():
        raise DocumentEmpty(str(path))
    dialect = dialect_of(content) or (curl.KEY if curl.holds_curl(decoded(content)) else None)
    page = page_of(str(path), content) if dialect is None else None
    if page is not None and page.documents_requests:
        reason = "it is documentation for people"
        return NotFound(str(path), reason, documentation=(page,))
    if dialect is None:
        reason = "it is no OpenAPI, GraphQL, Postman or HAR document and has no curl commands"
        raise NotAnApiDescription(str(path), reason)
    return Found(str(path), content, dialect)


@dataclass(frozen=True)
class _Candidate:
    url: str
    depth: int = 0


class _Search:
    """One search on one host: what is still to be tried, and what has been seen."""

    def __init__(self, source: Source, fetch: Fetch, seconds: float) -> None:
        self._source, self._fetch = source, fetch
        self._seconds = seconds
        self._seen: set[str] = set()
        self._tried: list[Attempt] = []
        self._answers = 0
        self._unreachable = ""
        self._found: Found | None = None
        self._challenges: list[NeedsCredential] = []
        self._pages: list[str] = []
        self._texts: list[tuple[Fetched, bool]] = []
        self._elsewhere: dict[str, None] = {}
        self._waiting: list[_Candidate] = []
        self.ended = ""

    async def run(self) -> None:
        """Try the location itself, then its well-known places; leads come before both."""
        for base in self._source.urls:
            places = filter(None, (base, introspection_url(base)))
            await self._batch(map(_Candidate, places), self._seconds / 2)
            if self._answers:
                break
        else:
            return
        self._waiting += [_Candidate(url) for url in well_known(base)]
        while self._waiting and not self._found and not self.ended:
            room = min(MAX_AT_ONCE, MAX_REQUESTS - len(self._seen))
            if room <= 0:
                self.ended = f"{MAX_REQUESTS} requests were made"
                return
            batch, self._waiting = self._waiting[:room], self._waiting[room:]
            fresh = [item for item in batch if item.url not in self._seen]
            await self._batch(fresh, self._seconds / 6)

    def documentation(self) -> tuple[tuple[Page, bool], ...]:
        """The texts that document requests, each with whether it is what was named."""
        texts = [] if self._found else self._texts
        read = [(page_of(answer.final_url, answer.body), named) for answer, named in texts]
        return tuple((page, named) for page, named in read if page and page.documents_requests)

    def verdict(self, documentation: tuple[tuple[Page, bool], ...] = ()) -> Discovery:
        """What the search has come to. Raises SourceUnreachable where nothing answered."""
        if self._found:
            also = tuple(lead.url for lead in self._waiting if lead.depth)
            return replace(self._found, also=also)
        if self._challenges and not any(named for _, named in documentation):
            return min(self._challenges, key=_challenge_rank)
        if not self._answers:
            reason = self._unreachable or self.ended or "it gave no answer"
            raise SourceUnreachable(self._source.location, reason)
        first = [attempt.outcome for attempt in self._tried[:1]]
        return NotFound(
            location=self._source.location,
            reason="; ".join((*first, self.ended or "none where one is usually found")),
            tried=tuple(self._tried),
            pages=tuple(self._pages),
            elsewhere=tuple(self._elsewhere),
            documentation=tuple(page for page, _ in documentation),
        )

    async def _batch(self, candidates: Iterable[_Candidate], patience: float) -> None:
        """Fetch together, judge in order, so that the result does not hang on who was quicker."""
        unique = list({item.url: item for item in candidates}.values())
        self._seen |= {item.url for item in unique}
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._get(item.url, patience)) for item in unique]
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from None
        for item, task in zip(unique, tasks, strict=True):
            self._judge(item, task.result())

    async def _get(self, url: str, patience: float) -> Fetched | str:
        """The answer, or why there is none."""
        try:
            async with asyncio.timeout(patience):
                return await self._fetch(url, (*self._source.headers, ACCEPT))
        except UpstreamUnreachable as error:
            reason = str(error)[:300]
        except TimeoutError:
            reason = f"no complete answer within {patience:g} s"
        except ResponseTooLarge as error:
            self._answers += 1
            return str(error)
        self._unreachable = self._unreachable or reason
        return reason

    def _judge(self, item: _Candidate, answer: Fetched | str) -> None:
        if isinstance(answer, str):
            self._tried.append(Attempt(item.url, answer))
            return
        self._answers += 1
        outcome = f"HTTP {answer.status}"
        if answer.status in (401, 403):
            self._ask(item, answer)
        elif answer.status == 429:
            after = first(answer.headers, "retry-after")
            self.ended = f"the host asks to wait{f' {after[:40]} s' if after else ''}"
        elif 300 <= answer.status < 400:
            self._follow(item, _redirect(answer))
        elif 200 <= answer.status < 300:
            outcome = f"{outcome}, {self._take(item, answer)}"
        self._tried.append(Attempt(item.url, outcome))

    def _ask(self, item: _Candidate, answer: Fetched) -> None:
        """Note the credential wanted. A bare 403 at a guessed place is likelier a firewall's."""
        challenge = read_challenge(answer, rejected=bool(self._source.headers))
        if answer.status == 401 or challenge.certain or item.url in self._source.urls:
            self._challenges.append(challenge)

    def _take(self, item: _Candidate, answer: Fetched) -> str:
        """Use a good answer; says what it was."""
        dialect = dialect_of(answer.body)
        if dialect is None:
            self._follow(item, leads_in(answer))
            if len(self._texts) < MAX_TEXTS:
                is_named = item.url in self._source.urls and urlsplit(item.url).path.strip("/")
                self._texts.append((answer, bool(is_named)))
            if is_page(answer):
                self._pages.append(answer.final_url)
                return "a page"
            return "no API description" if answer.body.strip() else "empty"
        if self._found is None:
            self._found = Found(answer.final_url, answer.body, dialect)
        return dialect

    def _follow(self, item: _Candidate, leads: Iterable[str]) -> None:
        """Put leads on the same origin first in the queue, and note the others."""
        own = []
        for url in leads:
            if not same_site(item.url, url):
                self._elsewhere[url] = None
            elif item.depth < MAX_LEAD_DEPTH and url not in self._seen:
                own.append(_Candidate(url, item.depth + 1))
        self._waiting[:0] = own


def well_known(base: str) -> Iterator[str]:
    """The places to look at for an API at `base`: under its path first, then on its host."""
    path = urlsplit(base).path
    if path.strip("/"):
        directory = base.partition("?")[0].partition("#")[0].rstrip("/") + "/"
        yield from (urljoin(directory, name) for name in BESIDE)
        yield urljoin(base, "/")
    yield from (urljoin(base, place) for place in WELL_KNOWN)


def same_site(one: str, other: str) -> bool:
    """Whether a credential for `one` may go to `other`: the same origin, or its https port."""
    from_, to = origin_of(one), origin_of(other)
    if from_ is None or to is None:
        return False
    return from_ == to or (
        from_ == Origin("http", to.host, 80) and to == Origin("https", to.host, 443)
    )


def _redirect(answer: Fetched) -> tuple[str, ...]:
    target = urljoin(answer.final_url, first(answer.headers, "location") or "")
    return (target,) if origin_of(target) and target != answer.final_url else ()


def _challenge_rank(challenge: NeedsCredential) -> tuple[bool, bool]:
    """401 before 403, a stated need before a guessed one; of equals the earlier place."""
    return challenge.status != 401, not challenge.certain
