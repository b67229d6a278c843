"""Discovery against real servers on loopback."""

from __future__ import annotations

import asyncio
import collections
import itertools
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from forge.discovery.challenge import CredentialChallenge
from forge.discovery.places import WELL_KNOWN
from forge.discovery.search import (
    MAX_AT_ONCE,
    MAX_REQUESTS,
    Discovery,
    FoundDocument,
    NotFound,
    discover_description,
)
from forge.errors import (
    DocumentEmpty,
    DocumentTooLarge,
    DocumentUnreadable,
    NotAnApiDescription,
    SourceUnreachable,
)
from forge.readers.graphql.reader import build_introspection_url
from forge.sources import ApiSource
from tests.world.fetch import loopback_fetch
from tests.world.site import Answer, Asked, Page, site

JSON_SPEC = b'{"openapi": "3.1.0", "info": {"title": "t", "version": "1"}, "paths": {}}'
YAML_SPEC = b"swagger: '2.0'\ninfo:\n  title: t\n  version: '1'\npaths: {}\n"
HTML = b"<!DOCTYPE html><html><body>hello</body></html>"


def look(source: ApiSource | str, *granted: str, seconds: float = 60.0) -> Discovery:
    async def run() -> Discovery:
        wanted = ApiSource(source) if isinstance(source, str) else source
        async with loopback_fetch(*wanted.urls, *granted, response_bytes=1 << 20) as fetch:
            return await discover_description(wanted, fetch, seconds=seconds)

    return asyncio.run(run())


def found(pages: dict[str, Answer], at: str = "/") -> tuple[str, FoundDocument]:
    """Where below the site's root the document was, and the result."""
    with site(pages) as here:
        result = look(here.url + at)
        assert isinstance(result, FoundDocument), result
        return result.location.removeprefix(here.url), result


def missing(pages: dict[str, Answer], at: str = "/") -> NotFound:
    with site(pages) as here:
        result = look(here.url + at)
    assert isinstance(result, NotFound), result
    return result


def test_a_document_given_by_url_is_fetched_with_a_single_request() -> None:
    with site({"/v7/spec": Page(JSON_SPEC)}) as here:
        result = look(f"{here.url}/v7/spec")
    assert isinstance(result, FoundDocument)
    assert (result.content, result.dialect) == (JSON_SPEC, "openapi 3.1.0")
    assert here.paths == ["/v7/spec"]


def test_a_guess_that_is_used_instead_of_the_named_path_says_what_that_answered() -> None:
    _, result = found({"/openapi.json": Page(JSON_SPEC)}, "/nothing-here")
    assert result.instead is not None
    assert result.instead.url.endswith("/nothing-here")
    assert result.instead.outcome == "HTTP 404"


LINK = b'<html><head><link rel="service-desc" href="/spec.json"></head></html>'


@pytest.mark.parametrize(
    ("at", "pages"),
    [
        ("/", {"/openapi.json": Page(JSON_SPEC)}),
        ("/api/v1", {"/api/v1/openapi.json": Page(JSON_SPEC)}),
        ("/guide", {"/guide": Page(LINK), "/spec.json": Page(JSON_SPEC)}),
    ],
    ids=["a host", "below the path", "named by the page"],
)
def test_what_the_named_address_leads_to_is_used_instead_of_nothing(
    at: str, pages: dict[str, Answer]
) -> None:
    assert found(pages, at)[1].instead is None


def test_documentation_that_is_guessed_says_what_the_named_path_answered() -> None:
    page = Page(b"<html><h2>GET /berths</h2><pre>POST /bookings</pre>DELETE /bookings/{id}")
    result = missing({"/": page}, "/nothing-here")
    assert [each.location[-1] for each in result.documentation] == ["/"]
    assert result.instead is not None
    assert result.instead.outcome == "HTTP 404"
    assert missing({"/guide": page}, "/guide").instead is None


SCHEMA = b'{"data": {"__schema": {"queryType": {"name": "Query"}, "types": []}}}'
GRAPHIQL = b"<!DOCTYPE html><html><title>GraphiQL</title></html>"


@pytest.mark.parametrize("path", ["/api/graphql", "/graphql/"])
def test_an_endpoint_that_shows_a_browser_its_page_is_asked_by_post_for_its_schema(
    path: str,
) -> None:
    with site() as here:
        asking = build_introspection_url(here.url + path).removeprefix(here.url)
        here.pages |= {
            asking: Page(GRAPHIQL, headers=(("Content-Type", "text/html"),)),
            path: lambda asked: Page(SCHEMA) if asked.method == "POST" else Page(b"", 404),
        }
        result = look(here.url)
        assert isinstance(result, FoundDocument), result
        assert (result.location, result.dialect) == (here.url + path, "graphql")


def test_a_guessed_endpoint_that_a_404_quotes_is_not_posted_to() -> None:
    with site() as here:
        asking = build_introspection_url(f"{here.url}/api/graphql").removeprefix(here.url)
        here.pages[asking] = Page(b"Cannot GET /api/graphql", 404)
        look(here.url)
    assert {asked.path for asked in here.asked if asked.method == "POST"} == {"/graphql"}


def test_an_endpoint_that_withholds_its_schema_is_named_with_what_to_do() -> None:
    refusal = Page(b'{"errors": [{"message": "GraphQL introspection is `disabled`"}]}', 400)
    result = missing({"/graphql": refusal})
    assert "/graphql does not tell its schema: " in result.reason
    assert "\"GraphQL introspection is 'disabled'\"" in result.reason
    assert "`toolwright forge schema.graphql --base-url http://127.0.0.1:" in result.reason
    for other in (Page(b'{"errors": "none"}'), Page(b"[" * 9000), Page(b"{}", 400)):
        assert "schema" not in missing({"/graphql": other}).reason


@pytest.mark.parametrize("place", WELL_KNOWN)
def test_a_document_at_a_well_known_place_of_a_host_is_found(place: str) -> None:
    where, result = found({place: Page(YAML_SPEC)})
    assert (where, result.dialect) == (place, "swagger 2.0")


def test_yaml_sent_as_plain_text_is_recognised_by_its_content() -> None:
    pages: dict[str, Answer] = {
        "/api/docs": Page(YAML_SPEC, headers=(("Content-Type", "text/plain; charset=utf-8"),))
    }
    assert found(pages)[0] == "/api/docs"


def test_a_document_wins_over_a_page_that_answers_everywhere() -> None:
    pages: dict[str, Answer] = {place: Page(HTML) for place in ("/", *WELL_KNOWN)}
    pages["/api/v1/openapi.json"] = Page(JSON_SPEC)
    assert found(pages)[0] == "/api/v1/openapi.json"


def test_places_under_the_path_of_a_base_url_are_tried_before_those_of_its_host() -> None:
    pages: dict[str, Answer] = {
        "/shop/v2/openapi.json": Page(JSON_SPEC),
        "/openapi.json": Page(YAML_SPEC),
    }
    assert found(pages, "/shop/v2")[0] == "/shop/v2/openapi.json"


def test_an_api_catalog_leads_to_the_description_it_names() -> None:
    linkset = {"linkset": [{"anchor": "/", "service-desc": [{"href": "/deep/desc.yaml"}]}]}
    pages: dict[str, Answer] = {
        "/.well-known/api-catalog": Page(json.dumps(linkset).encode()),
        "/deep/desc.yaml": Page(YAML_SPEC),
    }
    assert found(pages)[0] == "/deep/desc.yaml"


def test_an_api_catalog_that_lists_an_api_leads_through_its_link_header() -> None:
    linkset = {"linkset": [{"anchor": "/", "item": [{"href": "/pets/"}]}]}
    link = ("Link", '<desc>; rel="service-desc"; type="application/json"')
    pages: dict[str, Answer] = {
        "/.well-known/api-catalog": Page(json.dumps(linkset).encode()),
        "/pets/": Page(b"[]", headers=(link,)),
        "/pets/desc": Page(JSON_SPEC),
    }
    assert found(pages)[0] == "/pets/desc"


def test_a_link_header_names_the_description() -> None:
    link = ("Link", '</x>; rel="other", </hidden/spec>; rel=service-desc')
    pages: dict[str, Answer] = {"/": Page(b"hi", headers=(link,)), "/hidden/spec": Page(YAML_SPEC)}
    assert found(pages)[0] == "/hidden/spec"


@pytest.mark.parametrize(
    "first",
    [
        {"links": [{"rel": "self", "href": "/"}, {"rel": "service-desc", "href": "hidden/spec"}]},
        {"_links": {"self": {"href": "/"}, "service-desc": {"href": "/hidden/spec"}}},
        {"_links": {"service-desc": [{"href": "/hidden/spec"}]}},
        {"version": "2.1", "openapi_url": "/hidden/spec"},
    ],
    ids=["OGC API", "HAL", "HAL, several", "a key"],
)
def test_the_first_document_of_an_api_leads_to_the_description(first: object) -> None:
    pages: dict[str, Answer] = {
        "/": Page(json.dumps(first).encode()),
        "/hidden/spec": Page(YAML_SPEC),
    }
    assert found(pages)[0] == "/hidden/spec"


@pytest.mark.parametrize(
    "first",
    [
        {"links": {"rel": "service-desc"}, "_links": [["service-desc"]], "openapi_url": 7},
        {"links": ["service-desc", {"rel": 1, "href": "/hidden/spec"}], "openapi": "3.1.0"},
        {"_links": {"service-desc": {"href": ["/hidden/spec"]}}, "swagger": {"url": "x"}},
    ],
)
def test_a_first_document_with_odd_links_leads_nowhere(first: object) -> None:
    result = missing({"/": Page(json.dumps(first).encode()), "/hidden/spec": Page(YAML_SPEC)})
    assert not any("hidden" in attempt.url for attempt in result.tried)


def test_what_lies_below_the_place_that_a_host_redirects_to_is_tried_first() -> None:
    """Kinto: `/` leads to `/v1/`, whose answer says nothing of the description there."""
    with site(
        {
            "/": Page(b"", 307, (("Location", "/v1/"),)),
            "/v1/": Page(b'{"project_name": "kinto"}'),
            "/v1/__api__": Page(JSON_SPEC),
        }
    ) as here:
        result = look(here.url + "/")
    assert isinstance(result, FoundDocument)
    assert len(here.paths) < 16


def test_a_redirect_to_a_page_to_log_in_is_no_place_where_an_api_begins() -> None:
    with site({"/": Page(b"", 302, (("Location", "/login/"),)), "/login/": Page(HTML)}) as here:
        look(here.url + "/")
    assert [path for path in here.paths if path.startswith("/login/")] == ["/login/"]


def test_a_source_that_redirects_to_a_log_in_is_told_with_the_way_in() -> None:
    """Jupyter Server: its description is behind the token that its page to log in asks for."""
    led = Page(b"", 302, (("Location", "/login"),))
    result = missing({"/api/spec.yaml": led, "/login": Page(HTML)}, "/api/spec.yaml")
    assert result.reason.startswith(
        "HTTP 200 after a redirect to /login (behind a log-in: `toolwright source add URL --header "
        "NAME=@SECRET`), a page, "
    )
    moved = missing(
        {"/a": Page(b"", 302, (("Location", "/catalogin"),)), "/catalogin": Page(HTML)}, "/a"
    )
    assert "log-in" not in moved.reason


@pytest.mark.parametrize("place", ["/api/v1/full-spec", "/v1/__api__", "/api/v2/openapi.json"])
def test_a_known_name_below_a_usual_prefix_is_found(place: str) -> None:
    assert found({place: Page(JSON_SPEC)})[0] == place


@pytest.mark.parametrize(
    "page",
    [
        '<script>SwaggerUIBundle({ "dom_id": "#ui", url: "../hidden/spec" })</script>',
        '<script>ui = SwaggerUIBundle({urls: [{"url": "/hidden/spec", "name": "v1"}]})</script>',
        '<script>c = JSON.parse(\'{"urls":[{"url":"\\/hidden\\/spec"}]}\');</script>',
        "<redoc spec-url='/hidden/spec'></redoc>",
        '<script id="api-reference" data-url="/hidden/spec"></script>',
        '<elements-api apiDescriptionUrl="/hidden/spec" router="hash"></elements-api>',
        '<rapi-doc spec-url = "/hidden/spec"> </rapi-doc>',
        '<link rel="service-desc" href="/hidden/spec">',
    ],
)
def test_a_documentation_page_leads_to_the_description_it_shows(page: str) -> None:
    pages: dict[str, Answer] = {
        "/manual/": Page(f"<!DOCTYPE html><html>{page}</html>".encode()),
        "/hidden/spec": Page(JSON_SPEC),
    }
    assert found(pages, "/manual/")[0] == "/hidden/spec"


def test_a_description_that_a_page_holds_as_json_within_a_string_is_found() -> None:
    text = json.dumps(json.dumps({"info": {"title": "a/b"}, **json.loads(JSON_SPEC)}))
    shown = f'<script>const c = {{"content": {text.replace("/", chr(92) + "u002F")}}}</script>'
    pages: dict[str, Answer] = {"/": Page(f"<!DOCTYPE html><html>{shown}</html>".encode())}
    where, result = found(pages)
    assert where == "/"
    assert json.loads(result.content)["paths"] == json.loads(JSON_SPEC)["paths"]
    for broken in (text[:-9], text.replace("paths", "routes"), text.replace("{", "[", 1)):
        with site({"/": Page(f"<html><script>x = {broken}</script></html>".encode())}) as here:
            assert isinstance(look(here.url), NotFound)


def test_a_description_that_a_page_fetches_to_show_it_is_found() -> None:
    shown = '<script>fetch("/spec.json").then(r => SwaggerUIBundle({spec: r}))</script>'
    pages: dict[str, Answer] = {
        "/": Page(f"<!DOCTYPE html><html>{shown}</html>".encode()),
        "/spec.json": Page(JSON_SPEC),
    }
    assert found(pages)[0] == "/spec.json"


@pytest.mark.parametrize(
    "page",
    [
        "<script>fetch('/data.json')</script>",
        "<script>SwaggerUIBundle({}); fetch('/logout'); fetch('/data.json?all=1')</script>",
    ],
)
def test_what_a_page_fetches_for_another_end_is_not_asked(page: str) -> None:
    with site({"/": Page(f"<!DOCTYPE html><html>{page}</html>".encode())}) as here:
        assert isinstance(look(here.url), NotFound)
    assert not [path for path in here.paths if "data" in path or "logout" in path]


def test_a_swagger_ui_whose_script_names_the_description_is_followed_two_steps() -> None:
    pages: dict[str, Answer] = {
        "/docs": Page(b'<html><script src="swagger-initializer.js"></script></html>'),
        "/swagger-initializer.js": Page(b"window.ui = X({ configUrl: '/conf/swagger-config' })"),
        "/conf/swagger-config": Page(b'{"url": "/hidden/spec"}'),
        "/hidden/spec": Page(JSON_SPEC),
    }
    assert found(pages)[0] == "/hidden/spec"


def test_other_descriptions_that_a_page_names_are_told() -> None:
    pages: dict[str, Answer] = {
        "/": Page(b"<html><script>urls: [{url: '/a'}, {url: '/b'}, {url: '/c'}]</script></html>"),
        "/a": Page(b"nothing"),
        "/b": Page(JSON_SPEC),
    }
    where, result = found(pages)
    assert where == "/b"
    assert [url.rpartition("/")[2] for url in result.also] == ["c"]


def test_an_unauthenticated_answer_says_which_header_is_wanted() -> None:
    challenge = (("WWW-Authenticate", 'X-API-Key realm="PowerDNS"'),)
    with site({"/api/docs": Page(b"Unauthorized", 401, challenge)}) as here:
        result = look(here.url)
    assert isinstance(result, CredentialChallenge)
    assert (result.kind, result.headers, result.certain) == ("apiKey", ("X-API-Key",), True)
    assert result.url == f"{here.url}/api/docs"
    assert not result.rejected
    assert (
        f"toolwright source add {result.url} --header X-API-Key=@NAME" in result.render_question()
    )


def test_the_credential_opens_the_document_and_goes_to_its_own_host_only() -> None:
    def guarded(asked: Asked) -> Page:
        right = asked.headers.get("x-api-key") == "k3y"
        return Page(YAML_SPEC) if right else Page(b"no", 401)

    with site() as other, site({"/api/docs": guarded}) as here:
        here.pages["/"] = Page(b"", 302, (("Location", f"{other.url}/openapi.json"),))
        here.pages["/swagger.json"] = Page(f'{{"url": "{other.url}/steal"}}'.encode())
        source = ApiSource(here.url, (("X-API-Key", "k3y"),))
        result = look(source, other.url)
    assert isinstance(result, FoundDocument)
    assert other.asked == []
    assert "k3y" not in repr(source)


def test_a_credential_that_is_refused_is_told_as_such() -> None:
    with site({"/api/docs": Page(b"no", 401)}) as here:
        result = look(ApiSource(here.url, (("X-API-Key", "wrong"),)))
    assert isinstance(result, CredentialChallenge)
    assert result.rejected


def test_an_open_document_wins_over_a_guarded_place() -> None:
    pages: dict[str, Answer] = {"/": Page(b"", 401), "/docs/openapi.json": Page(JSON_SPEC)}
    assert found(pages)[0] == "/docs/openapi.json"


def test_a_firewall_that_forbids_one_guessed_place_is_not_taken_for_a_login() -> None:
    result = missing({"/": Page(HTML), "/.well-known/api-catalog": Page(b"denied", 403)})
    assert [page.rpartition("/")[2] for page in result.pages] == [""]


def test_nothing_found_tells_every_place_that_was_tried() -> None:
    result = missing({"/": Page(HTML)})
    assert result.tried[0].outcome == "HTTP 200, a page"
    assert result.reason.startswith("HTTP 200, a page")
    assert {attempt.outcome for attempt in result.tried[1:-1]} == {"HTTP 404"}
    assert result.tried[-1].outcome == "HTTP 404 to a query for its schema"
    assert len(result.tried) <= MAX_REQUESTS


def test_a_description_on_another_host_is_told_and_not_fetched() -> None:
    with site({"/spec.json": Page(JSON_SPEC)}) as other, site() as here:
        here.pages["/"] = Page(f'<html><redoc spec-url="{other.url}/spec.json"></html>'.encode())
        result = look(here.url, other.url)
    assert isinstance(result, NotFound)
    assert result.elsewhere == (f"{other.url}/spec.json",)
    assert other.asked == []


def test_a_redirect_to_another_host_is_told_and_not_followed() -> None:
    with site({"/openapi.json": Page(JSON_SPEC)}) as other, site() as here:
        here.pages["/openapi.json"] = Page(b"", 307, (("Location", f"{other.url}/openapi.json"),))
        result = look(here.url, other.url)
    assert isinstance(result, NotFound)
    assert result.elsewhere == (f"{other.url}/openapi.json",)
    assert other.asked == []


def test_a_redirect_loop_ends() -> None:
    pages: dict[str, Answer] = {
        "/": Page(b"", 302, (("Location", "/a"),)),
        "/a": Page(b"", 302, (("Location", "/"),)),
    }
    missing(pages)


def test_a_page_with_ten_thousand_links_costs_no_more_requests_than_any_other() -> None:
    links = "".join(f'<a href="/x{n}/openapi.json">' for n in range(10_000))
    with site({"/": Page(f"<html>{links}".encode())}) as here:
        result = look(here.url)
    assert isinstance(result, NotFound)
    assert len(here.asked) <= MAX_REQUESTS


def test_pages_that_lead_to_ever_new_pages_are_left_after_three_steps() -> None:
    def endless(asked: Asked) -> Page:
        return Page(f'<html><redoc spec-url="{asked.path}x"></redoc></html>'.encode())

    with site({"/" + "x" * n: endless for n in range(40)}) as here:
        result = look(here.url)
    assert isinstance(result, NotFound)
    assert [path for path in here.paths if set(path) <= {"/", "x"}] == ["/", "/x", "/xx", "/xxx"]


def test_an_answer_without_end_is_cut_and_the_search_goes_on() -> None:
    def forever() -> Iterator[bytes]:
        return itertools.repeat(b"x" * 65_536)

    pages: dict[str, Answer] = {"/": Page(chunks=forever), "/swagger.json": Page(JSON_SPEC)}
    assert found(pages)[0] == "/swagger.json"


def test_a_host_that_asks_to_wait_is_not_asked_again() -> None:
    with site({"/": Page(b"", 429, (("Retry-After", "120"),))}) as here:
        result = look(here.url)
    assert isinstance(result, NotFound)
    assert result.reason == "HTTP 429; the host asks to wait 120 s"
    assert here.paths == ["/"]


def test_a_host_that_is_silent_while_it_makes_its_description_is_waited_for() -> None:
    made, first = threading.Event(), WELL_KNOWN[:MAX_AT_ONCE]

    def busy(request: Asked) -> Page:
        # Longer than a batch of places may take, a sixth of the search's time.
        made.wait(3.5)
        made.set()
        return Page(JSON_SPEC) if request.path == first[0] else Page(b"", 404)

    with site({"/": Page(HTML), **dict.fromkeys(first, busy)}) as here:
        result = look(here.url, seconds=18)
    assert isinstance(result, FoundDocument), result
    assert result.location == here.url + first[0]
    assert sorted(here.paths) == sorted(["/", *first])


def test_a_host_that_stays_silent_is_asked_for_each_place_once() -> None:
    done = threading.Event()

    def silent(request: Asked) -> Page:
        assert done.wait(60)
        return Page(b"", 404)

    with site({"/": Page(HTML), **dict.fromkeys(WELL_KNOWN, silent)}) as here:
        result = look(here.url, seconds=3)
        done.set()
    assert isinstance(result, NotFound)
    assert max(collections.Counter(here.paths).values()) == 1


def test_a_host_that_never_answers_ends_when_the_time_is_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        with pytest.raises(SourceUnreachable, match="no complete answer"):
            look(f"http://127.0.0.1:{silent.getsockname()[1]}", seconds=0.1)


def test_an_unreachable_host_is_named_with_what_to_do() -> None:
    with site() as gone:
        pass
    with pytest.raises(
        SourceUnreachable,
        match=r"127\.0\.0\.1:\d+ gives no answer.*: is it running\? Check the address",
    ):
        look(gone.url)


def test_a_host_without_a_scheme_is_found_on_this_machine_by_plain_http() -> None:
    with site({"/openapi.json": Page(JSON_SPEC)}) as here:
        result = look(here.url.removeprefix("http://"))
    assert isinstance(result, FoundDocument)


def test_a_file_is_read_where_it_lies(tmp_path: Path) -> None:
    document = tmp_path / "anything.txt"
    document.write_bytes(YAML_SPEC)
    result = look(str(document))
    assert result == FoundDocument(str(document), YAML_SPEC, "swagger 2.0")
    assert look(document.as_uri()) == result


@pytest.mark.parametrize(
    ("content", "error"),
    [(b" \n", DocumentEmpty), (b"{}", NotAnApiDescription), (b"\0" * 100, NotAnApiDescription)],
)
def test_a_file_that_is_no_description_says_what_is_wrong(
    tmp_path: Path, content: bytes, error: type[Exception]
) -> None:
    (tmp_path / "spec.json").write_bytes(content)
    with pytest.raises(error, match=r"spec\.json"):
        look(str(tmp_path / "spec.json"))


def test_a_file_over_the_cap_is_not_read_whole(tmp_path: Path) -> None:
    with (tmp_path / "big.json").open("wb") as file:
        file.truncate(50_000_000)
    with pytest.raises(DocumentTooLarge, match="larger than"):
        look(str(tmp_path / "big.json"))


@pytest.mark.parametrize(
    "location", ["./missing.yaml", "/", "ftp://example.com/x", "", "/dev/zero"]
)
def test_a_location_that_cannot_be_used_is_refused_by_name(location: str) -> None:
    with pytest.raises(DocumentUnreadable, match="Give the path or URL"):
        look(location)
