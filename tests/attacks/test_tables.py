"""Rows that a shell of the same user writes past Toolwright: each way to loosen something by them,
judged by a process that saw what was there before and by one that starts afterwards.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.approvals.differences import find_differences
from orchestrator.approvals.freezing import FreezeWatch
from orchestrator.approvals.gate import WriteFacts, covers_write
from orchestrator.approvals.granting import allow_host
from orchestrator.approvals.grants import open_grants
from orchestrator.approvals.rules import RuleRequest, classify_operation, create_rule
from orchestrator.approvals.signed_policy import SignedPolicy
from orchestrator.approvals.signing_key import build_authority, open_key, sign_audit
from orchestrator.settings import Settings
from registry.database import tables
from registry.models import Approval, build_entry
from registry.secrets.signing import Signer
from registry.store import Store
from sandbox.bundle.model import (
    Bundle,
    Provenance,
    RequestPattern,
    ToolDefinition,
    compute_operation_digest,
)
from sandbox.errors import BundleInvalid
from sandbox.wire.exchange import WireRequest
from tests.orchestrator.approvals.test_gate import BLANK
from tests.orchestrator.conftest import PIN
from tests.registry.samples import OBJECT, REPORTS, approval, bundle, entry

URL = "https://api.example/graphql"
QUERY, OTHER = "query Q { zones { name } }", "query Q { users { name } }"
MUTATION = "mutation Q { dropZones }"
WEEK = 7 * 86400.0


@pytest.fixture
def person(settings: Settings) -> Signer:
    signer = open_key(settings, PIN, time.time()).signer
    assert signer is not None
    return signer


@pytest.fixture
def serving(settings: Settings, store: Store) -> SignedPolicy:
    """What a process knows that runs all the while."""
    return opened(settings, store)


def opened(settings: Settings, store: Store) -> SignedPolicy:
    return SignedPolicy(store, build_authority(settings))


@contextmanager
def shell(store: Store) -> Iterator[sqlite3.Connection]:
    """The database, without the triggers that keep the audit."""
    with closing(sqlite3.connect(store.path, isolation_level=None)) as connection:
        for trigger in ("audit_is_not_edited", "audit_is_not_deleted"):
            connection.execute(f"DROP TRIGGER IF EXISTS {trigger}")
        yield connection
        for guard in tables.AUDIT_GUARDS:
            connection.execute(guard)


def asking(**changes: Any) -> Bundle:
    """A server with one tool, whose code somebody wrote, that asks one request by POST."""
    request = RequestPattern("POST", URL, QUERY)
    usual = {"name": "zones", "operation": "zones", "requests": (request,), "access": "read"}
    values: dict[str, Any] = {**usual, **changes}
    tool = ToolDefinition(description="", input_schema=OBJECT, output_schema=OBJECT, **values)
    made = Provenance("https://api.example/openapi.json", "0" * 64, author="client")
    return replace(bundle(), tools=(tool,), provenance=made)


def published(store: Store, of: Bundle, age: float = 0.0) -> Bundle:
    now = time.time() - age
    store.servers.publish(build_entry(of, now), REPORTS, now=now)
    return of


def level(policy: SignedPolicy, of: Bundle) -> str:
    return policy.classify_bundle(of).tools[0].access


def test_a_signed_read_holds_for_later_versions_of_the_same_operation(
    store: Store, serving: SignedPolicy, person: Signer
) -> None:
    of = published(store, asking())
    assert level(serving, of) == "write"
    assert classify_operation(store.classifications, of, "zones", "read", person, 2.0)
    assert level(serving, of) == "read"
    assert level(serving, replace(of, version=2, title="Another title")) == "read"


@pytest.mark.parametrize(
    ("what", "changed"),
    [
        ("a mutation", asking(requests=(RequestPattern("POST", URL, MUTATION),))),
        ("another query", asking(requests=(RequestPattern("POST", URL, OTHER),))),
        ("any document", asking(requests=(RequestPattern("POST", URL),))),
        ("another URL", asking(requests=(RequestPattern("POST", f"{URL}/x", QUERY),))),
        ("another method", asking(requests=(RequestPattern("PUT", URL, QUERY),))),
        ("a further request", asking(
            requests=(RequestPattern("POST", URL, QUERY), RequestPattern("POST", URL, MUTATION)))),
        ("another operation", asking(operation="drop")),
        ("other code", replace(asking(), source_code="# other code\n")),
    ],
)  # fmt: skip
def test_a_signed_read_is_inherited_by_nothing_else(
    settings: Settings, store: Store, serving: SignedPolicy, person: Signer, what: str,
    changed: Bundle,
) -> None:  # fmt: skip
    of = published(store, asking())
    assert classify_operation(store.classifications, of, "zones", "read", person, 2.0)
    for policy in (serving, opened(settings, store)):
        assert (level(policy, of), level(policy, changed)) == ("read", "write"), what


def test_nobody_is_believed_that_a_mutation_reads(serving: SignedPolicy) -> None:
    for document, access in ((QUERY, "read"), (MUTATION, "write"), ("{ zones }", "write")):
        assert level(serving, compiled(1, "POST", URL, "read", document)) == access


def compiled(version: int, method: str, url: str, access: Any, document: str = "") -> Bundle:
    requests = (RequestPattern(method, url, document),)
    of = asking(requests=requests, access=access)
    made = Provenance("https://api.example/openapi.json", "0" * 64)
    return replace(of, version=version, provenance=made)


def test_what_the_first_version_read_a_later_one_reads(store: Store, serving: SignedPolicy) -> None:
    search = "https://api.example/search"
    assert level(serving, published(store, compiled(1, "POST", search, "read"))) == "read"
    assert level(serving, published(store, compiled(2, "POST", search, "read"))) == "read"
    assert level(serving, published(store, compiled(3, "POST", URL, "read", QUERY))) == "read"
    assert level(serving, published(store, compiled(4, "GET", f"{search}/x", "read"))) == "read"


@pytest.mark.parametrize("url", ["https://api.example/letters", "https://api.example/{any}"])
def test_a_later_version_of_a_shell_s_own_makes_no_write_a_read(
    settings: Settings, store: Store, serving: SignedPolicy, person: Signer, url: str
) -> None:
    published(store, compiled(1, "POST", "https://api.example/letters", "write"))
    of = published(store, compiled(2, "POST", url, "read"))
    for policy in (serving, opened(settings, store)):
        assert policy.check_entry(store.servers.get("dns")).version == 2
        assert level(policy, of) == "write"
    assert classify_operation(store.classifications, of, "zones", "read", person, 2.0)
    assert level(serving, of) == "read"


def covers(store: Store, person: Signer, of: Bundle) -> bool:
    """Whether a rule for any version, made of a write of the first one, covers a tool's write."""
    asked = store.approvals.get(approval().id)
    always = RuleRequest(any_version=True)
    rule = create_rule(store, asked, always, person, "ann", time.time())
    digest = compute_operation_digest(of.tools[0])
    arguments = asked.arguments
    write = WriteFacts(BLANK, tool="dns.zones", version=9, digest="x", operation_digest=digest,
                       arguments=arguments, erases=False, now=time.time(), author="client",
                       requests=of.tools[0].requests)  # fmt: skip
    return covers_write(rule, write)


@pytest.fixture
def asked(store: Store) -> Approval:
    published(store, asking())
    now = time.time()
    wire = WireRequest("POST", URL, (), json.dumps({"query": QUERY}).encode())
    waiting = approval(tool="zones", created=now, expires=now + 3600, wire=wire)
    store.approvals.add_pending(waiting)
    return waiting


def test_a_rule_for_any_version_covers_the_operation_in_each(
    store: Store, asked: Approval, person: Signer
) -> None:
    assert covers(store, person, replace(asking(), version=2, source_code="# better\n"))


def test_a_rule_for_any_version_covers_no_other_operation_of_that_name(
    store: Store, asked: Approval, person: Signer
) -> None:
    for requests in (
        (RequestPattern("POST", URL, MUTATION),),
        (RequestPattern("POST", "https://other.example/graphql", QUERY),),
        (RequestPattern("DELETE", URL, QUERY),),
    ):
        assert not covers(store, person, asking(requests=requests))


def test_a_state_that_the_audit_has_counts(store: Store, serving: SignedPolicy) -> None:
    store.servers.publish(entry(), REPORTS, now=1.0)
    store.servers.set_state("dns", "quarantined", 2.0, "guard")
    assert serving.check_entry(store.servers.get("dns")).state == "quarantined"
    store.servers.set_state("dns", "active", 3.0, "terminal")
    store.servers.publish(entry(version=2), REPORTS, now=4.0)
    assert serving.check_entry(store.servers.get("dns")).state == "active"
    assert find_differences(serving) == ()


@pytest.mark.parametrize(
    ("state", "wanted"),
    [("quarantined", "active"), ("archived", "experimental"), ("experimental", "active")],
)
def test_a_state_that_was_written_by_hand_opens_nothing(
    settings: Settings, store: Store, serving: SignedPolicy, state: Any, wanted: str
) -> None:
    store.servers.publish(entry(), REPORTS, now=1.0)
    store.servers.set_state("dns", state, 2.0, "guard")
    with shell(store) as connection:
        connection.execute("UPDATE entries SET state = ?", (wanted,))
    for policy in (serving, opened(settings, store)):
        assert policy.check_entry(store.servers.get("dns")).state == state
        assert any(state in told for told in find_differences(policy))


VERSIONS = {
    "a version that was retired is current": "UPDATE entries SET version = 1",
    "another digest": "UPDATE versions SET digest = 'x' WHERE version = 2",
    "the digest of an earlier version": "UPDATE versions SET digest = 'dns-1' WHERE version = 2",
    "a version that nobody published": "UPDATE versions SET version = 7 WHERE version = 2; "
    "UPDATE entries SET version = 7",
    "a publication of its own": "UPDATE versions SET digest = 'x' WHERE version = 2; "
    "UPDATE audit SET payload = replace(payload, 'dns-2', 'x')",
}


@pytest.mark.parametrize("how", VERSIONS)
def test_a_version_that_was_not_published_so_is_not_run(
    settings: Settings, store: Store, serving: SignedPolicy, how: str
) -> None:
    store.servers.publish(entry(), REPORTS, now=1.0)
    store.servers.publish(entry(version=2), REPORTS, now=2.0)
    assert serving.check_entry(store.servers.get("dns")).version == 2
    sign_audit(settings, store.audit)
    with shell(store) as connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        for statement in VERSIONS[how].split("; "):
            connection.execute(statement)
    with pytest.raises(BundleInvalid, match="not run"):
        serving.check_entry(store.servers.get("dns"))
    fresh = opened(settings, store)
    if not fresh.find_obstacle():
        with pytest.raises(BundleInvalid, match="not run"):
            fresh.check_entry(store.servers.get("dns"))
        assert any("dns" in told for told in find_differences(fresh))


LIFTS = {
    "the row says so": "UPDATE freeze SET frozen = 0",
    "the row is gone": "DELETE FROM freeze",
    "a freeze that never was": "UPDATE freeze SET epoch = 0, frozen = 0, since = 0",
    "a later epoch": "UPDATE freeze SET epoch = epoch + 1, frozen = 0",
    "the lift of an earlier one": "UPDATE freeze SET frozen = 0, epoch = :epoch, since = :since, "
    "\"by\" = :by, reason = '', lift = :lift",
    "the lift of an earlier one under this epoch": "UPDATE freeze SET frozen = 0, since = :since, "
    "\"by\" = :by, reason = '', lift = :lift",
    "a row before it": "INSERT INTO freeze VALUES (0, :epoch, 0, :since, :by, '', :lift)",
}


def judged(watch: FreezeWatch) -> bool:
    """Whether everything is frozen, as the thread that watches the database finds it."""
    return watch.judge_freeze(watch.policy.store.signals.read_signals().freeze).frozen


def test_a_lift_that_a_person_signed_counts(
    settings: Settings, store: Store, serving: SignedPolicy, person: Signer
) -> None:
    watch = FreezeWatch(serving)
    assert not judged(watch)
    for now in (1.0, 3.0):
        store.processes.freeze(now, "ann")
        assert judged(watch)
        store.processes.unfreeze(now + 1, "ann", person.sign)
        for each in (watch, FreezeWatch(opened(settings, store))):
            assert not judged(each)
    assert find_differences(serving) == ()


@pytest.mark.parametrize("how", LIFTS)
@pytest.mark.parametrize("seen", [True, False])
def test_a_lift_that_nobody_signed_freezes_again(
    settings: Settings, store: Store, serving: SignedPolicy, person: Signer, how: str, seen: bool
) -> None:
    store.processes.freeze(time.time(), "ann")
    earlier = vars(store.processes.unfreeze(time.time(), "ann", person.sign))
    store.processes.freeze(time.time(), "ann")
    watch = FreezeWatch(serving)
    assert not seen or judged(watch)
    with shell(store) as connection:
        connection.execute(LIFTS[how], earlier)
    assert find_differences(opened(settings, store)) != ()
    assert judged(watch)
    assert store.processes.get_freeze().frozen
    assert any("without the PIN" in told for told in find_differences(opened(settings, store)))
    assert store.audit.has_note("freeze.forged", str(store.audit.find(2)[-1].subject))
    store.processes.unfreeze(time.time(), "ann", person.sign)
    assert not judged(watch)


def test_a_lift_of_a_key_of_its_own_freezes_again(store: Store, serving: SignedPolicy) -> None:
    store.processes.freeze(1.0, "ann")
    store.processes.unfreeze(2.0, "mallory", Signer.generate().sign)
    assert judged(FreezeWatch(serving))


def test_what_is_granted_again_after_it_was_taken_away_counts(
    store: Store, serving: SignedPolicy, person: Signer
) -> None:
    grants = open_grants(serving)
    for _ in range(2):
        allow_host(store.grants, "api.example:443", "ann", person)
        assert grants.find_hosts() == {"api.example:443"}
        for kind in ("host", "private_host"):
            store.grants.remove_grant("api.example:443", kind, "ann", time.time())
        assert grants.find_hosts() == frozenset()


def cut(connection: sqlite3.Connection, kind: str) -> None:
    connection.execute("DELETE FROM audit WHERE kind = ?", (kind,))


def rename(connection: sqlite3.Connection, kind: str) -> None:
    connection.execute("UPDATE audit SET kind = 'note' WHERE kind = ?", (kind,))


@pytest.mark.parametrize("besides", [None, cut, rename])
def test_a_grant_that_was_taken_away_stays_so_without_its_rows(
    settings: Settings, store: Store, serving: SignedPolicy, person: Signer,
    besides: Callable[[sqlite3.Connection, str], None] | None,
) -> None:  # fmt: skip
    grants = open_grants(serving)
    allow_host(store.grants, "api.example:443", "ann", person)
    assert grants.find_hosts()
    with shell(store) as connection:
        rows = connection.execute("SELECT * FROM grants").fetchall()
    for kind in ("host", "private_host"):
        store.grants.remove_grant("api.example:443", kind, "ann", time.time())
    assert not grants.find_hosts()
    sign_audit(settings, store.audit)
    with shell(store) as connection:
        places = ", ".join("?" * len(rows[0]))
        connection.executemany(f"INSERT INTO grants VALUES ({places})", rows)
        if besides:
            besides(connection, "grant.removed")
    for each in (grants, open_grants(opened(settings, store))):
        assert not each.find_hosts()
        assert len(each.find_void()) == 2
    assert not besides or "audit" in opened(settings, store).find_obstacle()


def test_a_withdrawal_outlives_the_archive(
    settings: Settings, store: Store, person: Signer
) -> None:
    of, now = published(store, asking(), 4 * WEEK), time.time()
    assert classify_operation(store.classifications, of, "zones", "read", person, now - 3 * WEEK)
    with shell(store) as connection:
        (row,) = connection.execute("SELECT * FROM overrides").fetchall()
    assert classify_operation(store.classifications, of, "zones", "write", None, now - 2 * WEEK)
    store.audit.add_note("later", "x", {}, now)
    sign_audit(settings, store.audit)
    moved = store.audit.archive_rows(settings.heads, now - WEEK, now)
    assert moved is not None
    assert moved.rows == 3
    sign_audit(settings, store.audit)
    with shell(store) as connection:
        connection.execute("DELETE FROM overrides")
        connection.execute(f"INSERT INTO overrides VALUES ({', '.join('?' * len(row))})", row)
    fresh = opened(settings, store)
    assert fresh.find_obstacle() == ""
    assert level(fresh, of) == "write"
    assert fresh.check_entry(store.servers.get("dns")).state == "active"


def test_an_older_database_is_told_and_loosens_nothing(
    settings: Settings, store: Store, person: Signer
) -> None:
    of = published(store, asking())
    assert classify_operation(store.classifications, of, "zones", "read", person, 2.0)
    sign_audit(settings, store.audit)
    with shell(store) as connection, closing(sqlite3.connect(settings.home / "old")) as copy:
        connection.backup(copy)
    older_heads = settings.home / "older"
    shutil.copytree(settings.heads, older_heads)
    assert classify_operation(store.classifications, of, "zones", "write", None, 3.0)
    sign_audit(settings, store.audit)
    with Store.open(settings.home / "old") as restored:
        policy = opened(settings, restored)
        assert "put back the directory audit/ of the same backup" in policy.find_obstacle()
        assert level(policy, of) == "write"
        # With what was signed when the backup was made, the installation is that of then.
        shutil.rmtree(settings.heads)
        shutil.move(older_heads, settings.heads)
        policy = opened(settings, restored)
        assert policy.find_obstacle() == ""
        assert level(policy, of) == "read"
