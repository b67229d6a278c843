from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from registry.errors import GrantStale, RowNotFound
from registry.models import DocumentationSource, Freeze, Grant, Process
from registry.secrets.signing import verify_signature
from registry.store import Store
from tests.registry.samples import SIGNER


def process(id: str = "p1", started: float = 1.0) -> Process:
    return Process(id, 4711, 0.5, "serve", started, started)


def test_a_process_is_registered_seen_alive_and_removed(store: Store) -> None:
    store.processes.register(process("p2", 2.0))
    store.processes.register(process())
    store.processes.record_heartbeat("p1", 5.0)
    assert [(found.id, found.heartbeat) for found in store.processes.find()] == [
        ("p1", 5.0),
        ("p2", 2.0),
    ]
    store.processes.remove("p1")
    store.processes.remove("p1")
    assert store.processes.find() == (process("p2", 2.0),)
    with pytest.raises(RowNotFound):
        store.processes.record_heartbeat("p1", 6.0)


def test_a_freeze_is_acknowledged_by_epoch(store: Store) -> None:
    store.processes.register(process())
    epoch = store.processes.freeze(3.0, by="me", reason="odd writes")
    assert store.processes.get_freeze() == Freeze(epoch, True, 3.0, "me", "odd writes")
    store.processes.acknowledge_freeze("p1", epoch, 3.1)
    assert store.processes.find()[0].acknowledged_epoch == epoch


def test_a_freeze_that_comes_while_a_process_starts_stays_acknowledged(store: Store) -> None:
    store.processes.register(replace(process(), kind="starting"))
    epoch = store.processes.freeze(3.0, by="me")
    store.processes.acknowledge_freeze("p1", epoch, 3.1)
    store.processes.register(process())
    assert store.processes.find() == (replace(process(), acknowledged_epoch=epoch),)


def test_every_freeze_is_a_new_epoch_and_unfreezing_keeps_it(store: Store) -> None:
    assert store.processes.get_freeze() == Freeze(0, False, 0.0, "", "")
    assert [store.processes.freeze(1.0, by="a"), store.processes.freeze(2.0, by="b")] == [1, 2]
    lifted = store.processes.unfreeze(3.0, "c", SIGNER.sign)
    assert replace(lifted, lift="") == Freeze(2, False, 3.0, "c", "")
    assert verify_signature(SIGNER.public, lifted.to_signed_body(), lifted.lift)
    assert store.processes.unfreeze(4.0, "d", SIGNER.sign).since == 3.0
    assert store.processes.freeze(5.0, by="e") == 3
    kinds = [row.kind for row in store.audit.find(since=0)]
    assert kinds == ["freeze", "freeze", "unfreeze", "freeze"]


def test_data_version_shows_every_commit_of_anyone_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "registry.db"
    with Store.open(path) as watching, Store.open(path) as other:
        seen = [watching.signals.read_data_version(), watching.signals.read_data_version()]
        other.processes.freeze(1.0, by="me")
        seen.append(watching.signals.read_data_version())
        watching.processes.unfreeze(2.0, "me", SIGNER.sign)
        seen += [watching.signals.read_data_version(), watching.signals.read_data_version()]
    assert seen[0] == seen[1] != seen[2] != seen[3] == seen[4]


def test_sources_are_kept_by_url(store: Store) -> None:
    store.grants.add_source(DocumentationSource("https://b.example/", "X-Key", "b-key"), 1.0)
    store.grants.add_source(DocumentationSource("https://a.example/"), 1.0)
    store.grants.add_source(DocumentationSource("https://b.example/", "X-Key", "new"), 2.0)
    assert store.grants.find_sources() == (
        DocumentationSource("https://a.example/"),
        DocumentationSource("https://b.example/", "X-Key", "new"),
    )
    assert store.grants.remove_source("https://a.example/", 3.0)
    assert not store.grants.remove_source("https://a.example/", 3.0)


def test_grants_are_kept_by_origin_and_kind(store: Store) -> None:
    public = Grant("api.example:443", "host", "me", 1.0)
    private = Grant("api.example:443", "private_host", "me", 2.0)
    store.grants.add_grant(public)
    store.grants.add_grant(private)
    assert store.grants.find_grants() == (public, private)
    assert store.grants.find_grants("private_host") == (private,)
    assert store.grants.remove_grant("api.example:443", "private_host", "me", 3.0)
    assert not store.grants.remove_grant("api.example:443", "private_host", "me", 3.0)
    assert store.grants.find_grants() == (public,)


def test_a_grant_that_was_taken_away_is_known_by_its_serial(store: Store) -> None:
    grant = Grant("api.example:443", "host", "me", 1.0)
    assert store.grants.get_next_serial(grant.origin, "host") == 1
    store.grants.add_grant(grant)
    store.grants.remove_grant(grant.origin, "host", "me", 2.0)
    assert store.grants.get_next_serial(grant.origin, "host") == 2
    with pytest.raises(GrantStale):
        store.grants.add_grant(grant)
    store.grants.add_grant(replace(grant, serial=2))
    assert [(g.serial, g.revoked) for g in store.grants.find_grants()] == [(2, 1)]
