from __future__ import annotations

import resource
import shutil
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from registry.errors import DatabaseUnusable, VersionConflict
from registry.models import Entry, build_entry
from registry.servers import files
from registry.servers.files import (
    check_consistency,
    get_server_directory,
    install_bundle,
    load_bundle,
    recover_installations,
)
from registry.store import Store
from sandbox.bundle.model import Bundle, read_bundle, write_bundle
from sandbox.errors import BundleInvalid
from tests.registry.processes import in_child, race, survives_kill_at
from tests.registry.samples import REPORTS, bundle, tool


def put(home: Path, store: Store, made: Bundle) -> Entry:
    return install_bundle(home, store.servers, made, build_entry(made, 1.0), REPORTS, now=1.0)


def leftovers(home: Path) -> list[str]:
    return [path.name for path in (home / "servers" / files.UNDER_WAY).glob("*")]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path


def test_an_installed_bundle_is_on_disk_and_in_the_store(home: Path, store: Store) -> None:
    registered = install_bundle(
        home,
        store.servers,
        bundle(),
        build_entry(bundle(), 1.0),
        REPORTS,
        now=1.0,
        tests={"cases.json": b"[]"},
    )
    place = home / "servers" / "dns"
    assert load_bundle(home, "dns", registered.digest) == bundle() == read_bundle(place)
    assert sorted(path.name for path in (place / "reports").iterdir()) == [
        "mock.json",
        "static.json",
    ]
    assert (place / "tests" / "cases.json").read_bytes() == b"[]"
    assert check_consistency(home, store.servers) == ()


def test_a_new_version_moves_the_earlier_ones_into_its_history(home: Path, store: Store) -> None:
    for version in (1, 2, 3):
        put(home, store, bundle(version=version))
    place = get_server_directory(home, "dns")
    assert read_bundle(place) == bundle(version=3)
    for version in (1, 2, 3):
        assert read_bundle(place / "history" / str(version)) == bundle(version=version)
    assert sorted(path.name for path in (place / "history").iterdir()) == ["1", "2", "3"]
    assert check_consistency(home, store.servers) == ()
    assert leftovers(home) == []


def test_a_refused_version_leaves_nothing_behind(home: Path, store: Store) -> None:
    put(home, store, bundle(version=2))
    with pytest.raises(VersionConflict):
        put(home, store, bundle(version=1))
    assert read_bundle(get_server_directory(home, "dns")) == bundle(version=2)
    assert check_consistency(home, store.servers) == ()


def test_what_could_not_be_read_again_is_not_registered(home: Path, store: Store) -> None:
    put(home, store, bundle())
    made = bundle(version=2)
    unreadable = replace(made, tools=(replace(made.tools[0], name="NotAName"),))
    with pytest.raises(BundleInvalid, match="not unique lower-case identifiers"):
        put(home, store, unreadable)
    other = replace(build_entry(bundle(version=2), 1.0), digest="0" * 64)
    with pytest.raises(BundleInvalid, match="not the bundle that was to be registered"):
        install_bundle(home, store.servers, bundle(version=2), other, REPORTS, now=1.0)
    assert store.servers.get("dns").version == 1
    assert leftovers(home) == []
    assert check_consistency(home, store.servers) == ()


def test_installing_the_registered_digest_again_mends_its_files(home: Path, store: Store) -> None:
    put(home, store, bundle())
    (get_server_directory(home, "dns") / "server.py").write_text("edited")
    put(home, store, bundle())
    assert check_consistency(home, store.servers) == ()
    shutil.rmtree(get_server_directory(home, "dns"))
    put(home, store, bundle())
    assert check_consistency(home, store.servers) == ()


def test_an_edit_does_not_run_in_place_of_what_was_proved(home: Path, store: Store) -> None:
    registered = put(home, store, bundle())
    (get_server_directory(home, "dns") / "server.py").write_text("import os")
    assert load_bundle(home, "dns", registered.digest) == bundle()
    (get_server_directory(home, "dns") / "server.py").unlink()
    assert load_bundle(home, "dns", registered.digest) == bundle()


def test_files_that_were_not_registered_are_not_loaded(home: Path, store: Store) -> None:
    registered = put(home, store, bundle())
    (get_server_directory(home, "dns") / "server.py").write_text("import os")
    (get_server_directory(home, "dns") / "history" / "1" / "server.py").write_text("import os")
    with pytest.raises(BundleInvalid, match="not those that were registered"):
        load_bundle(home, "dns", registered.digest)


def test_an_edited_version_is_kept_when_another_takes_its_place(home: Path, store: Store) -> None:
    put(home, store, bundle())
    (get_server_directory(home, "dns") / "server.py").write_text("# mine\n")
    put(home, store, bundle(version=2))
    history = get_server_directory(home, "dns") / "history"
    kept = sorted(path.read_text() for path in history.glob("1*/server.py"))
    assert kept == sorted([bundle().source_code, "# mine\n"])


@pytest.mark.parametrize("name", ["..", "a/b", "", "A", ".staging-x-0"])
def test_only_a_servers_name_is_a_directory(home: Path, name: str) -> None:
    with pytest.raises(ValueError, match="not a server's name"):
        get_server_directory(home, name)


def test_a_test_file_cannot_be_written_elsewhere(home: Path, store: Store) -> None:
    with pytest.raises(ValueError, match="not a file name"):
        install_bundle(
            home,
            store.servers,
            bundle(),
            build_entry(bundle(), 1.0),
            now=1.0,
            tests={"../server.py": b""},
        )
    assert store.servers.find() == ()
    assert leftovers(home) == []


def test_check_names_every_disagreement_and_changes_nothing(home: Path, store: Store) -> None:
    for name in ("gone", "edited", "broken", "fine"):
        put(home, store, bundle(name))
    servers = home / "servers"
    shutil.rmtree(servers / "gone")
    (servers / "edited" / "server.py").write_text("edited")
    (servers / "broken" / "tools.json").write_text("{")
    shutil.copytree(servers / "fine", servers / "stranger")
    staging = servers / files.UNDER_WAY / f".staging-fine-{'0' * 16}"
    staging.mkdir()
    before = sorted(servers.rglob("*"))
    assert {(found.name, found.kind) for found in check_consistency(home, store.servers)} == {
        ("gone", "missing"),
        ("edited", "changed"),
        ("broken", "unreadable"),
        ("stranger", "unregistered"),
        (staging.name, "leftover"),
    }
    assert sorted(servers.rglob("*")) == before
    assert recover_installations(home, store.servers) == ("fine",)
    assert not staging.exists()


def test_recovery_touches_no_directory_that_it_did_not_make(home: Path, store: Store) -> None:
    put(home, store, bundle())
    strange = home / "servers" / files.UNDER_WAY / ".staging-..-x"
    strange.mkdir()
    assert recover_installations(home, store.servers) == ()
    assert strange.exists()


def test_recovery_of_an_empty_home_does_nothing(home: Path, store: Store) -> None:
    assert recover_installations(home, store.servers) == ()
    assert check_consistency(home, store.servers) == ()


@pytest.mark.parametrize("first", [True, False])
def test_a_kill_at_any_step_of_installing_is_settled_at_the_next_start(
    tmp_path: Path, first: bool
) -> None:
    home, saved = tmp_path / "home", tmp_path / "saved"
    home.mkdir()
    path = home / "registry.db"
    old, new = bundle(version=1), bundle(version=2, source_code="# better\n")
    with Store.open(path) as store:
        if not first:
            put(home, store, old)

    def upgrade() -> None:
        with Store.open(path) as store:
            put(home, store, new)

    for step in range(400):
        shutil.copytree(home, saved)
        finished = survives_kill_at(step, upgrade)
        with Store.open(path) as store:
            names = [(entry.name, entry.version) for entry in store.servers.find()]
            for entry_ in store.servers.find():
                assert load_bundle(home, "dns", entry_.digest).version == entry_.version
            recover_installations(home, store.servers)
            assert check_consistency(home, store.servers) == ()
            assert leftovers(home) == []
            assert names in ([("dns", 2)], [] if first else [("dns", 1)])
            history = sorted(get_server_directory(home, "dns").glob("history/*"))
            kept = [read_bundle(path) for path in history]
            assert kept == {1: [old], 2: [new] if first else [old, new]}.get(
                dict(names).get("dns", 0), []
            )
        if finished:
            break
        shutil.rmtree(home)
        saved.rename(home)
    assert step > 20


def test_every_version_can_be_loaded_at_any_step_of_installing_another(tmp_path: Path) -> None:
    home, saved = tmp_path / "home", tmp_path / "saved"
    home.mkdir()
    path = home / "registry.db"
    with Store.open(path) as store:
        for version in (1, 2):
            put(home, store, bundle(version=version))

    def upgrade() -> None:
        with Store.open(path) as store:
            put(home, store, bundle(version=3))

    for step in range(400):
        shutil.copytree(home, saved)
        finished = survives_kill_at(step, upgrade)
        # As another process finds it just then, which recovers nothing.
        with Store.open(path) as store:
            for each in store.servers.find_versions("dns"):
                assert load_bundle(home, "dns", each.digest).version == each.version
        if finished:
            break
        shutil.rmtree(home)
        saved.rename(home)
    assert step > 20


def test_processes_that_install_and_recover_at_once_end_consistent(home: Path) -> None:
    path = home / "registry.db"
    with Store.open(path):
        pass

    def upgrade(number: int) -> int:
        installed = 0
        with Store.open(path) as store:
            for turn in range(6):
                with suppress(VersionConflict):
                    put(home, store, bundle(version=turn * 4 + number + 1))
                    installed += 1
                recover_installations(home, store.servers)
        return installed

    installed = sum(race(upgrade, 4))
    with Store.open(path) as store:
        assert store.servers.get("dns").version == 24
        assert len(store.servers.find_versions("dns")) == installed
        assert len(list(get_server_directory(home, "dns").glob("history/*"))) == installed
        assert check_consistency(home, store.servers) == ()


def limit_files_to(size: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def test_a_full_disk_while_staging_leaves_the_old_version_untouched(home: Path) -> None:
    path = home / "registry.db"
    with Store.open(path) as store:
        put(home, store, bundle())

    def upgrade() -> None:
        with Store.open(path) as store, pytest.raises(OSError, match="too large"):
            put(home, store, bundle(version=2, source_code="#" * 4_000_000))

    assert in_child(lambda: limit_files_to(2_000_000), upgrade) == 0
    with Store.open(path) as store:
        assert store.servers.get("dns").version == 1
        assert check_consistency(home, store.servers) == ()


def test_a_full_disk_while_publishing_leaves_the_old_version_untouched(home: Path) -> None:
    path = home / "registry.db"
    with Store.open(path) as store:
        put(home, store, bundle())
    made = bundle(version=2)
    large = replace(build_entry(made, 1.0), tools=(tool("list_zones", "x" * 400_000),))

    def upgrade() -> None:
        with Store.open(path) as store:
            limit_files_to(100_000)
            with pytest.raises(DatabaseUnusable):
                install_bundle(home, store.servers, made, large, REPORTS, now=2.0)

    assert in_child(lambda: None, upgrade) == 0
    with Store.open(path) as store:
        assert store.servers.get("dns").version == 1
        assert store.audit.verify_chains() is None
        assert check_consistency(home, store.servers) == ()
        assert leftovers(home) == []


def test_what_is_published_but_not_yet_in_place_can_already_be_loaded(
    home: Path, store: Store
) -> None:
    put(home, store, bundle())
    newer = bundle(version=2)
    store.servers.publish(build_entry(newer, 2.0), now=2.0)
    staged = home / "servers" / files.UNDER_WAY / f"{files.STAGING}-dns-{'a' * 16}"
    shutil.copytree(get_server_directory(home, "dns"), staged)
    for path in staged.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    write_bundle(newer, staged)
    assert load_bundle(home, "dns", newer.compute_digest()) == newer
    assert recover_installations(home, store.servers) == ("dns",)
    assert read_bundle(get_server_directory(home, "dns")) == newer
    assert check_consistency(home, store.servers) == ()
