"""The control plane, asked by pages of other sites and by who is on the way to it."""

from __future__ import annotations

import re
import socket
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from orchestrator.control.access import COOKIE, ControlAccess
from orchestrator.control.commands import run_command
from orchestrator.control.middleware import DEFAULTS
from orchestrator.settings import Settings
from registry.models import Approval
from registry.store import Store
from tests.orchestrator.conftest import PIN
from tests.orchestrator.plane import BEARER, Plane, log_in

PLACES = ("/", "/healthz", "/page.js", "/page.css", "/docs", "/approvals", "/rules", "/nothing")


def raw(plane: Plane, request: str) -> str:
    """The status line and headers that answer these very bytes."""
    parts = urlsplit(plane.url)
    with socket.create_connection((parts.hostname, parts.port), 60) as connection:
        connection.sendall(request.replace("\n", "\r\n").encode("latin-1"))
        return connection.recv(4096).decode("latin-1")


@pytest.mark.parametrize("who", ["nobody", "token", "browser"])
def test_no_answer_can_be_framed_sniffed_kept_or_run(who: str, plane: Plane) -> None:
    headers = {"nobody": {}, "token": BEARER, "browser": log_in(plane).headers}[who]
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
    answer = plane.ask("GET", "/", headers=log_in(plane).shown)
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
    browser = log_in(plane)
    for origin in ({}, {"Origin": "http://evil.test"}, {"Origin": "null"}):
        headers = {**browser.shown, "Content-Type": kind, **origin}
        answer = plane.ask("POST", "/kill", headers=headers, content=b'{"by": "me"}')
        assert answer.status_code in (401, 403)
    assert not store.processes.get_freeze().frozen
    assert browser.press("/kill", content=b"{}").status_code == 200


@pytest.mark.parametrize("more", ["&next=//evil.test", "&url=http://evil.test", "#@evil.test", ""])
def test_a_login_leads_to_the_page_and_nowhere_else(more: str, plane: Plane) -> None:
    url = urlsplit(plane.ask("POST", "/login").json()["url"])
    path, host = f"/?{url.query}", {"Host": url.netloc}
    answer = plane.ask("GET", path + more, headers=host)
    assert (answer.status_code, answer.headers["location"][:2]) == (303, "/#")
    cookie = answer.headers["set-cookie"].lower()
    assert cookie.startswith(COOKIE)
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert plane.ask("GET", path + more, headers=host).status_code == 401


EVERYWHERE = [
    ("GET", "/approvals"),
    ("GET", "/events"),
    ("GET", "/search?text=x"),
    ("POST", "/do"),
    ("POST", "/kill"),
    ("POST", "/approvals/x"),
]


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "the page's"])
def test_a_cookie_that_another_port_was_sent_opens_nothing(
    name: str, plane: Plane, store: Store
) -> None:
    """Cookies know no ports: a server beside this one is shown what this one has set."""
    browser = log_in(plane)
    port = browser.host.rpartition(":")[2]
    host = browser.host if name == "the page's" else f"{name}:{port}"
    headers = {"Host": host, "Origin": f"http://{host}", "Cookie": browser.cookie}
    for place in EVERYWHERE:
        assert plane.ask(*place, headers=headers).status_code == 401, place
    assert not store.processes.get_freeze().frozen


def test_what_browsers_keep_for_this_machine_is_never_set_or_believed(plane: Plane) -> None:
    path = plane.ask("POST", "/login").json()["path"]
    host = urlsplit(plane.url).netloc
    for _ in range(2):
        answer = plane.ask("GET", path, headers={"Host": host})
        assert "set-cookie" not in answer.headers
        assert urlsplit(answer.headers["location"]).hostname != "127.0.0.1"
    # The link was not used up by that.
    led = urlsplit(answer.headers["location"])
    assert plane.ask("GET", f"/?{led.query}", headers={"Host": led.netloc}).status_code == 303


def test_each_start_has_an_origin_of_its_own(plane: Plane, store: Store) -> None:
    first, second = (ControlAccess("token").page_name for _ in range(2))
    assert first != second
    browser = log_in(plane)
    headers = {**browser.headers, "Host": f"{first}:1", "Origin": f"http://{first}:1"}
    assert plane.ask("GET", "/approvals", headers=headers).status_code == 403


def test_a_key_without_the_cookie_opens_nothing(plane: Plane) -> None:
    headers = log_in(plane).headers
    del headers["Cookie"]
    assert plane.ask("GET", "/approvals", headers=headers).status_code == 401


def test_one_form_is_no_other_and_no_other_page_s(
    plane: Plane, store: Store, waiting: Approval
) -> None:
    browser, other = log_in(plane), log_in(plane)
    rejection = browser.find_form(f"/approvals/{waiting.id}")
    for form in ("", rejection, other.find_form("/kill")):
        headers = {**browser.headers, "X-Toolwright-Form": form}
        assert plane.ask("POST", "/kill", headers=headers).status_code == 403
    assert not store.processes.get_freeze().frozen


def test_the_page_itself_reads_decides_and_freezes(
    plane: Plane, store: Store, waiting: Approval
) -> None:
    browser = log_in(plane)
    (shown,) = plane.ask("GET", "/approvals", headers=browser.headers).json()
    body = {"decision": "reject", "pin": PIN, "digest": shown["digest"]}
    assert browser.press(f"/approvals/{waiting.id}", json=body).json()["state"] == "rejected"
    assert browser.press("/kill").status_code == 200
    assert store.processes.get_freeze().frozen


def test_no_command_of_the_page_runs_what_lies_in_the_directory_it_was_started_in(
    settings: Settings, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    strange = tmp_path / "repository"
    for name in ("orchestrator", "click"):
        (strange / name).mkdir(parents=True)
        (strange / name / "__init__.py").write_text("open('ran', 'w').close()")
    monkeypatch.chdir(strange)
    said = run_command(settings, "list", "--json", seconds=60)
    assert said == {"items": []}
    assert not (strange / "ran").exists()
