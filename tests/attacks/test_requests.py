"""Requests that say one thing to the broker and another to a server: none of them leaves.

What counts is what a listening server hears, not what the broker says of itself.
"""

from __future__ import annotations

import asyncio
import json
from urllib.parse import quote

import pytest

from sandbox.bundle.apispec import Access, APISpec, Operation
from sandbox.bundle.model import Bundle, Provenance, RequestPattern, ToolDefinition
from sandbox.wire.exchange import Caps, Capture, Exchange, Release, WireRequest, digest_request
from sandbox.wire.policy import Policy, build_tool_policy, parse_origin
from tests.attacks.wire import FINE, Listener, asked, brokered, listener, rule

FORM = (("content-type", "application/x-www-form-urlencoded"),)
JSON = (("content-type", "application/json; charset=utf-8"),)
PARTS = (("content-type", "multipart/form-data; boundary=b"),)


def tried(
    path: str = "/items/a",
    method: str = "GET",
    headers: tuple[tuple[str, str], ...] = (),
    body: bytes = b"",
    url: str = "",
    caps: Caps | None = None,
) -> tuple[Exchange, list[bytes]]:
    """What became of a request, and what the server heard. `url` may hold `PORT`."""

    async def run() -> tuple[Exchange, list[bytes]]:
        async with listener() as api:
            whole = url.replace("PORT", str(api.port)) or api.url(path)
            exchange = await asked(api, WireRequest(method, whole, headers, body), caps=caps)
            return exchange, api.heard

    return asyncio.run(run())


def refused(*args: object, **kwargs: object) -> bool:
    exchange, heard = tried(*args, **kwargs)  # type: ignore[arg-type]
    return exchange.refusal == "refused" and heard == []


@pytest.mark.parametrize(
    "path",
    [
        "/items/..",
        "/items/../secrets",
        "/items/%2e%2e",
        "/items/%2E.",
        "/items/%252e%252e",
        "/items/%25252e%25252e%25252f",
        "/items/..%2fsecrets",
        "/items/x%2f..%2f..%2fsecrets",
        "/items/..%5csecrets",
        "/items/x%252f..%252fsecrets",
        "/items/%c0%ae%c0%ae",
        "/items/%e0%80%ae",
        "/items/..%20",
        "/items/%u002e%u002e",
        "/items/%25u002e%25u002e",
        "/items/%f0%80%80%ae%f0%80%80%ae",
        "/items/%EF%BC%8E%EF%BC%8E",
        "/items/%E2%80%A5",
        "/items/%E2%80%A4%E2%80%A4",
        "/items/%25EF%25BC%258E.",
        "/items/..%C2%A0",
        "/items/%E3%80%80..",
        "/items/.%E2%80%8B.",
        "/items/.%C2%AD.",
        "/items/...",
        "/items/..%EF%BC%8Fsecrets",
        "/items/x%E2%88%95..%E2%88%95secrets",
        "/items/..%EF%BC%BCsecrets",
        "/items/%E9",
    ],
)
def test_no_spelling_of_a_parent_directory_leaves(path: str) -> None:
    assert refused(path)


@pytest.mark.parametrize(
    "path",
    ["/items//a", "//items/a", "/items/a/", "/items/a/b", "/items/", "/items", "/", "/Items/a"],
)
def test_another_number_of_slashes_or_segments_does_not_leave(path: str) -> None:
    assert refused(path)


@pytest.mark.parametrize(
    "path",
    [
        *("/items/a;admin=1", "/items/..;", "/items/..;x", "/items/.;a", "/items/..%3b"),
        *("/items/;_method=DELETE", "/items/;%5fmethod=DELETE"),
    ],
)
def test_parameters_inside_a_segment_do_not_leave(path: str) -> None:
    assert refused(path)


@pytest.mark.parametrize(
    "path",
    ["/items/a\\b", "/items/a%00", "/items/a%2500", "/items/a%0d%0aX:1", "/items/%", "/items/a b"],
)
def test_characters_that_servers_stumble_over_do_not_leave(path: str) -> None:
    assert refused(path)


@pytest.mark.parametrize(
    ("path", "arrives"),
    [
        ("/items/a", b"/items/a"),
        ("/items/a%2Fb", b"/items/a%2Fb"),
        ("/items/1.5", b"/items/1.5"),
        ("/items/..a", b"/items/..a"),
        ("/items/100%25", b"/items/100%25"),
        ("/items/;key=a", b"/items/;key=a"),
        ("/items/%C3%A9", b"/items/%C3%A9"),
        ("/items/Fate%EF%BC%8FZero", b"/items/Fate%EF%BC%8FZero"),
        ("/items/%EF%BC%A4%EF%BC%8E%EF%BC%A3", b"/items/%EF%BC%A4%EF%BC%8E%EF%BC%A3"),
        ("/items/v1.0.", b"/items/v1.0."),
        ("/items/a?q=../..&x=%2e%2e;", b"/items/a?q=../..&x=%2e%2e;"),
    ],
)
def test_a_declared_path_arrives_as_it_was_written(path: str, arrives: bytes) -> None:
    exchange, heard = tried(path)
    assert exchange.response is not None
    assert heard[0].startswith(b"GET " + arrives + b" HTTP/1.1\r\n")


@pytest.mark.parametrize(
    "name",
    [
        "X-HTTP-Method-Override",
        "x_http_method_override",
        "X-HTTP-Method",
        "X-Method-Override",
        "X-Original-URL",
        "X_Original_URL",
        "X.HTTP.Method~Override",
        "-x-http-method-override",
        "X-Tunneled-Method",
        "Method-Override",
        "Content-Encoding",
        "Content_Encoding",
        "Content_Type",
        "X-Original-Method",
        "X-Rewrite-URL",
        "X-Override-URL",
        "X-HTTP-Host-Override",
        "X-Forwarded-Host",
        "X-Forwarded",
        "X-Host",
        "Forwarded",
        "X-Real-IP",
        "True-Client-IP",
    ],
)
def test_a_header_that_names_another_method_path_or_host_does_not_leave(name: str) -> None:
    assert refused(headers=((name, "DELETE"),))


@pytest.mark.parametrize(
    "name",
    [
        "Host",
        "Content-Length",
        "Transfer-Encoding",
        "transfer_encoding",
        "Connection",
        "Upgrade",
        "Expect",
        "TE",
        "Trailer",
        "Keep-Alive",
        "Proxy-Authorization",
        "Authorization",
        ":authority",
        "Content-Length ",
        "X\r\nHost",
        "X:Y",
        "",
    ],
)
def test_a_header_that_frames_the_message_or_is_no_name_does_not_leave(name: str) -> None:
    assert refused(headers=((name, "1"),))


@pytest.mark.parametrize(
    "value", ["a\r\nHost: evil.test", "a\nX: 1", "a\r", "a\0b", "a\x0bb", "a\x7f"]
)
def test_a_header_value_never_ends_its_line(value: str) -> None:
    assert refused(headers=(("x-note", value),))


def test_ordinary_headers_arrive() -> None:
    _, heard = tried(headers=(("X-Note", "a\tb é"), ("X-Method", "fast"), ("X-Original", "1")))
    assert "x-note: a\tb é".encode() in heard[0].replace(b"X-Note", b"x-note")
    assert b"X-Method: fast" in heard[0]


@pytest.mark.parametrize(
    ("path", "headers", "body"),
    [
        ("/items/a?_method=DELETE", (), b""),
        ("/items/a?x=1&%5Fmethod=DELETE", (), b""),
        ("/items/a?X-HTTP-Method-Override=DELETE", (), b""),
        ("/items/a", FORM, b"name=x&_method=DELETE"),
        ("/items/a", FORM, b"name=x&%5fmethod=DELETE"),
        ("/items/a", JSON, b'{"name": "x", "_method": "DELETE"}'),
        ("/items/a", JSON, b'{"\\u005fm\\u0065thod": "DELETE"}'),
        (
            "/items/a",
            PARTS,
            b'--b\r\nContent-Disposition: form-data; name="_method"\r\n\r\nDELETE\r\n--b--\r\n',
        ),
    ],
    ids=["query", "escaped", "header-name", "form", "form-escaped", "json", "json-escaped", "part"],
)
def test_a_parameter_that_names_another_method_does_not_leave(
    path: str, headers: tuple[tuple[str, str], ...], body: bytes
) -> None:
    assert refused(path, "POST", headers, body)


OVERRIDES = [
    "_method",
    ".method",
    "[method",
    " method",
    "+method",
    "$method",
    "_METHOD",
    "_method[]",
    "_method[x]",
    "_method\0x",
    "_me\u00adthod",
    "\uff3fmethod",
    "_\uff4d\uff45\uff54\uff48\uff4f\uff44",
    "_HttpMethod",
    "X-HTTP-Method-Override",
    "x.http.method.override",
    "x http method override",
    "x-tunneled-method",
]


@pytest.mark.parametrize("name", OVERRIDES)
@pytest.mark.parametrize("encoded", [1, 2, 3])
def test_no_spelling_of_an_override_leaves_in_a_query_or_form(name: str, encoded: int) -> None:
    written = name
    for _ in range(encoded):
        written = quote(written, safe="")
    for pairs in (f"{written}=DELETE", f"a=1&{written}=DELETE", f"a=1;{written}=DELETE", written):
        assert refused(f"/items/a?{pairs}")
        assert refused("/items/a", "POST", FORM, pairs.encode())
        assert refused("/items/a", "POST", (), pairs.encode())


@pytest.mark.parametrize(
    "query", ["method=DELETE", "method=post", "http_method=%44ELETE", "a&method=put"]
)
def test_a_get_does_not_say_that_it_is_another_method(query: str) -> None:
    assert refused(f"/items/a?{query}")


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("application/json", '{"_method": "DELETE"}'.encode("utf-16")),
        ("application/json", '{"_method": "DELETE"}'.encode("utf-16-be")),
        ("application/json", '{"_method": "DELETE"}'.encode("utf-32")),
        ("application/json; charset=utf-16", '{"_method": "DELETE"}'.encode("utf-16")),
        ("application/json; charset=utf-7", b'{"+AF8-method": "DELETE"}'),
        ("application/json", b'\xef\xbb\xbf{"_method": "DELETE"}'),
        ("application/json", b'{"name": "x"}\n{"_method": "DELETE"}'),
        ("application/json", b"{_method: 'DELETE'}"),
        ("application/json", b'{/* */"_method": "DELETE",}'),
        ("application/vnd.api+json", b'{"_METHOD": "DELETE"}'),
        ("text/plain", b'{"_method": "DELETE"}'),
        ("application/json", b'{"a": "' + b"[" * 260_000 + b'", "_method": "DELETE"}'),
        ("application/x-www-form-urlencoded; charset=ibm037", b"%6D%94%85%A3%88%96%84=%C4"),
        ("application/x-www-form-urlencoded", b"\xff_method=DELETE"),
        ("application/x-www-form-urlencoded", b"a=1\0&b=1"),
        ("application/x-www-form-urlencoded", b" " * 5000 + b"_method=DELETE"),
        ("application/x-www-form-urlencoded", b"a&" * 200_000 + b"_method=DELETE"),
        ("application/x-www-form-urlencoded", b"_method[" + b"x" * 5000 + b"]=DELETE"),
        ("application/json, application/x-www-form-urlencoded", b"_method=DELETE"),
    ],
)
def test_no_coding_of_a_body_hides_an_override(kind: str, body: bytes) -> None:
    assert refused("/items/a", "POST", (("content-type", kind),), body)


def test_a_body_of_two_types_does_not_leave() -> None:
    assert refused("/items/a", "POST", (*JSON, *FORM), b"{}")


@pytest.mark.parametrize(
    "head",
    [
        b'Content-Disposition: form-data; name="_method"',
        b"Content-Disposition: form-data; name=_method",
        b"Content-Disposition: form-data; name='_method'",
        b"Content-Disposition: form-data; name*=utf-8''_method",
        b'Content-Disposition: form-data; name="x"; name="_method"',
        b'Content-Disposition: form-data; name="\\_method"',
        b'Content-Disposition: form-data;\r\n name="_method"',
        b'Content-Disposition: form-data; name = "_method"',
        b'Content-Disposition: form-data; name="[method"',
        b'Content-Disposition: form-data; filename="a"; name="_method"',
        b'content-disposition:form-data;name="_method"',
        b'Content-Disposition : form-data; name="_method"',
        b'Content-Disposition: form-data; name="x"\r\n'
        b'Content-Disposition: form-data; name="_method"',
        b'Content-Disposition: form-data; name="=?utf-8?q?_method?="',
        b'Content-Disposition: form-data; name="x"\r\nContent-Transfer-Encoding: base64',
        b'X: y\r\nContent-Disposition: form-data; name="x"',
        b"",
    ],
)
def test_no_spelling_of_a_part_s_name_leaves(head: bytes) -> None:
    body = b"--b\r\n" + head + b"\r\n\r\nDELETE\r\n--b--\r\n"
    assert refused("/items/a", "POST", PARTS, body)


PART = b'Content-Disposition: form-data; name="a"\r\n\r\nx\r\n'
HIDDEN = b'Content-Disposition: form-data; name="_method"\r\n\r\nDELETE\r\n'


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("multipart/form-data; boundary=b", b"--b\n" + HIDDEN + b"--b--\r\n"),
        ("multipart/form-data; boundary=b", b"x\r\n--b\r\n" + PART + b"--b--\r\n"),
        ("multipart/form-data; boundary=b", b"--b\r\n" + PART + b"--b--\r\n--b\r\n" + HIDDEN),
        ("multipart/form-data; boundary=b", b"--b\r\n" + PART),
        ("multipart/form-data; boundary=b; boundary=c", b"--b\r\n" + PART + b"--b--\r\n"),
        ('multipart/form-data; boundary="b c"', b"--b c\r\n" + PART + b"--b c--\r\n"),
        ("multipart/form-data", b"--b\r\n" + HIDDEN + b"--b--\r\n"),
        ("multipart/mixed; boundary=b", b"--b\r\n" + HIDDEN + b"--b--\r\n"),
        ("multipart/mixed; boundary=b", (b"--b\r\n" + PART) * 2000 + b"--b--\r\n"),
        ("multipart/form-data; boundary=b; charset=utf-16", b"--b\r\n" + PART + b"--b--\r\n"),
    ],
)
def test_parts_that_can_be_divided_in_two_ways_do_not_leave(kind: str, body: bytes) -> None:
    assert refused("/items/a", "POST", (("content-type", kind),), body)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("multipart/form-data; boundary=b", b"--b\r\n" + PART + b"--b--\r\n"),
        ("multipart/form-data; boundary=b", b"--b--\r\n"),
        (
            "multipart/form-data; boundary=b",
            b'--b\r\nContent-Disposition: form-data; name="page"; filename="a.php"\r\n'
            b'Content-Type: text/plain; charset=utf-8\r\n\r\n<input name="_method">\r\n--b--\r\n',
        ),
        (
            "multipart/related; boundary=b",
            b"--b\r\nContent-Type: application/json\r\n\r\n{}\r\n--b--",
        ),
        ("application/x-www-form-urlencoded", "name=Zoë&method=card&shipping[method]=x".encode()),
        ("application/x-www-form-urlencoded", b"code=a%26_method%3Dx&text=a+_method"),
        ("application/json", b'{"method": "DELETE", "url": "https://hook.test/"}'),
        ("application/json", b'{"index": {}}\n{"method": "x"}\n'),
        ("application/json; odata.metadata=minimal", b"[]"),
        ("application/octet-stream", bytes(range(256)) + b"&_method=x"),
        ("text/x-php", b"$this->_method = 1; _method=2"),
        ("text/xml; charset=iso-8859-1", b"<a>x</a>"),
    ],
)
def test_an_ordinary_body_arrives_as_it_was_written(kind: str, body: bytes) -> None:
    _, heard = tried("/items/a", "POST", (("content-type", kind),), body)
    assert heard[0].endswith(b"\r\n\r\n" + body)


def test_parameters_about_other_methods_arrive() -> None:
    body = json.dumps({"method": "card", "more": {"_method": "x"}}).encode()
    _, heard = tried("/items/a?method=fast&payment_method=card", "POST", JSON, body)
    assert heard[0].endswith(body)


@pytest.mark.parametrize(
    "url",
    [
        "http://api.test:PORT@evil.test/items/a",
        "http://user:pass@api.test:PORT/items/a",
        "http://evil.test:PORT/items/a",
        "http://api.test.evil.test:PORT/items/a",
        "http://api.test%2eevil.test:PORT/items/a",
        "http://127.0.0.1:PORT/items/a",
        "http://[::ffff:127.0.0.1]:PORT/items/a",
        "http://api.test:PORT\\@evil.test/items/a",
        "https://api.test:PORT/items/a",
        "http://api.test:80/items/a",
        "//api.test:PORT/items/a",
        "ftp://api.test:PORT/items/a",
        "file:///etc/passwd",
        "env:HOME",
        "javascript:1",
        "http://[",
        "http://[not-an-address]/items/a",
        "http://api.test:99999/items/a",
        "",
        "x" * 20_000,
    ],
)
def test_a_url_of_anywhere_else_does_not_leave(url: str) -> None:
    exchange, heard = tried(url=url or "/")
    assert exchange.response is None
    assert exchange.refusal == "refused"
    assert heard == []


@pytest.mark.parametrize(
    "url", ["http://API.test:PORT/items/a", "http://api.test.:PORT/items/a#../x"]
)
def test_the_host_that_is_asked_is_the_one_that_was_matched(url: str) -> None:
    _, heard = tried(url=url)
    assert heard[0].startswith(b"GET /items/a HTTP/1.1\r\nHost: api.test:")


@pytest.mark.parametrize(
    "method", ["CONNECT", "TRACE", "DELETE", "get", "GET /items/b HTTP/1.1\r\nX:", "", "PRI", "*"]
)
def test_a_method_that_was_not_declared_does_not_leave(method: str) -> None:
    assert refused(method=method)


@pytest.mark.parametrize(
    ("url", "headers", "body"),
    [
        ("?q=" + "x" * 5000, (), b""),
        ("", (("x-note", "x" * 2000),), b""),
        ("", tuple((f"x-{n}", "1") for n in range(9)), b""),
        ("", (), b"x" * 5000),
    ],
    ids=["url", "value", "count", "body"],
)
def test_a_request_beyond_its_caps_does_not_leave(
    url: str, headers: tuple[tuple[str, str], ...], body: bytes
) -> None:
    caps = Caps(request_bytes=4096, url_bytes=4096, headers=8, header_bytes=1024)
    assert refused("/items/a" + url, "POST", headers, body, caps=caps)


def test_a_session_asks_only_so_often() -> None:
    async def run() -> tuple[list[str], int]:
        async with listener() as api:
            allowed = rule(api.origin)
            caps = Caps(exchanges=3)
            async with brokered(allowed, granted=[api.origin], caps=caps) as broker:
                request = WireRequest("GET", api.url("/items/a"))
                told = [(await broker.perform(request)).refusal for _ in range(6)]
            return told, len(api.heard)

    assert asyncio.run(run()) == (["", "", "", "refused", "refused", "refused"], 3)


HOSTS = ("x.evil", "ax.evil", "x", "a.evil", "a.evilx")
"""What a placeholder in a host could be filled to."""


def read_session(url: str, author: str, access: Access = "read") -> Policy:
    """The policy of a session whose bundle's one tool, written by `author`, asks for that URL."""
    tool = ToolDefinition(
        "tool",
        "A tool.",
        {"type": "object"},
        {"type": "object"},
        access,
        requests=(RequestPattern("GET", url),),
    )
    origin = parse_origin(url.replace("{", "").replace("}", ""))
    assert origin
    bundle = Bundle(
        name="sample",
        version=1,
        title="Sample",
        base_url=str(origin),
        source_code="",
        tools=(tool,),
        provenance=Provenance("test", "0" * 64, author),
        permissions=tuple(f"network:{host}" for host in (f"{origin.host}:{origin.port}", *HOSTS)),
    )
    return build_tool_policy(bundle, "tool")


def asked_of(author: str, query: str, access: Access = "read") -> tuple[str, int]:
    """The refusal of a GET with that query, and how many requests a server heard."""

    async def run() -> tuple[str, int]:
        async with listener() as api:
            policy = read_session(api.url("/index.php"), author, access)
            async with brokered(*policy.rules, granted=[api.origin]) as broker:
                request = WireRequest("GET", api.url(f"/index.php?{query}"))
                return (await broker.perform(request)).refusal, len(api.heard)

    return asyncio.run(run())


@pytest.mark.parametrize(
    "query",
    [
        "action=delete",
        "Action=DeleteUser",
        "a=1;do=remove_all",
        "%61ction=%64elete",
        "_action=delete",
        "action[]=update",
        "cmd=%EF%BD%84elete",
        "delete=1",
        "id=7&purge",
    ],
)
def test_a_get_of_code_by_a_client_does_not_say_that_it_acts(query: str) -> None:
    assert asked_of("client", query) == ("refused", 0)


def test_a_redirect_does_not_bring_code_by_a_client_to_say_that_it_acts() -> None:
    moved = b"HTTP/1.1 302 Found\r\nLocation: /index.php?action=delete\r\nContent-Length: 0\r\n\r\n"

    async def run() -> tuple[str, int]:
        async with listener(moved) as api:
            policy = read_session(api.url("/index.php"), "client")
            async with brokered(*policy.rules, granted=[api.origin]) as broker:
                request = WireRequest("GET", api.url("/index.php?to=there"))
                return (await broker.perform(request)).refusal, len(api.heard)

    assert asyncio.run(run()) == ("redirect", 1)


@pytest.mark.parametrize(
    ("author", "query", "access"),
    [
        ("client", "action=query&list=users", "read"),
        ("client", "q=delete", "read"),
        ("client", "action=delete", "write"),
        ("compiler", "action=delete", "read"),
    ],
)
def test_a_get_that_reads_or_waits_for_a_person_arrives(
    author: str, query: str, access: Access
) -> None:
    assert asked_of(author, query, access) == ("", 1)


@pytest.mark.parametrize("host", ["{x}.evil", "a{x}.evil", "{x}", "a.evil{x}"])
def test_a_template_whose_host_is_a_placeholder_allows_nothing(host: str) -> None:
    assert read_session(f"https://{host}/items", "compiler").rules == ()


def test_a_template_whose_path_is_a_placeholder_allows_its_host() -> None:
    (made,) = read_session("https://a.evil/{x}", "compiler").rules
    assert str(made.origin) == "https://a.evil"


def writing_session(api: Listener, described: bool) -> Policy:
    """The policy of a client's writing tool that looks at items, removes them by a GET, posts. Its
    API is `described` or not.
    """
    operations = (
        Operation("look", "get", "/items/{key}", str(api.origin), "read"),
        Operation("remove", "get", "/items/{key}/remove", str(api.origin), "write"),
        Operation("note", "post", "/notes", str(api.origin), "write"),
    )
    tool = ToolDefinition(
        "tool",
        "A tool.",
        {"type": "object"},
        {"type": "object"},
        "write",
        requests=tuple(RequestPattern(each.method.upper(), each.url) for each in operations),
    )
    bundle = Bundle(
        name="sample",
        version=1,
        title="Sample",
        base_url=str(api.origin),
        source_code="",
        tools=(tool,),
        provenance=Provenance("test", "0" * 64, "client"),
        permissions=(f"network:{api.origin.host}:{api.port}",),
        spec=APISpec("Sample", "1", "test", "openapi 3.1.0", operations) if described else None,
    )
    return build_tool_policy(bundle, "tool")


def written(
    answer: bytes, *paths: str, approved: str = "", described: bool = True
) -> tuple[list[str], list[bytes]]:
    """The refusals of GETs of a writing tool's session, and the request lines that a server heard.
    The session captures its write, or makes the `approved` one.
    """

    async def run() -> tuple[list[str], list[bytes]]:
        async with listener(answer) as api:
            asked = [WireRequest("GET", api.url(path)) for path in paths]
            digest = digest_request(WireRequest("GET", api.url(approved)))
            mode = Release(digest) if approved else Capture()
            policy = writing_session(api, described)
            async with brokered(*policy.rules, granted=[api.origin], writes=mode) as broker:
                refusals = [(await broker.perform(each)).refusal for each in asked]
            return refusals, [heard.partition(b" HTTP")[0] for heard in api.heard]

    return asyncio.run(run())


@pytest.mark.parametrize("path", ["/items/7/remove", "/items/7?action=delete", "/items/7?purge=1"])
def test_a_get_by_which_a_writing_tool_acts_waits_like_its_other_writes(path: str) -> None:
    assert written(FINE, path) == (["captured"], [])


def test_a_get_by_which_a_writing_tool_looks_arrives_before_its_write_is_asked_for() -> None:
    assert written(FINE, "/items/7", "/items/7/remove") == (["", "captured"], [b"GET /items/7"])


def test_of_several_gets_that_act_only_the_approved_one_is_sent() -> None:
    acts = ("/items/7/remove", "/items/8/remove", "/items/9?action=delete")
    refused, heard = written(FINE, *acts, approved=acts[0])
    assert (refused, heard) == (["", "refused", "refused"], [b"GET /items/7/remove"])


@pytest.mark.parametrize("asked", ["/items/7", "/items/7?action=delete"])
def test_no_redirect_brings_a_writing_tool_to_a_get_that_acts(asked: str) -> None:
    moved = b"HTTP/1.1 302 Found\r\nLocation: /items/7/remove\r\nContent-Length: 0\r\n\r\n"
    line = f"GET {asked}".encode()
    assert written(moved, asked, approved="/items/7?action=delete") == (["redirect"], [line])


def test_a_get_that_no_description_has_arrives_before_its_tool_s_write_is_asked_for() -> None:
    assert written(FINE, "/items/7", described=False) == ([""], [b"GET /items/7"])
