"""Documents in which a value is of another type than its notation says."""

from __future__ import annotations

import json
from typing import Any

import pytest

from forge.compiler.compile import compile_document
from forge.readers.document import parse_document


def openapi(operation: Any, **others: Any) -> Any:
    head = {"openapi": "3.1.0", "info": {"title": "t"}, "servers": [{"url": "https://h.example"}]}
    return {**head, "paths": {"/a": {"post": operation}}, **others}


def body(media_type: str, **of_type: Any) -> Any:
    return openapi({"requestBody": {"content": {media_type: of_type}}})


def postman(url: Any, **request: Any) -> Any:
    item = {"name": "a", "request": {"method": "GET", "url": url, **request}}
    return {"info": {"name": "x", "_postman_id": "1"}, "item": [item]}


def har(post: Any) -> Any:
    request = {"method": "POST", "url": "https://h.example/a", "postData": post}
    return {
        "log": {"version": "1.2", "entries": [{"request": request, "response": {"status": 200}}]}
    }


FORM = "application/x-www-form-urlencoded"
NODE = {"type": "object", "properties": {"a": {"type": "string", "xml": {"nodeType": [1]}}}}
ODD = {
    "a style": openapi({"parameters": [{"name": "q", "in": "query", "style": [1], "schema": {}}]}),
    "a part's style": body(FORM, schema={"type": "object"}, encoding={"a": {"style": [1]}}),
    "a nodeType": body("application/xml", schema=NODE),
    "a kind of tag": openapi({"tags": ["a"]}, tags=[{"name": "a", "kind": [1], "parent": {}}]),
    "a Postman query": postman({"raw": "https://h.example/a", "query": 5}),
    "a HAR body's params": har({"mimeType": "x/y", "params": 5}),
}


@pytest.mark.parametrize("name", ODD)
def test_the_operation_is_compiled_all_the_same(name: str) -> None:
    compiled = compile_document(parse_document(json.dumps(ODD[name]).encode(), "x.json"))
    assert [tool.path for tool in compiled.bundle.tools] == ["/a"]
