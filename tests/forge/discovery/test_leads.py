from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge.discovery.leads import MAX_LEADS, detect_dialect, find_leads
from forge.sources import FetchResponse


@pytest.mark.parametrize(
    ("content", "dialect"),
    [
        (b'{"paths": {}, "info": {}, "openapi": "3.0.3"}', "openapi 3.0.3"),
        (b'\xef\xbb\xbf {"swagger": 2.0, "paths": {}}', "swagger 2.0"),
        (b'{"openapi": "3.1.0", "webhooks": {}}', "openapi 3.1.0"),
        (b"# comment\n---\nopenapi: '3.0.0'\npaths:\n", "openapi 3.0.0"),
        (b'"swagger" : "2.0"\r\n"paths": {}\r\n', "swagger 2.0"),
        ("openapi: 3.1.1\npaths: {}".encode("utf-16"), "openapi 3.1.1"),
        ('{"openapi": "3.1.1", "paths": {}}'.encode("utf-16"), "openapi 3.1.1"),
        (b'{"openapi": "3.1.0", "paths": {,}', "openapi 3.1.0"),
        (b'{"openapi": "3.1.0", "paths": ' + b"[" * 5000, "openapi 3.1.0"),
    ],
)
def test_a_description_is_known_by_its_top_level_keys(content: bytes, dialect: str) -> None:
    assert detect_dialect(content) == dialect


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"null",
        b'{"apis": [{"openapi": "3.0.0", "paths": {}}]}',
        b'{"openapi": "3.0.0"}',
        b"<html><pre>\nopenapi: 3.0.0\npaths:\n</pre></html>",
        b"text\n  openapi: 3.0.0\n  paths: {}\n",
        b'{"openapi": null, "paths": {}}',
        b"see openapi: 3.0.0",
    ],
)
def test_what_only_mentions_a_description_is_none(content: bytes) -> None:
    assert detect_dialect(content) is None


def leads(body: bytes) -> tuple[str, ...]:
    return find_leads(FetchResponse(200, (), body, "https://h.example/docs/"))


@pytest.mark.parametrize(
    "name", ["javascript:alert(1)", "file:///etc/passwd", "http://u:p@h/x", "//[", "a\\b", "#x", ""]
)
def test_a_lead_that_is_no_plain_http_url_is_dropped(name: str) -> None:
    assert leads(f"<html><redoc spec-url='{name}'>".encode()) == ()


def test_urls_that_look_like_a_description_come_before_others_of_a_script() -> None:
    page = b"<html><script>{url: '/home', url: '/openapi.json'}</script>"
    assert leads(page)[0] == "https://h.example/openapi.json"


@given(st.binary(max_size=2000))
def test_any_body_gives_bounded_absolute_leads(body: bytes) -> None:
    detect_dialect(body)
    for start in (b"", b"<html>", b'{"linkset": ['):
        found = leads(start + body)
        assert len(found) <= MAX_LEADS
        assert all(url.startswith(("http://", "https://")) for url in found)


@pytest.mark.parametrize(
    "body",
    [
        b"<html>" + b"<a " * 200_000,
        b"<html><link rel='" + b"x" * 500_000,
        b"<html>" + b"url:" * 150_000,
        b"<" * 60_000 + b">" + b";a" * 30_000,
        b"openapi" + b"\n" * 500_000,
    ],
)
def test_a_body_made_to_be_slow_to_search_is_still_searched(body: bytes) -> None:
    detect_dialect(body)
    assert len(leads(body)) <= MAX_LEADS
