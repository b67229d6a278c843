"""Sources, what a person allowed, and secrets: their names and where they go, never a value."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from html import escape

from orchestrator.approvals.accounts import SOURCES
from orchestrator.approvals.grants import Grants, render_flaw
from orchestrator.approvals.secrets import find_lender, hash_uses
from orchestrator.control.markup import (
    escape_text,
    render_badge,
    render_empty,
    render_removal,
    render_section,
    render_table,
    render_time,
)
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


@dataclass(frozen=True)
class AskedSecret:
    """A secret that a registered server asks for, and where its current version would take it.
    `lender` is the source's secret that is sent where it has none of its own.
    """

    server: str
    name: str
    uses: tuple[SecretUse, ...]
    lender: str = ""


def render_sources(consents: Grants) -> str:
    """Where descriptions may be read from, a form for one more, and what a person allowed."""
    rows = [
        (
            f"<code>{escape_text(each.url)}</code>",
            f"<code>{escape_text(each.secret)}</code> as {escape_text(each.header)}"
            if each.secret
            else "none",
            _render_source_removal(each.url),
        )
        for each in consents.find_sources()
    ]
    listed = (
        render_table(("source", "secret", ""), rows, "sources")
        if rows
        else render_empty("None yet. The address of an API's description is the first step.")
    )
    return render_section("Sources", listed + _SOURCE_FORM) + _render_allowed(consents)


def _render_source_removal(url: str) -> str:
    told = (
        f"{url} is no source any more, and its secret is sent there no more. Its host stays "
        "allowed, and servers made of it stay."
    )
    return render_removal(_name_id("source", url), url, "/sources/remove", {"url": url}, told)


def _name_id(kind: str, text: str) -> str:
    """The id of what is about a text of any letters."""
    return f"{kind}-{hash_text(text)[:16]}"


_SOURCE_FORM = (
    '<details class="adding" id="add-source"><summary>Add a source</summary>'
    '<form class="fields" data-post="/sources" data-pin data-clear autocomplete="off">'
    '<label><span>Address of the description <b class="needed">required</b></span>'
    '<input name="url" type="url" required maxlength="1900" placeholder="https://host/openapi.json">'
    "<small>Its host may be talked to from then on.</small></label>"
    "<label><span>Header that carries a secret</span>"
    '<input name="header" maxlength="80" placeholder="X-API-Key"></label>'
    "<label><span>Name of that secret, as it is set below</span>"
    '<input name="secret" maxlength="80"></label>'
    '<div class="actions"><button class="primary">Add (PIN)</button></div>'
    "<output></output></form></details>"
)
_HOST_FORM = (
    '<details class="adding" id="allow-host"><summary>Allow a host</summary>'
    '<form class="fields" data-post="/hosts" data-pin data-clear autocomplete="off">'
    '<label><span>Host and port <b class="needed">required</b></span>'
    '<input name="host" required maxlength="300" placeholder="localhost:8081">'
    "<small>It may be talked to from then on, also where its address is private.</small></label>"
    '<div class="actions"><button class="primary">Allow (PIN)</button></div>'
    "<output></output></form></details>"
)


def _render_allowed(consents: Grants) -> str:
    grants = consents.find_grants()
    hosts = {grant.origin for grant in grants if grant.kind == "host"}
    # A host that is allowed at private addresses too has a grant of each kind, removed as one.
    shown = [
        grant
        for grant in grants
        if grant.kind not in OWN and not (grant.kind == "private_host" and grant.origin in hosts)
    ]
    private = {grant.origin for grant in grants if grant.kind == "private_host"}
    rows = [
        (
            f"<code>{escape_text(grant.origin)}</code>",
            escape_text(_describe_grant(grant, private)),
            escape_text(grant.granted_by),
            render_time(grant.granted),
            _render_grant_removal(grant),
        )
        for grant in shown[:MAX_ALLOWED]
    ]
    left = len(shown) - MAX_ALLOWED
    more = f"<p>{left} more: <code>toolwright grant</code></p>" if left > 0 else ""
    void = "".join(
        f"<li>{escape_text(grant.origin)} counts for nothing: {escape_text(render_flaw(flaw))} "
        f"{_render_grant_removal(grant)}</li>"
        for grant, flaw in consents.find_void()
    )
    heads = ("allowed", "what it may", "by", "when", "")
    nothing = render_empty("Nothing. A host that a server or a description needs is allowed here.")
    granted = render_table(heads, rows, "allowed") if rows else nothing
    lost = f'<ul role="alert">{void}</ul>' if void else ""
    return f"<h2>Allowed</h2>{granted}{more}{_HOST_FORM}{lost}"


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


def _render_grant_removal(grant: Grant) -> str:
    what = f"{grant.kind} {grant.origin}"
    told = f"{grant.origin} is allowed no more. What needs it asks you again."
    fields = {"origin": grant.origin, "kind": grant.kind}
    return render_removal(_name_id("grant", what), grant.origin, "/grants/remove", fields, told)


def render_secrets(settings: Settings, store: Store, shelf: Bundles, consents: Grants) -> str:
    """The names of secrets with where each goes, and forms to set and to remove them."""
    names = list_own_secrets(open_vault(settings))
    asked = tuple(_find_asked(store, shelf, consents, names))
    known = {(each.server, each.name) for each in asked}
    lines = "".join(_render_asked(each, _find_state(each, names, consents)) for each in asked)
    rows = [
        (
            f"<code>{escape_text(_name_secret(*each))}</code>",
            _render_places(_list_places(consents, *each)),
            _render_secret_removal(*each),
        )
        for each in names
        if each not in known
    ]
    heads = ("secret", "goes to", "")
    others = f"<h3>Other secrets</h3>{render_table(heads, rows, 'other secrets')}" if rows else ""
    nothing = "" if lines or rows else render_empty("None yet, and no server asks for one.")
    told = "<p>A value is typed once and never shown again.</p>"
    return render_section("Secrets", f"{told}{nothing}{lines}{_OWN_FORM}{others}")


def _name_secret(server: str, name: str) -> str:
    return name if server == SOURCES else f"{server}.{name}"


def _list_places(consents: Grants, server: str, name: str) -> list[str]:
    """Where a secret goes: a source's to the sources that it was named for."""
    if server != SOURCES:
        return sorted(consents.find_secret_uses(server, name))
    return [f"{s.url} as {s.header}" for s in consents.find_sources() if s.secret == name]


def _render_secret_removal(server: str, name: str) -> str:
    whole = _name_secret(server, name)
    told = f"{whole} is deleted and goes nowhere any more. What needs it fails until it is set."
    fields = {"server": server, "name": name}
    id = _name_id("secret", f"{server}.{name}")
    return render_removal(id, whole, "/secrets/remove", fields, told, pin=True)


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


def _render_places(places: Iterable[str]) -> str:
    return "<br>".join(f"<code>{escape_text(each)}</code>" for each in places) or "nowhere"


def _find_state(asked: AskedSecret, names: Iterable[tuple[str, str]], consents: Grants) -> str:
    """`set`, `missing`, LENT, or `unbound` where it may not go where its server would take it."""
    if (asked.server, asked.name) not in names:
        return LENT if asked.lender else "missing"
    bound = consents.find_secret_uses(asked.server, asked.name)
    return "set" if bound >= {*map(str, asked.uses)} else "unbound"


def _tell_lender(asked: AskedSecret, state: str) -> str:
    if state != LENT:
        return ""
    name = f"<code>{escape_text(asked.lender)}</code>"
    return f"<p>Calls go out with its source's secret {name}. One that is set here goes first.</p>"


LENT = "from its source"


def _render_asked(asked: AskedSecret, state: str) -> str:
    whole = f"{asked.server}.{asked.name}"
    held = state not in ("missing", LENT)
    word = "Replace" if held else "Set"
    removal = "" if not held else _render_secret_removal(asked.server, asked.name)
    hidden = "".join(
        f'<input type="hidden" name="{name}" value="{escape(value)}">'
        for name, value in (("server", asked.server), ("name", asked.name))
    )
    return (
        f'<details id="secret-{escape(whole)}"><summary><code>{escape_text(whole)}</code> '
        f"{render_badge(state, 'ok' if state == LENT else '')}</summary>"
        f"{_tell_lender(asked, state)}<p>It goes here and nowhere else:<br>"
        f"{_render_places(sorted(map(str, asked.uses)))}</p>"
        f'<form class="fields" data-post="/secrets" data-pin '
        f'data-digest="{hash_uses(asked.uses)}" autocomplete="off">{hidden}{_VALUE}'
        f'<div class="actions"><button class="primary">{word} (PIN)</button></div>'
        f"<output></output></form>{removal}</details>"
    )


_VALUE = (
    '<label><span>Value</span><input name="value" type="password" required data-once '
    'autocomplete="new-password" maxlength="16000">'
    "<small>A key or token as it is; user:password for basic and digest.</small></label>"
)
_OWN_FORM = (
    '<details class="adding" id="secret-own"><summary>Set a secret for a source</summary>'
    '<form class="fields" data-post="/secrets" data-pin data-clear autocomplete="off">'
    f'<input type="hidden" name="server" value="{SOURCES}">'
    '<label><span>Name</span><input name="name" required maxlength="80" '
    'pattern="[A-Za-z0-9_][A-Za-z0-9_.\\-]*"></label>'
    f'{_VALUE}<div class="actions"><button class="primary">Set (PIN)</button></div>'
    "<output></output></form></details>"
)
