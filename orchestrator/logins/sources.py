"""Log-ins to an API that no server is registered for yet: it is known by its URL."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from forge.compiler.compile import compile_document
from forge.discovery.search import FoundDocument, discover_description
from forge.errors import ForgeError
from forge.readers.document import parse_document
from forge.sources import ApiSource, Fetcher
from orchestrator.errors import LoginFailed
from registry.models import DocumentationSource
from sandbox.bundle.credential import Credential
from sandbox.bundle.model import Bundle
from sandbox.credentials.oauth_secret import TOKEN_KINDS
from sandbox.wire.policy import Origin, parse_origin

AUTHORIZATION = "Authorization"
MAX_URL = 2000


@dataclass(frozen=True)
class SourceTarget:
    """What is logged in to: the source that the tokens are kept with, the API's base URL, and the
    credential that its description declares, under the name of the source's secret.
    """

    source: DocumentationSource
    base_url: str
    credential: Credential


async def find_target(
    url: str, sources: Iterable[DocumentationSource], fetch: Fetcher
) -> SourceTarget:
    """Find what a log-in at a URL is for. A description that can be read there says so; else the
    API is the URL itself, whose 401 or metadata may. Raises LoginFailed, UpstreamUnreachable.
    """
    if parse_origin(url) is None or len(url) > MAX_URL:
        raise LoginFailed(f"{url[:200]!r} is not an http(s) URL. Give one, such as https://host/")
    bundle = await _read_bundle(url, fetch)
    declared = _choose_declared(bundle) if bundle else None
    base_url = bundle.base_url if bundle and declared else url
    origin = parse_origin(base_url)
    if origin is None:
        raise LoginFailed(f"the description at {url} names no address of its API")
    where = url if parse_origin(url) == origin else base_url
    source = find_source(where, origin, sources)
    credential = declared or Credential(source.secret, "bearer")
    return SourceTarget(source, base_url, replace(credential, name=source.secret))


def find_source(
    url: str, origin: Origin, sources: Iterable[DocumentationSource]
) -> DocumentationSource:
    """The source that a log-in at an origin is kept with: the one that has one already, else one
    at the URL. Raises LoginFailed where another secret goes there in its place.
    """
    name = name_login(origin)
    for source in sources:
        if not source.secret or parse_origin(source.url) != origin:
            continue
        if source.secret == name:
            return source
        if source.url == url or source.header.lower() == AUTHORIZATION.lower():
            raise LoginFailed(
                f"{source.url} is a source that sends @{source.secret} as {source.header}. To log "
                f"in instead: `toolwright source remove {source.url}`"
            )
    return DocumentationSource(url, AUTHORIZATION, name)


def find_logged_in(url: str, sources: Iterable[DocumentationSource]) -> DocumentationSource:
    """The source whose log-in is for the origin of a URL. Raises LoginFailed where none is."""
    origin = parse_origin(url)
    for source in sources:
        if origin and parse_origin(source.url) == origin and source.secret == name_login(origin):
            return source
    raise LoginFailed(f"nobody is logged in at {url[:200]}. `toolwright source list`")


def name_login(origin: Origin) -> str:
    """The vault's name of the log-in of an origin's source: no other origin has it."""
    host = re.sub(r"[^a-z0-9]+", "_", origin.host.lower()).strip("_")[:60]
    digest = hashlib.sha256(f"{origin.scheme}://{origin.host}:{origin.port}".encode()).hexdigest()
    return f"login_{host}_{digest[:16]}"


async def _read_bundle(url: str, fetch: Fetcher) -> Bundle | None:
    """What the description at a URL would compile to; None where there is none to be read."""
    try:
        found = await discover_description(ApiSource(url), fetch)
        if not isinstance(found, FoundDocument):
            return None
        return await asyncio.to_thread(_compile_found, found)
    except ForgeError:
        return None


def _compile_found(found: FoundDocument) -> Bundle:
    parsed = parse_document(found.content, found.location, url=found.location)
    return compile_document(replace(parsed, believed=False)).bundle


def _choose_declared(bundle: Bundle) -> Credential | None:
    """The log-in that a description declares: the first that says where."""
    fitting = [each for each in bundle.credentials if each.kind in TOKEN_KINDS]
    return next((each for each in fitting if each.tokens is not None), None)
