"""Parameter serialisation against OpenAPI's table of styles and RFC 6570's examples."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toolwright import styles
from toolwright.errors import ArgumentInvalid
from toolwright.parameters import expand_path, header_text, path_text, query_pairs
from toolwright.requests import build, build_url
from toolwright.styles import (
    csv,
    deep,
    exploded,
    json_text,
    label,
    matrix,
    pipes,
    raw,
    ssv,
    tsv,
)
from toolwright.values import UNSET

ARRAY = ["blue", "black", "brown"]
OBJECT = {"R": 100, "G": 200, "B": 150}


def query(value: Any) -> str:
    return "&".join(query_pairs("color", value))


# https://spec.openapis.org/oas/v3.1.1#style-examples
@pytest.mark.parametrize(
    ("value", "text"),
    [
        (matrix(""), ";color"),
        (matrix("blue"), ";color=blue"),
        (matrix(ARRAY), ";color=blue,black,brown"),
        (matrix(OBJECT), ";color=R,100,G,200,B,150"),
        (matrix("blue", explode=True), ";color=blue"),
        (matrix(ARRAY, explode=True), ";color=blue;color=black;color=brown"),
        (matrix(OBJECT, explode=True), ";R=100;G=200;B=150"),
        (label("blue"), ".blue"),
        (label(ARRAY), ".blue,black,brown"),
        (label(OBJECT), ".R,100,G,200,B,150"),
        (label(ARRAY, explode=True), ".blue.black.brown"),
        (label(OBJECT, explode=True), ".R=100.G=200.B=150"),
        ("blue", "blue"),
        (ARRAY, "blue,black,brown"),
        (OBJECT, "R,100,G,200,B,150"),
        (exploded(ARRAY), "blue,black,brown"),
        (exploded(OBJECT), "R=100,G=200,B=150"),
        (json_text({"a": [1, None]}), "%7B%22a%22%3A%5B1%2Cnull%5D%7D"),
    ],
)
def test_path_styles_are_written_as_openapi_says(value: Any, text: str) -> None:
    assert path_text("color", value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("", "color="),
        ("blue", "color=blue"),
        (ARRAY, "color=blue&color=black&color=brown"),
        (OBJECT, "R=100&G=200&B=150"),
        (csv(ARRAY), "color=blue,black,brown"),
        (csv(OBJECT), "color=R,100,G,200,B,150"),
        (csv("blue"), "color=blue"),
        (ssv(ARRAY), "color=blue%20black%20brown"),
        (ssv(OBJECT), "color=R%20100%20G%20200%20B%20150"),
        (ssv(ARRAY, explode=True), "color=blue&color=black&color=brown"),
        (pipes(ARRAY), "color=blue%7Cblack%7Cbrown"),
        (pipes(OBJECT), "color=R%7C100%7CG%7C200%7CB%7C150"),
        (tsv(ARRAY), "color=blue%09black%09brown"),
        (deep(OBJECT), "color%5BR%5D=100&color%5BG%5D=200&color%5BB%5D=150"),
        (deep({"a": {"b": [1, 2]}}), "color%5Ba%5D%5Bb%5D%5B%5D=1&color%5Ba%5D%5Bb%5D%5B%5D=2"),
        (deep({"a": {"b": [], "c": None, "d": [1, None]}}), "color%5Ba%5D%5Bd%5D%5B%5D=1"),
        (deep({"a": [{"b": 1}]}), "color%5Ba%5D%5B0%5D%5Bb%5D=1"),
        (deep(["a", "b"]), "color%5B%5D=a&color%5B%5D=b"),
        (
            deep([{"a": 1, "b": [2, 3]}]),
            "color%5B0%5D%5Ba%5D=1&color%5B0%5D%5Bb%5D%5B%5D=2&color%5B0%5D%5Bb%5D%5B%5D=3",
        ),
        (deep([]), ""),
        (deep("blue"), "color=blue"),
        (json_text({"a": "é"}), "color=%7B%22a%22%3A%22%5Cu00e9%22%7D"),
        (["a,b", "c d"], "color=a%2Cb&color=c%20d"),
        (csv(["a,b", "c d"]), "color=a%2Cb,c%20d"),
        ([], ""),
        (csv([]), ""),
        ({}, ""),
        (csv({}), ""),
        (deep({}), ""),
        (None, ""),
        (UNSET, ""),
        (csv(UNSET), ""),
        (deep(None), ""),
        ([None, "a", UNSET], "color=a"),
        ({"a": None, "b": 1}, "b=1"),
        (exploded(csv(ARRAY)), "color=blue&color=black&color=brown"),
        (raw("/a?b=c&d#e f"), "color=/a?b%3Dc%26d%23e%20f"),
        (raw(csv(["a/b", "c"])), "color=a/b,c"),
    ],
)
def test_query_styles_are_written_as_openapi_says(value: Any, text: str) -> None:
    assert query(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("blue", "blue"),
        (ARRAY, "blue,black,brown"),
        (OBJECT, "R,100,G,200,B,150"),
        (exploded(OBJECT), "R=100,G=200,B=150"),
        (True, "true"),
        (5, "5"),
        ("a/b é", "a/b é"),
        ("", ""),
        ("  padded\t", "padded"),
        (json_text({"é": 1}), '{"\\u00e9":1}'),
        (None, None),
        (UNSET, None),
    ],
)
def test_header_values_are_simple_and_not_percent_encoded(value: Any, text: str | None) -> None:
    assert header_text("x-color", value) == text


@pytest.mark.parametrize("bad", ["a\r\nb: c", "a\nb", "a\rb", "a\0b", "\x7f", ["a", "b\nc"]])
def test_a_control_character_in_a_header_is_refused(bad: Any) -> None:
    with pytest.raises(ArgumentInvalid) as caught:
        header_text("x-color", bad)
    assert caught.value.where == "/x-color"


# RFC 6570, section 1.2 and 3.2: its variables, through the styles that name its operators.
COUNT = ["one", "two", "three"]
KEYS = {"semi": ";", "dot": ".", "comma": ","}


@pytest.mark.parametrize(
    ("template", "value", "expanded"),
    [
        ("{x}", "value", "value"),
        ("{x}", "Hello World!", "Hello%20World%21"),
        ("{x}", "50%", "50%25"),
        ("{x}", COUNT, "one,two,three"),
        ("{x}", KEYS, "semi,%3B,dot,.,comma,%2C"),
        ("{x}", exploded(KEYS), "semi=%3B,dot=.,comma=%2C"),
        ("X{x}", label("fred"), "X.fred"),
        ("X{x}", label(COUNT), "X.one,two,three"),
        ("X{x}", label(COUNT, explode=True), "X.one.two.three"),
        ("X{x}", label(KEYS), "X.semi,%3B,dot,.,comma,%2C"),
        ("X{x}", label(KEYS, explode=True), "X.semi=%3B.dot=..comma=%2C"),
        ("{x}", matrix("50%"), ";x=50%25"),
        ("{x}", matrix(COUNT), ";x=one,two,three"),
        ("{x}", matrix(COUNT, explode=True), ";x=one;x=two;x=three"),
        ("{x}", matrix(KEYS), ";x=semi,%3B,dot,.,comma,%2C"),
        ("{x}", matrix(KEYS, explode=True), ";semi=%3B;dot=.;comma=%2C"),
    ],
)
def test_paths_expand_as_rfc_6570_does(template: str, value: Any, expanded: str) -> None:
    assert expand_path(template, {"x": value}) == expanded


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (False, "false"),
        (0, "0"),
        (-7, "-7"),
        (2**63 - 1, "9223372036854775807"),
        (2**200, str(2**200)),
        (1.0, "1"),
        (-0.5, "-0.5"),
        (0.1, "0.1"),
        (1e-7, "0.0000001"),
        (1.5e-9, "0.0000000015"),
        (1e16, "10000000000000000"),
        (1e20, "100000000000000000000"),
        (1.25e21, "1250000000000000000000"),
        (123456.789, "123456.789"),
        (1e300, "1e300"),
        (5e-324, "5e-324"),
        ("true", "true"),
        ("", ""),
        ({"a": 1}, '{"a":1}'),
    ],
)
def test_scalars_are_exact_and_never_python_spelling(value: Any, text: str) -> None:
    (pair,) = query_pairs("n", csv([value]))
    assert unquote(pair.partition("=")[2]) == text


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan"), "\ud800"])
def test_what_has_no_text_is_refused(value: Any) -> None:
    with pytest.raises(ArgumentInvalid):
        query_pairs("n", value)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_is_written_so_that_it_reads_back_as_itself(number: float) -> None:
    (pair,) = query_pairs("n", number)
    assert float(pair.removeprefix("n=")) == number


TEXT = st.text(st.characters(exclude_categories=["Cs"]))


@given(TEXT, TEXT.filter(bool), st.booleans())
def test_a_query_value_decodes_to_itself(value: str, name: str, reserved: bool) -> None:
    url = build_url("https://h/v1", "/a", {}, {name: raw(value) if reserved else value})
    assert parse_qsl(urlsplit(url).query, keep_blank_values=True) == [(name, value)]
    assert urlsplit(url).path == "/v1/a"


@given(TEXT, st.sampled_from([str, raw, label, matrix, csv]))
def test_a_path_value_stays_in_its_segment_and_decodes_to_itself(value: str, style: Any) -> None:
    try:
        url = build_url("https://h/v1", "/a/{x}/b", {"x": style(value)}, {})
    except ArgumentInvalid:
        assert value in ("", ".", "..")
        return
    parts = urlsplit(url)
    assert (parts.netloc, parts.query, parts.fragment) == ("h", "", "")
    head, version, first, middle, last = parts.path.split("/")
    assert (head, version, first, last) == ("", "v1", "a", "b")
    assert unquote(middle).endswith(value)
    assert unquote(middle) not in ("", ".", "..")


@pytest.mark.parametrize("value", ["", ".", "..", None, UNSET, [], {}, [None]])
def test_a_value_that_would_change_the_route_is_refused(value: Any) -> None:
    with pytest.raises(ArgumentInvalid) as caught:
        expand_path("/a/{x}/b", {"x": value})
    assert caught.value.where == "/x"


@pytest.mark.parametrize(
    ("template", "values"),
    [("/a/{x}{y}", {"x": ".", "y": "."}), ("/a/{x}.", {"x": "."}), ("/{x}", {"x": label("")})],
)
def test_values_that_together_make_dots_are_refused(template: str, values: dict[str, str]) -> None:
    with pytest.raises(ArgumentInvalid):
        expand_path(template, values)


def test_dots_inside_a_segment_are_only_text() -> None:
    assert expand_path("/a/{x}.json", {"x": ".."}) == "/a/...json"


@pytest.mark.parametrize(
    ("base", "template", "url"),
    [
        ("https://h", "/a", "https://h/a"),
        ("https://h/", "a", "https://h/a"),
        ("https://h/v1/", "/a/", "https://h/v1/a/"),
        ("https://h/v1", "", "https://h/v1/"),
        ("https://h/v1", "/a?b=c", "https://h/v1/a?b=c&q=1"),
        ("https://h/v1", "/a?b={x}", "https://h/v1/a?b=y%2Fz&q=1"),
        ("https://h/v1", "/a#frag", "https://h/v1/a"),
        ("https://h/v1", "/a b/é", "https://h/v1/a%20b/%C3%A9"),
        ("https://h/v1", "/a%20b/50%", "https://h/v1/a%20b/50%25"),
        ("https://h/v1", "/Users('{x}')", "https://h/v1/Users('y%2Fz')"),
        ("https://h/v1", "https://other:8/z", "https://other:8/z"),
    ],
)
def test_template_and_base_are_joined_by_one_slash(base: str, template: str, url: str) -> None:
    query = {"q": 1} if "q=" in url else {}
    assert build_url(base, template, {"x": "y/z"}, query) == url


def wire(**given: Any) -> dict[str, str]:
    parts = {"path": {}, "query": {}, "header": {}, "cookie": {}, "body": None, **given}
    return dict(build("https://h", "get", "/", **parts).headers)


def test_cookies_are_pairs_of_one_header() -> None:
    cookie = {"a": "x;y", "b": [1, 2], "c": csv([1, 2]), "d": UNSET}
    assert wire(cookie=cookie) == {"cookie": "a=x%3By; b=1; b=2; c=1,2"}


def test_headers_that_frame_the_message_are_not_the_code_s_to_set() -> None:
    given = {"Host": "evil", "Content-Length": 5, "X-Ok": 1, "Transfer-Encoding": "chunked"}
    assert wire(header=given) == {"x-ok": "1"}


def test_the_body_says_its_own_type() -> None:
    headers = wire(header={"Content-Type": "text/plain"}, body=(b"{}", "application/json"))
    assert headers["content-type"] == "application/json"


@pytest.mark.parametrize("name", ["a b", "a:b", "", "a\nb", "é"])
def test_a_header_name_that_is_no_token_is_refused(name: str) -> None:
    with pytest.raises(ArgumentInvalid):
        wire(header={name: "x"})


@pytest.mark.parametrize(
    ("value", "pairs"),
    [
        ("a%20b=c,d", ["q=a%20b=c,d"]),
        ([1, "b"], ["q=1", "q=b"]),
        ({"R": 1, "G": None}, ["R=1"]),
        (styles.unescaped([1, 2], explode=False), ["q=1,2"]),
        (None, []),
    ],
)
def test_an_unescaped_cookie_is_what_was_given(value: Any, pairs: list[str]) -> None:
    given = value if isinstance(value, styles.Styled) else styles.unescaped(value)
    assert query_pairs("q", given) == pairs


@pytest.mark.parametrize("value", ["a; admin=1", "a\r\nX: 1", "é", {"a=b": 1}, {"a;b": 1}])
def test_an_unescaped_cookie_cannot_begin_another_or_end_its_header(value: Any) -> None:
    with pytest.raises(ArgumentInvalid, match="percent-encoded"):
        query_pairs("q", styles.unescaped(value))


def test_a_value_that_is_all_of_the_query_has_no_name() -> None:
    assert query_pairs("q", styles.whole("$.a[1]&b=c")) == ["%24.a%5B1%5D%26b%3Dc"]
    assert query_pairs("q", styles.whole(styles.json_text({"a": "b&"}))) == [
        "%7B%22a%22%3A%22b%26%22%7D"
    ]
    assert query_pairs("q", styles.whole("")) == query_pairs("q", styles.whole(None)) == []
