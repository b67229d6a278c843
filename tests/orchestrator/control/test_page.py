"""The control page in a real browser: live, by keyboard, on a phone, and never running strangers'
markup.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest
from playwright.sync_api import Browser, Page, expect

from orchestrator.processes.liveness import read_start_time
from orchestrator.settings import Settings
from registry.approvals.rules import ApprovalRule, Condition
from registry.models import Approval, Invocation, Process
from registry.secrets.vault import open_vault
from registry.store import Store
from sandbox.wire.exchange import WireRequest
from tests.functional.home import until
from tests.orchestrator.conftest import PIN
from tests.orchestrator.control.conftest import SECONDS
from tests.orchestrator.control.filled import CHOICE, MISSING, ask_question, fill_grants, fill_store
from tests.orchestrator.plane import Plane
from tests.registry.samples import REPORTS, entry

MARKUP = '"><img src=x onerror="document.title=\'owned\'"><script>document.title="owned"</script>'


@pytest.fixture
def page(browser: Browser, plane: Plane) -> Iterator[Page]:
    """The page, logged in and live; at its end nothing may have gone wrong in it."""
    with browser.new_context() as context:
        opened = context.new_page()
        opened.set_default_timeout(SECONDS)
        problems: list[str] = []
        opened.on("pageerror", lambda problem: problems.append(str(problem)))
        opened.goto(plane.ask("POST", "/login").json()["url"])
        expect(opened.locator("#link")).to_have_text("live")
        yield opened
        assert problems == []


def enter(page: Page, path: str) -> None:
    """Go to another room."""
    page.goto(page.evaluate("location.origin") + path)
    expect(page.locator("#link")).to_have_text("live")


def test_what_waits_appears_by_itself_and_is_approved_once_with_the_pin(
    page: Page, store: Store, waiting: Approval
) -> None:
    card = page.get_by_role("article", name="dns.create_zone")
    expect(card).to_contain_text(waiting.wire.url)
    card.get_by_role("button", name="Approve").click()
    expect(page.locator("#told")).to_contain_text("Type your PIN")
    page.get_by_label("PIN").fill("wrong!")
    card.get_by_role("button", name="Approve").click()
    expect(card).to_contain_text("not the PIN")
    expect(page.get_by_label("PIN")).to_have_value("")
    expect(page.locator("#told")).to_have_text("")
    assert store.approvals.get(waiting.id).state == "pending"
    page.get_by_label("PIN").fill(PIN)
    card.get_by_role("button", name="Approve").click()
    expect(card.get_by_role("status")).to_contain_text("Approved")
    assert store.approvals.get(waiting.id).state == "approved"
    card.get_by_role("button", name="Hide").click()
    expect(card).to_have_count(0)


def add_second(store: Store, waiting: Approval) -> None:
    wire = replace(waiting.wire, body=b'{"name":"second.example"}')
    arguments = {"name": "second.example"}
    more = replace(waiting, id="second", wire=wire, wire_digest="2", arguments=arguments)
    store.approvals.add_pending(more)


def find_top(page: Page, button: str) -> float:
    box = page.locator(button).bounding_box()
    assert box is not None
    return box["y"] + float(page.evaluate("scrollY"))


def test_no_other_card_comes_under_a_pointer_that_clicks_twice(
    page: Page, plane: Plane, store: Store, waiting: Approval
) -> None:
    add_second(store, waiting)
    enter(page, "/rooms/approvals")
    first, other = list_cards(page)
    top = find_top(page, f"#approve-{other}")
    page.get_by_label("PIN", exact=True).fill(PIN)
    button = page.locator(f"#approve-{first}")
    button.scroll_into_view_if_needed()
    box = button.bounding_box()
    assert box is not None
    spot = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.click(*spot)
    card = page.locator(f'[data-card="{first}"]')
    expect(card.get_by_role("status")).to_contain_text("Approved")
    expect(page.get_by_label("PIN", exact=True)).to_have_value("")
    expect(page.locator("#decided")).to_contain_text(first)
    page.mouse.click(*spot)
    page.get_by_label("PIN", exact=True).fill(PIN)
    page.mouse.click(*spot)
    assert abs(find_top(page, f"#approve-{other}") - top) < 8
    assert list_cards(page) == [first, other]
    assert (plane.sent, store.approvals.get(other).state) == ([first], "pending")
    page.reload()
    expect(card).to_have_count(0)
    expect(page.locator(f"#approve-{other}")).to_be_visible()


def list_cards(page: Page) -> list[str]:
    expect(page.locator("[data-card]")).to_have_count(2)
    cards = page.locator("[data-card]")
    return [*cards.evaluate_all("all => all.map((each) => each.dataset.card)")]


def test_one_decision_is_sent_at_a_time_and_its_card_says_that_it_is_sent(
    page: Page, plane: Plane, store: Store, waiting: Approval
) -> None:
    add_second(store, waiting)
    first, other = list_cards(page)
    plane.may_send.clear()
    page.get_by_label("PIN").fill(PIN)
    page.locator(f"#approve-{first}").click()
    card = page.locator(f'[data-card="{first}"]')
    expect(card.get_by_role("status")).to_have_text("Sending…")
    expect(page.locator(f"#approve-{other}")).to_be_disabled()
    until(lambda: plane.sent, "it is being sent")
    expect(page.locator("#nav .count")).to_have_text("1")
    expect(page.locator(f"#approve-{other}")).to_be_disabled()
    plane.may_send.set()
    expect(card.get_by_role("status")).to_contain_text("Approved")
    expect(page.locator(f"#approve-{other}")).to_be_enabled()


def test_a_card_that_came_later_stands_below_and_one_decided_elsewhere_goes_with_the_pointer(
    page: Page, store: Store, waiting: Approval
) -> None:
    page.locator(f"#approve-{waiting.id}").hover()
    add_second(store, waiting)
    assert list_cards(page) == [waiting.id, "second"]
    store.approvals.decide(waiting.id, False, by="ann", now=time.time())
    card = page.locator(f'[data-card="{waiting.id}"]')
    expect(card).to_contain_text("decided elsewhere")
    expect(card.get_by_role("button", name="Approve")).to_be_hidden()
    page.get_by_label("PIN").hover()
    expect(card).to_have_count(0)


def test_the_exact_request_is_folded_where_the_table_shows_all_of_it_and_open_where_not(
    page: Page, store: Store, waiting: Approval
) -> None:
    add_second(store, waiting)
    wire = replace(waiting.wire, body=b'{"name": "a", "name": "b"}')
    store.approvals.add_pending(replace(waiting, id="twice", wire=wire, wire_digest="3"))
    whole = page.locator('[data-card="second"]')
    exact = whole.locator("pre", has_text='| {"name":"second.example"}')
    expect(exact).to_be_hidden()
    whole.get_by_text("Exact request").click()
    expect(exact).to_be_visible()
    expect(page.locator('[data-card="twice"] pre')).to_contain_text('"name": "a", "name": "b"')
    expect(page.locator('[data-card="twice"] pre')).to_be_visible()


def test_ten_characters_of_the_pin_can_be_seen_on_a_phone(page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    box = page.locator("#pin").bounding_box()
    assert box is not None
    assert box["width"] >= 100


def test_a_keyboard_is_enough_to_reject(page: Page, store: Store, waiting: Approval) -> None:
    expect(page.get_by_role("article", name="dns.create_zone")).to_be_visible()
    page.get_by_text("Say why you reject it").click()
    page.get_by_label("Reason").fill("not this zone")
    page.get_by_label("PIN").focus()
    page.keyboard.type(PIN)
    button = page.locator(f"#reject-{waiting.id}")
    for _ in range(60):
        if button.evaluate("element => element === document.activeElement"):
            break
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    card = page.get_by_role("article", name="dns.create_zone")
    expect(card.get_by_role("status")).to_have_text("Rejected. Hide")
    rejected = store.approvals.get(waiting.id)
    assert (rejected.state, rejected.decision_reason) == ("rejected", "not this zone")


def test_the_button_freezes_and_the_pin_unfreezes(page: Page, plane: Plane, store: Store) -> None:
    page.get_by_role("button", name="Freeze everything").click()
    expect(page.get_by_role("alert")).to_contain_text("Frozen")
    assert store.processes.get_freeze().frozen
    # The freeze is shown once it is stored, and sandboxes are killed after that.
    until(lambda: plane.kills, "sandboxes are killed")
    page.get_by_label("PIN").fill(PIN)
    page.get_by_role("button", name="Unfreeze").click()
    expect(page.get_by_role("button", name="Freeze everything")).to_be_visible()
    assert not store.processes.get_freeze().frozen


def test_strangers_markup_is_shown_as_text_and_never_runs(page: Page, store: Store) -> None:
    now = time.time()
    store.servers.publish(replace(entry(), title=MARKUP), REPORTS, now=now)
    wire = WireRequest("POST", f"https://a.test/{MARKUP}", (("x", MARKUP),), MARKUP.encode())
    waiting = Approval(
        "hostile", "dns", 1, "create_zone", {"x": MARKUP}, wire, "0", now, now + 60, reason=MARKUP
    )
    store.approvals.add_pending(waiting)
    call = Invocation("c1", "dns", 1, "list_zones", "read", now, task=MARKUP)
    store.calls.record(call, now)
    card = page.get_by_role("article", name="dns.create_zone")
    expect(card.locator("pre")).to_contain_text(MARKUP)
    for path, shown in (("/", ""), ("/rooms/calls/c1", ""), ("/rooms/audit", "onerror")):
        enter(page, path)
        if shown:
            page.get_by_role("textbox", name="Search").fill(shown)
            page.get_by_role("button", name="Search").click()
        expect(page.locator("main")).to_contain_text("onerror")
        assert page.locator("img").count() == 0
        assert page.locator("script").count() == 1
        assert page.title().startswith("Toolwright: ")


def test_a_card_tells_what_the_write_changes_and_shows_what_is_unseen(
    page: Page, store: Store, waiting: Approval
) -> None:
    wire = WireRequest("PUT", "https://a.test/1", (), '{"a": 2, "b": "x\u202ey"}'.encode())
    present = '{"a": 1, "b": "x"}'
    store.approvals.add_pending(replace(waiting, id="change", wire=wire, present=present))
    card = page.locator("article", has=page.locator("#approve-change"))
    expect(card).to_contain_text("/a: 1 -> 2")
    expect(card).to_contain_text("x\\u{202e}y")


def test_what_is_always_allowed_is_shown_and_revoked(
    page: Page, store: Store, waiting: Approval
) -> None:
    now = time.time()
    only = (Condition("/zone", equals=MARKUP),)
    rule = ApprovalRule("r1", "dns", "create_zone", 1, "", only, now, now + 60, 3, "me", waiting.id)
    store.rules.add(rule)
    enter(page, "/rooms/approvals")
    section = page.get_by_role("region", name="Always allowed")
    expect(section).to_contain_text("0 of 3")
    section.get_by_role("button", name="Revoke").click()
    expect(section).to_contain_text("Nothing.")
    assert store.rules.get("r1").revoked is not None


def test_a_task_is_sent_watched_and_its_end_shown(page: Page, store: Store) -> None:
    start = read_start_time(os.getpid())
    store.processes.register(Process("w", os.getpid(), start, "serve", 0.0, time.time()))
    enter(page, "/rooms/ask")
    page.get_by_label("What is to be done?").fill("list the zones")
    page.get_by_role("button", name="Do it").click()
    run = page.locator("#runs details.run").first
    expect(run.locator("summary")).to_contain_text("queued")
    expect(page.get_by_label("What is to be done?")).to_have_value("")
    (job,) = store.jobs.find("queued")
    claimed = store.jobs.claim(job.id, "w", time.time())
    assert claimed is not None
    store.jobs.update_progress(
        job.id, claimed.attempt, time.time(), stage="route", message="looking"
    )
    expect(run).to_contain_text("looking")
    given = {"content": [{"type": "text", "text": f"two zones {MARKUP}"}]}
    call = {"call": "c1", "trust": "", "rule": "", "cause": "", "failure": None}
    result = {"state": "called", **call, "result": given}
    store.jobs.finish(job.id, claimed.attempt, "done", result, time.time())
    expect(run.locator(".answer")).to_have_text(f"two zones {MARKUP}")
    expect(run.get_by_role("button", name="Do it again")).to_be_visible()


def test_a_result_of_a_server_on_probation_can_be_marked_wrong(
    page: Page, store: Store, waiting: Approval
) -> None:
    now = time.time()
    store.calls.record(Invocation("c1", "dns", 1, "list_zones", "read", now), now)
    enter(page, "/rooms/servers/dns?tool=list_zones")
    page.locator("#definition summary").click()
    uses = page.locator("#uses")
    uses.get_by_text("Mark wrong").click()
    uses.get_by_label("What is wrong").fill("it left one out")
    uses.get_by_role("button", name="Mark it wrong").click()
    expect(uses).to_contain_text("marked wrong")
    expect(page.locator("#definition")).to_have_attribute("open", "")
    assert store.calls.get("c1").disputed


def add_call(store: Store, identity: str) -> None:
    now = time.time()
    store.calls.record(Invocation(identity, "dns", 1, "list_zones", "read", now), now)


@pytest.mark.parametrize("room", ["calls", "audit"])
def test_rows_stay_where_they_are_under_a_pointer_and_new_ones_come_once_it_is_gone(
    page: Page, store: Store, room: str
) -> None:
    store.servers.publish(entry("dns"), REPORTS, now=time.time())
    for number in range(5):
        add_call(store, f"call-{number}")
    enter(page, f"/rooms/{room}")
    rows = page.locator(f"#{room} tbody tr")
    expect(rows.first).to_be_visible()
    rows.nth(2).hover()
    for number in range(5, 8):
        add_call(store, f"call-{number}")
    expect(page.locator("#link")).to_have_text("paused while you read")
    expect(rows.first.locator("a")).to_have_attribute("href", "/rooms/calls/call-4")
    assert rows.nth(2).locator("a").get_attribute("href") == "/rooms/calls/call-2"
    page.get_by_label("PIN").hover()
    expect(page.locator("#link")).to_have_text("live")
    expect(rows.first.locator("a")).to_have_attribute("href", "/rooms/calls/call-7")


def test_a_text_that_is_selected_to_be_copied_stays_selected_until_it_is_let_go(
    page: Page, store: Store
) -> None:
    store.servers.publish(entry("dns"), REPORTS, now=time.time())
    add_call(store, "call-1")
    enter(page, "/rooms/calls")
    expect(page.locator("#calls tbody a")).to_be_visible()
    page.evaluate("getSelection().selectAllChildren(document.querySelector('#calls tbody a'))")
    page.get_by_label("PIN").hover()
    add_call(store, "call-2")
    expect(page.locator("#link")).to_have_text("paused while you read")
    assert page.evaluate("String(getSelection())") == "call-1"
    page.evaluate("getSelection().removeAllRanges()")
    expect(page.locator("#calls tbody tr")).to_have_count(2)


def test_forms_say_what_is_wrong_keep_what_is_typed_and_forget_a_secret(
    page: Page, store: Store, settings: Settings
) -> None:
    fill_store(store, 9)
    enter(page, "/rooms/servers/dns?tool=list_zones")
    form = page.locator("#try form")
    field = form.locator("[data-field=page]")
    field.fill("three")
    form.get_by_role("button", name="Call it").click()
    expect(form.locator("output")).to_contain_text("Nothing was done")
    label = form.locator("label:has([data-field=page])")
    expect(label.locator(".problem")).to_have_text("'three' is no integer")
    expect(field).to_be_focused()
    expect(field).to_have_value("three")
    assert len(store.calls.find("dns")) == 9
    enter(page, "/rooms/sources")
    asked = page.locator("details", has=page.locator("summary", has_text="dns.token"))
    asked.locator("summary").first.click()
    asked.get_by_label("Value").fill("the-value-of-the-token")
    asked.get_by_role("button", name="Set (PIN)").click()
    expect(asked.locator("output")).to_contain_text("Type your PIN")
    page.get_by_label("PIN", exact=True).fill(PIN)
    asked.get_by_role("button", name="Set (PIN)").click()
    expect(asked.locator("summary").first).to_contain_text("set")
    expect(asked.get_by_role("button", name="Replace (PIN)")).to_be_visible()
    expect(asked.get_by_label("Value")).to_have_value("")
    assert open_vault(settings).list_names() == (("dns", "token"),)


def test_a_phone_shows_it_without_scrolling_sideways(
    page: Page, store: Store, waiting: Approval
) -> None:
    page.set_viewport_size({"width": 360, "height": 740})
    wire = WireRequest("POST", "https://a.test/" + "x" * 2000)
    store.approvals.add_pending(replace(waiting, id="long", wire=wire, wire_digest="1"))
    expect(page.locator("#approve-long")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    box = page.locator("#approve-long").bounding_box()
    assert box is not None
    assert box["height"] >= 38


def test_a_place_on_the_page_is_not_taken_for_the_key(page: Page) -> None:
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.evaluate("location.hash") == "#main"
    page.reload()
    expect(page.locator("#link")).to_have_text("live")


def test_what_is_typed_and_where_stays_while_a_part_is_shown_anew_and_is_answered_by_keyboard(
    page: Page, store: Store
) -> None:
    start = read_start_time(os.getpid())
    store.processes.register(Process("w", os.getpid(), start, "serve", 0.0, time.time()))
    ask_question(store, MISSING)
    enter(page, "/rooms/ask")
    page.locator("#run-j1 [data-field=zone]").fill("example.com")
    for _ in range(3):
        page.keyboard.press("ArrowLeft")
    ask_question(store, CHOICE, "j2")
    expect(page.locator("#run-j2 form.question")).to_be_visible()
    page.keyboard.type("a.")
    expect(page.locator("#run-j1 [data-field=zone]")).to_have_value("example.a.com")
    page.keyboard.press("Tab")
    page.keyboard.type("60")
    page.keyboard.press("Enter")
    expect(page.locator("#run-j1 summary").first).to_contain_text("queued")
    (kept,) = store.jobs.get("j1").request["answers"].values()
    assert kept["arguments"] == {"zone": "example.a.com", "ttl": 60}


def test_a_grant_is_taken_away_in_two_steps_by_keyboard(
    page: Page, store: Store, settings: Settings
) -> None:
    fill_store(store, 9)
    fill_grants(settings, store, PIN)
    enter(page, "/rooms/sources")
    page.get_by_label("Remove localhost:8081").focus()
    page.keyboard.press("Enter")
    assert len(store.grants.find_grants("host")) == 2
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#told")).to_have_text("localhost:8081 is removed.")
    assert [grant.origin for grant in store.grants.find_grants("host")] == ["api.example:443"]


def test_a_run_that_has_ended_closes_when_the_next_begins_unless_a_person_opened_it(
    page: Page, store: Store
) -> None:
    ask_question(store, MISSING)
    enter(page, "/rooms/ask")
    expect(page.locator("#run-j1")).to_have_attribute("open", "")
    store.jobs.cancel("j1", "page", time.time())
    ask_question(store, CHOICE, "j2")
    expect(page.locator("#run-j2")).to_have_attribute("open", "")
    expect(page.locator("#run-j1")).not_to_have_attribute("open", "")
    page.locator("#run-j1 > summary").click()
    ask_question(store, MISSING, "j3")
    expect(page.locator("#run-j3")).to_have_attribute("open", "")
    expect(page.locator("#run-j1")).to_have_attribute("open", "")
    expect(page.locator("#run-j1")).to_contain_text("It was cancelled.")
