"""The rooms of the control page: each opens by its own address, on a phone too, and the page
without script decides and freezes.
"""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from playwright.sync_api import Browser, expect

from orchestrator.approvals.needs import describe_wait
from orchestrator.control.clicks import LOGIN_IN_ADDRESS
from orchestrator.control.page import list_parts, render_panels
from orchestrator.control.rendering import PartRenderer
from orchestrator.control.rooms.approvals import Waiting, show_approval, summarize_write
from orchestrator.control.rooms.jobs import QUEUED
from orchestrator.control.rooms.place import ROOMS, Place, parse_place
from orchestrator.control.rooms.records import name_kind, view_audit
from orchestrator.control.rooms.server_trust import explain_next_level
from orchestrator.settings import Settings
from registry.audit.search import AuditQuery
from registry.calls.invocations import CallQuery
from registry.models import Approval, Job
from registry.needs import HostNeed
from registry.secrets.vault import Secret, open_vault
from registry.store import Store
from registry.trust import TrustRecord, compute_standing
from sandbox.wire.exchange import WireRequest
from tests.functional.home import ROOT
from tests.orchestrator.conftest import PIN
from tests.orchestrator.control.filled import fill_store
from tests.orchestrator.control.screenshots import NARROW, log_in
from tests.orchestrator.plane import BEARER, Plane
from tests.orchestrator.plane import log_in as log_in_without_browser
from tests.registry.samples import REPORTS, approval, entry, invocation, tool
from tests.world.axe import find_grave

ONE_OF_A_SERVER = (("tool", "create_zone"), ("version", "1"), ("version", "2"))


def test_axe_finds_what_is_grave(browser: Browser, axe: str) -> None:
    with browser.new_context() as context:
        page = context.new_page()
        page.set_content("<img src=x><p style='color: #ddd'>pale</p>")
        found = {finding.rule for finding in find_grave(page, axe)}
        assert found >= {"image-alt", "color-contrast"}


def test_without_script_a_person_approves_rejects_freezes_and_unfreezes(
    browser: Browser, plane: Plane, store: Store
) -> None:
    fill_store(store)
    first, second = (each.id for each in store.approvals.find("pending"))
    with browser.new_context(java_script_enabled=False, viewport=NARROW) as context:
        page = context.new_page()
        page.goto(log_in(plane.url, plain=True))
        page.get_by_role("button", name="Open the control page").click()
        assert "login" not in page.url
        page.reload()
        for identity, word, state in (
            (first, "Approve", "approved"),
            (second, "Reject", "rejected"),
        ):
            card = page.get_by_role("article").filter(
                has=page.locator(f'input[name=approval][value="{identity}"]')
            )
            expect(card).to_contain_text("The tool, as its server describes it: C")
            form = card.locator("form").filter(has=page.get_by_role("button", name=word))
            form.get_by_label("PIN").fill(PIN)
            form.get_by_role("button", name=word).click()
            expect(page.locator("#told")).to_contain_text(state)
            assert store.approvals.get(identity).state == state
        page.get_by_role("button", name="Freeze everything").click()
        expect(page.locator("#told")).to_contain_text("Frozen in")
        assert store.processes.get_freeze().frozen
        page.get_by_label("PIN").fill(PIN)
        page.get_by_role("button", name="Unfreeze").click()
        expect(page.locator("#told")).to_contain_text("lifted")
    assert (store.processes.get_freeze().frozen, plane.sent) == (False, [first])


def test_without_script_every_room_is_read_with_its_links_and_filters(
    browser: Browser, plane: Plane, store: Store
) -> None:
    fill_store(store)
    with browser.new_context(java_script_enabled=False, viewport=NARROW) as context:
        page = context.new_page()
        page.goto(log_in(plane.url, plain=True))
        page.get_by_role("button", name="Open the control page").click()
        for room, title in ROOMS.items():
            if room in ("home", "ask"):
                continue
            page.get_by_label("Rooms").get_by_role("button", name=title, exact=True).click()
            expect(page.get_by_role("heading", level=1)).to_contain_text(title)
            assert page.locator("a[href^='/rooms'], [data-post]").count() == 0
            assert page.locator("main section").first.inner_text().strip()
        page.get_by_label("Rooms").get_by_role("button", name="Calls").click()
        page.get_by_label("Outcome").select_option("failed")
        page.get_by_role("button", name="Filter").click()
        expect(page.get_by_label("Outcome")).to_have_value("failed")
        assert page.locator("table .ok").count() == 0
        page.locator("table button.way").first.click()
        expect(page.get_by_role("heading", name="Exchanges with the API")).to_be_visible()
        page.get_by_role("button", name="Freeze everything").click()
        expect(page.locator("#told")).to_contain_text("Frozen in")


def test_the_cookie_alone_does_nothing_on_the_page_without_script(
    plane: Plane, store: Store
) -> None:
    browser = log_in_without_browser(plane)
    path = plane.ask("POST", "/login", json={"plain": True}).json()["path"]
    opened = plane.ask("GET", path, headers={"Host": browser.host})
    cookie = opened.headers["set-cookie"].partition(";")[0]
    own = {"Host": browser.host, "Origin": browser.origin, "Cookie": cookie}
    entrance = dict(re.findall(r'name="(\w+)" value="(.*?)">', opened.text))
    assert entrance["act"] == "look"
    shown = plane.ask("POST", "/plain", headers=own, data=entrance)
    (frozen,) = re.findall(
        r'value="freeze">.*?name="key" value="(.+?)">.*?name="form" value="(.+?)">', shown.text
    )
    key, form = frozen
    right = {"act": "freeze", "key": key, "form": form}
    for headers, fields in (
        (own, {"act": "freeze"}),
        (own, {**right, "key": browser.key}),
        (own, {**right, "act": "approve", "approval": "x"}),
        (own, {**right, "form": ""}),
        ({**own, "Origin": "http://evil.test"}, right),
        ({**own, "Origin": "null"}, right),
        ({name: own[name] for name in ("Host", "Cookie")}, right),
        ({**own, "Cookie": browser.cookie}, right),
    ):
        answer = plane.ask("POST", "/plain", headers=headers, data=fields)
        assert (answer.status_code, key in answer.text) == (403, False)
    for spent in (path, "/plain"):
        refused = plane.ask("GET", spent, headers=own)
        assert (refused.status_code, key in refused.text) == (401, False)
        assert "toolwright control --url --plain" in refused.text
    # The browser's reload sends the form again.
    again = plane.ask("POST", "/plain", headers=own, data=entrance)
    assert (again.status_code, key in again.text) == (200, True)
    assert not store.processes.get_freeze().frozen
    assert plane.ask("POST", "/plain", headers=own, data=right).status_code == 200
    assert store.processes.get_freeze().frozen


def test_a_room_s_frame_holds_nothing_of_the_users_and_needs_the_log_in(
    plane: Plane, store: Store
) -> None:
    fill_store(store)
    browser = log_in_without_browser(plane)
    for room in ROOMS:
        shown = plane.ask("GET", f"/rooms/{room}", headers=browser.shown)
        assert (shown.status_code, "example.org" in shown.text) == (200, False)
        assert plane.ask("GET", f"/rooms/{room}", headers=BEARER).status_code == 401
    assert plane.ask("GET", "/rooms/nothing", headers=browser.shown).status_code == 404
    assert plane.ask("GET", "/events?room=nothing").status_code == 404


def test_every_part_of_a_room_is_rendered_empty_and_full(settings: Settings, store: Store) -> None:
    for fill in (False, True):
        if fill:
            fill_store(store)
        places = [Place(room) for room in ROOMS]
        if fill:
            places += [Place("servers", "dns", {k: v}) for k, v in (("", ""), *ONE_OF_A_SERVER)]
        for place in places:
            parts = render_panels(store, place, settings)
            assert list(parts) == ["nav", "freeze", *list_parts(place)]
            assert "cannot be shown" not in "".join(parts.values())


def test_where_no_pin_is_set_every_room_says_so(settings: Settings, store: Store) -> None:
    told = "No PIN is set"
    assert told not in render_panels(store, Place(), settings)["freeze"]
    settings.pin.unlink()
    assert told in render_panels(store, Place(), settings)["freeze"]


def test_names_of_secrets_are_listed_and_values_never(settings: Settings, store: Store) -> None:
    open_vault(settings).put("dns", "token", Secret("the-value-of-it"))
    html = "".join(render_panels(store, Place("sources"), settings).values())
    assert ("token" in html, "the-value" in html) == (True, False)


def test_calls_are_filtered_and_shown_fifty_at_a_time(store: Store) -> None:
    fill_store(store)
    first = render_panels(store, Place("calls"))["calls"]
    assert (first.count("<tr>"), "page=2" in first) == (51, True)
    last = render_panels(store, Place("calls", filters={"page": "3"}))["calls"]
    assert (last.count("<tr>"), "page=4" in last) == (21, False)
    failed = store.calls.search(CallQuery(outcome="failed"), 1000)
    good = store.calls.search(CallQuery(outcome="ok"), 1000)
    assert (len(failed), len(good), any(call.succeeded for call in failed)) == (18, 102, False)
    assert store.calls.search(CallQuery(server="weather_of_the_whole_world"), 10) == ()
    (found,) = store.calls.search(CallQuery(text='"page":119'), 10)
    assert found.arguments == {"page": 119}
    assert store.calls.search(CallQuery(text="%"), 10) == ()


def test_the_last_day_is_counted_by_the_hour(store: Store) -> None:
    store.servers.publish(entry(), (), now=1.0)
    for number, (at, failed) in enumerate(((7200.0, None), (7300.0, "bug"), (90.0, None))):
        store.calls.record(invocation(f"c{number}", failed, started=at), at)
    (hour,) = store.calls.count_by_hour(3600.0)
    assert (hour.hour, hour.succeeded, hour.failed) == (7200.0, 1, 1)


@pytest.mark.parametrize("page", ["0", "-1", "x", "", "9" * 20, "٣"])
def test_a_page_that_is_none_is_the_first(page: str) -> None:
    place = parse_place("calls", "", {"page": page, "evil": "1"})
    assert place is not None
    assert (place.page, "evil" in place.build_address()) == (1, False)


def test_what_is_missing_to_the_next_level_is_said() -> None:
    beginner = compute_standing(TrustRecord(1, window="111", ladder_successes=3))
    assert explain_next_level(beginner).startswith("standard: 7 more right calls and more than 80")
    known = compute_standing(TrustRecord(1, window="1" * 20, ladder_successes=49))
    assert explain_next_level(known).startswith("trusted: 1 more right call and more than 95")


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b'{"name": "a", "ttl": 1}', True),
        (b'{"name": "a", "name": "b"}', False),
        (b'{"deep": {"x": 1, "x": 2}}', False),
        (b"[1]", False),
        (b"\xff", False),
        (b"[" * 3000, False),
    ],
)
def test_fields_are_told_apart_only_where_nobody_reads_them_otherwise(
    body: bytes, told: bool
) -> None:
    asked = approval(wire=WireRequest("POST", "https://api.example/zones?all=1", (), body))
    html = PartRenderer().render("approvals", "summary", summarize_write(asked))
    assert "Sends to" in html
    assert "/zones?all=1" in html
    assert ("<table" in html) is told


def test_always_is_offered_with_its_whole_sentence_or_not_at_all(
    store: Store, waiting: Approval
) -> None:
    html = render_panels(store)["waiting"]
    assert "for 7 days dns.create_zone (version 1) with exactly" in html
    assert 'data-always="7d"' in html
    store.approvals.add_pending(replace(waiting, id="long", arguments={"x": "y" * 700}))
    wire = replace(waiting.wire, method="DELETE")
    store.approvals.add_pending(replace(waiting, id="gone", wire=wire))
    html = render_panels(store)["waiting"]
    assert 'id="approve-long"' in html
    assert ('id="always-long"' in html, 'id="always-gone"' in html) == (False, False)


def test_always_is_not_offered_for_what_deletes_by_its_name(
    store: Store, waiting: Approval
) -> None:
    purge = replace(tool("purge_zone", access="write"), destructive=True)
    store.servers.publish(entry("zones", 1, purge), now=10.0)
    store.approvals.add_pending(replace(waiting, id="purged", entry="zones", tool="purge_zone"))
    html = render_panels(store)["waiting"]
    assert 'id="approve-purged"' in html
    assert 'id="always-purged"' not in html


def test_the_audit_is_searched_in_its_newest_rows_alone(store: Store) -> None:
    for number in range(4):
        store.audit.add_note("told", f"row{number}", {"text": "needle"}, 1.0)
    found = store.audit.search(AuditQuery(text="needle", newest=2), 10)
    assert [match.row.subject for match in found] == ["row3", "row2"]


def test_the_audit_is_read_page_by_page_with_its_kinds_in_plain_words(store: Store) -> None:
    for number in range(120):
        store.audit.add_note("told", f"row{number}", {"text": "needle"}, 1.0)
    store.servers.publish(entry(), REPORTS, now=1.0)
    store.calls.record(invocation("c1"), 1.0)
    first, last = (view_audit(store, Place("audit", "", {"page": each})) for each in ("1", "3"))
    assert (len(first.rows), first.newer, first.older) == (50, "", "/rooms/audit?page=2")
    assert (last.newer, last.older) == ("/rooms/audit?page=2", "")
    assert {row.id for row in first.rows}.isdisjoint(row.id for row in last.rows)
    html = render_panels(store, Place("audit"))["audit"]
    assert "a call <small>invocation</small>" in html
    assert "Older" in html


def test_words_that_newcomers_do_not_know_have_plain_ones_beside_them(store: Store) -> None:
    store.servers.publish(entry(), REPORTS, now=1.0)
    assert "probationary (new)" in render_panels(store, Place("servers"))["servers"]


def test_a_job_that_waits_says_what_for_and_where_it_is_decided_on_the_page(store: Store) -> None:
    store.jobs.create(Job("ab12", "do", {"task": "list lifts"}, created=1.0, updated=1.0))
    claimed = store.jobs.claim("ab12", "w", 1.0)
    assert claimed is not None
    need = HostNeed("127.0.0.1:80")
    said = describe_wait("ab12", need)
    assert "toolwright allow ab12" in said
    store.drafts.park_job("ab12", claimed.attempt, {}, 2.0, said, need)
    html = render_panels(store, Place("jobs"))["jobs"]
    assert "first a person has to allow requests to 127.0.0.1:80: “Allow” under Approvals" in html
    assert "toolwright" not in html
    assert "Decide it under Approvals" in html
    store.jobs.resume("ab12", "page", 3.0)
    for room, part in (("jobs", "jobs"), ("ask", "runs")):
        html = render_panels(store, Place(room))[part]
        assert QUEUED in html
        assert "<progress" not in html


def test_an_address_with_a_log_in_is_refused_at_its_field_with_places_of_the_page(
    plane: Plane,
) -> None:
    browser = log_in_without_browser(plane)
    headers = {**browser.headers, "X-Toolwright-Form": browser.find_form("/servers", "servers")}
    body = {"source": "https://user:word@api.example/openapi.json"}
    told = plane.ask("POST", "/servers", headers=headers, json=body).json()
    assert told["problems"] == {"source": LOGIN_IN_ADDRESS}
    assert "toolwright" not in told["error"]
    by_token = plane.ask("POST", "/servers", json=body).json()
    assert "toolwright secret set" in by_token["error"]


def test_the_audit_is_verified_in_words(plane: Plane, store: Store, waiting: Approval) -> None:
    told = plane.ask("POST", "/audit/verify").json()
    assert (told["whole"], "every chain whole" in told["told"]) == (True, True)


def test_a_freeze_and_its_end_are_told_in_words(plane: Plane, store: Store) -> None:
    assert plane.ask("POST", "/kill").json()["told"].startswith("Frozen in ")
    assert "lifted" in plane.ask("POST", "/unfreeze", json={"pin": PIN}).json()["told"]


def test_a_browser_that_logged_out_is_shown_nothing_more(plane: Plane) -> None:
    browser = log_in_without_browser(plane)
    form = browser.find_form("/logout", "settings")
    headers = {**browser.headers, "X-Toolwright-Form": form}
    assert "logged out" in plane.ask("POST", "/logout", headers=headers).json()["told"]
    assert plane.ask("GET", "/approvals", headers=browser.headers).status_code == 401
    assert plane.ask("GET", "/", headers=browser.shown).status_code == 401


def test_the_installation_is_checked_in_words(plane: Plane) -> None:
    said = plane.ask("POST", "/doctor").json()
    assert re.match(r"\d+ checks, ", said["told"])
    assert "audit" in said["html"]
    assert len(said["checks"]) > 3


def test_an_approval_says_what_its_tool_does_and_whether_it_destroys(store: Store) -> None:
    create = tool("create_zone", "Adds <b>a zone</b>", "write")
    drop = replace(tool("drop_zone", "Drops it", "write"), destructive=True)
    store.servers.publish(entry("dns", 1, create, drop), REPORTS, now=90.0)
    gone = WireRequest("DELETE", "https://api.example/zones/7", (), b"")
    given = {"created": 100.0, "expires": 9e9}
    for each, says, destroys in (
        (approval("a1", **given), "Adds &lt;b&gt;a zone", ""),
        (
            approval("a2", tool="drop_zone", **given),
            "Drops it",
            "It can destroy what it writes to.",
        ),
        (approval("a3", wire=gone, **given), "Adds", "It deletes something."),
        # What is registered by now is another version than the one that asks.
        (approval("a4", version=7, **given), "", ""),
        (approval("a5", entry="gone", **given), "", ""),
    ):
        waiting = PartRenderer().render(
            "approvals", "waiting", Waiting((show_approval(store, each),), (), (), ())
        )
        assert ("The tool, as its server describes it" in waiting, says in waiting) == (
            bool(says),
            True,
        )
        assert destroys in waiting
        assert ('class="badge destructive"' in waiting) == bool(destroys)


KIND = re.compile(
    r"(?:_append_audit_row\(\s*connection,|footnotes\.add_row\(|\.add_note\()\s*\"([a-z_.]+)\""
)
"""The kind of a row where it is written out."""
ENDED = ("job.done", "job.failed", "model.answered", "model.failed", "push.sent", "push.failed")


def test_every_kind_of_row_is_named_for_who_does_not_know_the_kinds() -> None:
    sources = [
        path for part in ("registry", "orchestrator") for path in (ROOT / part).rglob("*.py")
    ]
    kinds = {kind for path in sources for kind in KIND.findall(path.read_text())} | {*ENDED}
    assert len(kinds) > 20
    assert [kind for kind in sorted(kinds) if not name_kind(kind)] == []
