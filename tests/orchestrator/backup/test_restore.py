"""A home comes back from its backup: what it may, and what it may not bring back."""

from __future__ import annotations

import gzip
import json
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.approvals.differences import find_differences
from orchestrator.approvals.granting import allow_host
from orchestrator.approvals.grants import open_grants
from orchestrator.approvals.rules import classify_operation
from orchestrator.approvals.signed_policy import SignedPolicy
from orchestrator.approvals.signing_key import build_authority, open_key
from orchestrator.backup.create import create_backup
from orchestrator.backup.restore import RESTORED, Restored, apply_restore, prepare_restore
from orchestrator.backup.sealed_vault import export_vault_key
from orchestrator.cli.enroll import record_key
from orchestrator.errors import RestoreRefused
from orchestrator.settings import Settings, load_settings
from registry.approvals.decisions import sign_decision
from registry.approvals.rules import ApprovalRule, Condition
from registry.audit.heads import HeadSigner
from registry.database.tables import AUDIT_GUARDS
from registry.errors import BackupFailed, BackupRefused
from registry.models import Process, build_entry
from registry.secrets.key_export import open_vault_key
from registry.secrets.pin import change_pin, replace_key, set_pin
from registry.secrets.signing import Signer, verify_signature
from registry.secrets.vault import Secret, open_vault
from registry.servers.files import install_bundle
from registry.store import Store
from sandbox.errors import Frozen
from tests.orchestrator.conftest import PIN
from tests.registry.samples import approval, bundle, invocation, job

HOST = "api.example:443"


def told(_line: str) -> None: ...


def person(settings: Settings, pin: str = PIN) -> Signer:
    opened = open_key(settings, pin, time.time())
    assert opened.signer is not None, opened.refused
    return opened.signer


@contextmanager
def opened(settings: Settings) -> Iterator[Store]:
    with Store.open(settings.database_url, "test") as store:
        yield store


@pytest.fixture
def home(settings: Settings) -> Settings:
    """A home with one server, a grant, a secret and a push target, whose key is its own: a test
    takes it away, which other tests of the run must not notice.
    """
    settings = replace(settings, vault_key=settings.home.parent / "own-vault.key")
    with opened(settings) as store:
        made = bundle()
        install_bundle(settings.home, store.servers, made, build_entry(made, 1.0), now=1.0)
        allow_host(store.grants, HOST, "test", person(settings))
    open_vault(settings).put("dns", "token", Secret("s3cret-of-dns"))
    settings.push.write_text("{}")
    return settings


def backed_up(settings: Settings, name: str = "home.tgz") -> Path:
    file = settings.home.parent / name
    create_backup(settings, file, replace=False, tell=told)
    return file


def restored(settings: Settings, file: Path, pin: str = PIN, **more: Any) -> Restored:
    given = {"key": None, "with_secrets": True} | more
    with prepare_restore(settings, file, told, **given) as prepared:
        return apply_restore(prepared, person(prepared.signing, pin))


def troubles(settings: Settings) -> list[str]:
    """What `audit verify` and the registry's check say; [] where all is well."""
    with opened(settings) as store:
        broken, _ = HeadSigner(settings.heads).verify_and_count(store.audit)
        policy = SignedPolicy(store, build_authority(settings))
        return [*([str(broken)] if broken else []), *find_differences(policy)]


def granted(settings: Settings) -> set[str]:
    """The grants that count."""
    with opened(settings) as store:
        grants = open_grants(SignedPolicy(store, build_authority(settings)))
        return {grant.origin for grant in grants.find_grants()}


def tree(settings: Settings) -> dict[str, bytes]:
    """Every file of a home but those that opening it writes."""
    kept = (".db", ".lock", "-wal", "-shm")
    return {
        path.relative_to(settings.home).as_posix(): path.read_bytes()
        for path in settings.home.rglob("*")
        if path.is_file() and not path.name.endswith(kept)
    }


def test_a_home_comes_back_whole_signed_and_frozen(home: Settings) -> None:
    before = tree(home)
    file = backed_up(home)
    open_vault(home).delete("dns", "token")
    with opened(home) as store:
        store.servers.archive("dns", 2.0, "test")
    (home.servers / "dns" / "server.py").unlink()
    done = restored(home, file)
    after = tree(home)
    assert {name: after[name] for name in before if not name.startswith(("audit/", "pin"))} == {
        name: content for name, content in before.items() if not name.startswith(("audit/", "pin"))
    }
    assert open_vault(home).get("dns", "token") == Secret("s3cret-of-dns")
    assert troubles(home) == []
    with opened(home) as store:
        state = store.processes.get_freeze()
        (row,) = [row for row in store.audit.find(limit=1000) if row.kind == RESTORED]
    assert (state.frozen, state.epoch) == (True, done.epoch)
    said = json.loads(row.payload)
    body = {name: said[name] for name in ("kind", "backup", "made", "restored", "epoch")}
    assert verify_signature(person(home).public, body, said["signature"])
    assert not (home.home / ".restore").exists()


def test_a_backup_is_one_consistent_point_while_others_write(home: Settings) -> None:
    program = (
        "import sys, itertools; from registry.store import Store\n"
        f"store = Store.open({home.database_url!r}, 'busy')\n"
        "print('ready', flush=True)\n"
        "for n in itertools.count(): store.audit.add_note('busy', str(n), {'n': n}, 1.0)\n"
    )
    root = Path(__file__).parents[3]
    with subprocess.Popen(
        [sys.executable, "-c", program], cwd=root, stdout=subprocess.PIPE
    ) as busy:
        assert busy.stdout is not None
        busy.stdout.readline()
        files = [backed_up(home, f"{number}.tgz") for number in range(3)]
        busy.kill()
    for file in files:
        with prepare_restore(home, file, told, None, True) as prepared:
            assert prepared.plan.manifest.has("toolwright.db")


def test_a_backup_does_not_hold_the_vaults_key_or_what_it_seals(home: Settings) -> None:
    file = backed_up(home)
    content = gzip.decompress(file.read_bytes())
    key = open_vault(home).export_key()
    assert key is not None
    assert key not in content
    assert b"s3cret-of-dns" not in content


@pytest.mark.parametrize("where", ["home/servers/x.tgz", "nowhere/x.tgz"])
def test_a_backup_is_not_made_where_it_would_be_lost(home: Settings, where: str) -> None:
    before = tree(home)
    with pytest.raises(BackupFailed):
        create_backup(home, home.home.parent / where, replace=False, tell=told)
    assert tree(home) == before


def run_out(home: Settings) -> None:
    with opened(home) as store:
        for grant in store.grants.find_grants():
            store.grants.remove_grant(grant.origin, grant.kind, "test", 2.0)


def grant_otherwise(home: Settings) -> None:
    """Revoke, and grant something else."""
    run_out(home)
    with opened(home) as store:
        allow_host(store.grants, "other.example:443", "test", person(home))


@pytest.mark.parametrize("take_away", [run_out, grant_otherwise])
def test_a_grant_that_was_taken_away_since_stays_away(
    home: Settings, take_away: Callable[[Settings], None]
) -> None:
    file = backed_up(home)
    with opened(home) as store:
        rows = [vars(grant) for grant in store.grants.find_grants() if grant.origin == HOST]
    take_away(home)
    restored(home, file)
    assert HOST not in granted(home)
    # A copy of the row that somebody kept is as dead.
    names = ("origin", "kind", "granted_by", "granted", "detail", "serial", "signature")
    with closing(sqlite3.connect(home.home / "toolwright.db")) as shell, shell:
        marks = ", ".join("?" * len(names))
        copies = [[row[name] for name in names] for row in rows]
        shell.executemany(f"INSERT INTO grants VALUES ({marks})", copies)
    assert HOST not in granted(home)


def test_a_grant_that_nobody_took_away_counts_again(home: Settings) -> None:
    file = backed_up(home)
    restored(home, file)
    assert HOST in granted(home)


def test_what_was_classified_more_strictly_since_stays_so(home: Settings) -> None:
    file = backed_up(home)
    with opened(home) as store:
        now = time.time()
        assert classify_operation(store.classifications, bundle(), "list_zones", "write", None, now)
    restored(home, file)
    assert troubles(home) == []
    with opened(home) as store:
        said = store.classifications.find("dns")["list_zones"]
        assert (said.level, said.signature) == ("write", "")
        assert said.serial > 1


def test_a_server_that_was_taken_out_of_use_since_stays_so(home: Settings) -> None:
    file = backed_up(home)
    with opened(home) as store:
        store.servers.archive("dns", 2.0, "test")
    restored(home, file)
    with opened(home) as store:
        assert store.servers.get("dns").state == "archived"


def ask(store: Store, home: Settings, id: str, state: str, now: float) -> None:
    """An approval of this home in a state of its way."""
    asked = replace(approval(id), created=now, expires=now + 3600)
    store.approvals.add_pending(asked)
    if state == "pending":
        return
    shown = store.approvals.get(id)
    signed = sign_decision(shown, True, "ann", now, person(home))
    store.approvals.decide(id, True, by="ann", now=now, signed=signed)
    if state == "approved":
        return
    policy = SignedPolicy(store, build_authority(home))
    assert store.approvals.claim(id, "gone", now, policy.check_forgery)
    if state == "sending":
        call = invocation(f"call-{id}", tool="create_zone", access="write", approval=id)
        store.calls.store_intent(replace(call, process="gone", started=now), now)


STATES = ("pending", "approved", "claimed", "sending")


def test_nothing_that_was_under_way_goes_on(home: Settings) -> None:
    now = time.time()
    with opened(home) as store:
        for state in STATES:
            ask(store, home, state, state, now)
        store.jobs.create(job())
        store.processes.register(Process("gone", 1, 0.0, "serve", now, now))
    file = backed_up(home)
    done = restored(home, file)
    assert (done.unsettled.expired, done.jobs) == (("pending",), ("j1",))
    with opened(home) as store:
        states = {state: store.approvals.get(state).state for state in STATES}
        assert states == {
            "pending": "expired",
            "approved": "unknown",
            "claimed": "unknown",
            "sending": "unknown",
        }
        assert store.calls.get("call-sending").state == "unknown"
        assert (store.jobs.get("j1").state, store.processes.find()) == ("cancelled", ())
        store.processes.unfreeze(now, "test", person(home).sign)
        policy = SignedPolicy(store, build_authority(home))
        for state in STATES:
            # Put back by hand, it is not believed.
            with closing(sqlite3.connect(store.path)) as shell, shell:
                shell.execute("UPDATE approvals SET state='approved' WHERE id=?", (state,))
            assert store.approvals.claim(state, "next", now, policy.check_forgery) is None


def test_what_was_approved_after_the_backup_is_not_carried_out_again(home: Settings) -> None:
    now = time.time()
    file = backed_up(home)
    with opened(home) as store:
        ask(store, home, "later", "approved", now)
        with closing(sqlite3.connect(store.path)) as shell:
            row = shell.execute("SELECT * FROM approvals").fetchone()
    restored(home, file)
    with opened(home) as store:
        store.processes.unfreeze(now, "test", person(home).sign)
        with closing(sqlite3.connect(store.path)) as shell, shell:
            shell.execute(f"INSERT INTO approvals VALUES ({', '.join('?' * len(row))})", row)
        policy = SignedPolicy(store, build_authority(home))
        assert store.approvals.claim("later", "next", now, policy.check_forgery) is None


def end(store: Store, home: Settings, id: str, now: float) -> None:
    """Carry an approved request out."""
    ask(store, home, id, "claimed", now)
    assert store.approvals.store_outcome(id, "gone", "done", {}, now)


def test_the_audit_has_a_row_of_each_request_that_a_restore_ends_and_of_no_other(
    home: Settings,
) -> None:
    now = time.time()
    with opened(home) as store:
        end(store, home, "done", now)
        for id in ("rejected", "waited", "since"):
            ask(store, home, id, "pending", now)
        store.approvals.decide("rejected", False, by="ann", now=now)
        ask(store, home, "approved", "approved", now)
    file = backed_up(home)
    with opened(home) as store:
        shown = store.approvals.get("since")
        signed = sign_decision(shown, True, "ann", now, person(home))
        store.approvals.decide("since", True, by="ann", now=now, signed=signed)
        end(store, home, "later", now)
        ask(store, home, "asked later", "pending", now)
    done = restored(home, file)
    assert done.unsettled.expired == ("waited",)
    assert set(done.unsettled.unknown) == {"approved", "since"}
    assert done.approved_since == ("later",)
    with opened(home) as store:
        found = [r for r in store.audit.find(200) if '"by":"restore"' in r.payload]
        told = sorted((r.subject, r.kind) for r in found if r.kind.startswith("approval."))
    assert told == [
        ("approved", "approval.unknown"),
        ("later", "approval.done"),
        ("since", "approval.unknown"),
        ("waited", "approval.expired"),
    ]


def test_the_plan_says_what_the_present_home_has(home: Settings) -> None:
    file = backed_up(home)
    with opened(home) as store:
        store.calls.record(invocation("c", started=time.time() + 1), time.time())
    with prepare_restore(home, file, lambda _: None, None, True) as prepared:
        assert (prepared.plan.servers, prepared.plan.calls) == (("dns",), 1)


def test_a_lift_of_any_earlier_freeze_does_not_lift_a_restores(home: Settings) -> None:
    file = backed_up(home)
    with opened(home) as store:
        store.processes.freeze(2.0, "test")
        lifted = store.processes.unfreeze(3.0, "test", person(home).sign)
    done = restored(home, file)
    assert done.epoch > lifted.epoch
    with opened(home) as store, pytest.raises(Frozen):
        store.calls.store_intent(invocation("c"), 1.0)


def test_the_pin_of_today_decides_and_stays(home: Settings) -> None:
    file = backed_up(home)
    change_pin(home.pin, person(home), "another PIN")
    assert open_key(home, PIN, time.time()).signer is None
    restored(home, file, "another PIN")
    assert open_key(home, PIN, time.time()).signer is None
    assert person(home, "another PIN")
    assert troubles(home) == []


def test_an_earlier_key_of_the_same_person_does_not_come_back(home: Settings) -> None:
    file = backed_up(home)
    fresh = replace_key(home.pin, person(home), "another PIN")
    restored(home, file, "another PIN")
    assert person(home, "another PIN").public == fresh.public
    # What the earlier key signed counts for nothing.
    assert granted(home) == set()


@pytest.fixture
def other(tmp_path: Path) -> Settings:
    """A home of somebody else."""
    settings = load_settings({"TOOLWRIGHT_HOME": str(tmp_path / "other")})
    return settings


def test_another_persons_backup_is_refused(home: Settings, other: Settings) -> None:
    set_pin(other.pin, "another PIN", cost=2**4)
    before = tree(other)
    with pytest.raises(BackupRefused, match="key"):
        restored(other, backed_up(home), "another PIN")
    assert tree(other) == before


def test_a_new_home_takes_a_backup_with_the_pin_of_the_backup(
    home: Settings, other: Settings
) -> None:
    restored(other, backed_up(home))
    assert troubles(other) == []
    assert (granted(other), other.instance != home.instance) == ({HOST}, True)
    assert open_vault(other).get("dns", "token") == Secret("s3cret-of-dns")


def test_a_home_whose_pin_was_taken_away_takes_no_backup(home: Settings) -> None:
    with opened(home) as store:
        record_key(home, store.audit, person(home))
    file = backed_up(home)
    home.pin.unlink()
    with pytest.raises(RestoreRefused, match="PIN"):
        restored(home, file)


def on_another_machine(other: Settings, tmp_path: Path) -> Settings:
    return replace(other, vault_key=tmp_path / "elsewhere" / "vault.key", own_key=True)


def test_another_machine_needs_the_vaults_key(
    home: Settings, other: Settings, tmp_path: Path
) -> None:
    file, away = backed_up(home), on_another_machine(other, tmp_path)
    # The vault names the file of its key, which another machine does not have.
    at = home.vault_key
    key = at.read_bytes()
    at.unlink()
    try:
        with pytest.raises(RestoreRefused, match="--with-key"):
            restored(away, file)
        assert not away.vault.exists()
        restored(away, file, with_secrets=False)
        assert open_vault(away).list_names() == ()
    finally:
        at.write_bytes(key)


def test_an_exported_key_opens_a_backup_on_another_machine(
    home: Settings, other: Settings, tmp_path: Path
) -> None:
    sealed = export_vault_key(home, "a long passphrase")
    assert sealed is not None
    key = open_vault_key("exported", sealed, "a long passphrase")
    away = on_another_machine(other, tmp_path)
    restored(away, backed_up(home), key=key)
    assert open_vault(away).get("dns", "token") == Secret("s3cret-of-dns")
    assert away.vault_key.read_bytes() != key


def edit(home: Settings, statement: str) -> None:
    with closing(sqlite3.connect(home.home / "toolwright.db")) as shell, shell:
        for trigger in ("audit_is_not_edited", "audit_is_not_deleted"):
            shell.execute(f"DROP TRIGGER {trigger}")
        shell.execute(statement)
        for guard in AUDIT_GUARDS:
            shell.execute(guard)


TAMPERED: dict[str, str] = {
    "an edited row of the audit": "UPDATE audit SET payload='{}' WHERE kind='grant.added'",
    "a missing row of the audit": "DELETE FROM audit WHERE id=(SELECT max(id) FROM audit)",
    "an edited digest of a server": "UPDATE versions SET digest='x'",
    "a trigger of somebody else": "CREATE TRIGGER t AFTER INSERT ON audit BEGIN SELECT 1; END",
    "an index of somebody else": "CREATE INDEX i ON audit (kind)",
}


@pytest.mark.parametrize("name", TAMPERED)
def test_a_backup_of_a_home_that_was_tampered_with_replaces_nothing(
    name: str, home: Settings, other: Settings
) -> None:
    with opened(home) as store:
        HeadSigner(home.heads).sign_heads(store.audit, time.time())
    edit(home, TAMPERED[name])
    file = backed_up(home)
    with pytest.raises(BackupRefused):
        restored(other, file)
    assert list(other.servers.glob("*")) == []
    assert not (other.home / ".restore").exists()


def test_a_wrong_pin_replaces_nothing(home: Settings) -> None:
    file = backed_up(home)
    before = {name: content for name, content in tree(home).items() if name != "pin.json"}
    with prepare_restore(home, file, told, None, True) as prepared:
        assert open_key(prepared.signing, "nonsense", time.time()).signer is None
    assert {name: c for name, c in tree(home).items() if name != "pin.json"} == before
    with opened(home) as store:
        assert not store.processes.get_freeze().frozen


def test_a_home_that_is_in_use_takes_no_backup_and_says_who_uses_it(home: Settings) -> None:
    file = backed_up(home)
    program = (
        "import sys; from registry.store import Store\n"
        f"store = Store.open({home.database_url!r}, 'busy'); print('ready', flush=True)\n"
        "sys.stdin.read()"
    )
    root = Path(__file__).parents[3]
    command = [sys.executable, "-c", program]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, cwd=root, **pipes) as busy:
        assert busy.stdout is not None
        busy.stdout.readline()
        with pytest.raises(RestoreRefused, match=str(busy.pid)):
            restored(home, file)
        busy.kill()
    restored(home, file)


def test_a_home_whose_database_is_damaged_is_restored_and_told_to_be_blind(home: Settings) -> None:
    file = backed_up(home)
    (home.home / "toolwright.db").write_bytes(b"no database" * 1000)
    with prepare_restore(home, file, told, None, True) as prepared:
        assert prepared.plan.blind
        apply_restore(prepared, person(home))
    assert troubles(home) == []


def test_what_a_restore_would_do_is_said_before(home: Settings) -> None:
    file = backed_up(home)
    with opened(home) as store:
        made = replace(bundle(), name="other")
        install_bundle(home.home, store.servers, made, build_entry(made, 1.0), now=1.0)
    run_out(home)
    with prepare_restore(home, file, told, None, True) as prepared:
        plan = prepared.plan
    assert plan.loses == ("the server other",)
    assert plan.keeps == (f"the grant {HOST} (host)", f"the grant {HOST} (private_host)")
    assert plan.brings_back == ()


def test_a_rule_that_is_used_up_or_expired_is_not_said_to_come_back(
    home: Settings, other: Settings
) -> None:
    now = time.time()
    live = ApprovalRule(
        "live", "dns", "create_zone", 1, "", (Condition("", {}),), now, now + 900, 3, "ann", "a1"
    )
    others = (replace(live, id="used", max_uses=0), replace(live, id="late", expires=now - 1))
    with opened(home) as store:
        for rule in (live, *others):
            signature = person(home).sign(rule.to_signed_body())
            store.rules.add(replace(rule, signature=signature))
    file = backed_up(home)
    with prepare_restore(other, file, told, None, False) as prepared:
        told_rules = [each for each in prepared.plan.brings_back if "rule" in each]
    assert told_rules == ["the rule live for dns.create_zone"]
