"""The control plane over real HTTP: who may ask it, and what it does then."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import httpx
import pytest
import uvicorn

from orchestrator.answers import MAX_SHOWN_BODY
from orchestrator.control import COOKIE, MAX_BODY, Control
from orchestrator.settings import Settings
from registry.pin import ATTEMPTS
from registry.records import Approval
from registry.store import Store
from sandbox.exchange import WireRequest
from tests.orchestrator.conftest import PIN

TOKEN = "the-token"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
GUARDED = [
    ("GET", "/live"),
    ("GET", "/metrics"),
    ("GET", "/approvals"),
    ("POST", "/kill"),
    ("POST", "/unfreeze"),
    ("POST", "/approvals/x"),
]


@dataclass
class Plane:
    """A control plane that listens; `kills` counts how often sandboxes were to be killed."""

    url: str = ""
    kills: list[float] = field(default_factory=list)

    def ask(self, method: str, path: str, **more: object) -> httpx.Response:
        """By default with the token; `headers` replace it."""
        given = {"headers": BEARER, **more}
        with httpx.Client(trust_env=False, base_url=self.url, timeout=10) as client:
            return client.request(method, path, **given)  # type: ignore[arg-type]


@pytest.fixture
def plane(settings: Settings, store: Store) -> Iterator[Plane]:
    here = Plane()

    def kill_sandboxes() -> int:
        here.kills.append(time.time())
        return 0

    application = Control(settings, store, TOKEN, kill_sandboxes).application()
    server = uvicorn.Server(uvicorn.Config(application, log_level="warning", lifespan="off"))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        here.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        yield here
        server.should_exit = True
        thread.join()


def decided(plane: Plane, waiting: Approval, **body: object) -> httpx.Response:
    return plane.ask("POST", f"/approvals/{waiting.id}", json=body)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": f"Basic {TOKEN}"},
        {"Cookie": f"{COOKIE}=wrong"},
    ],
)
def test_nothing_is_told_or_done_without_the_token(
    plane: Plane, store: Store, headers: dict[str, str]
) -> None:
    statuses = [plane.ask(*place, headers=headers).status_code for place in GUARDED]
    assert statuses == [401] * len(GUARDED)
    assert (store.freeze_state().frozen, plane.kills) == (False, [])


@pytest.mark.parametrize(
    "header",
    [
        {"Host": "evil.example"},
        {"Host": "127.0.0.1.evil.example"},
        {"Host": "evil.example:80"},
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
    ],
)
def test_a_page_of_another_site_gets_nowhere_even_with_the_cookie(
    plane: Plane, store: Store, header: dict[str, str]
) -> None:
    headers = {"Cookie": f"{COOKIE}={TOKEN}", **header}
    for place in (*GUARDED, ("GET", "/")):
        assert plane.ask(*place, headers=headers).status_code in (401, 403)
    assert (store.freeze_state().frozen, plane.kills) == (False, [])


def test_it_says_that_it_is_well_to_anyone(plane: Plane) -> None:
    assert plane.ask("GET", "/healthz", headers={}).json() == {"ok": True}


def test_kill_freezes_and_reports(plane: Plane, store: Store) -> None:
    answer = plane.ask("POST", "/kill", json={"by": "me", "reason": "smoke"}).json()
    assert (answer["left"], answer["sigkilled"]) == (0, 0)
    state = store.freeze_state()
    assert (state.frozen, state.by, state.reason) == (True, "me", "smoke")
    assert plane.kills


def test_unfreezing_needs_the_pin(plane: Plane, store: Store) -> None:
    plane.ask("POST", "/kill")
    for body in ({}, {"pin": "wrong"}, {"pin": None}, {"pin": ["correct horse"]}):
        assert plane.ask("POST", "/unfreeze", json=body).status_code == 403
    assert store.freeze_state().frozen
    assert plane.ask("POST", "/unfreeze", json={"pin": PIN}).json()["frozen"] is False
    assert not store.freeze_state().frozen


def test_five_wrong_pins_lock_out_the_right_one(plane: Plane, waiting: Approval) -> None:
    for _ in range(ATTEMPTS):
        assert decided(plane, waiting, decision="approve", pin="wrong").status_code == 403
    locked = decided(plane, waiting, decision="approve", pin=PIN)
    assert (locked.status_code, "try again in" in locked.json()["error"]) == (403, True)


def test_an_approval_is_shown_whole_and_decided_once(
    plane: Plane, store: Store, waiting: Approval
) -> None:
    (shown,) = plane.ask("GET", "/approvals").json()
    assert (shown["approval"], shown["state"]) == (waiting.id, "pending")
    assert shown["request"]["url"] == waiting.wire.url
    assert shown["request"]["body_base64"]
    assert decided(plane, waiting, decision="approve", pin=PIN).json()["state"] == "approved"
    assert decided(plane, waiting, decision="reject", pin=PIN).status_code == 409
    assert store.approval(waiting.id).state == "approved"


@pytest.mark.parametrize("decision", [None, "", "yes", "Approve", True, 1])
def test_only_the_two_words_decide(
    plane: Plane, store: Store, waiting: Approval, decision: object
) -> None:
    answer = decided(plane, waiting, decision=decision, pin=PIN)
    assert answer.status_code == 400
    assert store.approval(waiting.id).state == "pending"


def test_an_approval_that_never_was_is_not_found(plane: Plane) -> None:
    body = {"decision": "approve", "pin": PIN}
    assert plane.ask("POST", "/approvals/none", json=body).status_code == 404


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'"x"', b"\xff", b'{"pin": "' + b"x" * MAX_BODY + b'"}']
)
def test_a_body_that_is_no_object_or_too_large_decides_nothing(
    plane: Plane, store: Store, waiting: Approval, content: bytes
) -> None:
    plane.ask("POST", "/kill")
    assert plane.ask("POST", "/unfreeze", content=content).status_code == 403
    assert plane.ask("POST", f"/approvals/{waiting.id}", content=content).status_code == 400
    assert store.freeze_state().frozen


def test_the_pages_address_becomes_a_cookie_that_scripts_and_other_sites_do_not_get(
    plane: Plane,
) -> None:
    answer = plane.ask("GET", f"/?token={TOKEN}", headers={})
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert plane.ask("GET", "/?token=wrong", headers={}).status_code == 401
    assert plane.ask("GET", "/", headers={}).status_code == 401
    page = plane.ask("GET", "/", headers={"Cookie": f"{COOKIE}={TOKEN}"})
    assert page.status_code == 200
    assert "script-src 'self'" in page.headers["content-security-policy"]
    assert TOKEN not in page.text


def test_what_the_page_shows_of_a_request_is_text_and_never_markup(
    plane: Plane, store: Store, waiting: Approval
) -> None:
    markup = "</pre><script>alert(1)</script>"
    wire = WireRequest("POST", f"https://a.test/{markup}", ((markup, markup),), markup.encode())
    store.request_approval(replace(waiting, id="hostile", wire=wire, reason=markup))
    live = plane.ask("GET", "/live").text
    assert live.count("dns.create_zone") == 2
    assert live.count("&lt;script&gt;") == 5
    assert "<script" not in live


def test_where_a_request_is_too_long_to_be_shown_whole_the_page_says_so(
    plane: Plane, store: Store, waiting: Approval
) -> None:
    wire = WireRequest("POST", "https://a.test/", (("x-mode", "purge"),), b"x" * 5000 + b"HIDDEN")
    store.request_approval(replace(waiting, id="long", wire=wire))
    live = plane.ask("GET", "/live").text
    assert "x-mode: purge" in live
    assert "HIDDEN" not in live
    assert f"{MAX_SHOWN_BODY} of 5006 bytes" in live


def test_metrics_are_for_who_has_the_token(plane: Plane, waiting: Approval) -> None:
    metrics = plane.ask("GET", "/metrics")
    assert metrics.status_code == 200
    assert "toolwright" in metrics.text
