"""Discovery of an API's machine-readable description from a file, a URL or a host name."""

from __future__ import annotations

import asyncio
import itertools
import os
import re
import stat
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urljoin, urlsplit

from forge.discovery.challenge import CredentialChallenge, read_challenge
from forge.discovery.embedded import find_embedded_description
from forge.discovery.leads import (
    decode_text,
    detect_dialect,
    find_base,
    find_leads,
    is_configuration,
    is_page,
)
from forge.discovery.places import (
    GRAPHQL,
    GRAPHQL_BY_GET,
    list_prefixed_urls,
    list_urls_below,
    list_well_known_urls,
)
from forge.discovery.telling import (
    Attempt,
    cut_answer,
    describe_answer,
    describe_withheld_schema,
    render_attempts,
    render_urls,
    shorten_url,
)
from forge.errors import (
    DocumentEmpty,
    DocumentTooLarge,
    DocumentUnreadable,
    NotAnApiDescription,
    SourceUnreachable,
)
from forge.readers.graphql.reader import (
    build_introspection_body,
    build_introspection_url,
    is_endpoint_hint,
)
from forge.readers.page import Page, parse_page
from forge.readers.recorded import curl
from forge.sources import ApiSource, Fetcher, FetchResponse
from sandbox.errors import ResponseTooLarge, UpstreamUnreachable
from sandbox.wire.exchange import find_header
from sandbox.wire.policy import Origin, join_url, parse_origin

MAX_REQUESTS = 64
MAX_AT_ONCE = 4
SECONDS = 60.0
"""A search's time. Some hosts make a large description anew, for ten seconds, at each request."""
NAMED_AT_ONCE = 2
MAX_LEAD_DEPTH = 3
MAX_TEXTS = 8
MAX_DOCUMENT_BYTES = 32 * 1024 * 1024
_LOGIN = re.compile(r"\b(?:log|sign)[-_]?in\b|\bauth\b", re.IGNORECASE)
ACCEPT = (
    "Accept",
    "application/openapi+json, application/vnd.oai.openapi+json, application/linkset+json, "
    "application/json;q=0.9, application/yaml;q=0.8, text/html;q=0.5, */*;q=0.4",
)
JSON = ("Content-Type", "application/json")


@dataclass(frozen=True)
class FoundDocument:
    """A document: its location, its bytes, and its dialect such as `openapi 3.1.0`.

    `also` are the URLs of other descriptions that the host named and that were not fetched.
    `instead` is set where the source names a path that did not lead here: the request for it.
    """

    location: str
    content: bytes = field(repr=False)
    dialect: str
    also: tuple[str, ...] = ()
    instead: Attempt | None = None


@dataclass(frozen=True)
class NotFound:
    """The result of a search without a machine-readable description. `pages` are the URLs of HTML
    pages that were found; `elsewhere` are descriptions that the host names on another origin, which
    only a person can choose to follow; `documentation` are texts for people that document requests.
    `instead` is set where the source names a path that answered an error: the request for it.
    """

    location: str
    reason: str
    tried: tuple[Attempt, ...] = ()
    pages: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()
    documentation: tuple[Page, ...] = ()
    instead: Attempt | None = None

    def render(self) -> str:
        """Return what was tried and what came, and what the host names elsewhere."""
        also = render_attempts(self.tried)
        named = render_urls(self.elsewhere)
        return ". ".join(
            filter(
                None,
                (
                    f"{self.location}: {self.reason}",
                    f"Also tried: {also}" if also else "",
                    f"On another host it names {named}, which only a person can choose as the "
                    "source"
                    if named
                    else "",
                ),
            )
        )


Discovery = FoundDocument | CredentialChallenge | NotFound


async def discover_description(
    source: ApiSource, fetch: Fetcher, *, task: str = "", seconds: float = SECONDS
) -> Discovery:
    """Search for the description that `source` means, with at most `MAX_REQUESTS` requests to its
    own origin, `MAX_AT_ONCE` at a time, within `seconds`.

    A document takes precedence over a page; of several that a page offers, the one that has words
    of the task. Raises DocumentError for a location or file that cannot
    be used, SourceUnreachable where the host gives no answer at all.
    """
    if source.path is not None:
        return identify_document(str(source.path), _read_file(source.path))
    if not source.urls:
        raise DocumentUnreadable(
            source.location,
            "it is neither a file, an http(s) URL nor a host (a URL is http://HOST:PORT/PATH, its "
            "port at most 65535)",
        )
    search = _Search(source, fetch, task, seconds)
    try:
        async with asyncio.timeout(seconds):
            await search.try_places()
    except TimeoutError:
        search.ended = f"the time of {seconds:g} s was up"
    return await asyncio.to_thread(search.build_discovery)


def _read_file(path: Path) -> bytes:
    """Read a local file, opened once and read no further than MAX_DOCUMENT_BYTES."""
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
    return content


def identify_document(location: str, content: bytes) -> FoundDocument | NotFound:
    """What the content of a file is. Raises DocumentError where it is of no use."""
    if not content.strip():
        raise DocumentEmpty(location)
    dialect = detect_dialect(content) or (
        curl.KEY if curl.has_curl_command(decode_text(content)) else None
    )
    page = parse_page(location, content) if dialect is None else None
    if page is not None and page.documents_requests:
        reason = "it is documentation for people"
        return NotFound(location, reason, documentation=(page,))
    if content.lstrip()[:1] == b"<" and dialect is None:
        raise NotAnApiDescription(location, "it is a web page that documents no requests")
    if dialect is None:
        reason = "it is no OpenAPI, GraphQL, Postman or HAR document and has no curl commands"
        raise NotAnApiDescription(location, reason)
    return FoundDocument(location, content, dialect)


@dataclass(frozen=True)
class _Candidate:
    """A place to try; with a body it is sent there. `page` is the page that loads it."""

    url: str
    depth: int = 0
    body: bytes = b""
    page: str = ""

    @property
    def key(self) -> tuple[str, bool]:
        return self.url, bool(self.body)


@dataclass(frozen=True)
class _Reading:
    """What a successful response is: the document in it and its dialect, or None and where it
    leads; `base` is what its leads are relative to.
    """

    content: bytes = field(repr=False)
    dialect: str | None
    leads: tuple[str, ...] = ()
    base: str = ""
    is_page: bool = False


def _read_answer(item: _Candidate, answer: FetchResponse, task: str) -> _Reading:
    """Read a response: beside the event loop, since it takes as long as its sender likes."""
    content, dialect = answer.body, detect_dialect(answer.body)
    page = is_page(answer)
    if dialect is None and (page or is_configuration(answer.final_url)):
        held = find_embedded_description(decode_text(answer.body))
        content, dialect = (held, detect_dialect(held)) if held else (content, None)
    if dialect is not None:
        return _Reading(content, dialect)
    base = item.page if is_configuration(answer.final_url) else ""
    leads = find_leads(answer, task, base)
    return _Reading(content, None, leads, base or find_base(answer), page)


_Fetching = asyncio.Task[FetchResponse | str]


class _Search:
    """The state of one search on one host: the candidates left, and what was seen."""

    def __init__(self, source: ApiSource, fetch: Fetcher, task: str, seconds: float) -> None:
        self._source, self._fetch = source, fetch
        self._task, self._seconds = task, seconds
        self._seen: set[tuple[str, bool]] = set()
        self._tried: list[tuple[Attempt, FetchResponse | None]] = []
        self._answers = 0
        self._unreachable = ""
        self._found: FoundDocument | None = None
        self._challenges: list[CredentialChallenge] = []
        self._was_offered = False
        self._was_waited_for = False
        self._more: list[str] = []
        self._pages: list[str] = []
        self._named: Attempt | None = None
        self._is_refused = False
        self._guessed: set[str] = set()
        self._withheld = ""
        self._texts: list[tuple[FetchResponse, bool]] = []
        self._elsewhere: dict[str, None] = {}
        self._waiting: list[_Candidate] = []
        self.ended = ""

    async def try_places(self) -> None:
        """Try the location itself, then its well-known places; leads come before the latter."""
        for base in self._source.urls:
            places = [_Candidate(base)]
            asking = build_introspection_url(base)
            if asking:
                places = [_build_introspection(base), _Candidate(asking), *places]
            await self._fetch_batch(places, self._seconds / 2)
            if self._answers:
                break
        else:
            return
        self._waiting += [_Candidate(url) for url in list_well_known_urls(base)]
        self._waiting += [_Candidate(url) for url in list_prefixed_urls(base)]
        self._guessed = {build_introspection_url(urljoin(base, each)) for each in GRAPHQL_BY_GET}
        self._waiting += [_Candidate(url) for url in sorted(self._guessed)]
        self._waiting.append(_build_introspection(urljoin(base, GRAPHQL)))
        while self._waiting and not self._found and not self.ended:
            left = MAX_REQUESTS - len(self._seen)
            if left <= 0:
                self.ended = f"{MAX_REQUESTS} requests were made"
                return
            room = min(self._count_next(), left)
            batch, self._waiting = self._waiting[:room], self._waiting[room:]
            # MAX_REQUESTS, MAX_AT_ONCE at a time, are many batches; a slow one must not take all.
            fresh = [item for item in batch if item.key not in self._seen]
            await self._fetch_batch(fresh, self._seconds / 6)

    def _count_next(self) -> int:
        """How many places to ask together: what a response named is asked before any guess."""
        named = list(itertools.takewhile(lambda item: item.depth > 0, self._waiting))
        return min(len(named), NAMED_AT_ONCE) or MAX_AT_ONCE

    def find_documentation(self) -> tuple[tuple[Page, bool], ...]:
        """Return the pages that document requests, each with whether the user named it."""
        texts = [] if self._found else self._texts
        read = [(parse_page(answer.final_url, answer.body), named) for answer, named in texts]
        return tuple((page, named) for page, named in read if page and page.documents_requests)

    def build_discovery(self) -> Discovery:
        """Return the result; it reads what was answered once more. Raises SourceUnreachable where
        nothing answered.
        """
        documentation = self.find_documentation()
        if self._found:
            if not self._was_offered:
                return replace(self._found, instead=self._find_passed(self._found.location))
            also = (*self._more, *(lead.url for lead in self._waiting if lead.depth))
            return replace(self._found, also=also)
        if self._challenges and not any(named for _, named in documentation):
            return min(self._challenges, key=_rank_challenge)
        if not self._answers:
            reason = self._unreachable or self.ended or "it gave no answer"
            # The message names the address already.
            reason = reason.rpartition(" could not be reached: ")[2]
            raise SourceUnreachable(self._source.location, reason)
        # Reading the first words of pages takes long, and a search that finds tells of none.
        tried = tuple(
            replace(attempt, answer=describe_answer(answer)) if answer else attempt
            for attempt, answer in self._tried
        )
        first = map(str, tried[:1])
        return NotFound(
            location=self._source.location,
            reason="; ".join(
                (*first, self._withheld or self.ended or "none where one is usually found")
            ),
            tried=tried,
            pages=tuple(self._pages),
            elsewhere=tuple(self._elsewhere),
            documentation=tuple(page for page, _ in documentation),
            instead=self._find_passed(documentation[0][0].location)
            if documentation and self._is_refused
            else None,
        )

    def _find_passed(self, location: str) -> Attempt | None:
        """The request for the path that the source names, where a document was guessed elsewhere
        than below it.
        """
        named = urlsplit(self._named.url).path.rstrip("/") if self._named else ""
        is_below = f"{urlsplit(location).path}/".startswith(f"{named}/")
        return None if is_below else self._named

    async def _fetch_batch(self, candidates: Iterable[_Candidate], patience: float) -> None:
        """Fetch the candidates together and handle the answers in order, so that the result does
        not depend on which came first.
        """
        unique = list({item.key: item for item in candidates}.values())
        self._seen |= {item.key for item in unique}
        tasks = [asyncio.create_task(self._fetch_place(item)) for item in unique]
        try:
            await self._wait_for_answers(tasks, patience)
            answers = [
                task.result() if task.done() else self._note_silence(patience) for task in tasks
            ]
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        for item, answer in zip(unique, answers, strict=True):
            reading = None
            if isinstance(answer, FetchResponse) and 200 <= answer.status < 300:
                reading = await asyncio.to_thread(_read_answer, item, answer, self._task)
            self._handle_answer(item, answer, reading)

    async def _wait_for_answers(self, tasks: list[_Fetching], patience: float) -> None:
        """Wait for the answers. The first time that none comes at all, half the search's time more:
        a FastAPI application makes its description when it is asked for, and answers nothing else
        meanwhile, so other places would get no answer either.
        """
        if not tasks:
            return
        done, _ = await asyncio.wait(tasks, timeout=patience)
        more = self._seconds / 2
        if done or self._was_waited_for or patience >= more:
            return
        self._was_waited_for = True
        await asyncio.wait(tasks, timeout=more, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait(tasks, timeout=patience)

    def _note_silence(self, patience: float) -> str:
        reason = f"no complete answer within {patience:g} s"
        self._unreachable = self._unreachable or reason
        return reason

    async def _fetch_place(self, item: _Candidate) -> FetchResponse | str:
        """Return the response, or a sentence saying why there is none."""
        own = parse_origin(item.url) in self._source.origins
        headers = (*(self._source.headers if own else ()), ACCEPT)
        try:
            if item.body:
                return await self._fetch(item.url, (*headers, JSON), item.body)
            return await self._fetch(item.url, headers)
        except UpstreamUnreachable as error:
            reason = str(error)[:300]
        except TimeoutError:
            reason = "no complete answer in time"
        except ResponseTooLarge as error:
            self._answers += 1
            return str(error)
        self._unreachable = self._unreachable or reason
        return reason

    def _handle_answer(
        self, item: _Candidate, answer: FetchResponse | str, reading: _Reading | None
    ) -> None:
        if isinstance(answer, str):
            self._tried.append((Attempt(item.url, answer), None))
            return
        self._answers += 1
        outcome = f"HTTP {answer.status}{' to a query for its schema' if item.body else ''}"
        if item.url in self._source.urls and answer.final_url != item.url:
            outcome = f"{outcome} after a redirect to {shorten_url(answer.final_url)}"
            if _LOGIN.search(urlsplit(answer.final_url).path):
                outcome += " (behind a log-in: `toolwright source add URL --header NAME=@SECRET`)"
        if answer.status in (401, 403):
            self._note_challenge(item, answer)
        elif answer.status == 429:
            after = find_header(answer.headers, "retry-after")
            self.ended = f"the host asks to wait{f' {after[:40]} s' if after else ''}"
        elif 300 <= answer.status < 400:
            self._queue_leads(item, _resolve_redirect(answer), item.page)
        elif reading is not None:
            outcome = f"{outcome}, {self._accept_answer(item, answer, reading)}"
        if item.url in self._source.urls and answer.final_url != item.url:
            # A redirect of the source itself leads to where its API begins.
            below = [
                url for url in list_urls_below(answer.final_url) if is_same_site(item.url, url)
            ]
            self._waiting += [_Candidate(url) for url in below]
        # A 404 may quote the path that was guessed.
        is_guess = item.url in self._guessed and answer.status in (200, 400, 405)
        is_asked = (item.url in self._source.urls or is_guess) and not item.body
        if is_asked and is_endpoint_hint(answer.body):
            # What was named goes first; what was guessed comes after the usual endpoint.
            place = len(self._waiting) if is_guess else 0
            self._waiting.insert(place, _build_introspection(item.url.partition("?")[0]))
        if item.body and answer.status in (200, 400):
            self._withheld = self._withheld or describe_withheld_schema(item.url, answer)
        attempt = Attempt(item.url, outcome)
        if item.url in self._source.urls and not item.body:
            self._named, self._is_refused = attempt, answer.status >= 400
        self._tried.append((attempt, cut_answer(answer)))

    def _note_challenge(self, item: _Candidate, answer: FetchResponse) -> None:
        """Note the required credential. A bare 403 at a guessed place is ignored: a firewall is the
        likelier cause.
        """
        challenge = read_challenge(answer, rejected=bool(self._source.headers))
        if answer.status == 401 or challenge.certain or item.url in self._source.urls:
            self._challenges.append(challenge)

    def _accept_answer(self, item: _Candidate, answer: FetchResponse, reading: _Reading) -> str:
        """Accept a successful response; returns what it was, in a few words."""
        if reading.dialect is None:
            self._queue_leads(item, reading.leads, reading.base)
            if len(self._texts) < MAX_TEXTS:
                is_named = item.url in self._source.urls and urlsplit(item.url).path.strip("/")
                self._texts.append((answer, bool(is_named)))
            if reading.is_page:
                self._pages.append(answer.final_url)
                return "a page"
            return "no API description" if answer.body.strip() else "empty"
        if self._found is None:
            self._found = FoundDocument(answer.final_url, reading.content, reading.dialect)
            self._was_offered = item.depth > 0
        elif item.depth and reading.content != self._found.content:
            self._more.append(answer.final_url)
        return reading.dialect

    def _queue_leads(self, item: _Candidate, leads: Iterable[str], page: str) -> None:
        """Queue the leads of the same origin first, and note the others."""
        own = []
        for url in leads:
            if not is_same_site(item.url, url):
                self._elsewhere[url] = None
            elif item.depth < MAX_LEAD_DEPTH and (url, False) not in self._seen:
                own.append(_Candidate(url, item.depth + 1, page=page))
        self._waiting[:0] = own


def _build_introspection(url: str) -> _Candidate:
    return _Candidate(url, body=build_introspection_body())


def is_same_site(one: str, other: str) -> bool:
    """Whether a credential for `one` may be sent to `other`: the same origin, or its https port."""
    from_, to = parse_origin(one), parse_origin(other)
    if from_ is None or to is None:
        return False
    return from_ == to or (
        from_ == Origin("http", to.host, 80) and to == Origin("https", to.host, 443)
    )


def _resolve_redirect(answer: FetchResponse) -> tuple[str, ...]:
    target = join_url(answer.final_url, find_header(answer.headers, "location") or "")
    return (target,) if parse_origin(target) and target != answer.final_url else ()


def _rank_challenge(challenge: CredentialChallenge) -> tuple[bool, bool]:
    """Sort key: 401 before 403, a certain header before a guessed one, then the order of places."""
    return challenge.status != 401, not challenge.certain
