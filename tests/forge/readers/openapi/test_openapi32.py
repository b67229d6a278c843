"""What OpenAPI 3.2 has beyond 3.1; methods, querystring and itemSchema are in test_openapi."""

from __future__ import annotations

import pytest

from forge.readers.openapi.reader import read_openapi
from tests.forge.samples import compiled, document, operation, reading

TAGS = """
tags:
  - {name: animals, kind: nav}
  - {name: pets, parent: animals}
  - {name: stable, kind: badge}
  - {name: a, parent: b}
  - {name: b, parent: a}
  - {name: lost, parent: nowhere}
"""


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("[pets]", ("animals / pets", "pets")),
        ("[stable, pets]", ("animals / pets", "pets", "stable")),
        ("[animals]", ("animals",)),
        ("[a]", ("b / a", "a")),
        ("[lost, other]", ("lost", "other")),
        ("[]", ()),
    ],
)
def test_tags_with_parents_tell_their_line(written: str, read: tuple[str, ...]) -> None:
    assert operation(f"/a: {{get: {{tags: {written}}}}}", TAGS, "3.2.0").tags == read


def test_the_line_of_a_tag_is_the_group_and_each_tag_selects() -> None:
    made = compiled("/a: {get: {tags: [pets]}}\n/b: {get: {}}", TAGS, "3.2.0", tags=["Pets"])
    assert [tool.group for tool in made.bundle.tools] == ["animals / pets"]


def test_a_reference_to_the_documents_own_name_stays_in_it() -> None:
    found = read_openapi(
        document(
            """
            openapi: 3.2.0
            $self: https://specs.test/api.yaml
            servers: [{url: https://api.test, name: prod}]
            paths:
              /a: {get: {parameters: [
                {$ref: 'https://specs.test/api.yaml#/components/parameters/Q'}]}}
            components: {parameters: {Q: {name: q, in: query}}}
            """
        )
    )
    assert found.problems == ()
    assert [p.name for p in found.spec.operations[0].parameters] == ["q"]


def test_the_node_types_of_xml_say_attribute_and_wrapper() -> None:
    schema = """
    {type: object, properties: {
       id: {type: integer, xml: {nodeType: attribute}},
       tags: {type: array, xml: {nodeType: element}, items: {type: string, xml: {name: tag}}},
       note: {type: string, xml: {nodeType: cdata}}}}
    """
    made = compiled(
        f"/a: {{post: {{requestBody: {{content: {{application/xml: {{schema: {schema}}}}}}}}}}}",
        version="3.2.0",
    )
    code = " ".join(made.bundle.source_code.split())
    assert '"id": {"attribute": True}' in code
    assert '"tags": {"name": "tag", "wrapper": ""}' in code
    assert '"note"' not in code


def test_shared_media_types_are_followed() -> None:
    rest = "components: {mediaTypes: {J: {schema: {type: integer}}}}"
    content = "{application/json: {$ref: '#/components/mediaTypes/J'}}"
    found = operation(f"/a: {{put: {{requestBody: {{content: {content}}}}}}}", rest, "3.2.0")
    assert found.body is not None
    assert found.body.content[0].schema == {"type": "integer"}


@pytest.mark.parametrize(
    ("paths", "pointer"),
    [
        (
            "/a: {post: {requestBody: {content: {multipart/mixed: {schema: {type: object},"
            " prefixEncoding: [{contentType: text/plain}]}}}}}",
            "/paths/~1a/post/requestBody/content/multipart~1mixed/prefixEncoding",
        ),
        (
            "/a: {get: {parameters: [{in: querystring, name: q, content: {image/png: {}}}]}}",
            "/paths/~1a/get/parameters/0",
        ),
        (
            "/a: {get: {parameters: [{in: cookie, name: q, style: simple, schema: {}}]}}",
            "/paths/~1a/get/parameters/0",
        ),
        ("/a: {additionalOperations: {get: {}}, get: {}}", "/paths/~1a/additionalOperations/get"),
    ],
)
def test_what_is_not_read_is_located_and_the_operation_stays(paths: str, pointer: str) -> None:
    found = reading(paths, version="3.2.0")
    assert [problem.pointer for problem in found.problems] == [pointer]
    assert len(found.spec.operations) == 1


@pytest.mark.parametrize(
    ("parameter", "written"),
    [
        ("in: cookie, name: q, style: cookie, schema: {type: string}", "unescaped(q)"),
        (
            "in: cookie, name: q, style: cookie, explode: false, schema: {type: array}",
            "unescaped(q, explode=False)",
        ),
        (
            "in: querystring, name: q, content: {application/json: {schema: {type: object}}}",
            "whole(json_text(q))",
        ),
        ("in: querystring, name: q, content: {text/plain: {}}", "whole(q)"),
    ],
)
def test_a_cookie_unescaped_and_a_query_that_is_one_value_are_written_so(
    parameter: str, written: str
) -> None:
    made = compiled(f"/a: {{get: {{parameters: [{{{parameter}}}]}}}}", version="3.2.0")
    assert f": {written}}}" in made.bundle.source_code
    assert made.problems == ()
