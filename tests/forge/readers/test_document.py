from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge.errors import (
    DocumentEmpty,
    DocumentError,
    DocumentRecursive,
    DocumentTooLarge,
    DocumentUnreadable,
)
from forge.readers.document import MAX_BYTES, load_document, parse_document
from forge.readers.graphql.reader import is_graphql


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"]
)
def test_every_unicode_encoding_is_read(encoding: str) -> None:
    content = "openapi: 3.0.0\ntitle: Übersicht\n".encode(encoding)
    assert parse_document(content, "api.yaml").root["title"] == "Übersicht"


def test_json_is_told_by_its_content_and_not_by_a_name() -> None:
    assert parse_document(b'\n {"a": [1, 2.5, null, true]}', "api.yaml").root == {
        "a": [1, 2.5, None, True]
    }


def test_yaml_in_flow_style_is_not_mistaken_for_broken_json() -> None:
    assert parse_document(b"{a: 1, b: [x, y]}", "x").root == {"a": 1, "b": ["x", "y"]}


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("NO", "NO"),
        ("on", "on"),
        ("2024-01-31", "2024-01-31"),
        ("12:30:45", "12:30:45"),
        ("010", 10),
        ("0o17", 15),
        ("0x1F", 31),
        ("1_000", "1_000"),
        ("1e3", 1000.0),
        (".inf", None),
        ("~", None),
        ("", None),
        ("True", True),
        ("'true'", "true"),
        ("!!str 12", "12"),
        ("!custom x", "x"),
    ],
)
def test_a_plain_scalar_means_what_yaml_1_2_says(written: str, meant: object) -> None:
    assert parse_document(f"a: {written}".encode(), "x").root == {"a": meant}


def test_keys_are_strings_as_written() -> None:
    root = parse_document(b"200: a\ntrue: b\n2024-01-01: c\n1.10: d", "x").root
    assert root == {"200": "a", "true": "b", "2024-01-01": "c", "1.10": "d"}


def test_merge_keys_add_what_is_not_there() -> None:
    root = parse_document(b"base: &b {a: 1, c: 2}\nother: {<<: *b, c: 3}", "x").root
    assert root["other"] == {"a": 1, "c": 3}


@pytest.mark.parametrize("text", ['{"a": {"b": 1, "b": 2}}', "a: {b: 1, b: 2}"])
def test_a_repeated_key_is_tolerated_and_located(text: str) -> None:
    document = parse_document(text.encode(), "x")
    assert document.root == {"a": {"b": 2}}
    assert [(p.pointer, "'b'" in p.reason) for p in document.problems] == [("/a", True)]


def test_a_billion_laughs_are_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    with pytest.raises(DocumentTooLarge, match="aliases"):
        parse_document("\n".join(lines).encode(), "bomb.yaml")


def test_a_yaml_value_that_contains_itself_is_refused() -> None:
    with pytest.raises(DocumentRecursive, match="contains itself"):
        parse_document(b"a: &a {b: [*a]}", "x")


@pytest.mark.parametrize("opening", ["[", '{"a":', "- "])
def test_deep_nesting_is_refused(opening: str) -> None:
    with pytest.raises(DocumentError):
        parse_document((opening * 5000).encode(), "deep")


def test_nesting_that_closes_is_refused_past_the_bound() -> None:
    with pytest.raises(DocumentTooLarge, match="deeper"):
        parse_document(("[" * 200 + "]" * 200).encode(), "deep")


@pytest.mark.parametrize("content", [b"", b" \n\t ", b"\xef\xbb\xbf", b"\0\0"])
def test_an_empty_document_is_called_empty(content: bytes) -> None:
    with pytest.raises(DocumentEmpty):
        parse_document(content, "x")


def test_a_document_of_50_mb_is_refused_with_its_size(tmp_path: Path) -> None:
    path = tmp_path / "big.json"
    with path.open("wb") as file:
        file.truncate(50_000_000)
    with pytest.raises(DocumentTooLarge, match="50 MB"):
        load_document(path)


def test_the_largest_size_is_still_read() -> None:
    content = b'{"a": "' + b"x" * (MAX_BYTES - 9) + b'"}'
    assert len(content) == MAX_BYTES
    assert set(parse_document(content, "x").root) == {"a"}


@pytest.mark.parametrize(
    "content",
    [
        b"<html><body>404</body></html>",
        b'{"a": ',
        b"a: [1",
        b"\x89PNG\r\n\x1a\n\x00\x00\xff",
        b"a: *b",
    ],
)
def test_what_is_neither_json_nor_yaml_is_unreadable(content: bytes) -> None:
    with pytest.raises(DocumentUnreadable, match="path or URL"):
        parse_document(content, "x")


def test_a_missing_file_and_a_directory_are_unreadable(tmp_path: Path) -> None:
    with pytest.raises(DocumentUnreadable, match="no such file"):
        load_document(tmp_path / "none.yaml")
    with pytest.raises(DocumentUnreadable, match="it is a directory"):
        load_document(tmp_path)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (b"caf\xe9 \x93x\x94", "caf\xe9 \u201cx\u201d"),
        (b"caf\xe9 \x81", "caf\ufffd \ufffd"),
        (b"caf\xc3\xa9 \xe9", "caf\xe9 \ufffd"),
    ],
)
def test_bytes_that_are_not_utf_8_are_read_as_windows_1252_or_replaced_and_reported(
    written: bytes, meant: str
) -> None:
    document = parse_document(b"title: " + written, "x")
    assert document.root == {"title": meant}
    assert "byte 1" in document.problems[0].reason


def test_half_a_surrogate_pair_never_reaches_the_values() -> None:
    document = parse_document(b'{"a\\ud800": ["\\udfff", "\\ud83d\\ude00"]}', "x")
    assert document.root == {"a\ufffd": ["\ufffd", "😀"]}
    assert document.problems


def test_only_the_first_of_several_yaml_documents_counts() -> None:
    assert parse_document(b"a: 1\n---\na: 2", "x").root == {"a": 1}


@given(st.binary(max_size=300))
def test_any_bytes_are_values_or_a_document_error(content: bytes) -> None:
    try:
        root = parse_document(content, "x").root
    except DocumentError:
        return
    json.dumps(root, allow_nan=False).encode()


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(st.dictionaries(st.text(max_size=5), _VALUES))
def test_json_values_are_read_exactly(value: dict[str, object]) -> None:
    assert parse_document(json.dumps(value).encode(), "x").root == value


KEYS = (
    r'{"a": %s}',
    r'{"a" : %s}',
    '{"a"\n: %s}',
    r'{"a"  : %s}',
    r'{"a\\": %s}',
    r'{"x": "\":", "a": %s}',
    r'{"x": "\\\":", "a": %s}',
    r'{"x": "a : b", "a":%s}',
    r'{"x": "a  : b", "a":%s}',
    '{"a"\t :%s}',
    '{"a"\r\n :%s}',
    r'{"a\\" : %s}',
    r'{"a\\\\": %s}',
    r'{"x": "\\\\\":", "a": %s}',
    r'{"a' + r"\\" * 9 + '": %s}',
)


@pytest.mark.parametrize("text", KEYS)
def test_a_repeated_key_is_found_however_keys_are_written(text: str) -> None:
    assert parse_document((text % '{"d": 1}').encode(), "x").problems == ()
    document = parse_document((text % '{"d": 1, "d": 2}').encode(), "x")
    (problem,) = document.problems
    assert "'d'" in problem.reason
    assert {"d": 2} in document.root.values()


@pytest.mark.parametrize(
    "text",
    [
        "\ufeffschema {\n  query: Q\n}\n",
        "# Pets\ntype Query implements Node & Named {\n  pets(first: Int!): [Pet!]!\n}\n",
    ],
)
def test_a_graphql_schema_in_its_own_language_is_read_as_an_introspection(text: str) -> None:
    assert is_graphql(parse_document(text.encode(), "schema.graphql").root)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("type Query {\n  a(: Int\n}\n", "line 2"),
        ("type Query {\n  a: " + "[" * 9_000 + "\n}\n", "nested too deep"),
    ],
)
def test_what_only_looks_like_a_graphql_schema_is_told_with_its_line(
    text: str, reason: str
) -> None:
    with pytest.raises(DocumentUnreadable, match=reason):
        parse_document(text.encode(), "schema.graphql")


@pytest.mark.parametrize(
    "text",
    [
        '{"a": "http://x", // one\n "b": [1, 2]}',
        '\ufeff// all\n{"a": "http://x", /* two\n lines */ "b": [1, 2]}',
        '{"a": "http://x", // and a last comma\n "b": [1, 2,],}',
    ],
)
def test_json_with_comments_is_read_and_told(text: str) -> None:
    document = parse_document(text.encode(), "x.json")
    assert document.root == {"a": "http://x", "b": [1, 2]}
    assert [problem.reason for problem in document.problems] == [
        "JSON has no comments; they are left out"
    ]
