"""Where the requests of a served document go: its servers beside the place it was served from."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from forge.errors import NoUsableOperation
from forge.readers.document import parse_document
from forge.readers.openapi.reader import ParsedApi, read_openapi

LOCAL = "http://127.0.0.1:3000/docs/openapi.json"
PUBLIC = "https://api.pets.example/v1/openapi.json"
RAW = "https://raw.githubusercontent.com/someone/pets/main/openapi.json"


def read(root: dict[str, Any], url: str, served: bool = True) -> ParsedApi:
    whole = {"info": {"title": "t", "version": "1"}, "paths": {"/pets": {"get": {}}}, **root}
    document = parse_document(json.dumps(whole).encode(), "x", url=url)
    return read_openapi(replace(document, served=served))


def base(root: dict[str, Any], url: str) -> str:
    return read(root, url).spec.operations[0].server


def servers(*urls: str) -> dict[str, Any]:
    return {"openapi": "3.0.3", "servers": [{"url": url} for url in urls]}


@pytest.mark.parametrize(
    ("root", "url", "wanted"),
    [
        ({"openapi": "3.0.3"}, LOCAL, "http://127.0.0.1:3000"),
        (servers("/"), LOCAL, "http://127.0.0.1:3000"),
        (servers("/api/v3"), LOCAL, "http://127.0.0.1:3000/api/v3"),
        (servers("../api"), PUBLIC, "https://api.pets.example/api"),
        (servers("https://pets.example/api"), LOCAL, "https://pets.example/api"),
        (
            servers("https://sandbox.pets.example", "https://api.pets.example/v1"),
            PUBLIC,
            "https://api.pets.example/v1",
        ),
        (servers("https://pets.example", "/v2"), LOCAL, "http://127.0.0.1:3000/v2"),
        (servers("http://localhost:8080/api"), LOCAL, "http://127.0.0.1:3000/api"),
        (servers("http://localhost:8080/api"), PUBLIC, "https://api.pets.example/api"),
        (servers("http://0.0.0.0:80"), PUBLIC, "https://api.pets.example"),
        (servers("https://api.example.com/v2"), LOCAL, "http://127.0.0.1:3000/v2"),
        (servers("http://localhost:8080", "https://b.test"), PUBLIC, "https://b.test"),
        (servers("http://localhost:8080/api"), RAW, "http://localhost:8080/api"),
        (servers("https://{tenant}.pets.example/api"), PUBLIC, "https://api.pets.example/api"),
        (servers("{scheme}://{host}/api", "/v2"), PUBLIC, "https://api.pets.example/v2"),
    ],
)
def test_servers_beside_the_place_that_served_the_document(
    root: dict[str, Any], url: str, wanted: str
) -> None:
    assert base(root, url) == wanted


@pytest.mark.parametrize(
    ("root", "url", "wanted"),
    [
        ({}, LOCAL, "http://127.0.0.1:3000"),
        ({"basePath": "/api"}, LOCAL, "http://127.0.0.1:3000/api"),
        ({"host": "127.0.0.1:3000", "schemes": ["https"]}, LOCAL, "http://127.0.0.1:3000"),
        ({"host": "localhost:8080", "basePath": "/a"}, LOCAL, "http://127.0.0.1:3000/a"),
        ({"host": "localhost", "schemes": ["http"]}, PUBLIC, "https://api.pets.example"),
        ({"host": "http://localhost:8080/a"}, LOCAL, "http://127.0.0.1:3000/a"),
        ({"host": "localhost:8080"}, RAW, "https://localhost:8080"),
        ({"host": "pets.example", "schemes": ["https"]}, LOCAL, "https://pets.example"),
        (
            {"host": "api.pets.example", "schemes": ["http", "https"]},
            PUBLIC,
            "https://api.pets.example",
        ),
    ],
)
def test_host_and_base_path_of_swagger_2(root: dict[str, Any], url: str, wanted: str) -> None:
    assert base({"swagger": "2.0", **root}, url) == wanted


@pytest.mark.parametrize(
    "root", [servers("http://localhost:8080"), {"swagger": "2.0", "host": "localhost:8080"}]
)
def test_a_server_of_a_document_that_was_not_served_is_taken_as_it_is(root: dict[str, Any]) -> None:
    (operation,) = read(root, PUBLIC, served=False).spec.operations
    assert operation.server.endswith("://localhost:8080")


def test_a_server_that_is_taken_instead_is_told() -> None:
    told = [str(each) for each in read(servers("http://localhost:8080"), LOCAL).problems]
    assert len(told) == 1
    assert "'http://localhost:8080' is nobody's address" in told[0]


def test_a_server_of_a_file_without_a_place_is_still_missing() -> None:
    content = json.dumps({**servers("/api"), "paths": {"/pets": {"get": {}}}}).encode()
    with pytest.raises(NoUsableOperation, match="base URL"):
        read_openapi(parse_document(content, "x"))


@pytest.mark.parametrize(
    ("root", "wanted", "told"),
    [
        (servers("//pets.example/v1"), "https://pets.example/v1", False),
        (servers("pets.example/v1"), "https://pets.example/v1", True),
        (servers("localhost:8080/v1"), "http://localhost:8080/v1", True),
        (servers("127.0.0.1:3000"), "http://127.0.0.1:3000", True),
        ({"host": "https://pets.example/", "basePath": "v1/"}, "https://pets.example/v1", True),
        ({"host": "http://pets.example/a", "basePath": "/b"}, "http://pets.example/a/b", True),
        ({"host": "pets.example", "basePath": "http://b.test/v1"}, "http://b.test/v1", True),
        ({"host": "pets.example/", "basePath": "/v1"}, "https://pets.example/v1", False),
    ],
)
def test_a_server_written_with_too_little_or_too_much_is_the_one_that_is_meant(
    root: dict[str, Any], wanted: str, told: bool
) -> None:
    version = {} if "servers" in root else {"swagger": "2.0", "schemes": ["https"]}
    whole = {"info": {"title": "t", "version": "1"}, "paths": {"/pets": {"get": {}}}}
    found = read_openapi(parse_document(json.dumps(whole | version | root).encode(), "x"))
    assert found.spec.operations[0].server == wanted
    assert bool(found.problems) == told


def test_an_empty_server_is_the_root_of_the_host_and_not_the_document() -> None:
    assert base(servers(""), PUBLIC) == "https://api.pets.example"


@pytest.mark.parametrize("path", ["index.php/api", "v1.beta/api", "api", "v2.0"])
def test_a_relative_path_is_no_host(path: str) -> None:
    assert base(servers(path), PUBLIC) == f"https://api.pets.example/v1/{path}"


def test_a_relative_server_of_an_operation_is_beside_the_document_s_own() -> None:
    paths = {"/pets": {"servers": [{"url": "/v2"}], "get": {}}}
    root = {**servers("https://pets.example/v1"), "info": {"title": "t"}, "paths": paths}
    found = read_openapi(parse_document(json.dumps(root).encode(), "x"))
    assert found.spec.operations[0].server == "https://pets.example/v2"
    alone = {**root, "servers": []}
    with pytest.raises(NoUsableOperation):
        read_openapi(parse_document(json.dumps(alone).encode(), "x"))
