"""SIGKILL at every step of a restore: the home is the old one or the restored one, and whole."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.approvals.differences import find_differences
from orchestrator.approvals.signed_policy import SignedPolicy
from orchestrator.approvals.signing_key import build_authority
from orchestrator.backup.create import create_backup
from orchestrator.backup.restore import apply_restore, prepare_restore
from orchestrator.settings import Settings, load_settings
from registry.audit.heads import HeadSigner
from registry.models import build_entry
from registry.secrets.vault import Secret, open_vault
from registry.servers.files import check_consistency, install_bundle
from registry.store import Store
from tests.crash.client import served
from tests.crash.installation import Installation, until
from tests.crash.slowapi import slow_api
from tests.crash.victim import idled
from tests.granted import person
from tests.registry.samples import bundle

_forks = multiprocessing.get_context("forkserver")
_forks.set_forkserver_preload([__name__])

PATIENCE_SECONDS = 120.0
Work = Callable[[Path, Path, int], None]
CHANGING = frozenset({"os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.link"})
FIRST_STEPS = 5
"""There are more than that before what was staged becomes the home."""
OLD, NEW = "the old home", "the restored home"


class StepCounter:
    """Counts what changes names below a directory, from the moment that the restored files are
    verified, and sends SIGKILL before the step of that number.
    """

    def __init__(self, place: Path, fatal: int) -> None:
        self._place, self._left = str(place), fatal
        sys.addaudithook(self._on_audit)

    def _on_audit(self, name: str, arguments: tuple[Any, ...]) -> None:
        if name not in CHANGING or not str(arguments[0]).startswith(self._place):
            return
        if not self._left:
            os.kill(os.getpid(), signal.SIGKILL)
        self._left -= 1


def told(_line: str) -> None: ...


def _restore(home: Path, file: Path, fatal: int) -> None:
    settings = load_settings(home=home)
    with prepare_restore(settings, file, told, None, True) as prepared:
        signer = person(settings.pin)
        StepCounter(home, fatal)
        apply_restore(prepared, signer)


def _open(home: Path, _file: Path, fatal: int) -> None:
    StepCounter(home, fatal)
    load_settings(home=home)


def killed(home: Path, file: Path, fatal: int, work: Work = _restore) -> bool:
    """Work in a process of its own; False where it ended by itself before that step."""
    process = _forks.Process(target=work, args=(home, file, fatal))
    process.start()
    process.join(PATIENCE_SECONDS)
    if process.is_alive():
        process.kill()
        process.join()
        raise AssertionError("the restore did not end")
    assert process.exitcode in (0, -signal.SIGKILL), process.exitcode
    return process.exitcode != 0


@contextmanager
def opened(settings: Settings) -> Iterator[Store]:
    with Store.open(settings.database_url) as store:
        yield store


def install(settings: Settings, name: str, code: str) -> None:
    made = replace(bundle(source_code=code), name=name)
    with opened(settings) as store:
        install_bundle(settings.home, store.servers, made, build_entry(made, 1.0), now=1.0)


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A home, and an earlier backup of it that has other servers, secrets and no push targets."""
    place = tmp_path_factory.mktemp("homes")
    settings = load_settings(home=place / "home")
    person(settings.pin)
    install(settings, "before", "# before\n")
    vault = open_vault(settings)
    vault.put("before", "token", Secret("one"))
    create_backup(settings, place / "home.tgz", replace=False, tell=told)
    install(settings, "after", "# after\n")
    vault.put("before", "token", Secret("two"))
    settings.push.write_text("{}")
    return place / "home", place / "home.tgz"


def judge(home: Path) -> str:
    """Which home it is, opened as any command does; it fails where it is part of each."""
    settings = load_settings(home=home)
    with opened(settings) as store:
        names = {entry.name for entry in store.servers.find()}
        frozen = store.processes.get_freeze().frozen
        broken, _ = HeadSigner(settings.heads).verify_and_count(store.audit)
        assert broken is None
        assert find_differences(SignedPolicy(store, build_authority(settings))) == ()
        assert check_consistency(home, store.servers) == ()
    secret = open_vault(settings).get("before", "token")
    found = (names, secret, settings.push.exists())
    if found == ({"before"}, Secret("one"), False):
        assert frozen
        return NEW
    assert found == ({"before", "after"}, Secret("two"), True), found
    return OLD


def test_a_restore_that_is_killed_at_any_step_leaves_one_home_whole(
    homes: tuple[Path, Path], tmp_path: Path
) -> None:
    present, file = homes
    found = []
    fatal = 0
    while True:
        home = tmp_path / f"home{fatal}"
        shutil.copytree(present, home)
        alive = killed(home, file, fatal)
        found.append(judge(home))
        # Whoever opened it has finished what was begun.
        assert not (home / ".restore" / "commit").exists()
        shutil.rmtree(home)
        if not alive:
            break
        fatal += 1
    turn = found.index(NEW)
    assert (turn > 0, set(found[:turn]), set(found[turn:])) == (True, {OLD}, {NEW})
    assert len(found) > 15, "the steps of the swap are not among what was counted"


def test_whoever_finishes_a_restore_may_be_killed_at_any_step_as_well(
    homes: tuple[Path, Path], tmp_path: Path
) -> None:
    present, file = homes
    begun = tmp_path / "begun"
    fatal = 0
    while not (begun / ".restore" / "commit").exists():
        shutil.rmtree(begun, ignore_errors=True)
        shutil.copytree(present, begun)
        assert killed(begun, file, FIRST_STEPS + fatal)
        fatal += 1
    step, alive = 0, True
    while alive:
        home = tmp_path / f"home{step}"
        shutil.copytree(begun, home)
        alive = killed(home, file, step, _open)
        assert judge(home) == NEW
        step += 1
    assert step > 5


def test_a_killed_restore_is_made_again_over_what_it_left(
    homes: tuple[Path, Path], tmp_path: Path
) -> None:
    present, file = homes
    home = tmp_path / "home"
    shutil.copytree(present, home)
    assert killed(home, file, 0)
    assert (home / ".restore" / "new").exists()
    assert not killed(home, file, 10**6)
    assert judge(home) == NEW
    assert not (home / ".restore").exists()


def test_a_write_in_mid_send_of_a_backup_is_unknown_after_the_restore_and_never_sent_again(
    installation: Installation,
) -> None:
    file = installation.home.parent / "home.tgz"
    words = ("restore", str(file), "--pin-file", str(installation.pin_file))
    with slow_api() as api:
        installation.allow(api.url)
        with served(installation) as client:
            assert client.forged(api.url, name="things")["state"] == "done"
            write = {"tool": "things.add_thing", "arguments": {"body": {"name": "one"}}}
            identity = client.value("call_write", **write)["approval"]
            installation.approve(identity)
            until(lambda: api.bodies)
            assert installation.run("backup", str(file)).exit_code == 0
            refused = installation.run(*words)
            assert refused.exit_code == 1
            assert f"serve ({client.process.pid})" in refused.output
            api.released.set()
            assert client.process.stdin is not None
            client.process.stdin.close()
            client.process.wait()
        done = installation.run(*words)
        assert done.exit_code == 0, done.output
        lifted = installation.run("unfreeze", "--pin-file", str(installation.pin_file))
        assert lifted.exit_code == 0, lifted.output
        idled(installation.settings)
        assert len(api.bodies) == 1
    with installation.store() as store:
        assert store.approvals.get(identity).state == "unknown"
        assert [call.state for call in store.calls.find()] == ["unknown"]
    assert installation.troubles() == []
    assert installation.run("audit", "verify").exit_code == 0


def test_a_backup_that_is_killed_leaves_no_half_file_under_the_name(
    homes: tuple[Path, Path], tmp_path: Path
) -> None:
    present, _ = homes
    home, target = tmp_path / "home", tmp_path / "safe" / "home.tgz"
    shutil.copytree(present, home)
    target.parent.mkdir()
    fatal = 0
    while True:
        process = _forks.Process(target=_back_up, args=(home, target, fatal))
        process.start()
        process.join(PATIENCE_SECONDS)
        if process.exitcode == 0:
            break
        assert process.exitcode == -signal.SIGKILL
        if target.exists():
            shutil.rmtree(tmp_path / "copy", ignore_errors=True)
            shutil.copytree(home, tmp_path / "copy")
            with prepare_restore(load_settings(home=tmp_path / "copy"), target, told, None, True):
                pass
            target.unlink()
        fatal += 1
    assert fatal > 3


def _back_up(home: Path, target: Path, fatal: int) -> None:
    settings = load_settings(home=home)
    StepCounter(target.parent, fatal)
    create_backup(settings, target, replace=False, tell=told)
