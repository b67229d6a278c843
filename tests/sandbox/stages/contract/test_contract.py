"""The contract's readers: what is taken for the documented request, and what is not."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from typing import Any

import pytest

from sandbox.bundle.apispec import Encoding, MediaType, Operation, Parameter, RequestBody
from sandbox.bundle.model import ToolDefinition
from sandbox.schemas.directional import DirectionalValidator
from sandbox.session.interface import Failure, Outcome
from sandbox.stages.contract.body import contains_scalars
from sandbox.stages.contract.places import ArgumentPlace, check_claims, find_places
from sandbox.stages.contract.request import check_request
from sandbox.stages.contract.result import Expectation, check_result
from sandbox.wire.exchange import Headers, WireRequest, WireResponse

SERVER = "https://api.example/v1"
JSON = (("content-type", "application/json"),)
JUDGE = DirectionalValidator({}, "request")


def problems(
    operation: Operation,
    arguments: Mapping[str, Any],
    query: str = "",
    headers: Headers = (),
    body: bytes = b"",
    path: str = "/x",
) -> tuple[str, ...]:
    bound = {
        p.name: ArgumentPlace(p.location, p.name)
        for p in operation.parameters
        if p.name in arguments
    }
    if "body" in arguments:
        bound["body"] = ArgumentPlace("body", "")
    url = SERVER + path + (f"?{query}" if query else "")
    request = WireRequest(operation.method, url, headers, body)
    return check_request(operation, arguments, bound, request, JUDGE)


def query(style: Any = "form", explode: bool = True, **more: Any) -> Operation:
    return operation(Parameter("c", "query", style=style, explode=explode, **more))


def operation(*parameters: Parameter, path: str = "/x", body: Any = None) -> Operation:
    method = "POST" if body else "GET"
    return Operation("o", method, path, SERVER, "read", parameters=parameters, body=body)


RGB = {"R": 100, "G": 200}


@pytest.mark.parametrize(
    ("style", "explode", "value", "wire"),
    [
        ("form", True, "a b&c", "c=a%20b%26c"),
        ("form", True, "a b", "c=a+b"),
        ("form", True, True, "c=true"),
        ("form", True, 1.5, "c=1.5"),
        ("form", True, 3.0, "c=3"),
        ("form", True, ["a", "b"], "c=a&c=b"),
        ("form", False, ["a", "b"], "c=a,b"),
        ("form", False, ["a", "b"], "c=a%2Cb"),
        ("form", False, ["a,", "b"], "c=a%2C,b"),
        ("form", True, RGB, "R=100&G=200"),
        ("form", False, RGB, "c=R,100,G,200"),
        ("spaceDelimited", False, [1, 2], "c=1%202"),
        ("spaceDelimited", False, [1, 2], "c=1+2"),
        ("pipeDelimited", False, [1, 2], "c=1%7C2"),
        ("pipeDelimited", False, [1, 2], "c=1|2"),
        ("tabDelimited", False, [1, 2], "c=1%092"),
        ("deepObject", True, RGB, "c%5BR%5D=100&c[G]=200"),
        ("deepObject", True, {"a": {"b": "x"}}, "c[a][b]=x"),
        ("deepObject", True, {"a": [1, 2]}, "c[a]=1&c[a]=2"),
        ("deepObject", True, {"a": [1, 2]}, "c[a][0]=1&c[a][1]=2"),
        ("deepObject", True, [1, 2], "c[]=1&c%5B%5D=2"),
        ("deepObject", True, [1, 2], "c[0]=1&c[1]=2"),
        ("deepObject", True, [{"a": [1]}], "c[0][a][]=1"),
        ("deepObject", True, [], ""),
        ("deepObject", True, {"a": "x", "b": {"c": {"d": []}, "e": [None]}}, "c[a]=x"),
        ("form", True, [], ""),
        ("form", True, None, ""),
    ],
)
def test_a_query_in_its_documented_style_is_taken(
    style: Any, explode: bool, value: Any, wire: str
) -> None:
    assert problems(query(style, explode), {"c": value}, wire) == ()


@pytest.mark.parametrize(
    ("style", "explode", "value", "wire"),
    [
        ("form", True, "a+b", "c=a+b"),
        ("form", True, "a", ""),
        ("form", True, "a", "C=a"),
        ("form", True, "a", "c=a&c=a"),
        ("form", True, "a", "c=%22a%22"),
        ("form", True, True, "c=True"),
        ("form", True, 1, "c=true"),
        ("form", True, ["a", "b"], "c=a,b"),
        ("form", True, ["a", "b"], "c[]=a&c[]=b"),
        ("form", True, ["a", "b"], "c=b&c=a"),
        ("form", True, ["a", "b"], "c=a"),
        ("form", False, ["a", "b"], "c=a&c=b"),
        ("form", True, RGB, "c=R,100,G,200"),
        ("form", True, RGB, "c[R]=100&c[G]=200"),
        ("pipeDelimited", False, [1, 2], "c=1,2"),
        ("deepObject", True, RGB, "R=100&G=200"),
        ("deepObject", True, {"a": "x", "b": {"c": {"d": [1]}}}, "c[a]=x"),
        ("deepObject", True, {"a": "x", "b": {"c": {"d": ""}}}, "c[a]=x"),
        ("deepObject", True, [1, 2], "c=1&c=2"),
        ("deepObject", True, [1, 2], "c[]=2&c[]=1"),
        ("deepObject", True, RGB, "c[R]=100"),
        ("deepObject", True, RGB, "c=%5Bobject%20Object%5D"),
        ("deepObject", True, {"a": {"b": "x"}}, "c[a]=x"),
        ("form", True, None, "c=None"),
    ],
)
def test_a_query_in_another_style_or_with_another_value_is_not(
    style: Any, explode: bool, value: Any, wire: str
) -> None:
    assert problems(query(style, explode), {"c": value}, wire)


def test_what_is_not_documented_is_told() -> None:
    assert "'extra'" in problems(query(), {"c": "a"}, "c=a&extra=1")[0]
    assert "'X-Spy'" in problems(query(), {"c": "a"}, "c=a", (("X-Spy", "1"),))[0]
    assert "'Authorization'" in problems(query(), {}, "", (("Authorization", "Bearer x"),))[0]
    assert "cookie 's'" in problems(query(), {}, "", (("cookie", "s=1"),))[0]
    assert "body was sent" in problems(query(), {}, body=b"x")[0]
    assert problems(query(), {}, "", (("Accept", "*/*"), ("User-Agent", "t"))) == ()


def test_a_header_of_the_runtime_needs_no_argument_where_it_is_also_a_parameter() -> None:
    one = operation(Parameter("User-Agent", "header", {"type": "string"}))
    assert problems(one, {}, headers=(("User-Agent", "t"),)) == ()


def test_what_is_required_is_missed() -> None:
    required = operation(
        Parameter("q", "query", required=True),
        Parameter("X-H", "header", required=True, style="simple"),
        Parameter("k", "cookie", required=True),
        body=RequestBody((MediaType("application/json", {}),), True),
    )
    assert len(problems(required, {})) == 4


@pytest.mark.parametrize(
    ("style", "explode", "value", "raw"),
    [
        ("simple", False, "a/b", "a%2Fb"),
        ("simple", False, [1, 2], "1,2"),
        ("simple", False, RGB, "R,100,G,200"),
        ("simple", True, RGB, "R=100,G=200"),
        ("label", False, "a", ".a"),
        ("label", True, [1, 2], ".1.2"),
        ("label", True, [1.5, 2.5], ".1.5.2.5"),
        ("label", False, [1, 2], ".1,2"),
        ("label", True, RGB, ".R=100.G=200"),
        ("matrix", False, "a", ";id=a"),
        ("matrix", False, [1, 2], ";id=1,2"),
        ("matrix", True, [1, 2], ";id=1;id=2"),
        ("matrix", True, RGB, ";R=100;G=200"),
        ("matrix", False, RGB, ";id=R,100,G,200"),
    ],
)
def test_a_path_parameter_is_read_in_its_style_only(
    style: Any, explode: bool, value: Any, raw: str
) -> None:
    parameter = Parameter("id", "path", required=True, style=style, explode=explode)
    there = operation(parameter, path="/x/{id}/y")
    assert problems(there, {"id": value}, path=f"/x/{raw}/y") == ()
    assert problems(there, {"id": value}, path=f"/x/{raw}z/y")
    assert problems(there, {"id": value}, path=f"/x/{raw}")
    assert problems(there, {"id": value}, path="/x/%7Bid%7D/y")


@pytest.mark.parametrize(
    ("path", "arguments", "is_right"),
    [
        ("/ann.json", {"name": "ann", "ending": ".json"}, True),
        ("/a%2Fb.json", {"name": "a/b", "ending": ".json"}, True),
        ("/ann.json", {"name": "bob", "ending": ".json"}, False),
        ("/ann.xml", {"name": "ann", "ending": ".json"}, False),
    ],
)
def test_placeholders_with_nothing_between_them_are_told_apart_by_their_arguments(
    path: str, arguments: Any, is_right: bool
) -> None:
    both = [
        Parameter(name, "path", {"type": "string"}, True, "simple", False)
        for name in ("name", "ending")
    ]
    found = problems(operation(*both, path="/{name}{ending}"), arguments, path=path)
    assert (found == ()) == is_right


@pytest.mark.parametrize(
    ("path", "arguments", "is_right"),
    [
        ("/1F2T3", {"day": "1", "start": "2", "end": "3"}, True),
        ("/aFbF2T%9F", {"day": "aFb", "start": "2", "end": "\x9f"}, False),
        ("/a%252FbFcTdT3", {"day": "a%2Fb", "start": "cTd", "end": "3"}, True),
        ("/%F0%9F%98%80F2T3", {"day": "\U0001f600", "start": "2", "end": "3"}, True),
        ("/a%252FbFcTdT3", {"day": "a%2Fb", "start": "c", "end": "3"}, False),
        ("/1F2", {"day": "1", "start": "2", "end": "3"}, False),
    ],
)
def test_placeholders_are_told_apart_also_where_a_value_holds_what_is_between_them(
    path: str, arguments: Any, is_right: bool
) -> None:
    several = [
        Parameter(name, "path", {"type": "string"}, True, "simple", False)
        for name in ("day", "start", "end")
    ]
    found = problems(operation(*several, path="/{day}F{start}T{end}"), arguments, path=path)
    assert (found == ()) == is_right


def test_another_host_method_or_path_is_told() -> None:
    wanted = operation()
    for url in ("https://evil.example/v1/x", "http://api.example/v1/x", SERVER + "/x/y"):
        assert check_request(wanted, {}, {}, WireRequest("GET", url), JUDGE)
    assert check_request(wanted, {}, {}, WireRequest("POST", SERVER + "/x"), JUDGE)


def test_a_query_inside_the_path_template_has_to_be_there() -> None:
    own = operation(Parameter("id", "path", required=True), path="/x?action=list&id={id}")
    assert problems(own, {"id": 7}, "action=list&id=7") == ()
    assert problems(own, {"id": 7}, "action=list&id=8")
    assert problems(own, {"id": 7}, "id=7")


def test_headers_and_cookies_are_read() -> None:
    both = operation(
        Parameter("X-Ids", "header", style="simple", explode=False), Parameter("k", "cookie")
    )
    sent = (("x-ids", "1, 2"), ("cookie", "k=a%20b"))
    assert problems(both, {"X-Ids": [1, 2], "k": "a b"}, headers=sent) == ()
    assert len(problems(both, {"X-Ids": [1, 3], "k": "a"}, headers=sent)) == 2
    assert problems(both, {"k": "a b"}, headers=sent) == (
        "header X-Ids was sent and no argument was given",
    )


def test_an_argument_that_the_document_forbids_is_told() -> None:
    strict = operation(Parameter("c", "query", {"type": "integer", "maximum": 5}))
    assert "document forbids" in problems(strict, {"c": 9}, "c=9")[0]


FORM = MediaType(
    "application/x-www-form-urlencoded", {}, {"j": Encoding(style="form", explode=False)}
)
PARTS = (
    b'--b\r\nContent-Disposition: form-data; name="n"\r\n\r\nv\r\n'
    b'--b\r\nContent-Disposition: form-data; name="f"; filename="f.bin"\r\n\r\n'
    b"\xff\x00\r\n--b--\r\n"
)
JSON_PART = MediaType("multipart/form-data", None, {"n": Encoding(content_type="application/json")})
JSON_PARTS = (
    b'--b\r\nContent-Disposition: form-data; name="n"\r\nContent-Type: application/json\r\n\r\n'
    b'"v"\r\n--b--\r\n'
)
UPLOAD = MediaType(
    "multipart/form-data", {"properties": {"f": {"type": "string", "format": "binary"}}}
)


@pytest.mark.parametrize(
    ("media", "content_type", "value", "good", "bad"),
    [
        (MediaType("application/json"), "", {"a": 1}, b'{"a": 1.0}', b'{"a": true}'),
        (MediaType("application/json"), "", [1], b"[1]", b"[1, 1]"),
        (MediaType("application/*"), "application/x+json", {"a": 1}, b'{"a":1}', b"a=1"),
        (FORM, "", {"a": "x y", "l": [1, 2]}, b"a=x+y&l=1&l=2", b"a=x+y&l=1,2"),
        (FORM, "", {"j": [1, 2]}, b"j=1,2", b"j=1&j=2"),
        (FORM, "", {"o": {"k": 1}}, b"o=%7B%22k%22%3A1%7D", b"o=%7B%27k%27%3A1%7D"),
        (FORM, "", {"a": "x"}, b"a=x", b"a=x&b=y"),
        (MediaType("text/plain"), "", "hé", "hé".encode(), b"he"),
        (MediaType("application/octet-stream"), "", "/wA=", b"\xff\x00", b"\xff"),
        (
            JSON_PART,
            "multipart/form-data; boundary=b",
            {"n": "v"},
            JSON_PARTS,
            JSON_PARTS.replace(b'"v"', b'"w"'),
        ),
        (
            UPLOAD,
            "multipart/form-data; boundary=b",
            {"n": "v", "f": "/wA="},
            PARTS,
            PARTS.replace(b'; filename="f.bin"', b""),
        ),
        (
            UPLOAD,
            'multipart/form-data; boundary="b"',
            {"n": "v", "f": "/wA="},
            PARTS,
            PARTS.replace(b"\xff", b""),
        ),
    ],
)
def test_a_body_is_read_by_its_media_type(
    media: MediaType, content_type: str, value: Any, good: bytes, bad: bytes
) -> None:
    there = operation(body=RequestBody((media,), True))
    headers = (("content-type", content_type or media.type),)
    assert problems(there, {"body": value}, headers=headers, body=good) == ()
    assert problems(there, {"body": value}, headers=headers, body=bad)


def test_a_body_of_an_undocumented_type_is_told() -> None:
    there = operation(body=RequestBody((MediaType("application/json"),), True))
    told = problems(there, {"body": 1}, headers=(("content-type", "text/json"),), body=b"1")
    assert told == ("the body's media type 'text/json' is not documented",)


def tool(**claims: str) -> ToolDefinition:
    properties = {name: {"x-in": claim} for name, claim in claims.items()}
    schema = {"type": "object", "properties": properties}
    return ToolDefinition("t", "t", schema, {"type": "object"}, "read", "o")


def test_claims_are_checked_against_the_operation() -> None:
    there = operation(Parameter("X-Rate-Limit", "header"), Parameter("q", "query"))
    assert check_claims(tool(x_rate_limit="header:X-Rate-Limit", q="query:q"), there) == ()
    told = check_claims(tool(q="query:other", body="body", lost="nowhere"), there)
    assert len(told) == 5
    assert check_claims(tool(a="query:q", b="query:q"), there)[0].startswith("two arguments")


def test_parameters_that_the_broker_or_nobody_fills_need_no_argument() -> None:
    there = operation(Parameter("Accept", "header"), Parameter("key", "query"))
    assert check_claims(tool(), there, frozenset({ArgumentPlace("query", "key")})) == ()
    assert check_claims(tool(), there) == ("no argument fills query key",)


def test_a_claim_names_a_place() -> None:
    found = find_places(tool(a="path:id", b="body", c="query:", d="nonsense"))
    assert found == {"a": ArgumentPlace("path", "id"), "b": ArgumentPlace("body", "")}


def success(structured: Any) -> Outcome:
    text = {"type": "text", "text": json.dumps(structured, ensure_ascii=False)}
    return Outcome("t", {"content": [text], "structuredContent": structured}, None)


PNG = WireResponse(200, (("content-type", "image/png"),), b"\xff\x00")


def binary(kind: str, block: str, data: bytes, told: str = "", **structured: Any) -> Outcome:
    """The result of an answer of these bytes, as the runtime gives it."""
    held = {"data": base64.b64encode(data).decode(), "mimeType": kind}
    resource = {"uri": "a:b", "blob": held["data"], "mimeType": kind}
    shown = {"resource": resource} if block == "resource" else held
    digest = hashlib.sha256(data).hexdigest()
    described = {"content_type": kind, "bytes": len(data), "sha256": digest}
    text = {"type": "text", "text": told or f"{kind}, {len(data)} bytes"}
    content = {"status": 200, **described, **structured}
    result = {"content": [text, {"type": block, **shown}], "structuredContent": content}
    return Outcome("t", result, None)


def failed(kind: str, text: str, **more: Any) -> Outcome:
    result = {"isError": True, "content": [{"type": "text", "text": text}]}
    return Outcome("t", result, Failure(kind, text, **more))


SAID = '{"a": [1, "é"]}'.encode()


def response(status: int, body: bytes = SAID, **headers: str) -> WireResponse:
    more = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return WireResponse(status, JSON + more, body)


@pytest.mark.parametrize(
    ("expectation", "answer", "outcome"),
    [
        ("answer", response(200), success({"status": 200, "body": {"a": [1, "é"]}})),
        ("answer", response(204, b""), success({"status": 204})),
        (
            "answer",
            PNG,
            binary("image/png", "image", b"\xff\x00"),
        ),
        (
            "answer",
            WireResponse(200, (("content-type", "text/csv; charset=utf-8"),), b"a,b"),
            success({"status": 200, "text": "a,b", "content_type": "text/csv"}),
        ),
        ("http", response(404), failed("http", 'HTTP 404 {"a": [1, "é"]}', status=404)),
        (
            "http",
            response(429, b"", retry_after="6"),
            failed("rate_limited", "429", status=429, retry_after=6.0),
        ),
        ("malformed", response(200, b"{oops"), failed("malformed", "… {oops")),
        ("schema", response(200, b'"wrong"'), failed("schema", 'breaks: "wrong"')),
        ("timeout", None, failed("timeout", "slow")),
        ("too_large", None, failed("too_large", "big")),
    ],
)
def test_an_outcome_that_tells_the_whole_answer_is_right(
    expectation: Expectation, answer: WireResponse | None, outcome: Outcome
) -> None:
    assert check_result(expectation, answer, outcome) == ()


@pytest.mark.parametrize(
    ("expectation", "answer", "outcome", "told"),
    [
        ("answer", response(200), success({"status": 200, "body": {}}), "body.a is lost"),
        ("answer", response(200), success({"status": 200}), "missing"),
        ("answer", response(200), success({"status": 201, "body": {"a": [1, "é"]}}), "status"),
        ("answer", response(200), success({"status": 200, "body": {"a": [1, "?"]}}), "a[1]"),
        ("answer", response(200), success({"status": 200, "body": {"a": [True, "é"]}}), "a[0]"),
        ("answer", response(200), success(None), "structuredContent"),
        ("answer", response(200), failed("schema", "no"), "became a failure"),
        ("answer", response(204, b""), success({"status": 204, "body": None}), "empty answer"),
        ("http", response(500), success({"status": 500, "body": {}}), "success is claimed"),
        ("http", response(500), failed("http", "HTTP 500", status=500), "does not tell"),
        ("http", response(500, b""), failed("http", "HTTP 500", status=502), "told as 502"),
        ("http", response(500, b""), failed("bug", "500", status=500), "told as bug"),
        (
            "http",
            response(429, b"", retry_after="6"),
            failed("http", "429", status=429),
            "Retry-After",
        ),
        ("malformed", response(200, b"{oops"), failed("schema", "{oops"), "told as schema"),
        ("schema", response(200, b'"wrong"'), failed("schema", "breaks"), "does not tell"),
        ("timeout", None, success({"status": 200}), "success is claimed"),
    ],
)
def test_an_outcome_that_loses_or_hides_something_is_told(
    expectation: Expectation, answer: WireResponse | None, outcome: Outcome, told: str
) -> None:
    assert any(told in line for line in check_result(expectation, answer, outcome))


@pytest.mark.parametrize(
    ("kind", "block"),
    [
        ("image/png", "image"),
        ("audio/ogg", "audio"),
        ("application/pdf", "resource"),
        ("image/tiff", "resource"),
    ],
)
def test_bytes_arrive_as_the_block_of_their_kind(kind: str, block: str) -> None:
    answer = WireResponse(200, (("content-type", f"{kind}; q=1"),), b"\xff\x00")
    assert check_result("answer", answer, binary(kind, block, b"\xff\x00")) == ()
    other = "resource" if block == "image" else "image"
    assert check_result("answer", answer, binary(kind, other, b"\xff\x00"))


@pytest.mark.parametrize(
    ("outcome", "told"),
    [
        (binary("image/png", "image", b"\xff\x01"), "did not arrive as sent"),
        (binary("image/gif", "image", b"\xff\x00"), "arrived as image/gif"),
        (binary("image/png", "image", b"\xff\x00", "an image"), "does not tell of them"),
        (binary("image/png", "image", b"\xff\x00", content_type="image/gif"), "told to be"),
        (binary("image/png", "image", b"\xff\x00", bytes=3), "not tell"),
        (binary("image/png", "image", b"\xff\x00", sha256=""), "not tell"),
        (binary("image/png", "image", b"\xff\x00", base64="AA=="), "not tell"),
        (success({"status": 200, "base64": "/wA=", "content_type": "image/png"}), "not arrive"),
        (success({"status": 200, "text": "\ufffd", "content_type": "image/png"}), "not arrive"),
    ],
)
def test_other_bytes_another_type_or_a_wrong_word_about_them_is_told(
    outcome: Outcome, told: str
) -> None:
    assert any(told in line for line in check_result("answer", PNG, outcome))


def test_a_result_that_is_no_error_but_breaks_the_host_s_check_is_not_told_as_one() -> None:
    outcome = Outcome("t", {"content": [], "structuredContent": {}}, Failure("schema", "broken"))
    assert "success is claimed" in check_result("schema", response(200), outcome)[0]


NESTED_DEEPLY = "<a>" * 50_000 + "x" + "</a>" * 50_000
EXPANDING = (
    '<!DOCTYPE a [<!ENTITY b "bbbbbbbbbb"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">]><a>&c;&c;</a>'
)


def test_an_xml_body_is_compared_however_deep_it_is() -> None:
    assert contains_scalars(b"<a><b>1</b><c d='x'/></a>", {"b": 1, "c": "x"})
    assert contains_scalars(b"\xef\xbb\xbf<a>x</a>", "x")
    assert contains_scalars(NESTED_DEEPLY.encode(), "x")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-be", "utf-16-le"])
def test_an_xml_body_with_declarations_is_not_parsed_in_any_encoding(encoding: str) -> None:
    assert not contains_scalars(EXPANDING.encode(encoding), "b" * 160)
