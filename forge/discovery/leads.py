"""Detection of API documents in responses, and of the URLs (leads) that lead to one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any
from urllib.parse import urldefrag, urljoin, urlsplit

import orjson

from forge.readers.document import is_graphql_text
from forge.readers.graphql.reader import DIALECT, is_graphql
from forge.readers.recorded.curl import KEY, starts_with_curl
from forge.readers.translate import detect_notation
from forge.sources import FetchResponse
from sandbox.wire.exchange import Headers
from sandbox.wire.policy import parse_origin

MAX_LEADS = 8
MAX_DEFINITIONS = 100
MAX_ENTRIES = 500
MAX_PAGE_BYTES = 512 * 1024
MAX_URL = 2048
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
# Content without any of these is no API document, which saves parsing it.
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
    r"(?:\b(?:url|configUrl|specUrl|spec_url|spec-url|openapiUrl|swaggerUrl|apiDescriptionUrl)"
    r"[\"']?\s{0,8}[:=]\s{0,8}(?:(?:window\.)?location\.origin\s{0,4}\+\s{0,4})?"
    r"|\bRedoc\.init\(\s{0,8})[\"'`]([^\"'`\s<>]{1,2048})[\"'`]"
)
_FETCHED_URL = re.compile(
    r"\bfetch\(\s{0,8}[\"'`]([^\"'`\s<>?#]{1,2048}\.(?:json|ya?ml))[\"'`]", re.I
)
_SHOWS_DOCUMENT = re.compile(r"SwaggerUI|Redoc|RapiDoc|Scalar", re.I)
_NAMED_URL = re.compile(r"\{[^{}]{0,2048}\}")
_NAME = re.compile(r"\bname[\"']?\s{0,8}[:=]\s{0,8}[\"']([^\"'<>]{1,200})[\"']")
_PRIMARY = re.compile(r"primaryName[\"']?\s{0,8}[:=]\s{0,8}[\"']([^\"'<>]{1,200})[\"']")
_BASE = re.compile(r"<base\b[^<>]{0,200}\bhref\s{0,4}=\s{0,4}[\"']([^\"'<>]{1,2048})[\"']", re.I)
_DOCUMENTATION_PAGE = re.compile(
    r"(?:^|/)(?:api[-_]?docs?|swagger(?:-ui)?|redoc|rapidoc|scalar|openapi|api[-_]?reference)"
    r"(?:/(?:index\.html)?)?$",
    re.I,
)
_BELOW_DOCUMENTATION = re.compile(
    r"(?:^|/)\$?(?:api[-_]?docs?|swagger(?:-ui)?|openapi|api[-_]?reference)/[^.?#]{1,200}$", re.I
)
"""The documentation of one of several APIs of a host, as CAP has `/$api-docs/odata/v4/catalog`."""
_WORD = re.compile(r"[a-z0-9]{3,40}")
_SPEC_ATTRIBUTES = frozenset(
    {
        "spec-url",
        "data-url",
        "data-spec-url",
        "data-source",
        "apidescriptionurl",
        "api-description-url",
    }
)
_SPEC_FILE = re.compile(r"(?:openapi|swagger|api-?docs?)[^/?#]{0,80}\.(?:json|ya?ml)$", re.I)
_DESCRIBES = re.compile(r"openapi|swagger|api-?docs|schema|\.json|\.ya?ml", re.I)
_CONFIG_SCRIPT = re.compile(r"swagger-(?:initializer|ui-init|config)[\w.-]{0,40}\.js$", re.I)
_LINK = re.compile(r"<([^<>]{1,2048})>((?:\s{0,8};[^,;]{1,512}){0,16})")
_REL = re.compile(r"\brel\s{0,4}=\s{0,4}\"?([^\";]{1,200})", re.I)
_DESCRIPTION_KEY = re.compile(
    r"(?:open[-_]?api|swagger|api[-_]?docs?|service[-_]?desc)(?:[-_]?(?:url|uri|href|json|spec))?",
    re.I,
)
_RELATIONS = ("service-desc", "api-catalog", "service-doc")
_CATALOG_RELATIONS = ("service-desc", "api-catalog", "item", "service-doc")


def detect_dialect(content: bytes) -> str | None:
    """Return `openapi 3.1.0`, `swagger 2.0`, `postman 2.1`, `har 1.2`, `curl` or `graphql` for
    content that is such a document, else None.

    Only top-level keys decide, never a media type or file name: servers send YAML as text/plain and
    HTML as application/json. A JSON text that does not parse counts where its first key is
    `openapi` or `swagger`: the reader reports what is wrong with it.
    """
    if content.startswith(_UTF16):
        content = decode_text(content).encode("utf-8", "replace")
    head = content[:1024].lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    if head in (b"<", b"[", b""):
        return None
    if not any(key in content for key in _KEYS):
        return DIALECT if head != b"{" and is_graphql_text(decode_text(content)) else None
    if head != b"{":
        text = decode_text(content)
        if is_graphql_text(text):
            return DIALECT
        return _detect_yaml_dialect(text) or (KEY if starts_with_curl(text) else None)
    document = _parse_json(content)
    if document is not None:
        if is_graphql(document):
            return DIALECT
        return _detect_json_dialect(document) or detect_notation(document)
    broken = _BROKEN_JSON.match(decode_text(content[:4096]))
    return f"{broken.group(1)} {broken.group(2)}" if broken else None


def find_leads(answer: FetchResponse, task: str = "", page: str = "") -> tuple[str, ...]:
    """Return the absolute http(s) URLs at which a response locates the API's description, likeliest
    first: from Link headers (RFC 8631), an API catalog (RFC 9727), a documentation page or its
    configuration. Of several definitions the one whose name has most words of the task comes first,
    else the one that the page shows first.

    `page` is the URL of the page that loads the response as a script or configuration: what these
    name is relative to it.
    """
    base = page or find_base(answer)
    wanted = _find_words(task[:4_000])
    named = [(answer.final_url, name) for name in _find_header_leads(answer.headers)]
    named += [(base, name) for name in _find_body_leads(answer, wanted)]
    urls: dict[str, None] = {}
    for against, name in named:
        url = _resolve_url(against, name)
        if url and url != answer.final_url:
            urls[url] = None
        if len(urls) == MAX_LEADS:
            break
    return tuple(urls)


def find_base(answer: FetchResponse) -> str:
    """Return the URL that a page's relative URLs are resolved against: its own, or its `<base>`."""
    named = _BASE.search(decode_text(answer.body[:65_536])) if is_page(answer) else None
    return (_resolve_url(answer.final_url, named.group(1)) if named else None) or answer.final_url


def is_configuration(url: str) -> bool:
    """Whether a URL looks like a script or file that configures a documentation page."""
    path = urlsplit(url).path
    return _CONFIG_SCRIPT.search(path) is not None or path.endswith("swagger-config")


def is_page(answer: FetchResponse) -> bool:
    """Whether the response is an HTML page, judged by its content."""
    start = answer.body[:1024].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    return start.startswith((b"<!doctype html", b"<html", b"<head", b"<!--", b"<body", b"<title"))


def decode_text(content: bytes) -> str:
    """Decode text by its byte order mark, else as UTF-8; invalid bytes are replaced."""
    if content.startswith(_UTF16):
        return content.decode("utf-16", "replace")
    return content.decode("utf-8-sig", "replace")


def _parse_json(content: bytes) -> Any:
    """Parse JSON; None where it does not parse."""
    try:
        return orjson.loads(content.removeprefix(b"\xef\xbb\xbf"))
    except orjson.JSONDecodeError:
        return None


def _detect_json_dialect(document: Any) -> str | None:
    if not isinstance(document, dict):
        return None
    for key in ("openapi", "swagger"):
        version = str(document.get(key, ""))[:12]
        if version[:1].isdigit() and _has_api_body(document):
            return f"{key} {version}"
    return None


def _has_api_body(document: dict[str, Any]) -> bool:
    return any(isinstance(document.get(key), dict) for key in ("paths", "webhooks", "components"))


def _detect_yaml_dialect(text: str) -> str | None:
    version = _YAML_VERSION.search(text)
    if not version or not _YAML_BODY.search(text):
        return None
    return f"{version.group(1)} {version.group(2)}"


def _find_header_leads(headers: Headers) -> Iterator[str]:
    links = []
    for name, value in headers:
        if name.lower() == "link":
            links += _parse_links(value[:16_384])
    yield from _select_by_relation(links, _RELATIONS)


def _parse_links(text: str) -> list[tuple[str, str]]:
    """Parse links as RFC 8288 section 3 writes them, also in `application/linkset`, to (target,
    relations).
    """
    links = []
    for match in _LINK.finditer(text):
        relation = _REL.search(match.group(2))
        links.append((match.group(1), relation.group(1).lower() if relation else ""))
    return links


def _select_by_relation(links: list[tuple[str, str]], wanted: tuple[str, ...]) -> Iterator[str]:
    for relation in wanted:
        yield from (target for target, relations in links if relation in relations.split())


def _find_body_leads(answer: FetchResponse, wanted: frozenset[str]) -> Iterator[str]:
    body = answer.body[:MAX_PAGE_BYTES]
    small = len(answer.body) == len(body)
    document = _parse_json(body) if small and body.lstrip()[:1] in (b"{", b"[") else None
    if document is not None:
        yield from _find_configuration_leads(document, wanted)
        return
    text = decode_text(body).replace("\\/", "/").replace("\\u002F", "/").replace('\\"', '"')
    text = text.replace("&quot;", '"')
    if is_page(answer):
        yield from _find_page_leads(text, wanted)
    elif urlsplit(answer.final_url).path.endswith(".js"):
        yield from _find_script_leads(text, wanted)
    else:
        yield from _select_by_relation(_parse_links(text[:65_536]), _CATALOG_RELATIONS)


def _find_configuration_leads(document: Any, wanted: frozenset[str]) -> Iterator[str]:
    """Yield the URLs of a linkset (RFC 9264), of the links of an API's first document (OGC API's
    and HAL's way to write them, or a key that says what it is), or of the configuration that
    springdoc, springfox and NSwag give their pages.
    """
    if isinstance(document, dict) and isinstance(document.get("linkset"), list):
        yield from _select_by_relation(_parse_linkset(document["linkset"]), _CATALOG_RELATIONS)
        return
    if isinstance(document, dict):
        yield from _select_by_relation(_parse_json_links(document), _RELATIONS)
        yield from _find_named_descriptions(document)
    entries = document if isinstance(document, list) else [document]
    if isinstance(document, dict) and isinstance(document.get("urls"), list):
        entries = [*entries, *document["urls"]]
    primary = document.get("urls.primaryName") if isinstance(document, dict) else None
    named = [
        (entry[key], str(entry.get("name") or ""))
        for entry in entries[:MAX_DEFINITIONS]
        if isinstance(entry, dict)
        for key in ("url", "location", "configUrl")
        if isinstance(entry.get(key), str)
    ]
    yield from _order_definitions(named, str(primary or ""), wanted)


def _parse_linkset(contexts: list[Any]) -> list[tuple[str, str]]:
    links = []
    for context in contexts[:100]:
        if not isinstance(context, dict):
            continue
        for relation, targets in context.items():
            for target in targets[:MAX_LEADS] if isinstance(targets, list) else []:
                if isinstance(target, dict) and isinstance(target.get("href"), str):
                    links.append((target["href"], relation))
    return links


def _parse_json_links(document: dict[str, Any]) -> list[tuple[str, str]]:
    """The links of an API's first document, (target, relation): `links: [{rel, href}]`, as OGC API
    and many others write them, and `_links: {relation: {href}}` of HAL.
    """
    listed, named = document.get("links"), document.get("_links")
    links: list[tuple[Any, Any]] = []
    if isinstance(listed, list):
        entries = (each for each in listed[:MAX_ENTRIES] if isinstance(each, dict))
        links += [(each.get("href"), each.get("rel")) for each in entries]
    if isinstance(named, dict):
        for relation, targets in islice(named.items(), MAX_ENTRIES):
            several = targets if isinstance(targets, list) else [targets]
            found = (each for each in several[:MAX_LEADS] if isinstance(each, dict))
            links += [(each.get("href"), relation) for each in found]
    return [
        (target, relation.lower())
        for target, relation in links
        if isinstance(target, str) and isinstance(relation, str)
    ]


def _find_named_descriptions(document: dict[str, Any]) -> Iterator[str]:
    """Yield the URLs behind keys such as `openapi_url`, of an API's first document."""
    for key, value in islice(document.items(), MAX_ENTRIES):
        if isinstance(value, str) and value.startswith(("/", "http")):
            if _DESCRIPTION_KEY.fullmatch(key):
                yield value


def _find_page_leads(text: str, wanted: frozenset[str]) -> Iterator[str]:
    """Yield the URLs of a page of Swagger UI, Redoc, Scalar, RapiDoc or Elements, and of its plain
    links.
    """
    links, specs, scripts, files, pages, below = [], [], [], [], [], []
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
        elif tag.lower() == "a" and _DOCUMENTATION_PAGE.search(target.partition("?")[0]):
            pages.append(target)
        elif tag.lower() == "a" and _BELOW_DOCUMENTATION.search(target.partition("?")[0]):
            below.append(target)
    yield from _select_by_relation(links, _RELATIONS)
    yield from specs
    yield from _find_script_leads(text, wanted)
    if _SHOWS_DOCUMENT.search(text):
        yield from islice(_FETCHED_URL.findall(text), MAX_LEADS)
    yield from scripts
    yield from files
    yield from pages
    yield from below


def _find_script_leads(text: str, wanted: frozenset[str]) -> list[str]:
    """Return the URLs that a script assigns, those that look like a description first."""
    named: dict[str, str] = {}
    for entry in islice(_NAMED_URL.findall(text), MAX_ENTRIES):
        url, name = _SCRIPT_URL.search(entry), _NAME.search(entry)
        if url and name:
            named.setdefault(url.group(1), name.group(1))
    primary = _PRIMARY.search(text)
    urls = [(url, named.get(url, "")) for url in dict.fromkeys(_SCRIPT_URL.findall(text))]
    ordered = _order_definitions(urls, primary.group(1) if primary else "", wanted)
    return sorted(ordered, key=lambda url: _DESCRIBES.search(url) is None)


def _order_definitions(
    named: list[tuple[str, str]], primary: str, wanted: frozenset[str]
) -> list[str]:
    """Return the URLs of definitions, by the words that their names share with a task, then the one
    that the page shows first; otherwise in their order.
    """

    def rank(definition: tuple[str, str]) -> tuple[int, bool]:
        url, name = definition
        shared = wanted & _find_words(f"{name} {url}")
        return -len(shared) if name else 0, not (primary and name == primary)

    return [url for url, _ in sorted(named, key=rank)]


def _find_words(text: str) -> frozenset[str]:
    """The words of a text without a plural's ending."""
    return frozenset(word.rstrip("s") for word in _WORD.findall(text.lower()))


def _resolve_url(base: str, name: str) -> str | None:
    try:
        url = urldefrag(urljoin(base, name.strip().replace("&amp;", "&"))).url
    except ValueError:
        return None
    printable = url.isascii() and not any(letter <= " " for letter in url)
    return url if printable and len(url) <= MAX_URL and parse_origin(url) else None
