"""The prefix of an API that answers below the path of its description: a proxy may have put it
there, which the description does not know.
"""

from __future__ import annotations

import asyncio
import re
from typing import Any
from urllib.parse import urlsplit

from forge.discovery.leads import is_page
from forge.readers.document import Document
from forge.readers.openapi.servers import is_placeholder
from forge.sources import Fetcher, is_loopback
from sandbox.errors import ResponseTooLarge, UpstreamUnreachable
from sandbox.wire.policy import parse_origin

USUAL = "/api"
MAX_PROBED = 2
SECONDS = 5.0
_DOCUMENT_DIRECTORIES = frozenset(
    "api-docs apidocs assets dist doc docs documentation files openapi public redoc schema schemas "
    "spec specs static swagger swagger-ui ui v2 v3 .well-known".split()
)
_SEGMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._~-]{0,63}\Z")
# Segments of nothing but what a path may hold: no authority, no query, nothing escaped, no dots.
_PLAIN_PATH = re.compile(r"(?:/(?!\.{1,2}(?:/|\Z))[A-Za-z0-9._~-]{1,64}){1,8}/?\Z")
_NOT_ASKED = re.compile(
    r"log-?out|sign-?out|delete|remove|reset|clear|purge|shut-?down|restart|token|secret|password"
    r"|export|download|billing|stream|events|watch|admin",
    re.IGNORECASE,
)


def find_prefix(document: Document) -> str:
    """Return the path below which the API may answer, although its description names none: that of
    the description's own URL. "" where the description names a path itself, or its paths begin so.
    """
    root = document.root
    if not document.url or not isinstance(root, dict) or not isinstance(root.get("paths"), dict):
        return ""
    if _names_path(root):
        return ""
    segments = urlsplit(document.url).path.split("/")[1:-1]
    kept: list[str] = []
    for segment in segments:
        if segment.lower() in _DOCUMENT_DIRECTORIES or not _SEGMENT.match(segment):
            break
        kept.append(segment)
    prefix = "".join(f"/{segment}" for segment in kept)
    begun = any(str(path).startswith(f"{prefix}/") or path == prefix for path in root["paths"])
    return "" if begun else prefix


def guess_prefix(document: Document) -> str:
    """Return the usual path of an API of which a description at its host's root names no server at
    all; "" where it names one, or a path of it begins so. Prefect serves its description like that.
    """
    root = document.root
    if not document.url or not isinstance(root, dict) or not isinstance(root.get("paths"), dict):
        return ""
    if "servers" in root or "swagger" in root or urlsplit(document.url).path.count("/") != 1:
        return ""
    begun = any(str(path).split("/")[1:2] == [USUAL.strip("/")] for path in root["paths"])
    return "" if begun else USUAL


async def is_below(document: Document, prefix: str, fetch: Fetcher) -> bool:
    """Whether the API answers below the prefix and not at its host's root: what a few reads without
    arguments come to, asked without a credential.
    """
    origin = parse_origin(document.url or "")
    for path in _list_plain_reads(document)[:MAX_PROBED]:
        if await _answers(f"{origin}{prefix}{path}", fetch):
            return not await _answers(f"{origin}{path}", fetch)
    return False


async def may_be_own_server(document: Document, fetch: Fetcher) -> bool:
    """Whether a document's own server may be the API's where its servers are nobody's address.

    On one machine `localhost` may well be another server: there, what a few reads without arguments
    come to decides. Elsewhere it may.
    """
    url = document.url or ""
    named = [each for each in _list_named_urls(document.root) if is_placeholder(each, url)]
    if not named or not is_loopback(urlsplit(url)):
        return True
    base = urlsplit(named[0]).path.rstrip("/")
    if base and not _PLAIN_PATH.match(base):
        return False
    for path in _list_plain_reads(document)[:MAX_PROBED]:
        if await _answers(f"{parse_origin(url)}{base}{path}", fetch):
            return True
    return False


def _list_named_urls(root: Any) -> list[str]:
    """The absolute URLs that a description names as its servers."""
    if not isinstance(root, dict):
        return []
    if str(root.get("swagger", "")).startswith("2"):
        host, path = root.get("host"), root.get("basePath")
        below = path.lstrip("/") if isinstance(path, str) else ""
        return [f"http://{host}/{below}"] if isinstance(host, str) and host else []
    servers = root.get("servers")
    named = servers if isinstance(servers, list) else []
    urls = [str(each.get("url", "")) for each in named if isinstance(each, dict)]
    return [url for url in urls if parse_origin(url)]


def _names_path(root: dict[str, Any]) -> bool:
    """Whether a description says itself below which path its API is, or at which host."""
    if str(root.get("swagger", "")).startswith("2"):
        return str(root.get("basePath") or "/").strip("/") != ""
    servers = root.get("servers")
    named = servers if isinstance(servers, list) else []
    urls = [str(each.get("url", "")) for each in named if isinstance(each, dict)]
    return any(url.strip().rstrip("/") for url in urls)


def _list_plain_reads(document: Document) -> list[str]:
    """The paths of GETs without parameters, the shortest first, as they are likeliest harmless."""
    found = []
    paths = document.root.get("paths") if isinstance(document.root, dict) else None
    for path, item in paths.items() if isinstance(paths, dict) else ():
        get = item.get("get") if isinstance(item, dict) else None
        if not isinstance(get, dict) or not _PLAIN_PATH.match(path):
            continue
        parameters = [*_list_entries(item), *_list_entries(get)]
        required = any(not isinstance(p, dict) or p.get("required") for p in parameters)
        named = f"{path} {get.get('operationId', '')}"
        if not required and not _NOT_ASKED.search(named):
            found.append(path)
    return sorted(found, key=lambda path: (len(path), path))


def _list_entries(value: dict[str, Any]) -> list[Any]:
    entries = value.get("parameters")
    return entries if isinstance(entries, list) else []


async def _answers(url: str, fetch: Fetcher) -> bool:
    """Whether something is there: neither missing nor the page that a host has for everything."""
    try:
        async with asyncio.timeout(SECONDS):
            answer = await fetch(url, (("Accept", "application/json, */*;q=0.5"),))
    except (UpstreamUnreachable, ResponseTooLarge, TimeoutError):
        return False
    return answer.status not in (404, 410) and answer.status < 500 and not is_page(answer)
