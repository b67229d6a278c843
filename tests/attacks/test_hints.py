"""What an API or a description says ends up in a command that a person is told to type, and a grant
that was replaced is put back: neither does more than its harmless like.
"""

from __future__ import annotations

import shlex
import sqlite3
from contextlib import closing
from typing import Any

import pytest

from orchestrator.approvals.granting import add_grant, find_confirmable
from orchestrator.approvals.grants import Grants, open_grants
from orchestrator.approvals.signed_policy import SignedPolicy
from orchestrator.approvals.signing_key import build_authority
from orchestrator.gateway.denial import Denial, explain_denial
from orchestrator.settings import Settings
from registry.models import Grant, GrantKind
from registry.needs import SuccessionNeed
from registry.secrets.signing import Signer
from registry.servers.bundles import Bundles
from registry.store import Store
from sandbox.bundle.model import Bundle
from sandbox.credentials.source import CredentialSource
from sandbox.session.interface import Failure, Outcome
from sandbox.wire.exchange import Exchange, Headers, WireRequest, WireResponse
from tests.forge.samples import compiled
from tests.granted import person
from tests.registry.samples import job

HOSTILE = ("`id`", "$HOME", "x|sh", "to'ken", "a" * 200)
WORDS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.: ")


def denied(bundle: Bundle, headers: Headers = (), body: bytes = b"") -> Denial:
    """What a person is told after the API of a bundle's first tool answered 401."""
    tool = bundle.tools[0]
    request = WireRequest("GET", tool.requests[0].url)
    exchange = Exchange(request, WireResponse(401, headers, body))
    outcome = Outcome(tool.name, {}, Failure("http", "HTTP 401", 401), (exchange,))
    source = CredentialSource({each.name: each for each in bundle.credentials}, server=bundle.name)
    found = explain_denial(bundle, tool.name, outcome, source)
    assert found is not None
    return found


def asking_for(scheme: str) -> Bundle:
    quoted = scheme.replace("'", "''")
    rest = f"components: {{securitySchemes: {{'{quoted}': {{type: http, scheme: bearer}}}}}}"
    return compiled("/a: {get: {operationId: getA}}", rest).bundle


@pytest.mark.parametrize("where", ["the header", "the body"])
@pytest.mark.parametrize("said", HOSTILE)
def test_what_an_api_says_is_no_part_of_a_command_but_a_plain_word(where: str, said: str) -> None:
    plain = compiled("/a: {get: {operationId: getA}}").bundle
    told = f'{said} realm="`id`", ApiKey name=\'{said}\', name="{said}"'
    body = f"Authorization: {said} now; X-{said}-Token" if where == "the body" else ""
    headers = (("WWW-Authenticate", told),) if where == "the header" else ()
    denial = denied(plain, headers, body.encode())
    assert denial.commands
    assert all({*command} <= WORDS for command in denial.commands)
    assert "`id`" not in denial.render()


def test_what_an_api_says_in_plain_words_is_in_the_command() -> None:
    plain = compiled("/a: {get: {operationId: getA}}").bundle
    (command,) = denied(plain, (("WWW-Authenticate", "Token"),)).commands
    assert command.endswith(".token --auth header:Authorization:token")


@pytest.mark.parametrize("name", ["x`id`", "x; id", "$(id)", "x | sh", "a'b"])
def test_a_scheme_s_name_is_one_word_of_the_command(name: str) -> None:
    bundle = asking_for(name)
    (command,) = denied(bundle).commands
    assert shlex.split(command) == ["toolwright", "secret", "set", f"{bundle.name}.{name}"]
    unset = CredentialSource({each.name: each for each in bundle.credentials}, server=bundle.name)
    assert shlex.quote(f"{bundle.name}.{name}") in unset.describe_missing(((name,),))


def test_a_scheme_s_plain_name_stands_as_it_is() -> None:
    bundle = asking_for("house")
    assert denied(bundle).commands == (f"toolwright secret set {bundle.name}.house",)


@pytest.fixture
def given(settings: Settings, store: Store) -> Grants:
    return open_grants(SignedPolicy(store, build_authority(settings)))


@pytest.fixture
def signer(store: Store, settings: Settings) -> Signer:
    settings.pin.unlink()
    return person(settings.pin)


KINDS: tuple[GrantKind, ...] = (
    *("host", "private_host", "permission", "source", "budget", "package"),
    *("tests", "secret", "succession", "file"),
)


def rows(store: Store) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(store.path)) as shell:
        return shell.execute("SELECT * FROM grants").fetchall()


def put_back(store: Store, row: tuple[Any, ...]) -> None:
    with closing(sqlite3.connect(store.path, isolation_level=None)) as shell:
        shell.execute("DELETE FROM grants")
        shell.execute(f"INSERT INTO grants VALUES ({', '.join('?' * len(row))})", row)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("hidden", [False, True], ids=["replaced", "row deleted and replaced"])
def test_a_grant_that_was_replaced_counts_for_nothing_where_it_is_put_back(
    store: Store, given: Grants, signer: Signer, kind: GrantKind, hidden: bool
) -> None:
    add_grant(store.grants, "it", kind, "ann", signer, "wide")
    (before,) = rows(store)
    if hidden:
        with closing(sqlite3.connect(store.path, isolation_level=None)) as shell:
            shell.execute("DELETE FROM grants")
    add_grant(store.grants, "it", kind, "ann", signer, "narrow")
    put_back(store, before)
    assert given.find_grants() == ()


@pytest.mark.parametrize("kind", KINDS)
def test_the_grant_that_replaced_it_counts(
    store: Store, given: Grants, signer: Signer, kind: GrantKind
) -> None:
    for detail in ("wide", "narrow", "narrower"):
        add_grant(store.grants, "it", kind, "ann", signer, detail)
    assert [grant.detail for grant in given.find_grants()] == ["narrower"]
    store.grants.remove_grant("it", kind, "ann", 5.0)
    assert given.find_grants() == ()
    add_grant(store.grants, "it", kind, "ann", signer, "again")
    assert [grant.detail for grant in given.find_grants()] == ["again"]


CHANGE = SuccessionNeed("bank", 1, ("may write to evil.test",), "7" * 64)


@pytest.mark.parametrize("digest", ["8" * 64, ""])
def test_a_succession_that_nobody_can_be_shown_is_not_offered_for_signing(
    store: Store, settings: Settings, digest: str
) -> None:
    assert confirmable(store, settings, digest) == ()


def test_a_succession_that_a_waiting_job_shows_is_offered(store: Store, settings: Settings) -> None:
    assert [grant.detail for grant in confirmable(store, settings, CHANGE.digest)] == ["7" * 64]


def confirmable(store: Store, settings: Settings, digest: str) -> tuple[Grant, ...]:
    store.jobs.create(job())
    store.jobs.claim("j1", "p1", 2.0)
    store.drafts.park_job("j1", 1, None, 3.0, "waits", CHANGE, stage="succession")
    void = [(Grant("bank", "succession", "", 0.0, digest), "unsigned")]
    shelf = Bundles(settings.home, store.servers)
    return find_confirmable(store.servers, shelf, void, "", store.jobs.find("waiting"))  # type: ignore[arg-type]
