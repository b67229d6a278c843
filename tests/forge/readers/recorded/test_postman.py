from __future__ import annotations

from typing import Any

import pytest

from forge.errors import NoUsableOperation
from tests.forge.readers.recorded.notations import CANARY, compiled, files, postman, request, routes


def test_a_collections_requests_become_tools_named_and_grouped_as_in_it() -> None:
    made = compiled(
        postman(
            {"name": "Pets", "item": [request("List pets", "https://pets.example/v1/pets?tag=a")]},
            request("Add pet", "https://pets.example/v1/pets", "POST"),
        )
    )
    assert [(tool.name, tool.group, tool.access) for tool in made.bundle.tools] == [
        ("list_pets", "Pets", "read"),
        ("add_pet", "pets", "write"),
    ]
    assert made.bundle.spec is not None
    assert made.bundle.spec.dialect == "postman 2.1"


def test_a_host_is_filled_in_from_the_collections_variables_and_a_paths_variable_is_not() -> None:
    made = compiled(
        postman(
            request("Get", "{{root}}/pets/{{pet}}/toys/:toy"),
            variable=[
                {"key": "root", "value": "{{host}}/v1"},
                {"key": "host", "value": "https://pets.example"},
                {"key": "pet", "value": "17"},
            ],
        )
    )
    assert routes(made) == {"GET https://pets.example/v1/pets/{pet}/toys/{toy}"}


def test_the_value_of_a_paths_variable_is_its_example_and_one_that_may_be_secret_is_not() -> None:
    url = {
        "raw": "https://pets.example/{{shelter}}/:pet/{{token}}/{{unset}}",
        "variable": [{"key": "pet", "value": "17"}],
    }
    made = compiled(
        postman(
            {"name": "Get", "request": {"method": "GET", "url": url}},
            variable=[
                {"key": "shelter", "value": "north"},
                {"key": "pet", "value": "3"},
                {"key": "token", "value": CANARY},
            ],
        )
    )
    (tool,) = made.bundle.tools
    properties = tool.input_schema["properties"]
    assert {name: part.get("examples") for name, part in properties.items()} == {
        "shelter": ["north"],
        "pet": ["17"],
        "token": None,
        "unset": None,
    }
    assert CANARY not in files(made)


def test_a_host_that_nobody_knows_is_asked_for_and_can_be_given() -> None:
    collection = postman(request("Get", "{{baseUrl}}/pets"))
    with pytest.raises(NoUsableOperation):
        compiled(collection)
    given = compiled(collection, base_url="https://pets.example/api")
    assert routes(given) == {"GET https://pets.example/api/pets"}


@pytest.mark.parametrize(
    ("auth", "kind", "location", "parameter"),
    [
        ({"type": "bearer", "bearer": [{"key": "token", "value": CANARY}]}, "bearer", "header", ""),
        ({"type": "basic", "basic": {"username": "u", "password": CANARY}}, "basic", "header", ""),
        ({"type": "digest", "digest": []}, "digest", "header", ""),
        (
            {
                "type": "apikey",
                "apikey": [
                    {"key": "key", "value": "X-Pet-Key"},
                    {"key": "value", "value": CANARY},
                    {"key": "in", "value": "header"},
                ],
            },
            "apiKey",
            "header",
            "X-Pet-Key",
        ),
        (
            {"type": "apikey", "apikey": {"key": "k", "value": CANARY, "in": "query"}},
            "apiKey",
            "query",
            "k",
        ),
    ],
)
def test_what_a_folder_proves_itself_by_holds_for_its_requests_and_stays_out_of_the_bundle(
    auth: dict[str, Any], kind: str, location: str, parameter: str
) -> None:
    folder = {"name": "Pets", "auth": auth, "item": [request("List", "https://pets.example/pets")]}
    made = compiled(postman(folder))
    (found,) = made.bundle.credentials
    assert (found.kind, found.location) == (kind, location)
    assert parameter in ("", found.parameter)
    assert CANARY not in files(made)


def test_noauth_ends_what_was_inherited() -> None:
    made = compiled(
        postman(
            request("Open", "https://pets.example/open", auth={"type": "noauth"}),
            auth={"type": "bearer"},
        )
    )
    assert made.bundle.credentials == ()


@pytest.mark.parametrize(
    ("body", "properties"),
    [
        ({"mode": "raw", "raw": '{"name": "Rex", "age": 3}'}, {"name": "string", "age": "number"}),
        (
            {"mode": "urlencoded", "urlencoded": [{"key": "name", "value": "Rex"}]},
            {"name": "string"},
        ),
        (
            {"mode": "formdata", "formdata": [{"key": "photo", "type": "file", "src": "/x"}]},
            {"photo": "string"},
        ),
    ],
)
def test_a_body_is_known_by_its_example(body: dict[str, Any], properties: dict[str, str]) -> None:
    made = compiled(postman(request("Add", "https://pets.example/pets", "POST", body=body)))
    spec = made.bundle.spec
    assert spec is not None
    assert spec.operations[0].body is not None
    (media,) = spec.operations[0].body.content
    assert isinstance(media.schema, dict)
    found = media.schema["properties"]
    assert {name: schema["type"] for name, schema in found.items()} == properties


def test_saved_answers_tell_the_types_of_what_comes_back() -> None:
    saved = {"code": 200, "header": [], "body": '{"id": 1, "name": null}'}
    item = request("Get", "https://pets.example/pets/:id") | {"response": [saved]}
    spec = compiled(postman(item)).bundle.spec
    assert spec is not None
    (response,) = spec.operations[0].responses
    assert response.status == "200"
    schema = response.content[0].schema
    assert isinstance(schema, dict)
    assert schema["properties"]["id"]["type"] == "number"


def test_what_cannot_be_read_is_located_in_the_collection_and_the_rest_compiles() -> None:
    made = compiled(
        postman(
            request("Bad", "ftp://pets.example/x"),
            request("None", ""),
            {"name": "F", "item": [request("G", "https://pets.example/g", body={"mode": "odd"})]},
            request("Good", "https://pets.example/good"),
        )
    )
    assert routes(made) == {"GET https://pets.example/good"}
    assert {problem.pointer for problem in made.problems} == {
        "/item/0/request/url",
        "/item/1",
        "/item/2/item/0/request/body",
    }


def test_a_request_by_graphql_says_what_to_give_instead() -> None:
    body = {"mode": "graphql", "graphql": {"query": "{ boats { id } }", "variables": ""}}
    asked = request("Q", "https://pets.example/graphql", "POST", body=body)
    (problem,) = compiled(postman(asked, request("Good", "https://pets.example/good"))).problems
    assert "give the address that it asks, or its schema" in problem.reason


def test_folders_in_folders_end_at_a_bound() -> None:
    inner: dict[str, Any] = request("Deep", "https://pets.example/deep")
    for _ in range(30):
        inner = {"name": "f", "item": [inner]}
    made = compiled(postman(inner, request("Good", "https://pets.example/good")))
    assert routes(made) == {"GET https://pets.example/good"}


def test_passwords_among_a_bodys_examples_are_not_kept() -> None:
    raw = f'{{"user": "rex", "password": "{CANARY}", "note": "{CANARY}"}}'
    body = {"mode": "raw", "raw": raw}
    headers = [{"key": "X-Api-Key", "value": CANARY}]
    item = request("Add", "https://pets.example/p", "POST", body=body, header=headers)
    assert CANARY not in files(compiled(postman(item)))


@pytest.mark.parametrize("auth", [None, {}, {"type": "inherit"}])
def test_a_request_that_inherits_proves_itself_as_its_folders_folder_does(auth: Any) -> None:
    inner = {"name": "In", "item": [request("List", "https://pets.example/pets", auth=auth)]}
    outer = {"name": "Out", "auth": {"type": "bearer", "bearer": []}, "item": [inner]}
    made = compiled(postman(outer))
    assert [credential.kind for credential in made.bundle.credentials] == ["bearer"]


def test_a_request_that_says_it_has_no_credential_has_none() -> None:
    open_one = request("List", "https://pets.example/pets", auth={"type": "noauth"})
    folder = {"name": "In", "auth": {"type": "bearer", "bearer": []}, "item": [open_one]}
    assert compiled(postman(folder)).bundle.credentials == ()
