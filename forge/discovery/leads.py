"""Reading an answer for an API document, or for the places that it names (its leads)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urldefrag, urljoin, urlsplit

import orjson

from forge.graphql.reader import DIALECT, is_graphql
from forge.recorded.curl import KEY, starts_with_curl
from forge.recorded.translation import notation_of
from forge.sources import Fetched
from sandbox.exchange import Headers
from sandbox.policy import origin_of

MAX_LEADS = 8
MAX_PAGE_BYTES = 512 * 1024
MAX_URL = 2048
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_KEYS = (b"openapi", b"swagger", b"postman", b"curl", b'"entries"', b"__schema")
_BROKEN_JSON = re.compile(
    r"\s{0,99}\{\s{0,99}\"(openapi|swagger)\"\s{0,9}:\s{0,9}\"?(\d[\d.]{0,7})"
)
_YAML_VERSION = re.compile(
    r"^[\"']?(openapi|swagger)[\"']?[ \t]{0,8}:[ \t]{0,8}[\"']?(\d{1,2}(?:\.\d{1,3}){0,2})", re.M
)
_YAML_BODY = re.compile(r"^[\"']?(?:paths|webhooks|components)[\"']?[ \t]{0,8}:", re.M)
_TAG = re.compile(r"<(link|a|script|redoc|rapi-doc|elements-api|meta|div)\b([^<>]{1,4096})>", re.I)
_ATTRIBUTE = re.compile(r"([a-zA-Z-]{2,40})\s{0,4}=\s{0,4}[\"']([^\"'<>]{1,2048})[\"']")
_SCRIPT_URL = re.compile(
    r"\b(?:url|configUrl|specUrl|spec_url|spec-url|openapiUrl)[\"']?\s{0,8}[:=]\s{0,8}"
    r"[\"']([^\"'\s<>]{1,2048})[\"']"
)
_SPEC_ATTRIBUTES = frozenset(
    {"spec-url", "data-url", "data-spec-url", "apidescriptionurl", "api-description-url"}
)
_SPEC_FILE = re.compile(r"(?:openapi|swagger|api-?docs?)[^/?#]{0,80}\.(?:json|ya?ml)$", re.I)
_DESCRIBES = re.compile(r"openapi|swagger|api-?docs|schema|\.json|\.ya?ml", re.I)
_CONFIG_SCRIPT = re.compile(r"swagger-(?:initializer|ui-init|config)[\w.-]{0,40}\.js$", re.I)
_LINK = re.compile(r"<([^<>]{1,2048})>((?:\s{0,8};[^,;]{1,512}){0,16})")
_REL = re.compile(r"\brel\s{0,4}=\s{0,4}\"?([^\";]{1,200})", re.I)
_RELATIONS = ("service-desc", "api-catalog", "service-doc")
_CATALOG_RELATIONS = ("service-desc", "api-catalog", "item", "service-doc")


def dialect_of(content: bytes) -> str | None:
    """`openapi 3.1.0`, `swagger 2.0`, `postman 2.1`, `har 1.2` or `curl` where the content is such
    a document, else None.

    Told by its top-level keys alone, never by a media type or file name: servers send YAML as
    text/plain and HTML as application/json. A JSON text that does not parse counts where its first
    key says what it is: its reader can tell what is wrong with it.
    """
    if content.startswith(_UTF16):
        content = decoded(content).encode("utf-8", "replace")
    head = content[:1024].lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    if head in (b"<", b"[", b"") or not any(key in content for key in _KEYS):
        return None
    if head != b"{":
        text = decoded(content)
        return _yaml_dialect(text) or (KEY if starts_with_curl(text) else None)
    document = _parsed(content)
    if document is not None:
        if is_graphql(document):
            return DIALECT
        return _json_dialect(document) or notation_of(document)
    broken = _BROKEN_JSON.match(decoded(content[:4096]))
    return f"{broken.group(1)} {broken.group(2)}" if broken else None


def leads_in(answer: Fetched) -> tuple[str, ...]:
    """Absolute http(s) URLs that the answer says the API's description is at, likeliest first:
    Link headers (RFC 8631), an API catalog (RFC 9727), a documentation page or its configuration.
    """
    named = [*_link_header_leads(answer.headers), *_body_leads(answer)]
    urls: dict[str, None] = {}
    for name in named:
        url = _absolute(answer.final_url, name)
        if url and url != answer.final_url:
            urls[url] = None
        if len(urls) == MAX_LEADS:
            break
    return tuple(urls)


def is_page(answer: Fetched) -> bool:
    """Whether the answer is an HTML page, by its content."""
    start = answer.body[:1024].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    return start.startswith((b"<!doctype html", b"<html", b"<head", b"<!--"))


def decoded(content: bytes) -> str:
    """Text by its byte order mark, else UTF-8; what does not decode is replaced."""
    if content.startswith(_UTF16):
        return content.decode("utf-16", "replace")
    return content.decode("utf-8-sig", "replace")


def _parsed(content: bytes) -> Any:
    """The JSON object of a document or configuration; None where there is none to be had."""
    try:
        return orjson.loads(content.removeprefix(b"\xef\xbb\xbf"))
    except orjson.JSONDecodeError:
        return None


def _json_dialect(document: Any) -> str | None:
    if not isinstance(document, dict):
        return None
    for key in ("openapi", "swagger"):
        version = str(document.get(key, ""))[:12]
        if version[:1].isdigit() and _has_body(document):
            return f"{key} {version}"
    return None


def _has_body(document: dict[str, Any]) -> bool:
    return any(isinstance(document.get(key), dict) for key in ("paths", "webhooks", "components"))


def _yaml_dialect(text: str) -> str | None:
    version = _YAML_VERSION.search(text)
    if not version or not _YAML_BODY.search(text):
        return None
    return f"{version.group(1)} {version.group(2)}"


def _link_header_leads(headers: Headers) -> Iterator[str]:
    links = []
    for name, value in headers:
        if name.lower() == "link":
            links += _links(value[:16_384])
    yield from _by_relation(links, _RELATIONS)


def _links(text: str) -> list[tuple[str, str]]:
    """(target, relations) of links as RFC 8288 writes them, also in `application/linkset`."""
    links = []
    for match in _LINK.finditer(text):
        relation = _REL.search(match.group(2))
        links.append((match.group(1), relation.group(1).lower() if relation else ""))
    return links


def _by_relation(links: list[tuple[str, str]], wanted: tuple[str, ...]) -> Iterator[str]:
    for relation in wanted:
        yield from (target for target, relations in links if relation in relations.split())


def _body_leads(answer: Fetched) -> Iterator[str]:
    body = answer.body[:MAX_PAGE_BYTES]
    small = len(answer.body) == len(body)
    document = _parsed(body) if small and body.lstrip()[:1] in (b"{", b"[") else None
    if document is not None:
        yield from _configuration_leads(document)
        return
    text = decoded(body).replace("\\/", "/").replace("\\u002F", "/").replace('\\"', '"')
    if is_page(answer):
        yield from _page_leads(text)
    elif urlsplit(answer.final_url).path.endswith(".js"):
        yield from _script_leads(text)
    else:
        yield from _by_relation(_links(text[:65_536]), _CATALOG_RELATIONS)


def _configuration_leads(document: Any) -> Iterator[str]:
    """From a linkset (RFC 9264), or what springdoc, springfox and NSwag tell their pages."""
    if isinstance(document, dict) and isinstance(document.get("linkset"), list):
        yield from _by_relation(_linkset(document["linkset"]), _CATALOG_RELATIONS)
        return
    entries = document if isinstance(document, list) else [document]
    if isinstance(document, dict) and isinstance(document.get("urls"), list):
        entries = [*entries, *document["urls"]]
    for entry in entries[:MAX_LEADS]:
        if isinstance(entry, dict):
            for key in ("url", "location", "configUrl"):
                if isinstance(entry.get(key), str):
                    yield entry[key]


def _linkset(contexts: list[Any]) -> list[tuple[str, str]]:
    links = []
    for context in contexts[:100]:
        if not isinstance(context, dict):
            continue
        for relation, targets in context.items():
            for target in targets[:MAX_LEADS] if isinstance(targets, list) else []:
                if isinstance(target, dict) and isinstance(target.get("href"), str):
                    links.append((target["href"], relation))
    return links


def _page_leads(text: str) -> Iterator[str]:
    """From a page of Swagger UI, Redoc, Scalar, RapiDoc or Elements, and from plain links."""
    links, specs, scripts, files = [], [], [], []
    for tag, inside in _TAG.findall(text):
        attributes = {name.lower(): value for name, value in _ATTRIBUTE.findall(inside)}
        specs += [attributes[name] for name in attributes if name in _SPEC_ATTRIBUTES]
        target = attributes.get("href") or attributes.get("src") or ""
        if tag.lower() == "link":
            links.append((target, attributes.get("rel", "").lower()))
        elif tag.lower() == "script" and _CONFIG_SCRIPT.search(target):
            scripts.append(target)
        elif _SPEC_FILE.search(target.partition("?")[0]):
            files.append(target)
    yield from _by_relation(links, _RELATIONS)
    yield from specs
    yield from _script_leads(text)
    yield from scripts
    yield from files


def _script_leads(text: str) -> list[str]:
    """URLs set in a script, those that look like a description first."""
    urls = dict.fromkeys(_SCRIPT_URL.findall(text))
    return sorted(urls, key=lambda url: _DESCRIBES.search(url) is None)


def _absolute(base: str, name: str) -> str | None:
    try:
        url = urldefrag(urljoin(base, name.strip().replace("&amp;", "&"))).url
    except ValueError:
        return None
    printable = url.isascii() and not any(letter <= " " for letter in url)
    return url if printable and len(url) <= MAX_URL and origin_of(url) else None
