from __future__ import annotations

import base64

import pytest

from sandbox.bundle.credential import Credential, CredentialPlace, CredentialValue, Kind
from sandbox.credentials.source import CredentialSource
from sandbox.wire.exchange import Exchange, WireRequest, WireResponse
from tests.sandbox.scripted import Told, answer, broker, get, performed, rule

KINDS = {
    "key": Credential("key", "apiKey", "header", "X-Key"),
    "arg": Credential("arg", "apiKey", "query", "k"),
    "sid": Credential("sid", "apiKey", "cookie", "sid"),
    "bearer": Credential("bearer", "bearer"),
    "basic": Credential("basic", "basic"),
    "tls": Credential("tls", "mutualTLS"),
    "odd": Credential("odd", "other"),
}
SECRETS = {
    "key": "k3y-canary",
    "arg": "4rg canary&x",
    "sid": "s1d-canary",
    "bearer": "b34rer-canary",
    "basic": "user:p4ss-canary",
    "tls": "certificate",
    "odd": "odd-secret",
}


def asked(
    security: tuple[tuple[str, ...], ...],
    held: dict[str, str] | None = None,
    request: WireRequest | None = None,
) -> tuple[Exchange, WireRequest | None]:
    secrets = SECRETS if held is None else held
    upstream = Told(lambda wire: echo(wire))
    source = CredentialSource(KINDS, secrets.get, "pets")
    reading = broker(upstream, rule(security=security), credentials=source)
    exchange = performed(reading.perform(request or get()))
    return exchange, upstream.requests[0] if upstream.requests else None


def echo(wire: WireRequest) -> WireResponse:
    shown = "\n".join([wire.url, *(f"{name}: {value}" for name, value in wire.headers)])
    headers = tuple((f"x-echo-{n}", value) for n, (_, value) in enumerate(wire.headers))
    return WireResponse(200, headers, shown.encode())


def test_each_kind_goes_where_the_contract_says_and_comes_back_from_nowhere() -> None:
    exchange, sent = asked((("key", "arg", "sid", "bearer"),))
    assert sent is not None
    assert sent.get_header("X-Key") == "k3y-canary"
    assert sent.get_header("Authorization") == "Bearer b34rer-canary"
    assert sent.get_header("Cookie") == "sid=s1d-canary"
    assert sent.url.endswith("?k=4rg%20canary%26x")
    assert "canary" not in str(exchange)


def test_basic_is_encoded_and_neither_form_comes_back() -> None:
    exchange, sent = asked((("basic",),))
    assert sent is not None
    made = base64.b64encode(b"user:p4ss-canary").decode()
    assert sent.get_header("Authorization") == f"Basic {made}"
    assert made not in str(exchange)


@pytest.mark.parametrize(
    ("kind", "secret", "sent"),
    [
        ("bearer", "Bearer b34rer-canary", "Bearer b34rer-canary"),
        ("bearer", "bearer  b34rer-canary", "Bearer b34rer-canary"),
        ("bearer", "b34rer-canary", "Bearer b34rer-canary"),
        ("oauth2", "Bearer b34rer-canary", "Bearer b34rer-canary"),
        ("basic", "Basic dXNlcjpwNHNzLWNhbmFyeQ==", "Basic dXNlcjpwNHNzLWNhbmFyeQ=="),
        ("basic", "basic user:p4ss-canary", "Basic YmFzaWMgdXNlcjpwNHNzLWNhbmFyeQ=="),
    ],
)
def test_a_secret_that_is_the_headers_whole_value_is_sent_as_it_is(
    kind: Kind, secret: str, sent: str
) -> None:
    declared = {"own": Credential("own", kind)}
    upstream = Told(lambda wire: echo(wire))
    source = CredentialSource(declared, {"own": secret}.get, "pets")
    reading = broker(upstream, rule(security=(("own",),)), credentials=source)
    performed(reading.perform(get()))
    assert upstream.requests[0].get_header("Authorization") == sent


@pytest.mark.parametrize(
    ("secret", "told"),
    [
        ("Bearer b34rer-canary", "your token is b34rer-canary"),
        ("Token k3y-canary", "your key is k3y-canary"),
        ("Basic dXNlcjpwNHNzLWNhbmFyeQ==", "your password is p4ss-canary"),
    ],
)
def test_what_comes_after_a_scheme_does_not_come_back_by_itself(secret: str, told: str) -> None:
    declared = {"own": Credential("own", "bearer")}
    source = CredentialSource(declared, {"own": secret}.get, "pets")
    reading = broker(Told([answer(200, told)]), rule(security=(("own",),)), credentials=source)
    assert "canary" not in str(performed(reading.perform(get())))


def test_secrets_of_the_server_that_were_not_sent_do_not_come_back_either() -> None:
    upstream = Told([answer(200, "you also have k3y-canary")])
    source = CredentialSource(KINDS, SECRETS.get)
    reading = broker(upstream, rule(security=(("bearer",),)), credentials=source)
    assert "canary" not in str(performed(reading.perform(get())))


def test_the_first_alternative_that_is_whole_is_taken() -> None:
    _, sent = asked((("key", "arg"), ("bearer",)), {"key": "k", "bearer": "b34rer"})
    assert sent is not None
    assert sent.get_header("Authorization") == "Bearer b34rer"
    assert sent.get_header("X-Key") is None


def test_without_security_nothing_is_added() -> None:
    _, sent = asked(())
    assert sent is not None
    assert (sent.headers, sent.url) == ((), get().url)


def test_anonymous_access_is_taken_where_nothing_is_set_and_a_credential_where_one_is() -> None:
    _, bare = asked((("key",), ()), {})
    _, keyed = asked(((), ("key",)))
    assert bare is not None
    assert keyed is not None
    assert (bare.headers, keyed.get_header("X-Key")) == ((), "k3y-canary")


@pytest.mark.parametrize(
    ("security", "told"),
    [
        ((("tls",),), "cannot be used: tls (mutualTLS) is not supported"),
        ((("tls",), ("key",)), "tls (mutualTLS) is not supported; or key is not set"),
        ((("odd", "key"),), "odd (other) is not supported"),
        ((("unheard_of",),), "unheard_of (other) is not supported"),
    ],
)
def test_what_is_lacking_is_said_and_nothing_is_sent(
    security: tuple[tuple[str, ...], ...], told: str
) -> None:
    held = {"tls": "x", "odd": "x", "unheard_of": "x"}
    exchange, sent = asked(security, held)
    assert (exchange.refusal, sent) == ("credential", None)
    assert told in exchange.reason


def test_a_credential_that_nobody_set_is_left_to_the_api_to_ask_for() -> None:
    for security in ((("key",),), (("key", "arg"), ("bearer",))):
        exchange, sent = asked(security, {})
        assert sent is not None
        assert (exchange.refusal, sent.headers, sent.url) == ("", (), get().url)


def test_a_credential_of_which_a_part_is_set_is_not_left_out() -> None:
    exchange, sent = asked((("key", "arg"), ("bearer",)), {"key": "k3y-canary"})
    assert (exchange.refusal, sent) == ("credential", None)
    assert "arg is not set; or bearer is not set (`toolwright secret set pets.arg`)" in (
        exchange.reason
    )


def test_a_header_with_a_line_break_as_its_secret_is_refused_before_anything_leaves() -> None:
    exchange, sent = asked((("key",),), {"key": "a\nX-Evil: canary"})
    assert (exchange.refusal, exchange.attempts, sent) == ("credential", 0, None)
    assert "canary" not in exchange.reason


def test_the_sandboxs_own_value_at_the_place_is_replaced() -> None:
    theirs = get("/x?k=mine&q=1", X_Key="mine", Cookie="sid=mine; b=1")
    _, sent = asked((("key", "arg", "sid"),), request=theirs)
    assert sent is not None
    assert "mine" not in str(sent)
    assert sent.get_header("cookie") == "b=1; sid=s1d-canary"


def test_what_a_template_makes_comes_back_from_nowhere() -> None:
    value = CredentialValue("signature", "hmac", "{path}", key="{secret}")
    places = (CredentialPlace("header", "X-Made", "v1={signature}"),)
    made = Credential("t", "template", values=(value,), places=places)
    upstream = Told(lambda wire: echo(wire))
    source = CredentialSource({"t": made}, lambda name: "c4nary-key")
    exchange = performed(
        broker(upstream, rule(security=(("t",),)), credentials=source).perform(get())
    )
    signature = (upstream.requests[0].get_header("X-Made") or "").removeprefix("v1=")
    assert len(signature) == 64
    assert signature not in str(exchange)


def test_a_secret_that_the_sandbox_put_together_itself_does_not_leave_it() -> None:
    pieces = {"/1": "k3y-ca", "/2": "nary"}
    upstream = Told(lambda wire: answer(200, pieces[wire.url[-2:]]))
    source = CredentialSource(KINDS, SECRETS.get)
    reading = broker(upstream, rule(security=(("key",),)), credentials=source)
    told = {"id": "1", "result": {"content": [{"type": "text", "text": "k3y-canary"}]}}
    assert reading.redact_answer(told) == told
    got = [performed(reading.perform(get(path))).response for path in pieces]
    assert [response.body for response in got if response] == [b"k3y-ca", b"nary"]
    clean = reading.redact_answer(told)
    assert clean["result"]["content"][0]["text"] == "[redacted]"
    untouched = {"id": "2", "result": {"content": [], "structuredContent": {"n": 10**30}}}
    assert reading.redact_answer(untouched) is untouched
