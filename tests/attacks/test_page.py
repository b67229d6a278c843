"""The control plane, asked by pages of other sites and by who is on the way to it."""

from __future__ import annotations

import re
import socket
from urllib.parse import urlsplit

import pytest

from orchestrator.control.middleware import DEFAULTS
from orchestrator.control.server import COOKIE
from registry.store import Store
from tests.orchestrator.plane import BEARER, Plane, logged_in

PLACES = ("/", "/healthz", "/page.js", "/page.css", "/docs", "/approvals", "/rules", "/nothing")


def raw(plane: Plane, request: str) -> str:
    """The status line and headers that answer these very bytes."""
    parts = urlsplit(plane.url)
    with socket.create_connection((parts.hostname, parts.port), 60) as connection:
        connection.sendall(request.replace("\n", "\r\n").encode("latin-1"))
        return connection.recv(4096).decode("latin-1")


@pytest.mark.parametrize("who", ["nobody", "token", "browser"])
def test_no_answer_can_be_framed_sniffed_kept_or_run(who: str, plane: Plane) -> None:
    headers = {"nobody": {}, "token": BEARER, "browser": logged_in(plane)}[who]
    for path in PLACES:
        answer = plane.ask("GET", path, headers=headers)
        assert {name.lower() for name in DEFAULTS} <= set(answer.headers)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert not [name for name in answer.headers if name.startswith("access-control-")]
        assert not re.search(r"<script(?! src=\"/page\.js\" defer></script>)", answer.text)


def test_the_page_runs_its_own_script_and_no_other(plane: Plane) -> None:
    answer = plane.ask("GET", "/", headers=logged_in(plane))
    assert answer.status_code == 200
    assert "script-src 'self'" in answer.headers["content-security-policy"]
    assert plane.ask("GET", "/page.js").headers["content-type"].startswith("text/javascript")


def test_no_other_site_is_told_that_it_may_read_or_ask(plane: Plane) -> None:
    headers = {**BEARER, "Origin": "http://evil.test", "Access-Control-Request-Method": "POST"}
    for path in ("/kill", "/approvals", "/events", "/"):
        answer = plane.ask("OPTIONS", path, headers=headers)
        assert answer.status_code in (403, 405)
        assert not [name for name in answer.headers if name.startswith("access-control-")]


@pytest.mark.parametrize(
    "request_line",
    [
        "GET /kill HTTP/1.1\n",
        "HEAD /kill HTTP/1.1\n",
        "GET /kill HTTP/1.1\nX-HTTP-Method-Override: POST\n",
        "GET /kill?_method=POST HTTP/1.1\n",
        "POST //kill HTTP/1.1\n",
        "POST /healthz/../kill HTTP/1.1\n",
        "POST /healthz/%2e%2e/kill HTTP/1.1\n",
    ],
)
def test_only_a_post_to_its_very_path_freezes(
    request_line: str, plane: Plane, store: Store
) -> None:
    host = urlsplit(plane.url).netloc
    bearer = f"Authorization: {BEARER['Authorization']}\n"
    answer = raw(plane, f"{request_line}Host: {host}\n{bearer}Content-Length: 0\n\n")
    assert answer.startswith(("HTTP/1.1 404", "HTTP/1.1 405"))
    assert not store.processes.get_freeze().frozen
    assert plane.ask("POST", "/kill").status_code == 200
    assert store.processes.get_freeze().frozen


@pytest.mark.parametrize(
    "hosts",
    [
        "Host: evil.test\n",
        "Host: 127.0.0.1\nHost: evil.test\n",
        "Host: evil.test\nX-Forwarded-Host: 127.0.0.1\n",
        "Host: 127.0.0.1.evil.test\n",
        "Host: localhost.evil.test:80\n",
        "Host: \n",
        "",
    ],
)
def test_a_name_that_was_bound_anew_to_this_machine_gets_nothing(hosts: str, plane: Plane) -> None:
    bearer = f"Authorization: {BEARER['Authorization']}\n"
    answer = raw(plane, f"GET /approvals HTTP/1.1\n{hosts}{bearer}\n")
    assert answer.startswith(("HTTP/1.1 403", "HTTP/1.1 400"))
    mine = urlsplit(plane.url).netloc
    assert raw(plane, f"GET /approvals HTTP/1.1\nHost: {mine}\n{bearer}\n").startswith(
        "HTTP/1.1 200"
    )


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "application/json"]
)
def test_a_form_of_another_site_changes_nothing(kind: str, plane: Plane, store: Store) -> None:
    """Browsers send such a POST with the cookie and without asking first."""
    browser = logged_in(plane)
    for origin in ({}, {"Origin": "http://evil.test"}, {"Origin": "null"}):
        headers = {**browser, "Content-Type": kind, **origin}
        answer = plane.ask("POST", "/kill", headers=headers, content=b'{"by": "me"}')
        assert answer.status_code == 403
    assert not store.processes.get_freeze().frozen
    own = plane.ask("POST", "/kill", headers={**browser, "Origin": plane.url}, content=b"{}")
    assert own.status_code == 200


@pytest.mark.parametrize("more", ["&next=//evil.test", "&url=http://evil.test", "#@evil.test", ""])
def test_a_login_leads_to_the_page_and_nowhere_else(more: str, plane: Plane) -> None:
    path = plane.ask("POST", "/login").json()["path"]
    answer = plane.ask("GET", path + more, headers={})
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"].lower()
    assert cookie.startswith(COOKIE)
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert plane.ask("GET", path + more, headers={}).status_code == 401
