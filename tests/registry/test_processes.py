from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from registry.errors import GrantStale, Unknown
from registry.records import Freeze, Grant, Process, Source
from registry.store import Store


def process(id: str = "p1", started: float = 1.0) -> Process:
    return Process(id, 4711, 0.5, "serve", started, started)


def test_a_process_is_registered_seen_alive_and_removed(store: Store) -> None:
    store.register_process(process("p2", 2.0))
    store.register_process(process())
    store.heartbeat("p1", 5.0)
    assert [(found.id, found.heartbeat) for found in store.processes()] == [
        ("p1", 5.0),
        ("p2", 2.0),
    ]
    store.remove_process("p1")
    store.remove_process("p1")
    assert store.processes() == (process("p2", 2.0),)
    with pytest.raises(Unknown):
        store.heartbeat("p1", 6.0)


def test_a_freeze_is_acknowledged_by_epoch(store: Store) -> None:
    store.register_process(process())
    epoch = store.freeze(3.0, by="me", reason="odd writes")
    assert store.freeze_state() == Freeze(epoch, True, 3.0, "me", "odd writes")
    store.acknowledge("p1", epoch, 3.1)
    assert store.processes()[0].acknowledged_epoch == epoch


def test_every_freeze_is_a_new_epoch_and_unfreezing_keeps_it(store: Store) -> None:
    assert store.freeze_state() == Freeze(0, False, 0.0, "", "")
    assert [store.freeze(1.0, by="a"), store.freeze(2.0, by="b")] == [1, 2]
    assert store.unfreeze(3.0, by="c") == Freeze(2, False, 3.0, "c", "")
    assert store.unfreeze(4.0, by="d").since == 3.0
    assert store.freeze(5.0, by="e") == 3
    kinds = [row.kind for row in store.audit(since=0)]
    assert kinds == ["freeze", "freeze", "unfreeze", "freeze"]


def test_data_version_shows_every_commit_of_anyone_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "registry.db"
    with Store.open(path) as watching, Store.open(path) as other:
        seen = [watching.data_version(), watching.data_version()]
        other.freeze(1.0, by="me")
        seen.append(watching.data_version())
        watching.unfreeze(2.0, by="me")
        seen += [watching.data_version(), watching.data_version()]
    assert seen[0] == seen[1] != seen[2] != seen[3] == seen[4]


def test_sources_are_kept_by_url(store: Store) -> None:
    store.add_source(Source("https://b.example/", "X-Key", "b-key"), 1.0)
    store.add_source(Source("https://a.example/"), 1.0)
    store.add_source(Source("https://b.example/", "X-Key", "new"), 2.0)
    assert store.sources() == (
        Source("https://a.example/"),
        Source("https://b.example/", "X-Key", "new"),
    )
    assert store.remove_source("https://a.example/", 3.0)
    assert not store.remove_source("https://a.example/", 3.0)


def test_grants_are_kept_by_origin_and_kind(store: Store) -> None:
    public = Grant("api.example:443", "host", "me", 1.0)
    private = Grant("api.example:443", "private_host", "me", 2.0)
    store.add_grant(public)
    store.add_grant(private)
    assert store.grants() == (public, private)
    assert store.grants("private_host") == (private,)
    assert store.remove_grant("api.example:443", "private_host", "me", 3.0)
    assert not store.remove_grant("api.example:443", "private_host", "me", 3.0)
    assert store.grants() == (public,)


def test_a_grant_that_was_taken_away_is_known_by_its_serial(store: Store) -> None:
    grant = Grant("api.example:443", "host", "me", 1.0)
    assert store.next_serial(grant.origin, "host") == 1
    store.add_grant(grant)
    store.remove_grant(grant.origin, "host", "me", 2.0)
    assert store.next_serial(grant.origin, "host") == 2
    with pytest.raises(GrantStale):
        store.add_grant(grant)
    store.add_grant(replace(grant, serial=2))
    assert [(g.serial, g.revoked) for g in store.grants()] == [(2, 1)]
