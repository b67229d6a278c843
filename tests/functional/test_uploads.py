"""Uploads as documents describe them, as servers of several makes read them."""

from __future__ import annotations

import asyncio
import base64
import urllib.request
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import pytest

from forge.compiler.compile import compile_document
from forge.readers.document import parse_document
from orchestrator.frontends.bundle_directory import BundleDirectory, DirectoryGrants
from sandbox.broker.live import LiveHttp
from sandbox.engines.process import ProcessRunner
from sandbox.stages.mock.stage import prove_mock
from sandbox.stages.prove import build_bench_opener
from sandbox.wire.policy import parse_origin
from tests.world.uploads import PARSERS, upload_server

BINARY = "{type: string, format: binary}"
MEDIA = "{type: string, contentMediaType: application/octet-stream}"
FORMS = {
    "plain": f"{{properties: {{title: {{type: string}}, file: {BINARY}}}}}",
    "media": f"{{properties: {{file: {MEDIA}, title: {{type: string}}}}}}",
    "optional": f"{{properties: {{file: {{anyOf: [{MEDIA}, {{type: 'null'}}]}}}}}}",
    "nullable": "{properties: {file: {type: [string, 'null'], format: binary}}}",
    "either": f"{{properties: {{file: {{oneOf: [{BINARY}, {{type: 'null'}}]}}}}}}",
    "put_together": f"{{properties: {{file: {{allOf: [{BINARY}], description: It}}}}}}",
    "named": "{properties: {file: {$ref: '#/components/schemas/File'}}}",
    "composed": (
        f"{{allOf: [{{properties: {{file: {BINARY}}}}}, "
        "{required: [title], properties: {title: {type: string}}}]}"
    ),
    "list": f"{{properties: {{file: {{type: array, items: {BINARY}}}}}}}",
    "optional_list": (
        f"{{properties: {{file: {{anyOf: [{{type: array, items: {MEDIA}}}, {{type: 'null'}}]}}}}}}"
    ),
    "bracketed": f"{{properties: {{'file[]': {{type: array, items: {BINARY}}}}}}}",
    "typed": f"{{properties: {{file: {BINARY}, meta: {{type: object}}}}}}",
}
"""The schema of each form's fields, by the form's name."""
CONTENT = b"\x89PNG\r\n\x1a\n--toolwright-part\r\n\x00\xff"
FILE = {"base64": base64.b64encode(CONTENT).decode(), "filename": "a file 1.png"}
READ = {"name": "a file 1.png", "type": "image/png", "base64": FILE["base64"]}


def build_document() -> str:
    paths = "".join(
        f"""
  /upload/{name}:
    post:
      operationId: send_{name}
      requestBody: {{required: true, content: {{multipart/form-data: {{schema: {form}}}}}}}
      responses: {{'200': {{description: It, content: {{application/json: {{}}}}}}}}"""
        for name, form in FORMS.items()
    )
    paths += f"""
  /upload/rows:
    post:
      operationId: send_rows
      requestBody: {{required: true, content: {{
        application/json: {{schema: {{properties: {{rows: {{type: array}}}}}}}},
        multipart/form-data: {{schema: {FORMS["plain"]}}}}}}}
      responses: {{'200': {{description: It, content: {{application/json: {{}}}}}}}}"""
    schemas = f"components: {{schemas: {{File: {BINARY}}}}}"
    return f"openapi: 3.1.0\ninfo: {{title: Up, version: '1'}}\n{schemas}\npaths:{paths}\n"


@dataclass
class Uploads:
    """A server of uploads, and the tools that were compiled for it."""

    parser: str
    directory: BundleDirectory
    runner: asyncio.Runner

    def send(self, tool: str, **body: Any) -> Any:
        """What the server says it read."""
        result = self.runner.run(self.directory.call_tool(tool, {"body": body}))
        assert not result.get("isError"), result
        return result["structuredContent"]["body"]


def open_uploads(parser: str, document: bytes | None) -> Iterator[Uploads]:
    with upload_server(parser) as url, asyncio.Runner() as runner:
        if document is None:
            with urllib.request.urlopen(f"{url}/openapi.json", timeout=60) as answer:
                document = answer.read()
        bundle = compile_document(parse_document(document, "api.yaml"), base_url=url).bundle
        origin = parse_origin(url)
        assert origin is not None
        stack = AsyncExitStack()
        upstream = runner.run(stack.enter_async_context(LiveHttp(frozenset({origin}))))
        grants = DirectoryGrants(private=True, writes=True)
        directory = BundleDirectory(bundle, ProcessRunner(), grants, upstream)
        stack.push_async_callback(directory.close)
        try:
            yield Uploads(parser, directory, runner)
        finally:
            runner.run(stack.aclose())


@pytest.fixture(scope="module", params=[name for name in PARSERS if name != "fastapi"])
def uploads(request: pytest.FixtureRequest) -> Iterator[Uploads]:
    yield from open_uploads(request.param, build_document().encode())


@pytest.fixture(scope="module")
def fastapi() -> Iterator[Uploads]:
    """FastAPI's own document of what it takes."""
    yield from open_uploads("fastapi", None)


def read(said: Any) -> list[dict[str, Any]]:
    return [{key: file[key] for key in READ} for file in said["files"]]


@pytest.mark.parametrize(
    "form", ["plain", "media", "optional", "nullable", "either", "put_together", "named", "typed"]
)
def test_a_file_arrives_with_its_name_and_type(form: str, uploads: Uploads) -> None:
    said = uploads.send(f"send_{form}", file=FILE)
    assert read(said) == [READ]
    assert said["fields"] == {}


@pytest.mark.parametrize("form", ["plain", "media", "composed"])
def test_fields_beside_a_file_arrive_before_it_and_nothing_else_does(
    form: str, uploads: Uploads
) -> None:
    said = uploads.send(f"send_{form}", file=FILE, title="größer, as text")
    assert read(said) == [READ]
    assert said["fields"] == {"title": ["größer, as text"]}
    assert all(file.get("known", 1) == 1 for file in said["files"])


@pytest.mark.parametrize("form", ["list", "optional_list", "bracketed"])
def test_several_files_arrive_under_the_name_that_is_documented(
    form: str, uploads: Uploads
) -> None:
    field = "file[]" if form == "bracketed" else "file"
    said = uploads.send(f"send_{form}", **{field: [FILE, {"base64": "eA==", "filename": "x.txt"}]})
    # Formidable tells them in the order in which it had written them.
    assert sorted(file["name"] for file in said["files"]) == ["a file 1.png", "x.txt"]
    # Multer and formidable take the brackets for their own.
    assert {file["field"].removesuffix("[]") for file in said["files"]} == {"file"}


def test_a_lone_file_for_a_list_is_a_list_of_one(uploads: Uploads) -> None:
    assert read(uploads.send("send_list", file=FILE)) == [READ]


def test_a_file_keeps_a_name_in_any_letters(uploads: Uploads) -> None:
    file = {**FILE, "filename": "grün 1.png"}
    said = read(uploads.send("send_plain", file=file))[0]["name"]
    if uploads.parser in ("multer", "busboy"):  # They read all names as Latin-1, also a browser's.
        said = said.encode("latin-1").decode()
    assert said == "grün 1.png"


def test_a_file_that_may_come_in_place_of_other_fields_has_a_tool_of_its_own(
    uploads: Uploads,
) -> None:
    assert read(uploads.send("send_rows_file", file=FILE)) == [READ]


def test_an_object_beside_a_file_is_json(uploads: Uploads) -> None:
    said = uploads.send("send_typed", file=FILE, meta={"a": 1})
    if uploads.parser == "formidable":  # It takes each part that says its type for a file.
        (meta,) = [file for file in said["files"] if file["field"] == "meta"]
        assert base64.b64decode(meta["base64"]) == b'{"a":1}'
        assert meta["type"] == "application/json"
    else:
        assert said["fields"]["meta"] == ['{"a":1}']


@pytest.mark.parametrize(
    ("given", "name", "kind", "content"),
    [
        ("aGk=", "file", "application/octet-stream", "aGk="),
        ("data:text/plain;base64,aGk=", "file", "text/plain", "aGk="),
        ({"base64": "aGk=", "filename": "a.pdf"}, "a.pdf", "application/pdf", "aGk="),
        ({"base64": "aGk=", "filename": "a", "content_type": "a/b"}, "a", "a/b", "aGk="),
        ({"base64": "", "filename": "empty.txt"}, "empty.txt", "text/plain", ""),
    ],
)
def test_a_file_is_given_in_each_of_its_forms(
    given: Any, name: str, kind: str, content: str, uploads: Uploads
) -> None:
    said = uploads.send("send_plain", file=given)
    assert read(said) == [{"name": name, "type": kind, "base64": content}]


def test_fastapi_takes_what_its_own_document_says(fastapi: Uploads) -> None:
    assert read(fastapi.send("one", file=FILE, title="t")) == [READ]
    assert read(fastapi.send("maybe", file=FILE, title="t")) == [READ]
    assert fastapi.send("maybe", title="t")["files"] == []
    assert read(fastapi.send("many", files=[FILE, FILE], tags=["a", "b"])) == [READ] * 2
    assert read(fastapi.send("maybe_many", files=[FILE])) == [READ]
    assert fastapi.send("as_bytes", file=FILE, count=7) == {
        "base64": READ["base64"],
        "count": 7,
    }
    assert read(fastapi.send("strict", file=FILE, title="t")) == [READ]


def test_each_form_passes_its_proof() -> None:
    """What a document says of a file that may be null is not what a caller gives for it."""
    document = parse_document(build_document().encode(), "api.yaml")
    bundle = compile_document(document, base_url="https://up.example").bundle
    report = asyncio.run(prove_mock(bundle, build_bench_opener(bundle, ProcessRunner())))
    assert report.list_failures() == ()


def test_a_form_of_nothing_arrives_as_an_empty_form(uploads: Uploads) -> None:
    assert uploads.send("send_plain") == {"fields": {}, "files": []}


def test_what_is_no_base64_is_refused_saying_how_text_is_given(fastapi: Uploads) -> None:
    call = fastapi.directory.call_tool("one", {"body": {"file": "plain words!"}})
    said = fastapi.runner.run(call)["content"][0]["text"]
    assert '{"text": …, "filename": …}' in said
