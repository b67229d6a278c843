from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from orchestrator.approvals.granting import allow_file, allow_host, allow_package, remove_grant
from orchestrator.approvals.signing_key import open_key
from orchestrator.errors import OrchestratorError
from orchestrator.settings import Settings
from registry.secrets.signing import Signer
from registry.store import Store
from sandbox.errors import PathRefused
from tests.granted import consents
from tests.orchestrator.conftest import PIN


@pytest.fixture
def signer(settings: Settings) -> Signer:
    opened = open_key(settings, PIN, time.time()).signer
    assert opened is not None
    return opened


def test_what_a_person_names_may_be_talked_to_wherever_it_is(
    settings: Settings, store: Store, signer: Signer
) -> None:
    allow_host(store.grants, "Printer.Local:8081", "test", signer)
    assert {(grant.origin, grant.kind) for grant in consents(settings, store).find_grants()} == {
        ("printer.local:8081", "host"),
        ("printer.local:8081", "private_host"),
    }


def test_who_waits_for_a_host_never_sees_it_without_its_private_address(
    store: Store, signer: Signer
) -> None:
    allow_host(store.grants, "127.0.0.1:8081", "test", signer)
    rows = sorted(store.audit.find(), key=lambda row: row.id)
    first, second = [row.payload for row in rows if row.kind == "grant.added"]
    assert "private_host" in first
    assert "private_host" not in second


@pytest.mark.parametrize(
    "host", ["", "a", "a:", ":80", "http://a:80", "a:80/x", "a:b", "a:99999", "u@a:80"]
)
def test_anything_but_one_host_and_port_is_refused(store: Store, signer: Signer, host: str) -> None:
    with pytest.raises(OrchestratorError, match="HOST:PORT"):
        allow_host(store.grants, host, "test", signer)
    assert store.grants.find_grants() == ()


def test_a_file_is_allowed_by_its_path_and_a_directory_for_what_is_not_hidden_in_it(
    settings: Settings, store: Store, signer: Signer, tmp_path: Path
) -> None:
    place = tmp_path / "work"
    (place / "apis").mkdir(parents=True)
    (place / "one.json").touch()
    for path in (place / "one.json", place / "apis"):
        assert allow_file(store.grants, str(path), "test", signer, ()) == str(path)
    given = consents(settings, store)
    assert given.is_readable(f"{place}/one.json")
    assert given.is_readable(f"{place}/apis/a/b.json")
    for path in ("two.json", "one.json/x", "apis.json", "apis/.env", "apis/.git/config", ""):
        assert not given.is_readable(f"{place}/{path}"), path
    assert given.find_hosts() == frozenset()
    assert remove_grant(store.grants, str(place / "apis"), "test", time.time())
    assert not given.is_readable(f"{place}/apis/a.json")


@pytest.mark.parametrize("name", ["link", "link/one.json", "missing", "pipe", "ours", "ours/x"])
def test_a_path_that_no_server_may_be_given_is_not_allowed(
    store: Store, signer: Signer, tmp_path: Path, name: str
) -> None:
    (tmp_path / "ours").mkdir()
    (tmp_path / "ours" / "x").touch()
    (tmp_path / "one.json").touch()
    (tmp_path / "link").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / name, Path("/etc/hosts"), Path.home(), Path.home() / ".netrc"):
        with pytest.raises(PathRefused):
            allow_file(store.grants, str(path), "test", signer, (tmp_path / "ours",))
    assert store.grants.find_grants() == ()


def test_a_package_is_allowed_by_its_name_however_it_is_written(
    settings: Settings, store: Store, signer: Signer
) -> None:
    allow_package(store.grants, "pypi:Ruamel_yaml", "test", signer)
    given = consents(settings, store)
    assert given.find_packages() == {"ruamel-yaml"}
    assert given.find_hosts() == frozenset()
    assert remove_grant(store.grants, "pypi:ruamel.yaml", "test", time.time())
    assert consents(settings, store).find_packages() == frozenset()


@pytest.mark.parametrize("name", ["pypi:", "pypi:a b", "pypi:-r", "pypi:../x", "pypi:a==1"])
def test_anything_but_a_packages_name_is_refused(store: Store, signer: Signer, name: str) -> None:
    with pytest.raises(OrchestratorError, match="pypi:NAME"):
        allow_package(store.grants, name, "test", signer)
    assert store.grants.find_grants() == ()
