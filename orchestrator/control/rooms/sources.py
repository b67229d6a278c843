"""Sources, what a person allowed, and secrets: their names and where they go, never a value."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from orchestrator.approvals.accounts import SOURCES
from orchestrator.approvals.grants import Grants, render_flaw
from orchestrator.approvals.secrets import find_lender, hash_uses
from orchestrator.control.texts import ShownText, cut_text
from orchestrator.settings import Settings
from registry.database.canonical import hash_text
from registry.models import CALLABLE, Grant
from registry.secrets.vault import list_own_secrets, open_vault
from registry.servers.bundles import Bundles
from registry.store import Store
from sandbox.credentials.uses import SecretUse, list_secret_uses
from sandbox.errors import BundleInvalid

MAX_SERVERS = 200
MAX_ALLOWED = 200
MAX_ABOUT = 80


@dataclass(frozen=True)
class AskedSecret:
    """A secret that a registered server asks for, and where its current version would take it.
    `lender` is the source's secret that is sent where it has none of its own.
    """

    server: str
    name: str
    uses: tuple[SecretUse, ...]
    lender: str = ""


@dataclass(frozen=True)
class Removal:
    """What takes something away: `about` is what it is about, for who does not see the row, `told`
    what will be, and `fields` are sent as they are and stand in attributes alone.
    """

    id: str
    about: ShownText
    path: str
    fields: Mapping[str, str]
    told: ShownText
    pin: bool = False


@dataclass(frozen=True)
class SourceLine:
    """Where a description may be read from, with a secret ("" for none) in a header."""

    url: ShownText
    secret: ShownText
    header: ShownText
    removal: Removal


@dataclass(frozen=True)
class AllowedLine:
    origin: ShownText
    may: ShownText
    by: ShownText
    at: float
    removal: Removal


@dataclass(frozen=True)
class VoidGrant:
    """What counts for nothing, and why."""

    origin: ShownText
    flaw: ShownText
    removal: Removal


@dataclass(frozen=True)
class ShownSources:
    """Sources and what a person allowed; `left` grants are not listed."""

    sources: tuple[SourceLine, ...]
    allowed: tuple[AllowedLine, ...]
    left: int
    void: tuple[VoidGrant, ...]


@dataclass(frozen=True)
class SecretForm:
    """A secret that a server asks for: `set`, `missing`, LENT or `unbound`; the source's secret
    that is sent in its place, "" for none; where it would go, the digest of that, and how it is
    removed where it is set.
    """

    name: ShownText
    id: str
    state: str
    lender: ShownText
    places: tuple[ShownText, ...]
    digest: str
    fields: Mapping[str, str]
    removal: Removal | None


@dataclass(frozen=True)
class OtherSecret:
    name: ShownText
    places: tuple[ShownText, ...]
    removal: Removal


@dataclass(frozen=True)
class ShownSecrets:
    """Secrets that servers ask for, and others. `own` stands for the server of a source's."""

    asked: tuple[SecretForm, ...]
    others: tuple[OtherSecret, ...]
    own: str = SOURCES


def view_sources(consents: Grants) -> ShownSources:
    """Where descriptions may be read from, and what a person allowed."""
    grants = consents.find_grants()
    hosts = {grant.origin for grant in grants if grant.kind == "host"}
    # A host that is allowed at private addresses too has a grant of each kind, removed as one.
    shown = [
        grant
        for grant in grants
        if grant.kind not in OWN and not (grant.kind == "private_host" and grant.origin in hosts)
    ]
    private = {grant.origin for grant in grants if grant.kind == "private_host"}
    return ShownSources(
        tuple(
            SourceLine(
                cut_text(each.url),
                cut_text(each.secret),
                cut_text(each.header),
                _build_source_removal(each.url),
            )
            for each in consents.find_sources()
        ),
        tuple(_show_grant(grant, private) for grant in shown[:MAX_ALLOWED]),
        max(0, len(shown) - MAX_ALLOWED),
        tuple(
            VoidGrant(
                cut_text(grant.origin), cut_text(render_flaw(flaw)), _build_grant_removal(grant)
            )
            for grant, flaw in consents.find_void()
        ),
    )


def _show_grant(grant: Grant, private: Collection[str]) -> AllowedLine:
    return AllowedLine(
        cut_text(grant.origin),
        cut_text(_describe_grant(grant, private)),
        cut_text(grant.granted_by),
        grant.granted,
        _build_grant_removal(grant),
    )


def _build_source_removal(url: str) -> Removal:
    told = (
        f"{url} will be no source any more, and its secret will not be sent there. Its host stays "
        "allowed, and servers made of it stay."
    )
    return _build_removal(_name_id("source", url), url, "/sources/remove", {"url": url}, told)


def _build_grant_removal(grant: Grant) -> Removal:
    what = f"{grant.kind} {grant.origin}"
    told = f"{grant.origin} will no longer be allowed. What needs it will fail or ask you again."
    fields = {"origin": grant.origin, "kind": grant.kind}
    return _build_removal(_name_id("grant", what), grant.origin, "/grants/remove", fields, told)


def _build_removal(
    id: str, about: str, path: str, fields: Mapping[str, str], told: str, *, pin: bool = False
) -> Removal:
    return Removal(id, cut_text(about, MAX_ABOUT), path, fields, cut_text(told), pin)


def _name_id(kind: str, text: str) -> str:
    """The id of what is about a text of any letters."""
    return f"{kind}-{hash_text(text)[:16]}"


OWN = ("source", "secret")
"""Grants that stand with their source or secret."""
_MAY: Mapping[str, str] = {
    "host": "be talked to at public addresses",
    "private_host": "be talked to at private addresses",
    "permission": "the server has this permission",
    "budget": "be spent",
    "package": "be imported by servers",
    "tests": "these tests count",
    "succession": "change as it was shown",
    "file": "be read as a description",
    "meant": "the task means this source",
    "account": "be used without being named",
}


def _describe_grant(grant: Grant, private: Collection[str]) -> str:
    if grant.kind == "host" and grant.origin in private:
        return "be talked to, also at a private address"
    return _MAY.get(grant.kind, grant.kind)


def view_secrets(
    settings: Settings, store: Store, shelf: Bundles, consents: Grants
) -> ShownSecrets:
    """The names of secrets with where each goes, and forms to set and to remove them."""
    names = list_own_secrets(open_vault(settings))
    asked = tuple(_find_asked(store, shelf, consents, names))
    known = {(each.server, each.name) for each in asked}
    return ShownSecrets(
        tuple(_show_asked(each, _find_state(each, names, consents)) for each in asked),
        tuple(
            OtherSecret(
                cut_text(_name_secret(*each)),
                tuple(map(cut_text, _list_places(consents, *each))),
                _build_secret_removal(*each),
            )
            for each in names
            if each not in known
        ),
    )


def _name_secret(server: str, name: str) -> str:
    return name if server == SOURCES else f"{server}.{name}"


def _list_places(consents: Grants, server: str, name: str) -> list[str]:
    """Where a secret goes: a source's to the sources that it was named for."""
    if server != SOURCES:
        return sorted(consents.find_secret_uses(server, name))
    return [f"{s.url} as {s.header}" for s in consents.find_sources() if s.secret == name]


def _build_secret_removal(server: str, name: str) -> Removal:
    whole = _name_secret(server, name)
    told = f"{whole} is deleted and goes nowhere any more. What needs it fails until it is set."
    fields = {"server": server, "name": name}
    id = _name_id("secret", f"{server}.{name}")
    return _build_removal(id, whole, "/secrets/remove", fields, told, pin=True)


def _find_asked(
    store: Store, shelf: Bundles, consents: Grants, names: Collection[tuple[str, str]]
) -> Iterator[AskedSecret]:
    for entry in store.servers.find(CALLABLE)[:MAX_SERVERS]:
        try:
            bundle = shelf.load_bundle(entry)
        except BundleInvalid:
            continue
        uses = list_secret_uses(bundle)
        for credential in bundle.credentials:
            own = uses.get(credential.name, ())
            lender = find_lender(consents, credential, own, names)
            yield AskedSecret(entry.name, credential.name, own, lender)


def _find_state(asked: AskedSecret, names: Iterable[tuple[str, str]], consents: Grants) -> str:
    """`set`, `missing`, LENT, or `unbound` where it may not go where its server would take it."""
    if (asked.server, asked.name) not in names:
        return LENT if asked.lender else "missing"
    bound = consents.find_secret_uses(asked.server, asked.name)
    return "set" if bound >= {*map(str, asked.uses)} else "unbound"


LENT = "from its source"


def _show_asked(asked: AskedSecret, state: str) -> SecretForm:
    whole = f"{asked.server}.{asked.name}"
    return SecretForm(
        cut_text(whole),
        f"secret-{whole}",
        state,
        cut_text(asked.lender if state == LENT else ""),
        tuple(map(cut_text, sorted(map(str, asked.uses)))),
        hash_uses(asked.uses),
        {"server": asked.server, "name": asked.name},
        None if state in ("missing", LENT) else _build_secret_removal(asked.server, asked.name),
    )
