"""What a person lets a third-party server have after it was added."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from orchestrator.approvals.declaring import (
    declare_permission,
    describe_variable,
    plan_declaration,
)
from orchestrator.approvals.granting import find_held_permissions
from orchestrator.approvals.signing_key import open_key
from orchestrator.settings import Settings
from registry.models import Entry, build_entry
from registry.secrets.signing import Signer
from registry.servers.bundles import Bundles
from registry.store import Store
from sandbox.bundle.launch import AUTHOR
from sandbox.bundle.permissions import parse_permission
from sandbox.errors import PathRefused
from tests.engine.foreign import BENIGN, foreign
from tests.granted import consents
from tests.orchestrator.conftest import PIN
from tests.orchestrator.control.filled import REPORTS, SECOND

HOST = "network:api.example:443"


@pytest.fixture
def signer(settings: Settings) -> Signer:
    opened = open_key(settings, PIN, time.time()).signer
    assert opened is not None
    return opened


@pytest.fixture
def shelf(settings: Settings, store: Store) -> Bundles:
    """With a third-party server `foreign` that has `fs:/data:ro`, and a server of our own."""
    made = Bundles(settings.home, store.servers)
    bundle = replace(foreign(BENIGN), permissions=("fs:/data:ro",))
    entry = build_entry(bundle, time.time(), "experimental", AUTHOR)
    made.publish_bundle(bundle, entry, REPORTS[:1], None)
    made.publish_bundle(SECOND, build_entry(SECOND, time.time()), REPORTS, None)
    return made


def allow(store: Store, shelf: Bundles, signer: Signer, permission: str) -> Entry:
    wanted = parse_permission(permission)
    more = plan_declaration(store.servers, shelf, "foreign", wanted)
    assert more is not None
    return declare_permission(store.servers, shelf, store.grants, more, "test", signer)


def test_a_third_party_server_gets_a_host_beside_what_it_has_and_stays_the_same_program(
    settings: Settings, store: Store, shelf: Bundles, signer: Signer
) -> None:
    before = shelf.load_bundle(store.servers.get("foreign"))
    made = allow(store, shelf, signer, "network:api.example")
    assert (made.version, made.state) == (before.version + 1, "experimental")
    assert made.permissions == ("fs:/data:ro", HOST)
    assert find_held_permissions(consents(settings, store), made) == (HOST,)
    after = shelf.load_bundle(store.servers.get("foreign"))
    assert replace(after, version=before.version, permissions=before.permissions) == before
    assert store.servers.get_reports("foreign", made.version) == REPORTS[:1]


def test_a_third_party_server_gets_a_secret_as_the_variable_of_its_name(
    settings: Settings, store: Store, shelf: Bundles, signer: Signer
) -> None:
    assert describe_variable(store.servers, shelf, "foreign", "KEY") == (
        "`toolwright grant foreign env:KEY` gives it to foreign as a variable."
    )
    made = allow(store, shelf, signer, "env:KEY")
    assert consents(settings, store).find_permissions("foreign") == {"env:KEY": "KEY"}
    launch = shelf.load_bundle(made).launch
    assert launch is not None
    assert launch.secrets == {"KEY": "KEY"}
    told = describe_variable(store.servers, shelf, "foreign", "KEY")
    assert told == "foreign gets it as its variable KEY."


@pytest.mark.parametrize(
    ("server", "permission"),
    [("dns", HOST), ("foreign", "fs:/data:ro"), ("foreign", "call:dns.list_zones")],
)
def test_what_is_declared_and_what_a_server_of_ours_may_have_is_not_declared_for_it(
    store: Store, shelf: Bundles, server: str, permission: str
) -> None:
    wanted = parse_permission(permission)
    assert plan_declaration(store.servers, shelf, server, wanted) is None


def test_a_path_that_was_read_is_then_written_and_none_may_lie_in_it(
    store: Store, shelf: Bundles, signer: Signer
) -> None:
    assert allow(store, shelf, signer, "fs:/data:rw").permissions == ("fs:/data:rw",)
    with pytest.raises(PathRefused):
        plan_declaration(store.servers, shelf, "foreign", parse_permission("fs:/data/x:ro"))
