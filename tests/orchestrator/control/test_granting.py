"""Sources and secrets from the page: with the PIN, where they were shown to go, and never back."""

from __future__ import annotations

import re
import time

from orchestrator.approvals.accounts import SOURCES
from orchestrator.approvals.granting import add_source
from orchestrator.approvals.grants import open_grants
from orchestrator.approvals.signed_policy import SignedPolicy
from orchestrator.approvals.signing_key import build_authority, open_key
from orchestrator.control.page import render_panels
from orchestrator.control.rooms.place import Place
from orchestrator.frontends.greeting import find_kept_instructions
from orchestrator.settings import Settings
from registry.database.fingerprint import compute_fingerprint
from registry.models import DocumentationSource, Job, build_entry
from registry.secrets.vault import Secret, open_vault
from registry.servers.bundles import Bundles
from registry.store import Store
from sandbox.bundle.launch import AUTHOR
from tests.engine.foreign import BENIGN, foreign
from tests.orchestrator.conftest import PIN
from tests.orchestrator.control.filled import fill_grants, fill_store
from tests.orchestrator.plane import Plane, log_in
from tests.registry.samples import invocation

VALUE = "the-value-of-the-token"
SOURCE = "https://api.example/openapi.json"


def read_room(settings: Settings, store: Store) -> str:
    return "".join(render_panels(store, Place("sources"), settings).values())


def find_digest(settings: Settings, store: Store, secret: str) -> str:
    """The digest that the form of a secret names."""
    after = read_room(settings, store).partition(f'id="secret-{secret}"')[2]
    found = re.search(r'data-digest="(\w+)"', after)
    assert found is not None
    return found[1]


def test_a_secret_goes_into_the_vault_bound_where_it_was_shown_and_is_shown_nowhere(
    settings: Settings, store: Store, plane: Plane
) -> None:
    fill_store(store)
    assert '<span class="badge missing">' in read_room(settings, store)
    digest = find_digest(settings, store, "dns.token")
    body = {"server": "dns", "name": "token", "value": VALUE, "digest": digest, "pin": PIN}
    answer = plane.ask("POST", "/secrets", json=body)
    assert (answer.status_code, VALUE in answer.text) == (200, False)
    held = open_vault(settings).get("dns", "token")
    assert held is not None
    assert held.reveal() == VALUE
    consents = open_grants(SignedPolicy(store, build_authority(settings)))
    assert consents.find_secret_uses("dns", "token") == {"https://api.example:443 header:x-api-key"}
    room = read_room(settings, store)
    assert ('<span class="badge set">' in room, VALUE in room) == (True, False)
    assert VALUE not in "".join(f"{row.subject}{row.payload}" for row in store.audit.find(50))


def test_no_secret_is_set_without_the_pin_or_otherwise_than_was_shown(
    settings: Settings, store: Store, plane: Plane
) -> None:
    fill_store(store, 9)
    digest = find_digest(settings, store, "dns.token")
    body = {"server": "dns", "name": "token", "value": VALUE, "digest": digest, "pin": PIN}
    changes: tuple[tuple[dict[str, object], int], ...] = (
        ({"pin": "wrong"}, 403),
        ({"pin": ""}, 403),
        ({"digest": "0" * 64}, 400),
        ({"digest": None}, 400),
        ({"name": "other"}, 400),
        ({"server": "no_such"}, 400),
        ({"server": "push"}, 400),
        ({"value": " "}, 400),
        ({"value": "x" * 40_000}, 400),
        ({"value": 7}, 400),
        ({"server": SOURCES, "name": "../x"}, 400),
    )
    for change, status in changes:
        answer = plane.ask("POST", "/secrets", json={**body, **change})
        assert (answer.status_code, change) == (status, change)
    assert open_vault(settings).list_names() == ()


def test_a_source_is_added_with_the_pin_and_its_secret_has_to_be_set(
    settings: Settings, store: Store, plane: Plane
) -> None:
    whole = {"url": SOURCE, "header": "X-Key", "secret": "docs", "pin": PIN}
    for body, status in (
        ({**whole, "pin": "wrong"}, 403),
        (whole, 400),
        ({**whole, "header": ""}, 400),
        ({**whole, "secret": "", "header": "", "url": "file:///etc/passwd"}, 400),
        ({**whole, "secret": "", "header": "", "url": "/etc/passwd"}, 400),
    ):
        assert plane.ask("POST", "/sources", json=body).status_code == status
    assert store.grants.find_sources() == ()
    open_vault(settings).put(SOURCES, "docs", Secret(VALUE))
    told = plane.ask("POST", "/sources", json=whole).json()["told"]
    assert told == f"{SOURCE} is a source; its host may be talked to."
    room = read_room(settings, store)
    assert (SOURCE in room, "docs" in room, VALUE in room) == (True, True, False)


def test_a_secret_that_no_source_sends_is_said_to_go_nowhere(store: Store, plane: Plane) -> None:
    body = {"server": SOURCES, "name": "docs", "value": VALUE, "pin": PIN}
    told = plane.ask("POST", "/secrets", json=body).json()["told"]
    assert told.startswith("docs is set. It goes nowhere yet")
    source = {"url": SOURCE, "header": "X-Key", "secret": "docs", "pin": PIN}
    assert plane.ask("POST", "/sources", json=source).status_code == 200
    again = plane.ask("POST", "/secrets", json=body).json()["told"]
    assert again == "docs is set."


def test_the_forms_work_for_the_page_that_showed_them_alone(plane: Plane, store: Store) -> None:
    browser = log_in(plane)
    body = {"url": SOURCE, "pin": PIN}
    answer = plane.ask("POST", "/sources", headers=browser.headers, json=body)
    assert (answer.status_code, store.grants.find_sources()) == (403, ())


def test_a_source_and_its_host_are_removed_without_the_pin_and_a_secret_with_it(
    settings: Settings, store: Store, plane: Plane
) -> None:
    fill_store(store, 9)
    fill_grants(settings, store, PIN)
    room = read_room(settings, store)
    for path in ("/sources/remove", "/grants/remove", "/secrets/remove"):
        assert f'data-post="{path}"' in room
    told = plane.ask("POST", "/sources/remove", json={"url": SOURCE}).json()["told"]
    assert told == f"{SOURCE} is removed."
    host = {"origin": "api.example:443", "kind": "host"}
    assert plane.ask("POST", "/grants/remove", json=host).status_code == 200
    consents = open_grants(SignedPolicy(store, build_authority(settings)))
    assert (consents.find_sources(), consents.find_hosts()) == ((), {"localhost:8081"})
    assert consents.find_private_hosts() == {"localhost:8081"}
    assert settings.database is not None
    kept = find_kept_instructions(settings.home, compute_fingerprint(settings.database))
    assert kept is not None
    again = plane.ask("POST", "/grants/remove", json=host).json()["told"]
    assert again == "There was no api.example:443."
    secret = {"server": "dns", "name": "token"}
    for pin in ("", "wrong"):
        assert plane.ask("POST", "/secrets/remove", json={**secret, "pin": pin}).status_code == 403
    assert open_vault(settings).get("dns", "token") is not None
    answer = plane.ask("POST", "/secrets/remove", json={**secret, "pin": PIN})
    assert answer.json()["told"] == "dns.token is removed."
    assert open_vault(settings).list_names() == ((SOURCES, "docs"),)
    assert consents.find_secret_uses("dns", "token") == frozenset()
    kinds = {row.kind for row in store.audit.find(20)}
    assert kinds >= {"source.removed", "grant.removed", "secret.remove"}


def test_what_is_no_grant_of_ours_is_not_removed(
    settings: Settings, store: Store, plane: Plane
) -> None:
    fill_store(store, 9)
    fill_grants(settings, store, PIN)
    before = store.grants.find_grants()
    for path, body in (
        ("/grants/remove", {"origin": "localhost:8081", "kind": "everything"}),
        ("/sources/remove", {"url": "localhost:8081"}),
        ("/secrets/remove", {"server": "dns", "name": "no_such", "pin": PIN}),
        ("/secrets/remove", {"server": "sealed", "name": "token", "pin": PIN}),
    ):
        assert plane.ask("POST", path, json=body).status_code == 400
    assert store.grants.find_grants() == before
    assert len(open_vault(settings).list_names()) == 2


def test_a_host_is_allowed_with_the_pin(settings: Settings, store: Store, plane: Plane) -> None:
    body = {"host": "LocalHost:8081", "pin": PIN}
    for change, status in (({"pin": "wrong"}, 403), ({"host": "no host"}, 400), ({}, 200)):
        assert plane.ask("POST", "/hosts", json={**body, **change}).status_code == status
    consents = open_grants(SignedPolicy(store, build_authority(settings)))
    assert consents.find_private_hosts() == {"localhost:8081"}
    assert settings.database is not None
    kept = find_kept_instructions(settings.home, compute_fingerprint(settings.database))
    assert kept is not None


def test_a_credential_that_its_source_s_secret_serves_is_not_missing(
    settings: Settings, store: Store
) -> None:
    fill_store(store)
    opened = open_key(settings, PIN, time.time())
    assert opened.signer is not None
    other = DocumentationSource("https://other.example/openapi.json", "x-api-key", "key")
    add_source(store.grants, other, "page", opened.signer)
    open_vault(settings).put(SOURCES, "key", Secret(VALUE))
    assert '<span class="badge missing">' in read_room(settings, store)
    add_source(store.grants, DocumentationSource(SOURCE, "X-API-Key", "key"), "page", opened.signer)
    room = read_room(settings, store)
    assert '<span class="badge missing">' not in room
    assert '<span class="badge ok">from its source</span>' in room
    assert "source's secret <code>key</code>" in room
    open_vault(settings).delete(SOURCES, "key")
    assert '<span class="badge missing">' in read_room(settings, store)


REFUSED = {
    "request": {"method": "GET", "url": "http://localhost:9/zones"},
    "refusal": "not_allowed",
    "reason": "a person can grant it with `toolwright source allow localhost:9`",
}


def test_a_host_that_a_call_was_refused_is_allowed_beside_the_call_with_the_pin(
    settings: Settings, store: Store, plane: Plane
) -> None:
    fill_store(store, 9)
    store.calls.record(invocation("c1", "not_allowed", exchanges=(REFUSED,)), time.time())
    browser = log_in(plane)
    room = browser.read_events("calls&name=c1")["calls"]
    assert "Allow localhost:9 (PIN)" in room
    token = browser.find_form("/hosts", "calls&name=c1")
    headers = {**browser.headers, "X-Toolwright-Form": token}
    body = {"host": "localhost:9", "pin": PIN}
    for change, status in (({"pin": ""}, 403), ({"pin": "wrong"}, 403), ({}, 200)):
        answer = plane.ask("POST", "/hosts", headers=headers, json={**body, **change})
        assert answer.status_code == status
    room = browser.read_events("calls&name=c1")["calls"]
    assert ("is allowed by now" in room, "(PIN)" in room) == (True, False)


def test_a_task_whose_call_was_refused_a_host_has_its_button(store: Store) -> None:
    fill_store(store, 9)
    now = time.time()
    store.calls.record(invocation("c1", "not_allowed", exchanges=(REFUSED,)), now)
    store.jobs.create(Job("j1", "do", {"task": "list the zones"}, now, now))
    taken = store.jobs.claim("j1", "p", now)
    assert taken is not None
    step = {"id": "s1", "tool": "dns.list_zones", "state": "failed", "call": "c1"}
    result = {"state": "refused", "tool": "dns.list_zones", "reason": "no", "steps": [step]}
    store.jobs.finish("j1", taken.attempt, "done", result, now)
    room = render_panels(store, Place("ask"))["runs"]
    assert room.count("Allow localhost:9 (PIN)") == 1


def test_a_third_party_server_is_let_connect_to_a_host_on_its_page(
    settings: Settings, store: Store, plane: Plane
) -> None:
    shelf = Bundles(settings.home, store.servers)
    bundle = foreign(BENIGN)
    entry = build_entry(bundle, time.time(), "active", AUTHOR)
    shelf.publish_bundle(bundle, entry, (), None)
    fill_store(store)
    for name, offered in (("foreign", True), ("dns", False)):
        about = render_panels(store, Place("servers", name), settings)["about"]
        assert (f'data-post="/servers/{name}/hosts"' in about) is offered
    wrong = plane.ask("POST", "/servers/foreign/hosts", json={"host": "a b", "pin": PIN})
    assert "host" in wrong.json()["problems"]
    ours = plane.ask("POST", "/servers/dns/hosts", json={"host": "x.example", "pin": PIN})
    assert "declares by itself" in ours.json()["error"]
    unsigned = plane.ask("POST", "/servers/foreign/hosts", json={"host": "x.example"})
    assert unsigned.status_code == 403
    told = plane.ask("POST", "/servers/foreign/hosts", json={"host": "x.example", "pin": PIN})
    assert told.json()["told"] == "foreign may connect to x.example:443."
    consents = open_grants(SignedPolicy(store, build_authority(settings)))
    assert "network:x.example:443" in consents.find_permissions("foreign")
    about = render_panels(store, Place("servers", "foreign"), settings)["about"]
    assert "network:x.example:443" in about
