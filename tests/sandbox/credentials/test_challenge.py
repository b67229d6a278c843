"""What a refusal says about the credential that it wants; what a stranger says goes into no command
but as a plain word.
"""

from __future__ import annotations

import pytest

from sandbox.credentials.challenge import MAX_QUOTE, WantedCredential, find_wanted
from sandbox.wire.exchange import WireResponse


def answer(told: str = "", body: str = "") -> WireResponse:
    headers = (("WWW-Authenticate", told),) if told else ()
    return WireResponse(401, headers, body.encode())


@pytest.mark.parametrize(
    ("told", "place"),
    [
        ('Bearer realm="x", error="invalid_token"', "bearer"),
        ('Basic realm="The house", charset="UTF-8"', "basic"),
        ('Digest realm="x", nonce="n", qop="auth"', "digest"),
        ('Token realm="api"', "header:Authorization:token"),
        ("X-API-Key", "header:X-Api-Key"),
        ('ApiKey in_header="X-Puppet"', "header:X-Puppet"),
    ],
)
def test_the_header_says_where_a_credential_goes(told: str, place: str) -> None:
    (found,) = find_wanted(answer(told, "Authorization: other x, X-Other-Key"))
    assert (found.place, found.quote) == (place, "")


def test_each_of_several_challenges_counts_once() -> None:
    told = 'Basic realm="a", Bearer error="insufficient_scope", scope="read write", Basic'
    assert find_wanted(answer(told)) == (
        WantedCredential("basic", "basic", "a"),
        WantedCredential("bearer", "bearer", "", "insufficient_scope", "read write"),
    )


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ('{"message": "Use Authorization: token <token>"}', "header:Authorization:token"),
        ("send 'Authorization: Bearer abc'", "bearer"),
        ('{"error": "missing X-Auth-Token header"}', "header:X-Auth-Token"),
        ("the header PRIVATE-TOKEN is missing", "header:PRIVATE-TOKEN"),
    ],
)
def test_words_of_the_body_are_a_guess_that_is_quoted(body: str, place: str) -> None:
    (found,) = find_wanted(answer(body=body))
    assert found.place == place
    assert found.quote
    assert found.quote in body.replace('"', "'")


@pytest.mark.parametrize(
    "told",
    ["Negotiate", "`id`", "$HOME", "tok|en", "Cookie", 'x"; rm', "SCRAM-SHA-256", "a" * 100, ""],
)
def test_what_is_no_plain_word_or_no_secret_makes_is_no_place(told: str) -> None:
    assert find_wanted(answer(told)) == ()


def test_what_a_stranger_says_is_one_line_without_quotation_marks_or_what_cannot_be_seen() -> None:
    realm = 'a\u202eb`id`\\"c'
    (found,) = find_wanted(answer(f'Basic realm="{realm}"'))
    assert found.realm == "ab'id''c"
    body = '"`\n\u200b' * 50 + "X-Api-Token" + '\n`\u202e"' * 50
    (guess,) = find_wanted(answer(body=body))
    assert not {*guess.quote} & {*'"`\n\u200b\u202e'}
    assert len(guess.quote) <= MAX_QUOTE
    (odd,) = find_wanted(answer('Bearer error="run `id`", error_description="do this"'))
    assert odd == WantedCredential("bearer", "bearer")
