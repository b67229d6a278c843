"""Where a redirect leads: to what is declared, to a log-in that is told as one, or nowhere."""

from __future__ import annotations

import re

import pytest

from sandbox.broker.redirects import Redirect, judge_redirect
from sandbox.wire.exchange import Caps, Exchange, WireRequest, WireResponse
from sandbox.wire.policy import Origin, Policy, RequestRule

API = "https://api.test/v1"


def judged(location: str, asked: str = "/things", method: str = "GET") -> Redirect | Exchange:
    request = WireRequest(method, API + asked)
    response = WireResponse(302, (("location", location),))
    return judge_redirect(Exchange(request, response), Policy(()), Caps(), 0)


@pytest.mark.parametrize(
    "location",
    [
        "/login",
        "/users/sign_in?next=%2Fthings",
        "/accounts/Login/",
        "/wp-login.php?redirect_to=x",
        "https://id.test/oauth2/v2/auth?client_id=1",
        "https://id.test/realms/x/protocol/openid-connect/auth",
        "//id.test/saml2/sso",
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_redirect_to_a_log_in_says_what_the_api_wants(location: str, method: str) -> None:
    exchange = judged(location, method=method)
    assert isinstance(exchange, Exchange)
    assert exchange.response is None
    assert (exchange.refusal, exchange.kind) == ("credential", "refused")
    assert exchange.reason.startswith("the API wants a log-in: ")
    assert "toolwright secret set" in exchange.reason
    # What a stranger wrote into the address is not repeated.
    assert "next" not in exchange.reason


@pytest.mark.parametrize(
    ("location", "asked"),
    [
        ("/elsewhere", "/things"),
        ("https://other.test/blogin/1", "/things"),
        ("/things/loginsight", "/things"),
        ("?next=/login", "/things"),
        ("/v1/login/7", "/login"),
        ("javascript:login", "/things"),
    ],
)
def test_any_other_undeclared_target_is_told_as_one(location: str, asked: str) -> None:
    exchange = judged(location, asked)
    assert isinstance(exchange, Exchange)
    assert exchange.refusal == "redirect"
    assert "undeclared target" in exchange.reason


def test_a_log_in_that_is_declared_is_followed_as_before() -> None:
    origin = Origin("https", "api.test", 443)
    rule = RequestRule("GET", origin, re.compile("/login"), "/login", "t", ())
    request = WireRequest("GET", f"{API}/things")
    response = WireResponse(302, (("location", "/login"),))
    made = judge_redirect(Exchange(request, response), Policy((rule,)), Caps(), 0)
    assert isinstance(made, Redirect)
