"""The control plane over real HTTP: who may ask it, and what it does then."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from urllib.parse import urlsplit

import httpx
import pytest

from orchestrator.approvals.text import MAX_SHOWN_BODY, hash_approval
from orchestrator.control.access import COOKIE
from orchestrator.control.logins import Logins
from orchestrator.control.middleware import MAX_BODY
from orchestrator.control.page import PANELS
from orchestrator.processes.liveness import read_start_time
from registry.audit.search import AuditQuery
from registry.models import Approval, Process
from registry.secrets.pin import ATTEMPTS
from registry.store import Store
from sandbox.wire.exchange import WireRequest
from tests.orchestrator.conftest import PIN
from tests.orchestrator.plane import TOKEN, Plane, log_in

GUARDED = [
    ("GET", "/events"),
    ("GET", "/docs"),
    ("GET", "/search?text=x"),
    ("GET", "/jobs/x"),
    ("POST", "/jobs/x/allow"),
    ("POST", "/login"),
    ("POST", "/do"),
    ("POST", "/jobs/x/again"),
    ("POST", "/calls/x/wrong"),
    ("POST", "/replay/x"),
    ("GET", "/metrics"),
    ("GET", "/approvals"),
    ("POST", "/kill"),
    ("POST", "/unfreeze"),
    ("POST", "/approvals/x"),
    ("GET", "/rules"),
    ("POST", "/rules/x/revoke"),
    ("POST", "/audit/verify"),
]


def decided(plane: Plane, waiting: Approval, **body: object) -> httpx.Response:
    told = {"digest": hash_approval(waiting), **body}
    return plane.ask("POST", f"/approvals/{waiting.id}", json=told)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": f"Basic {TOKEN}"},
        {"Cookie": f"{COOKIE}=wrong"},
        {"Cookie": f"{COOKIE}={TOKEN}"},
    ],
)
def test_nothing_is_told_or_done_without_the_token(
    plane: Plane, store: Store, headers: dict[str, str]
) -> None:
    statuses = [plane.ask(*place, headers=headers).status_code for place in GUARDED]
    assert statuses == [401] * len(GUARDED)
    assert (store.processes.get_freeze().frozen, plane.kills) == (False, [])


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
    headers = {**log_in(plane).headers, **header}
    for place in (*GUARDED, ("GET", "/")):
        assert plane.ask(*place, headers=headers).status_code in (401, 403)
    assert (store.processes.get_freeze().frozen, plane.kills) == (False, [])


def test_it_says_that_it_is_well_to_anyone(plane: Plane) -> None:
    assert plane.ask("GET", "/healthz", headers={}).json() == {"ok": True, "pid": os.getpid()}


def test_kill_freezes_and_reports(plane: Plane, store: Store) -> None:
    answer = plane.ask("POST", "/kill", json={"by": "me", "reason": "smoke"}).json()
    assert (answer["left"], answer["sigkilled"]) == (0, 0)
    state = store.processes.get_freeze()
    assert (state.frozen, state.by, state.reason) == (True, "me", "smoke")
    assert plane.kills


def test_unfreezing_needs_the_pin(plane: Plane, store: Store) -> None:
    plane.ask("POST", "/kill")
    for body in ({}, {"pin": "wrong"}, {"pin": None}, {"pin": ["correct horse"]}):
        assert plane.ask("POST", "/unfreeze", json=body).status_code == 403
    assert store.processes.get_freeze().frozen
    assert plane.ask("POST", "/unfreeze", json={"pin": PIN}).json()["frozen"] is False
    assert not store.processes.get_freeze().frozen


def test_wrong_pins_are_found_in_the_audit_without_the_pin_and_none_while_it_is_locked(
    plane: Plane, store: Store, waiting: Approval
) -> None:
    decided(plane, waiting, decision="approve", pin="sesame-4711")
    plane.ask("POST", "/unfreeze", json={"pin": "sesame-4711"})
    grant = {"host": "a.example:443", "pin": "sesame-4711"}
    plane.ask("POST", "/hosts", json=grant)
    for _ in range(ATTEMPTS):
        decided(plane, waiting, decision="approve", pin="sesame-4711")
    rows = store.audit.search(AuditQuery(text="pin"), 50)
    refused = [json.loads(each.row.payload) for each in rows if each.row.kind == "pin.refused"]
    assert [each["wrong_in_a_row"] for each in reversed(refused)] == [1, 2, 3, 4, 5]
    assert [each["by"] for each in reversed(refused)][:3] == ["control", "control", "page"]
    assert "sesame" not in str(rows)
    decided(plane, waiting, decision="reject", pin=PIN)
    assert len(store.audit.search(AuditQuery(text="pin.refused"), 50)) == ATTEMPTS


def test_freezing_unfreezing_and_revoking_on_the_page_are_audited_as_the_page_s(
    plane: Plane, store: Store, waiting: Approval
) -> None:
    browser = log_in(plane)
    assert browser.press("/kill", json={"by": "page"}).status_code == 200
    assert browser.press("/unfreeze", json={"pin": PIN}).status_code == 200
    rows = [json.loads(row.payload) for row in store.audit.find(50) if "freeze" in row.kind]
    assert {row["by"] for row in rows} == {"page"}
    plane.ask("POST", "/kill")
    plane.ask("POST", "/unfreeze", json={"pin": PIN})
    rows = [json.loads(row.payload) for row in store.audit.find(50) if "freeze" in row.kind]
    assert [row["by"] for row in rows].count("control") == 2


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
    assert store.approvals.get(waiting.id).state == "approved"
    assert plane.sent == [waiting.id]


def test_who_decides_and_waits_is_told_what_came_of_it_and_what_sends_it(
    plane: Plane, waiting: Approval
) -> None:
    told = decided(plane, waiting, decision="approve", pin=PIN, wait=5).json()["told"]
    assert told == (
        f"{waiting.id}: approved, not sent yet; `toolwright work --approval {waiting.id}` sends it"
    )
    shown = log_in(plane).read_events()["waiting"]
    assert "is being sent" in shown
    assert "toolwright work" not in shown


def test_a_rejection_and_a_wrong_pin_have_nothing_sent(plane: Plane, waiting: Approval) -> None:
    decided(plane, waiting, decision="approve", pin="wrong")
    decided(plane, waiting, decision="reject", pin=PIN)
    assert plane.sent == []


@pytest.mark.parametrize("decision", [None, "", "yes", "Approve", True, 1])
def test_only_the_two_words_decide(
    plane: Plane, store: Store, waiting: Approval, decision: object
) -> None:
    answer = decided(plane, waiting, decision=decision, pin=PIN)
    assert answer.status_code == 400
    assert store.approvals.get(waiting.id).state == "pending"


@pytest.mark.parametrize("decision", ["approve", "reject"])
def test_nothing_is_decided_without_the_digest_of_what_was_shown(
    plane: Plane, store: Store, waiting: Approval, decision: str
) -> None:
    answer = decided(plane, waiting, decision=decision, pin=PIN, digest="")
    assert (answer.status_code, "GET /approvals" in answer.json()["error"]) == (400, True)
    other = decided(plane, waiting, decision=decision, pin=PIN, digest="0" * 64)
    assert other.status_code == 409
    assert store.approvals.get(waiting.id).state == "pending"


def test_an_approval_that_never_was_is_not_found(plane: Plane) -> None:
    body = {"decision": "approve", "pin": PIN, "digest": "0" * 64}
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
    assert store.processes.get_freeze().frozen


def test_a_link_logs_one_browser_in_once(plane: Plane) -> None:
    told = plane.ask("POST", "/login").json()
    path, host = told["path"], {"Host": urlsplit(told["url"]).netloc}
    answer = plane.ask("GET", path, headers=host)
    assert (answer.status_code, answer.headers["location"][:2]) == (303, "/#")
    cookie = answer.headers["set-cookie"]
    assert "httponly" in cookie.lower()
    assert "samesite=strict" in cookie.lower()
    assert "domain" not in cookie.lower()
    assert TOKEN not in cookie
    assert plane.ask("GET", path, headers=host).status_code == 401
    assert plane.ask("GET", "/?login=wrong", headers=host).status_code == 401
    assert plane.ask("GET", f"/?login={TOKEN}", headers=host).status_code == 401
    assert plane.ask("GET", "/", headers=host).status_code == 401
    page = plane.ask("GET", "/", headers={**host, "Cookie": cookie.partition(";")[0]})
    assert page.status_code == 200
    assert "script-src 'self'" in page.headers["content-security-policy"]
    assert TOKEN not in page.text


def test_a_link_ends_by_itself_and_a_login_too() -> None:
    logins = Logins()
    assert logins.begin_session(logins.create_code(0.0), 121.0) is None
    session = logins.begin_session(logins.create_code(0.0), 119.0)
    assert session is not None
    assert logins.find_session(session.cookie, 3600.0) == session
    assert logins.find_session(session.cookie, 13 * 3600.0) is None
    assert logins.find_session("", 0.0) is None


def test_a_browser_that_is_logged_in_does_not_get_a_link_for_another(plane: Plane) -> None:
    assert plane.ask("POST", "/login", headers=log_in(plane).headers).status_code == 403


def test_a_post_of_a_browser_has_to_name_its_origin(plane: Plane, store: Store) -> None:
    browser = log_in(plane)
    headers = {**browser.headers, "X-Toolwright-Form": browser.find_form("/kill")}
    del headers["Origin"]
    assert plane.ask("POST", "/kill", headers=headers).status_code == 403
    assert not store.processes.get_freeze().frozen
    assert plane.ask("POST", "/kill", headers={**headers, "Origin": plane.url}).status_code == 403
    assert not store.processes.get_freeze().frozen
    headers["Origin"] = browser.origin
    assert plane.ask("POST", "/kill", headers=headers).status_code == 200


def test_the_parts_that_changed_are_sent_and_no_others(
    plane: Plane, store: Store, waiting: Approval
) -> None:
    with (
        httpx.Client(trust_env=False, base_url=plane.url, timeout=120) as client,
        client.stream("GET", "/events", headers=log_in(plane).headers) as answer,
    ):
        events = (line for line in answer.iter_lines() if line.startswith("data: "))
        assert set(json.loads(next(events)[6:])) == set(PANELS)
        store.approvals.add_pending(replace(waiting, id="second"))
        changed = json.loads(next(events)[6:])
        assert set(changed) == {"nav", "waiting"}
        assert "second" in changed["waiting"]


def test_a_task_becomes_a_job_that_can_be_watched(plane: Plane, store: Store) -> None:
    store.processes.register(Process("w", os.getpid(), _started(), "serve", 0.0, 0.0))
    order = {"task": "list the zones", "tool": "dns.list_zones", "arguments": {"a": 1}}
    answer = plane.ask("POST", "/do", json=order)
    assert answer.status_code == 202
    job = store.jobs.get(answer.json()["job"])
    assert (job.kind, job.state, dict(job.request)) == ("do", "queued", order)
    assert plane.ask("GET", f"/jobs/{job.id}").json()["state"] == "queued"


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"task": ""},
        {"task": 1},
        {"task": "x" * 4001},
        {"task": "x", "arguments": []},
        {"task": "x", "tool": {}},
    ],
)
def test_a_malformed_task_makes_no_job(plane: Plane, store: Store, body: dict[str, object]) -> None:
    assert plane.ask("POST", "/do", json=body).status_code == 400
    assert store.jobs.find() == ()


def test_a_server_is_ordered_by_the_address_of_its_api(plane: Plane, store: Store) -> None:
    store.processes.register(Process("w", os.getpid(), _started(), "serve", 0.0, 0.0))
    order = {"source": "https://a.test/openapi.json"}
    answer = plane.ask("POST", "/servers", json={**order, "name": "", "files": "typed"})
    job = store.jobs.get(answer.json()["job"])
    assert (job.kind, job.state, dict(job.request)) == ("forge", "queued", order)
    for body in ({}, {"source": " "}, {"source": "x" * 2001}, {**order, "name": "x" * 101}):
        assert plane.ask("POST", "/servers", json=body).status_code == 400
    assert len(store.jobs.find()) == 1


def test_what_happened_is_found_by_a_text_in_it(plane: Plane, waiting: Approval) -> None:
    found = plane.ask("GET", "/search", params={"text": waiting.id.upper()}).json()["found"]
    assert [line.split()[2] for line in found] == ["approval.pending"]
    assert plane.ask("GET", "/search", params={"text": ""}).json() == {"found": []}


def test_a_call_that_never_was_is_neither_replayed_nor_marked(plane: Plane) -> None:
    assert plane.ask("POST", "/replay/--help").status_code == 404
    assert plane.ask("POST", "/calls/none/wrong").status_code == 404


def test_the_api_is_documented_route_by_route(plane: Plane) -> None:
    docs = plane.ask("GET", "/docs").text
    for path in ("/kill", "/approvals/{id}", "/do", "/events", "/metrics"):
        assert path in docs
    assert "<dd></dd>" not in docs


def test_what_the_page_shows_of_a_request_is_text_and_never_markup(
    plane: Plane, store: Store, waiting: Approval
) -> None:
    markup = "</pre><script>alert(1)</script>"
    wire = WireRequest("POST", f"https://a.test/{markup}", ((markup, markup),), markup.encode())
    store.approvals.add_pending(replace(waiting, id="hostile", wire=wire, reason=markup))
    waiting_now = log_in(plane).read_events()["waiting"]
    assert waiting_now.count("<h3>dns.create_zone") == 2
    assert waiting_now.count("&lt;script&gt;") == 7
    assert "<script" not in "".join(log_in(plane).read_events().values())


def test_where_a_request_is_too_long_to_be_shown_whole_the_page_says_so(
    plane: Plane, store: Store, waiting: Approval
) -> None:
    wire = WireRequest("POST", "https://a.test/", (("x-mode", "purge"),), b"x" * 5000 + b"HIDDEN")
    store.approvals.add_pending(replace(waiting, id="long", wire=wire))
    live = log_in(plane).read_events()["waiting"]
    assert "x-mode: purge" in live
    assert "HIDDEN" not in live
    assert f"{MAX_SHOWN_BODY} of 5006 bytes" in live


def test_metrics_are_for_who_has_the_token(plane: Plane, waiting: Approval) -> None:
    metrics = plane.ask("GET", "/metrics")
    assert metrics.status_code == 200
    assert "toolwright" in metrics.text


def _started() -> float:
    return read_start_time(os.getpid())


def test_an_approval_can_bring_a_rule_which_is_listed_and_revoked_without_a_pin(
    plane: Plane, store: Store, waiting: Approval
) -> None:
    always = {"where": {"name": "example.org"}, "until": "3d", "max": 5}
    wrong = decided(plane, waiting, decision="approve", pin="wrong", always=always)
    assert (wrong.status_code, plane.ask("GET", "/rules").json()) == (403, [])
    told = decided(plane, waiting, decision="approve", pin=PIN, always=always).json()
    (rule,) = plane.ask("GET", "/rules").json()
    assert (rule["rule"], rule["state"], rule["max"]) == (told["rule"], "live", 5)
    assert plane.ask("POST", f"/rules/{rule['rule']}/revoke").json()["revoked"] is True
    assert plane.ask("GET", "/rules").json()[0]["state"] == "revoked"
    assert plane.ask("POST", f"/rules/{rule['rule']}/revoke").json()["revoked"] is False
    assert plane.ask("POST", "/rules/none/revoke").status_code == 404


@pytest.mark.parametrize("always", [{"where": {"name": "other.org"}}, {"until": "soon"}, [1]])
def test_a_rule_that_cannot_be_leaves_the_request_waiting(
    plane: Plane, store: Store, waiting: Approval, always: object
) -> None:
    answer = decided(plane, waiting, decision="approve", pin=PIN, always=always)
    assert answer.status_code == 400
    assert (store.approvals.get(waiting.id).state, store.rules.find()) == ("pending", ())


def test_a_decision_on_another_request_than_was_shown_changes_nothing(
    plane: Plane, store: Store, waiting: Approval
) -> None:
    answer = decided(plane, waiting, decision="approve", pin=PIN, digest="0" * 64)
    assert (answer.status_code, "look at it again" in answer.json()["error"]) == (409, True)
    assert store.approvals.get(waiting.id).state == "pending"
    shown = decided(plane, waiting, decision="approve", pin=PIN, digest=waiting.wire_digest)
    assert shown.status_code == 200
