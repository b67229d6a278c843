from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.bundle.credential import Credential
from sandbox.credentials.digest import Challenge, build_authorization, choose_challenge
from sandbox.credentials.source import CredentialSource
from sandbox.wire.exchange import Release, WireRequest, WireResponse
from tests.sandbox.scripted import API, Told, answer, broker, get, performed, rule

RFC = (
    'Digest realm="http-auth@example.org", qop="auth, auth-int", '
    'algorithm={}, nonce="{}", opaque="{}"'
)
NONCE = "7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v"
OPAQUE = "FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS"
PAGE = WireRequest("GET", "http://www.example.org/dir/index.html")


def asked(*values: str) -> Challenge | None:
    return choose_challenge(tuple(("WWW-Authenticate", value) for value in values))


@pytest.mark.parametrize(
    ("algorithm", "response"),
    [
        ("MD5", "8ca523f5e9506fed4657c9700eebdbec"),
        ("SHA-256", "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"),
    ],
)
def test_answers_are_those_of_rfc_7616(algorithm: str, response: str) -> None:
    found = asked(RFC.format(algorithm, NONCE, OPAQUE))
    assert found is not None
    cnonce = "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ"
    made = build_authorization(found, PAGE, "Mufasa:Circle of Life", 1, cnonce)
    assert f'response="{response}"' in made
    assert f'opaque="{OPAQUE}"' in made
    assert "nc=00000001" in made
    assert 'uri="/dir/index.html"' in made


def test_the_older_form_is_that_of_rfc_2617() -> None:
    found = Challenge("testrealm@host.com", "dcd98b7102dd2f0e8b11d0f600bfb0c093")
    made = build_authorization(found, PAGE, "Mufasa:Circle Of Life", 1, "0a4f113b")
    assert 'response="6629fae49393a05397450978507c4ef1"' in made


def test_the_strongest_challenge_that_can_be_met_is_taken() -> None:
    both = (RFC.format("MD5", "a", "b"), RFC.format("SHA-256", "c", "d"))
    found = asked(*both)
    assert found is not None
    assert (found.algorithm, found.nonce, found.qop) == ("SHA-256", "c", "auth")
    joined = asked(f'Basic realm="x", {both[0]}, {both[1]}')
    assert joined == found


@pytest.mark.parametrize(
    "value",
    [
        'Basic realm="x"',
        'Digest realm="x", nonce="n", algorithm=ROT13',
        'Digest realm="x", algorithm=MD5',
        'Digest realm="x", nonce="n", qop="other"',
        'Digest realm="x", nonce="n\x01"',
        "Digest",
        'Digest nonce="unterminated',
        "",
    ],
)
def test_what_cannot_be_met_is_no_challenge(value: str) -> None:
    assert asked(value) is None


@given(st.text(max_size=300))
def test_no_header_breaks_the_reader(value: str) -> None:
    asked(value)
    asked(f"Digest {value}")


def server(uses: int = 100) -> Told:
    """An API that wants digests, and lets each nonce be used so often."""
    state = {"nonce": 0, "count": 0}

    def answered(request: WireRequest) -> WireResponse:
        sent = request.get_header("Authorization") or ""
        state["count"] += 1
        if f'nonce="n{state["nonce"]}"' in sent and state["count"] <= uses:
            wanted = Challenge("r", f"n{state['nonce']}", "SHA-256")
            fields = dict(part.split("=", 1) for part in sent[7:].split(", "))
            cnonce, count = fields["cnonce"].strip('"'), int(fields["nc"], 16)
            if sent == build_authorization(wanted, request, "me:pass-word", count, cnonce):
                return answer(200, f"nc {count}")
            return answer(401, "wrong", www_authenticate=told(state["nonce"]))
        stale = bool(sent)
        state.update(nonce=state["nonce"] + 1, count=0)
        return answer(401, "no", www_authenticate=told(state["nonce"], stale))

    def told(nonce: int, stale: bool = False) -> str:
        mark = ", stale=true" if stale else ""
        return f'Digest realm="r", nonce="n{nonce}", qop="auth", algorithm=SHA-256{mark}'

    return Told(answered)


def source(secret: str = "me:pass-word") -> CredentialSource:
    return CredentialSource({"d": Credential("d", "digest")}, lambda name: secret)


def test_the_challenge_is_answered_once_and_its_nonce_used_again() -> None:
    upstream = server()
    reading = broker(upstream, rule(security=(("d",),)), credentials=source())
    bodies = [performed(reading.perform(get(f"/{n}?q={n}"))).response for n in range(3)]
    assert [b"nc 1", b"nc 2", b"nc 3"] == [made.body for made in bodies if made]
    assert len(upstream.requests) == 4


def test_a_stale_nonce_is_replaced() -> None:
    upstream = server(uses=2)
    reading = broker(upstream, rule(security=(("d",),)), credentials=source())
    for number in range(5):
        made = performed(reading.perform(get(f"/{number}"))).response
        assert made is not None
        assert made.status == 200


def test_a_wrong_password_is_tried_once_and_told() -> None:
    upstream = server()
    reading = broker(upstream, rule(security=(("d",),)), credentials=source("me:not-it-77"))
    made = performed(reading.perform(get())).response
    assert made is not None
    assert (made.status, made.body, len(upstream.requests)) == (401, b"wrong", 2)


def test_a_write_answers_its_challenge_and_leaves_once_more_only_for_that() -> None:
    upstream = server()
    writing = broker(
        upstream,
        rule("POST", security=(("d",),), read=False),
        credentials=source(),
        writes=Release(None),
    )
    made = performed(writing.perform(WireRequest("POST", API + "/x", (), b"body"))).response
    assert made is not None
    assert (made.status, len(upstream.requests)) == (200, 2)


def test_the_password_never_leaves() -> None:
    upstream = server()
    reading = broker(upstream, rule(security=(("d",),)), credentials=source())
    performed(reading.perform(get()))
    assert not any("pass-word" in str(request) for request in upstream.requests)
