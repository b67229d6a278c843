"""Sources, what a person allowed, and secrets: their names and where they go, never a value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from html import escape

from orchestrator.approvals.accounts import SOURCES
from orchestrator.approvals.grants import Grants
from orchestrator.approvals.secrets import hash_uses
from orchestrator.control.markup import (
    escape_text,
    render_badge,
    render_empty,
    render_section,
    render_table,
    render_time,
)
from orchestrator.settings import Settings
from registry.models import CALLABLE
from registry.secrets.vault import list_own_secrets, open_vault
from registry.servers.bundles import Bundles
from registry.store import Store
from sandbox.credentials.uses import SecretUse, list_secret_uses
from sandbox.errors import BundleInvalid

MAX_SERVERS = 200
MAX_ALLOWED = 200


@dataclass(frozen=True)
class AskedSecret:
    """A secret that a registered server asks for, and where its current version would take it."""

    server: str
    name: str
    uses: tuple[SecretUse, ...]


def render_sources(consents: Grants) -> str:
    """Where descriptions may be read from, a form for one more, and what a person allowed."""
    rows = [
        (
            f"<code>{escape_text(each.url)}</code>",
            escape_text(each.header),
            escape_text(each.secret),
        )
        for each in consents.find_sources()
    ]
    listed = (
        render_table(("source", "header", "secret's name"), rows, "sources")
        if rows
        else render_empty("None yet. The address of an API's description is the first step.")
    )
    return render_section("Sources", listed + _SOURCE_FORM) + _render_allowed(consents)


_SOURCE_FORM = (
    '<details id="add-source"><summary>Add a source</summary>'
    '<form class="fields" data-post="/sources" data-pin autocomplete="off">'
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


def _render_allowed(consents: Grants) -> str:
    rows = [
        (
            escape_text(grant.kind),
            f"<code>{escape_text(grant.origin)}</code>",
            escape_text(grant.granted_by),
            render_time(grant.granted),
        )
        for grant in consents.find_grants()[:MAX_ALLOWED]
    ]
    void = "".join(
        f"<li>{escape_text(grant.origin)}: counts for nothing</li>"
        for grant, _ in consents.find_void()
    )
    nothing = render_empty("Nothing. Allow a host:", "toolwright source allow HOST:PORT")
    granted = render_table(("what", "for", "by", "when"), rows, "allowed") if rows else nothing
    lost = f'<ul role="alert">{void}</ul>' if void else ""
    return f"<h3>Allowed</h3>{granted}{lost}"


def render_secrets(settings: Settings, store: Store, shelf: Bundles, consents: Grants) -> str:
    """The names of secrets with where each goes, and forms to set them."""
    names = list_own_secrets(open_vault(settings))
    asked = tuple(_find_asked(store, shelf))
    known = {(each.server, each.name) for each in asked}
    lines = "".join(_render_asked(each, _find_state(each, names, consents)) for each in asked)
    rows = [
        (
            f"<code>{escape_text(name if server == SOURCES else f'{server}.{name}')}</code>",
            _render_places(sorted(consents.find_secret_uses(server, name))),
        )
        for server, name in names
        if (server, name) not in known
    ]
    others = render_table(("other secrets", "goes to"), rows, "other secrets") if rows else ""
    nothing = "" if lines or rows else render_empty("None yet, and no server asks for one.")
    told = "<p>A value is typed once and never shown again.</p>"
    return render_section("Secrets", f"{told}{nothing}{lines}{others}{_OWN_FORM}")


def _find_asked(store: Store, shelf: Bundles) -> Iterator[AskedSecret]:
    for entry in store.servers.find(CALLABLE)[:MAX_SERVERS]:
        try:
            bundle = shelf.load_bundle(entry)
        except BundleInvalid:
            continue
        uses = list_secret_uses(bundle)
        for credential in bundle.credentials:
            yield AskedSecret(entry.name, credential.name, uses.get(credential.name, ()))


def _render_places(places: Iterable[str]) -> str:
    return "<br>".join(f"<code>{escape_text(each)}</code>" for each in places) or "nowhere"


def _find_state(asked: AskedSecret, names: Iterable[tuple[str, str]], consents: Grants) -> str:
    """`set`, `missing`, or `unbound` where it may not go where its server would take it."""
    if (asked.server, asked.name) not in names:
        return "missing"
    bound = consents.find_secret_uses(asked.server, asked.name)
    return "set" if bound >= {*map(str, asked.uses)} else "unbound"


def _render_asked(asked: AskedSecret, state: str) -> str:
    whole = f"{asked.server}.{asked.name}"
    word = "Set" if state == "missing" else "Replace"
    hidden = "".join(
        f'<input type="hidden" name="{name}" value="{escape(value)}">'
        for name, value in (("server", asked.server), ("name", asked.name))
    )
    return (
        f'<details id="secret-{escape(whole)}"><summary><code>{escape_text(whole)}</code> '
        f"{render_badge(state)}"
        "</summary><p>It goes there and nowhere else:<br>"
        f"{_render_places(sorted(map(str, asked.uses)))}</p>"
        f'<form class="fields" data-post="/secrets" data-pin '
        f'data-digest="{hash_uses(asked.uses)}" autocomplete="off">{hidden}{_VALUE}'
        f'<div class="actions"><button class="primary">{word} (PIN)</button></div>'
        "<output></output></form></details>"
    )


_VALUE = (
    '<label><span>Value</span><input name="value" type="password" required data-once '
    'autocomplete="new-password" maxlength="16000">'
    "<small>A key or token as it is; user:password for basic and digest.</small></label>"
)
_OWN_FORM = (
    '<details id="secret-own"><summary>Set a secret for a source</summary>'
    '<form class="fields" data-post="/secrets" data-pin autocomplete="off">'
    f'<input type="hidden" name="server" value="{SOURCES}">'
    '<label><span>Name</span><input name="name" required maxlength="80" '
    'pattern="[A-Za-z0-9_][A-Za-z0-9_.\\-]*"></label>'
    f'{_VALUE}<div class="actions"><button class="primary">Set (PIN)</button></div>'
    "<output></output></form></details>"
)
