from __future__ import annotations

import os
from pathlib import Path

import pytest

from forge.readers.document import load_document, parse_document
from forge.readers.openapi.reader import ParsedApi, read_openapi
from tests.forge.samples import reading

SPLIT = """
openapi: 3.0.0
info: {title: Split}
servers: [{url: 'https://api.example.com'}]
paths:
  /pets: {$ref: 'paths/pets.yaml'}
"""
PETS = """
get:
  operationId: pets
  parameters: [{$ref: '../parameters.json#/limit'}]
  responses:
    200: {description: ok, content: {application/json: {schema: {$ref: '../schemas.yaml#/Pet'}}}}
"""
SCHEMAS = (
    "Pet: {type: object, properties: {child: {$ref: '#/Pet'}, toy: {$ref: './main.yaml#/x~1y'}}}"
)


def _split(directory: Path, **files: str) -> Path:
    (directory / "paths").mkdir()
    written = {"main.yaml": SPLIT + "\nx/y: {type: string}\n", "paths/pets.yaml": PETS}
    written |= {"parameters.json": '{"limit": {"name": "limit", "in": "query"}}'}
    written |= {"schemas.yaml": SCHEMAS, **files}
    for name, text in written.items():
        (directory / name).write_text(text)
    return directory / "main.yaml"


def _schema(ref: str, rest: str = "", version: str = "3.0.3") -> ParsedApi:
    return reading(
        f"""
        /pets:
          get:
            responses:
              200: {{content: {{application/json: {{schema: {{$ref: '{ref}'}}}}}}}}
        """,
        rest,
        version,
    )


def test_a_document_split_over_files_reads_as_one(tmp_path: Path) -> None:
    found = read_openapi(load_document(_split(tmp_path)))
    assert found.problems == ()
    (operation,) = found.spec.operations
    assert [p.name for p in operation.parameters] == ["limit"]
    assert found.spec.schemas["Pet"] == {
        "type": "object",
        "properties": {"child": {"$ref": "#/$defs/Pet"}, "toy": {"$ref": "#/$defs/x_y"}},
    }


def test_a_problem_in_another_file_names_that_file(tmp_path: Path) -> None:
    found = read_openapi(
        load_document(_split(tmp_path, **{"schemas.yaml": "Pet: {minLength: long}"}))
    )
    assert [(p.file, p.pointer) for p in found.problems] == [("schemas.yaml", "/Pet")]


@pytest.mark.parametrize(
    "reference", ["../../outside.yaml", "/etc/hosts.yaml", "file:///etc/x.yaml"]
)
def test_a_reference_never_leaves_the_directory(tmp_path: Path, reference: str) -> None:
    (tmp_path / "outside.yaml").write_text("get: {operationId: secret}")
    directory = tmp_path / "a" / "b"
    directory.mkdir(parents=True)
    main = _split(directory, **{"main.yaml": SPLIT.replace("paths/pets.yaml", reference) + OTHER})
    found = read_openapi(load_document(main, directory=directory))
    assert [o.path for o in found.spec.operations] == ["/other"]
    assert "outside the directory" in found.problems[0].reason


OTHER = "  /other: {get: {responses: {}}}\n"


def test_a_symbolic_link_does_not_lead_out_of_the_directory(tmp_path: Path) -> None:
    (tmp_path / "secret.yaml").write_text(PETS)
    directory = tmp_path / "specs"
    directory.mkdir()
    main = _split(directory, **{"main.yaml": SPLIT + OTHER})
    (directory / "paths" / "pets.yaml").unlink()
    os.symlink(tmp_path / "secret.yaml", directory / "paths" / "pets.yaml")
    found = read_openapi(load_document(main, directory=directory))
    assert [o.path for o in found.spec.operations] == ["/other"]


def test_hidden_and_other_kinds_of_files_are_not_read(tmp_path: Path) -> None:
    for name in (".hidden.yaml", "secrets.env"):
        (tmp_path / name).write_text(PETS)
        (tmp_path / "main.yaml").write_text(SPLIT.replace("paths/pets.yaml", name) + OTHER)
        found = read_openapi(load_document(tmp_path / "main.yaml"))
        assert [o.path for o in found.spec.operations] == ["/other"]


def test_references_of_a_fetched_document_go_to_its_origin_only() -> None:
    asked: list[str] = []

    def fetch(url: str) -> bytes:
        asked.append(url)
        return PETS.replace("../parameters.json#/limit", "http://10.0.0.1/x.json#/limit").encode()

    url = "https://api.example.com/docs/main.yaml"
    found = read_openapi(parse_document(SPLIT.encode(), "main.yaml", url=url, fetch=fetch))
    assert asked == [
        "https://api.example.com/docs/paths/pets.yaml",
        "https://api.example.com/docs/schemas.yaml",
    ]
    assert any("another origin" in problem.reason for problem in found.problems)


def test_a_document_given_as_bytes_reads_no_files() -> None:
    found = read_openapi(parse_document((SPLIT + OTHER).encode(), "main.yaml"))
    assert "given alone" in found.problems[0].reason


def test_percent_encoded_and_escaped_pointers_are_followed() -> None:
    rest = "components: {schemas: {'a/b c': {type: string}}}"
    found = _schema("#/components/schemas/a~1b%20c", rest)
    assert found.problems == ()
    assert found.spec.schemas == {"a_b_c": {"type": "string"}}


def test_anchors_and_dynamic_references_of_2020_12_are_followed() -> None:
    rest = """
    components:
      schemas:
        Tree: {$dynamicAnchor: node, properties: {next: {$dynamicRef: '#node'}}}
        Leaf: {$anchor: leaf, $id: 'https://x.example/leaf', type: string}
    """
    assert _schema("#leaf", rest, "3.1.0").spec.schemas == {"Leaf": {"type": "string"}}
    assert _schema("https://x.example/leaf", rest, "3.1.0").problems == ()
    assert _schema("#/components/schemas/Tree", rest, "3.1.0").spec.schemas == {
        "Tree": {"properties": {"next": {"$ref": "#/$defs/Tree"}}}
    }


@pytest.mark.parametrize("target", ["#/paths/~1pets", "#/components/x/y", "#/paths/~1a"])
def test_references_in_a_circle_end_as_problems(target: str) -> None:
    rest = "components: {x: {$ref: '#/components/x/y'}}"
    found = reading(
        f"/pets: {{$ref: '{target}'}}\n/a: {{$ref: '#/paths/~1pets'}}\n{OTHER.strip()}", rest
    )
    assert [o.path for o in found.spec.operations] == ["/other"]
    assert len(found.problems) == 2


@pytest.mark.parametrize(
    "reference",
    ["#/definitions/Pet", "#components/schemas/Pet", "/components/schemas/Pet", "Pet"],
)
def test_a_reference_that_is_slightly_wrong_leads_to_what_it_means(reference: str) -> None:
    found = _schema(reference, "components: {schemas: {Pet: {type: integer}}}")
    assert found.problems == ()
    (media,) = found.spec.operations[0].responses[0].content
    assert media.schema == {"$ref": "#/$defs/Pet"}
    assert found.spec.schemas["Pet"] == {"type": "integer"}


def test_a_parameter_is_found_where_another_version_has_it() -> None:
    found = reading(
        "/pets: {get: {parameters: [{$ref: '#/parameters/size'}]}}",
        "components: {parameters: {size: {name: size, in: query, schema: {}}}}",
    )
    assert [p.name for p in found.spec.operations[0].parameters] == ["size"]
