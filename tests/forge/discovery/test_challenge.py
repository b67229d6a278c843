from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge.discovery.challenge import MAX_CANDIDATES, CredentialChallenge, read_challenge
from forge.sources import FetchResponse


def asked(challenge: str = "", body: bytes = b"", **headers: str) -> CredentialChallenge:
    named = [(name.replace("_", "-"), value) for name, value in headers.items()]
    if challenge:
        named.append(("WWW-Authenticate", challenge))
    return read_challenge(FetchResponse(401, tuple(named), body, "http://h/api"))


@pytest.mark.parametrize(
    ("challenge", "kind", "header"),
    [
        ('X-API-Key realm="PowerDNS"', "apiKey", "X-API-Key"),
        ('Bearer realm="api", error="invalid_token"', "bearer", "Authorization"),
        ("Basic", "basic", "Authorization"),
        ('Digest realm="x", nonce="y", Basic realm="z"', "basic", "Authorization"),
        ('ApiKey realm="x", header="X-Shop-Key"', "apiKey", "X-Shop-Key"),
        ("Negotiate", "other", "Authorization"),
    ],
)
def test_www_authenticate_says_what_is_wanted(challenge: str, kind: str, header: str) -> None:
    needs = asked(challenge)
    assert (needs.kind, needs.headers, needs.certain) == (kind, (header,), True)


def test_without_it_a_header_named_in_the_body_is_the_first_candidate() -> None:
    needs = asked(body=b'{"error": "Send your key in the X-Shop-Token header"}')
    assert needs.headers == ("X-Shop-Token", "X-API-Key", "Authorization")
    assert needs.certain
    assert needs.kind == "apiKey"


def test_the_headers_that_cross_origin_scripts_may_send_are_candidates() -> None:
    needs = asked(Access_Control_Allow_Headers="Content-Type, X-Auth-Token, Authorization")
    assert needs.headers == ("X-Auth-Token", "Authorization", "X-API-Key")
    assert not needs.certain


def test_without_any_hint_the_common_headers_are_guessed_and_said_to_be_guesses() -> None:
    needs = asked()
    assert needs.headers == ("X-API-Key", "Authorization")
    assert not needs.certain
    assert "not said where it goes" in needs.render_question()


def test_a_guess_that_the_key_goes_into_authorization_says_that_bearer_stands_before_it() -> None:
    assert "(or Authorization, mostly as `Bearer TOKEN`)" in asked().render_question()


def test_what_asks_for_a_token_may_be_logged_in_to_and_what_asks_for_a_key_not() -> None:
    assert "`toolwright login http://h/api`" in asked("Bearer").render_question()
    assert "login" not in asked('X-API-Key realm="PowerDNS"').render_question()


@given(st.text(max_size=400), st.binary(max_size=400))
def test_any_challenge_gives_a_bounded_question_without_control_characters(
    challenge: str, body: bytes
) -> None:
    needs = asked(challenge, body)
    assert 1 <= len(needs.headers) <= MAX_CANDIDATES
    assert len(needs.render_question()) < 1200
    assert needs.realm.isprintable()
