"""The plain form of requests, against parsers that others wrote: whatever one of them sees in a
request that is let through, the policy judged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from urllib.parse import parse_qsl, unquote, urlsplit

import httpx
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic_core import Url, ValidationError
from starlette.datastructures import QueryParams
from urllib3.exceptions import LocationParseError
from urllib3.util import parse_url

from sandbox.wire.canonical import find_request_problem, is_canonical_path
from sandbox.wire.exchange import Caps, WireRequest
from sandbox.wire.overrides import is_override
from sandbox.wire.policy import Origin, Policy
from tests.attacks.wire import rule

EXAMPLES = 200
API = Origin("http", "api.test", 80)
POLICY = Policy((rule(API),))
Seen = tuple[str, str, int, str, str]
"""Scheme, host, port, path and query."""


def see_by_whatwg(url: str) -> Seen | None:
    """As browsers and Node do (https://url.spec.whatwg.org)."""
    try:
        seen = Url(url)
    except ValidationError:
        return None
    named = seen.host or ""
    who = f"{seen.username or ''}{seen.password or ''}"
    return seen.scheme, f"{who}{named}", seen.port or 0, seen.path or "/", seen.query or ""


def see_by_httpx(url: str) -> Seen | None:
    try:
        seen = httpx.URL(url)
    except httpx.InvalidURL:
        return None
    port = seen.port or {"http": 80, "https": 443}.get(seen.scheme, 0)
    path = seen.raw_path.decode().partition("?")[0]
    host = f"{seen.userinfo.decode()}{seen.host}"
    return seen.scheme, host, port, path or "/", seen.query.decode()


def see_by_urllib3(url: str) -> Seen | None:
    try:
        seen = parse_url(url)
    except LocationParseError:
        return None
    port = seen.port or {"http": 80, "https": 443}.get(seen.scheme or "", 0)
    host = f"{seen.auth or ''}{seen.host or ''}"
    return seen.scheme or "", host, port, seen.path or "/", seen.query or ""


PARSERS: tuple[Callable[[str], Seen | None], ...] = (see_by_whatwg, see_by_httpx, see_by_urllib3)

HOSTS = st.sampled_from(
    (
        *("api.test", "API.test", "api.test.", "api.test:80", "api.test:080", "api.test:", "evil"),
        *("api.test@evil", "evil@api.test", "api.test%2eevil", "api.test:80@evil", "api.test:8080"),
        *("api.test\\@evil", "[::1]", "127.1", "api。test", "api.test\u3000", "api.te\u00ad.st"),
        *("api.test/@evil", "api.test?@evil", "api.test#@evil", "", "api.test;evil", "{x}.test"),
    )
)
PIECES = st.sampled_from(
    (
        *("a", "items", "..", ".", "/", "//", "%2e", "%2F", "%252e", "%5c", "\\", ";", "?", "#"),
        *("&", "=", "%", "%00", "%0a", "%u002e", "%c0%ae", "%EF%BC%8E", "%C2%A0", "%E2%80%A5", " "),
        *("\t", "+", "[", "]", "_method", "%5Fmethod", ".method", "method", "DELETE", "@", ":"),
        *("%3F", "%23", "%26", "%3B", "\u2024", "é", "%ff", "%E9"),
    )
)
HARMLESS = st.sampled_from(("a", "b.c", "%20", "%C3%A9", "-", "1", "%2F", "~", "method"))
NEAR = st.builds(
    lambda host, key, piece, query: f"http://{host}/items/{key}{piece}{query}",
    st.sampled_from(("api.test", "API.test", "api.test.", "api.test:80")),
    st.lists(HARMLESS, min_size=1, max_size=3).map("".join),
    st.one_of(st.just(""), PIECES),
    st.lists(st.one_of(HARMLESS, st.sampled_from("&;=")), max_size=8).map(
        lambda pieces: "?" + "".join(pieces) if pieces else ""
    ),
)
"""Most of them are let through."""
URLS = (
    NEAR
    | NEAR
    | st.builds(
        lambda scheme, host, path: f"{scheme}{host}{path}",
        st.sampled_from(
            ("http://", "HTTP://", "http:", "http:/", "http:///", "https://", "//", "")
        ),
        HOSTS,
        st.one_of(
            st.lists(PIECES, max_size=8).map(lambda pieces: "/items/" + "".join(pieces)),
            st.lists(PIECES, max_size=6).map("".join),
            st.text(max_size=20),
        ),
    )
)


def allowed(url: str) -> bool:
    request = WireRequest("GET", url)
    return not find_request_problem(request, Caps()) and POLICY.find_rule(request) is not None


def read_names(query: str) -> Iterator[str]:
    """The names of parameters, as any of several parsers reads them."""
    for written in (query, query.replace(";", "&")):
        yield from (name for name, _ in parse_qsl(written, keep_blank_values=True))
        yield from QueryParams(written)


@given(URLS)
@settings(max_examples=EXAMPLES)
@example("http://api.test/items/a?x=1&%5fmethod=DELETE")
@example("http://api.test/items/a/..")
@example("http://api.test/items/%2e%2e")
@example("http://api.test\\@evil/items/a")
def test_whatever_a_parser_sees_in_what_is_let_through_was_judged(url: str) -> None:
    if not allowed(url):
        return
    parts = urlsplit(url)
    # Of the URL the path and query are sent, and the rest is the rule's own.
    for written in (url, f"{API}{parts.path or '/'}?{parts.query}"):
        for see in PARSERS:
            seen = see(written)
            if seen is None:
                continue
            scheme, host, port, path, query = seen
            assert (scheme, host.rstrip("."), port) == ("http", "api.test", 80), see
            assert POLICY.rules[0].path.match(path), see
            assert is_canonical_path(path), see
            for name in read_names(query):
                assert unquote(name).strip().lower() not in ("_method", "x-http-method-override")
                assert not is_override(name), name


@given(st.sampled_from(("a", "a%20b", "%C3%A9", "1.5", ";k=v", "a%2Fb")), st.text(max_size=10))
@settings(max_examples=EXAMPLES)
def test_what_a_plain_encoder_writes_is_let_through(key: str, value: str) -> None:
    query = str(httpx.QueryParams({"q": value, "method": "fast"}))
    assert allowed(f"http://api.test/items/{key}?{query}")


@pytest.mark.parametrize("see", PARSERS)
def test_each_parser_sees_a_plain_url_as_it_is(see: Callable[[str], Seen | None]) -> None:
    assert see("http://api.test/items/a?b=c") == ("http", "api.test", 80, "/items/a", "b=c")
