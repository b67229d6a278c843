from __future__ import annotations

import json
import re
import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge.errors import DocumentUnreadable
from forge.readers.document import MAX_BYTES
from forge.readers.recorded.curl import read_curl
from tests.forge.readers.recorded.notations import CANARY, compiled, files, routes

WORDS = st.text(st.sampled_from("abcXYZ019 -_.'\"$\\&;|é{}"), min_size=1, max_size=12)
NAMES = st.text(st.sampled_from("abcdef"), min_size=1, max_size=6)


def test_the_commands_of_a_documents_text_become_tools() -> None:
    made = compiled(
        """
        # Zones: how to use them
        List them:

            $ curl -s https://dns.example/zones?page=2 | jq .

        ```
        curl -X PUT https://dns.example/zones/$ZONE \\
          -H 'Content-Type: application/json' \\
          -d '{"ttl": 300}' && rm -rf /
        ```
        """
    )
    assert routes(made) == {
        "GET https://dns.example/zones",
        "PUT https://dns.example/zones/{zone}",
    }


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        (f"curl -H 'Authorization: Bearer {CANARY}' https://a.example/x", "bearer"),
        (f"curl -u admin:{CANARY} https://a.example/x", "basic"),
        (f"curl --oauth2-bearer {CANARY} https://a.example/x", "bearer"),
        (f"curl 'https://a.example/x?api_key={CANARY}'", "apiKey"),
        (f"curl -G https://a.example/x -d access_token={CANARY}", "apiKey"),
        (f"curl -H'X-Auth-Token: {CANARY}' https://a.example/x", "apiKey"),
        (f"curl -b session={CANARY} https://a.example/x", "apiKey"),
    ],
)
def test_a_credential_becomes_a_scheme_and_its_value_is_gone(command: str, kind: str) -> None:
    made = compiled(command)
    assert [credential.kind for credential in made.bundle.credentials] == [kind]
    assert CANARY not in files(made)


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ("-H 'Private: ${SECRET}'", {"Private"}),
        ("-H 'X-Subscription: <your-api-key>'", {"X_Subscription"}),
        ("-H 'DD-API-KEY: a' -H 'DD-APPLICATION-KEY: b'", {"DD_API_KEY", "DD_APPLICATION_KEY"}),
        ("-H 'Ocp-Apim-Subscription-Key: a'", {"Ocp_Apim_Subscription_Key"}),
        ("-G -d 'appid=$APPID'", {"appid"}),
        ("-H 'X-Shop: $SHOP_ID' -H 'Idempotency-Key: $UUID'", set()),
        ("-G -d 'cursor=$NEXT_PAGE_TOKEN'", set()),
    ],
)
def test_values_that_stand_for_a_secret_become_credentials(options: str, names: set[str]) -> None:
    made = compiled(f"curl {options} https://a.example/x")
    assert {credential.name for credential in made.bundle.credentials} == names
    asked = {frozenset(together) for tool in made.bundle.tools for together in tool.security}
    assert asked == ({frozenset(names)} if names else set())


@pytest.mark.parametrize(
    ("options", "fields"),
    [
        ("-d 'a=b & c'", {"a": "b & c"}),
        ("-d 'a=b&c=d' -d e=f", {"a": "b", "c": "d", "e": "f"}),
        ("--data-urlencode 'a=b & c=d'", {"a": "b & c=d"}),
        ("-d 'a=b+c%20d'", {"a": "b c d"}),
    ],
)
def test_a_form_has_the_fields_that_curl_was_given(options: str, fields: dict[str, str]) -> None:
    (made,) = read_curl({"curl": f"curl {options} https://a.example/x"}).requests
    assert made.body is not None
    assert {field.name: field.value for field in made.body.fields} == fields


@pytest.mark.parametrize(
    ("options", "method"),
    [
        ("", "GET"),
        ("-I", "HEAD"),
        ("-d a=b", "POST"),
        ("-sSXDELETE", "DELETE"),
        ("--request=PATCH -d '{}'", "PATCH"),
        ("-F photo=@x.png", "POST"),
        ("-T file.bin", "PUT"),
        ("--json '{\"a\": 1}'", "POST"),
        ("-o out.json --max-time 5 -L", "GET"),
    ],
)
def test_the_method_follows_from_the_options_as_in_curl(options: str, method: str) -> None:
    made = read_curl({"curl": f"curl {options} https://a.example/x"})
    assert [request.method for request in made.requests] == [method]
    assert made.requests[0].path == "/x"


@given(
    value=WORDS,
    query=st.dictionaries(NAMES, st.text(st.sampled_from("abc019"), min_size=1), max_size=3),
)
def test_whatever_a_shell_would_hand_to_curl_is_what_is_read(
    value: str, query: dict[str, str]
) -> None:
    tail = "&".join(f"{name}={text}" for name, text in query.items())
    body = json.dumps({"note": value})
    words = ["curl", "-X", "POST", f"https://a.example/x?{tail}", "--data-raw", body]
    (made,) = read_curl({"curl": shlex.join(words)}).requests
    assert (made.method, made.path, dict(made.query)) == ("POST", "/x", query)
    assert made.body is not None
    assert made.body.text == body


def test_a_body_in_ansi_quotes_is_unescaped_as_bash_does() -> None:
    (made,) = read_curl(
        {"curl": r"curl https://a.example/x -d $'{\"a\": \"it\'s \u00e9\"}'"}
    ).requests
    assert made.body is not None
    assert json.loads(made.body.text) == {"a": "it's é"}


def test_a_command_that_cannot_be_read_is_located_by_its_line_and_the_rest_compiles() -> None:
    made = compiled("curl https://a.example/x\n\ncurl -H\n\ncurl 'https://a.example/open\n")
    assert routes(made) == {"GET https://a.example/x"}
    assert [problem.reason.split(":")[0] for problem in made.problems] == ["line 3", "line 5"]


def test_a_text_without_commands_is_still_refused() -> None:
    with pytest.raises(DocumentUnreadable):
        compiled("a: b: c, how curly")


@pytest.mark.parametrize(
    "text",
    [
        "curl " + "$'" * 30_000,
        "curl " + "\\\n" * 100_000,
        "curl '" + "a" * 2_000_000,
        "curl x\n" * 50_000,
        "curl https://a.example/" + "a1" * 40_000,
        "> $ curl " + "-" * 60_000,
    ],
)
def test_hostile_text_comes_to_an_end(text: str) -> None:
    assert len(text) < MAX_BYTES
    assert len(read_curl({"curl": text}).requests) <= 2_000


def test_a_version_that_the_requests_ask_for_is_sent_with_every_call() -> None:
    made = compiled(
        """
        curl https://a.example/x -H 'Notion-Version: 2022-06-28' -H 'X-Tenant: acme'
        curl https://a.example/y -H 'X-Api-Version: v2.1-beta'
        curl https://a.example/z -H 'API-Version: 1'
        curl https://a.example/z -H 'API-Version: 2'
        """
    )
    code = files(made)
    assert '"notion-version": "2022-06-28"' in code
    assert '"x-api-version": "v2.1-beta"' in code
    takes = {tool.path: {*tool.input_schema["properties"]} for tool in made.bundle.tools}
    assert takes == {"/x": {"x_tenant"}, "/y": set(), "/z": {"api_version"}}


@pytest.mark.parametrize(
    ("accept", "sent"),
    [
        ("-H 'Accept: text/csv'", ["text/csv"]),
        ("-H 'Accept: application/json'", []),
        ("-H 'Accept: */*'", []),
        ("-H 'Accept: text/html, */*;q=0.1'", []),
        ("-H 'Accept: text/csv\"'", []),
        ("", []),
    ],
)
def test_the_one_type_that_requests_accept_is_asked_for(accept: str, sent: list[str]) -> None:
    code = files(compiled(f"curl https://a.example/x {accept}"))
    assert re.findall(r"accept=[\"'](.*?)[\"']", code) == sent
