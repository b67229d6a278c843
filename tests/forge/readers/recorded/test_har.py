from __future__ import annotations

import base64

import pytest

from forge.errors import NoUsableOperation
from tests.forge.readers.recorded.notations import CANARY, compiled, entry, files, har, routes

API = "https://app.example/api"


def test_requests_to_the_api_become_tools_and_what_a_page_loads_does_not() -> None:
    made = compiled(
        har(
            entry(f"{API}/posts?limit=5", answer=[]),
            entry("https://app.example/", media_type="text/html"),
            entry("https://app.example/main.js", media_type="application/javascript"),
            entry(f"{API}/posts", "OPTIONS"),
            entry(f"{API}/posts", "POST", status=201, answer={"id": 1}),
        )
    )
    assert routes(made) == {f"GET {API}/posts", f"POST {API}/posts"}


def test_identifiers_in_paths_become_parameters() -> None:
    made = compiled(
        har(
            entry(f"{API}/users/4711/posts/9b2d7c1e-1111-4222-8333-444455556666"),
            entry(f"{API}/users/4712/posts/9b2d7c1e-1111-4222-8333-444455556667"),
            entry(f"{API}/v2/teams/core"),
        )
    )
    assert routes(made) == {
        f"GET {API}/users/{{user_id}}/posts/{{post_id}}",
        f"GET {API}/v2/teams/core",
    }


def test_named_things_of_one_collection_become_one_template_and_different_ones_do_not() -> None:
    post, user = {"id": 1, "title": "a"}, {"id": 1, "name": "a"}
    made = compiled(
        har(
            entry(f"{API}/posts/first-steps", answer=post),
            entry(f"{API}/posts/next-steps", answer=post),
            entry(f"{API}/posts/next-steps/notes", answer=[]),
            entry(f"{API}/posts/archive", answer={"count": 3}),
            entry(f"{API}/users", answer=user),
            entry(f"{API}/teams", answer=user),
        )
    )
    assert routes(made) == {
        f"GET {API}/posts/{{post_id}}",
        f"GET {API}/posts/{{post_id}}/notes",
        f"GET {API}/posts/archive",
        f"GET {API}/users",
        f"GET {API}/teams",
    }


def test_an_authorization_becomes_a_credential_and_a_body_a_schema() -> None:
    headers = [{"name": "Authorization", "value": f"Bearer {CANARY}"}]
    body = {"mimeType": "", "text": '{"title": "a", "tags": ["b"]}'}
    made = compiled(har(entry(f"{API}/posts", "POST", headers=headers, postData=body)))
    assert [credential.kind for credential in made.bundle.credentials] == ["bearer"]
    (tool,) = made.bundle.tools
    assert set(tool.input_schema["properties"]["body"]["properties"]) == {"title", "tags"}
    assert CANARY not in files(made)


def test_only_the_api_that_is_asked_most_is_compiled_and_the_others_are_told() -> None:
    made = compiled(har(entry(f"{API}/a"), entry(f"{API}/b"), entry("https://ads.example/x")))
    assert routes(made) == {f"GET {API}/a", f"GET {API}/b"}
    assert any("https://ads.example" in problem.reason for problem in made.problems)


def test_nothing_that_was_sent_or_answered_is_kept_but_names_and_types() -> None:
    secret = [{"name": "X-Api-Key", "value": CANARY}, {"name": "Cookie", "value": f"s={CANARY}"}]
    made = compiled(
        har(
            entry(f"{API}/me?q={CANARY}&token={CANARY}", headers=secret, answer={"mail": CANARY}),
            entry(
                f"{API}/me",
                "POST",
                postData={"mimeType": "application/json", "text": f'{{"name": "{CANARY}"}}'},
            ),
            entry(
                f"{API}/form",
                "POST",
                postData={
                    "mimeType": "application/x-www-form-urlencoded",
                    "params": [{"name": "field", "value": CANARY}],
                },
            ),
        )
    )
    assert CANARY not in files(made)
    assert '"field"' in files(made)


def test_an_answer_in_base64_is_read() -> None:
    item = entry(f"{API}/a")
    item["response"]["content"] = {
        "mimeType": "application/json",
        "encoding": "base64",
        "text": base64.b64encode(b'{"id": 1}').decode(),
    }
    spec = compiled(har(item)).bundle.spec
    assert spec is not None
    schema = spec.operations[0].responses[0].content[0].schema
    assert isinstance(schema, dict)
    assert "id" in schema["properties"]


def test_values_of_different_types_in_one_place_are_all_admitted() -> None:
    made = compiled(
        har(
            entry(f"{API}/a", answer={"value": 1, "other": None}),
            entry(f"{API}/a", answer={"value": "one", "more": [1, "two"]}),
        )
    )
    assert made.bundle.spec is not None
    schema = made.bundle.spec.operations[0].responses[0].content[0].schema
    assert isinstance(schema, dict)
    assert sorted(schema["properties"]["value"]["type"]) == ["number", "string"]
    assert set(schema["properties"]) == {"value", "other", "more"}


def test_an_archive_of_a_page_alone_is_refused_with_the_reason() -> None:
    with pytest.raises(NoUsableOperation):
        compiled(har(entry("https://app.example/", media_type="text/html")))
