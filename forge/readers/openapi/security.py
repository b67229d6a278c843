"""Security schemes and the requirements of operations (OpenAPI 3.1 sections 4.8.27 and 4.8.30)."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, get_args

from forge.readers.openapi import servers
from forge.readers.openapi.context import ReaderContext
from forge.readers.openapi.parameters import is_true
from forge.readers.openapi.references import Node, UnresolvedReference
from forge.text import sanitize_line, sanitize_prose
from sandbox.bundle.apispec import SecurityScheme

Kind = Literal[
    "apiKey", "bearer", "basic", "digest", "oauth2", "openIdConnect", "mutualTLS", "other"
]
Grant = Literal["client_credentials", "refresh_token", "password"]
MAX_ALTERNATIVES = 32
MAX_DESCRIPTION = 300
_LINK = re.compile(r"\[([^\[\]\n]{1,200})\]\((https?://[^()\s]{1,500})\)")
AUTHORIZATION = SecurityScheme("authorization", "apiKey", "header", "Authorization")
"""What an operation wants that lists the header as a parameter: all of its value is the secret."""

_SCOPE = re.compile(r"[!#-\[\]-~]{1,200}\Z")
_FLOWS: dict[str, tuple[Grant, ...]] = {
    "clientCredentials": ("client_credentials",),
    "application": ("client_credentials",),
    "password": ("password", "refresh_token"),
    "authorizationCode": ("refresh_token",),
    "accessCode": ("refresh_token",),
    "deviceAuthorization": ("refresh_token",),
}
"""The grants that a described flow lets a program use by itself, in 3.x and in 2.0 names. A code or
device flow needs a browser first; its refresh token is given.
"""


def read_schemes(context: ReaderContext, base: str = "") -> dict[str, SecurityScheme]:
    """Read the schemes, by the name that requirements use. Relative URLs of token endpoints are
    resolved against `base`.
    """
    root = context.references.root
    listed = (
        root.get("securityDefinitions")
        if context.dialect == "2.0"
        else root.get("components").get("securitySchemes")
    )
    made = {}
    for name, written in listed.list_items():
        try:
            node = context.references.resolve_node(written)
        except UnresolvedReference as error:
            context.problems.add(error.problem)
            continue
        made[name] = _read_scheme(context, node, sanitize_line(name, 80) or "credential", base)
    return made


@dataclass(frozen=True)
class Requirement:
    """What an operation requires: its alternatives as tuples of scheme names, and the scopes, each
    with its scheme's name.
    """

    alternatives: tuple[tuple[str, ...], ...]
    scopes: tuple[tuple[str, str], ...]


def read_requirement(context: ReaderContext, operation: Node, known: KnownSchemes) -> Requirement:
    """Return what an operation requires by its own word, else by the document's."""
    node = operation.get("security")
    if node.value is None:
        node = context.references.root.get("security")
    return context.read_once(_read_requirement, node, known)


def _read_requirement(context: ReaderContext, node: Node, known: KnownSchemes) -> Requirement:
    return Requirement(
        _read_alternatives(context, node, known.schemes), _read_scopes(node, known.schemes)
    )


def _read_alternatives(
    context: ReaderContext, node: Node, known: dict[str, SecurityScheme]
) -> tuple[tuple[str, ...], ...]:
    alternatives = []
    for entry in node.list_elements()[:MAX_ALTERNATIVES]:
        names = list(entry.value) if isinstance(entry.value, dict) else []
        unknown = [name for name in names if name not in known]
        if unknown or not isinstance(entry.value, dict):
            shown = sanitize_line(", ".join(unknown), 80)
            reason = f"no security scheme is called {shown!r}; alternatives with it are left out"
            context.problems.add(context.references.root.to_problem(reason))
        else:
            alternatives.append(tuple(known[name].name for name in names))
    return tuple(dict.fromkeys(alternatives))


def _read_scopes(node: Node, known: dict[str, SecurityScheme]) -> tuple[tuple[str, str], ...]:
    """Return the scopes that requirements name; words that are no scopes (RFC 6749 section 3.3) are
    left out.
    """
    found = []
    for entry in node.list_elements()[:MAX_ALTERNATIVES]:
        for name, scopes in entry.list_items():
            if name in known and known[name].kind in ("oauth2", "openIdConnect"):
                words = scopes.value if isinstance(scopes.value, list) else []
                found += [(known[name].name, word) for word in words if _is_scope(word)]
    return tuple(dict.fromkeys(found))


def _is_scope(word: Any) -> bool:
    return isinstance(word, str) and bool(_SCOPE.match(word))


def find_unapplied_schemes(
    context: ReaderContext, known: dict[str, SecurityScheme]
) -> tuple[tuple[str, ...], ...]:
    """Return the alternatives for a document that declares schemes and requires none of them
    anywhere: each scheme, or none.

    The author forgot to require them, so a credential that is given is sent. Requirements that are
    empty (`security: []`) ask for nothing, so they are no sign that the author thought of it.
    """
    root = context.references.root
    if not known or _requires_scheme(root):
        return ()
    paths = (path for _, path in root.get("paths").list_items())
    operations = (operation for path in paths for _, operation in path.list_items())
    if any(map(_requires_scheme, operations)):
        return ()
    usable = [
        (scheme.name,) for scheme in known.values() if scheme.kind not in ("other", "mutualTLS")
    ]
    return (*dict.fromkeys(usable), ()) if usable else ()


def _requires_scheme(node: Node) -> bool:
    """Whether the security of a document or an operation names a scheme."""
    return any(entry.value for entry in node.get("security").list_elements())


def _read_scheme(context: ReaderContext, node: Node, name: str, base: str) -> SecurityScheme:
    scheme = _classify(context, node, name, base)
    return replace(scheme, description=_read_description(node))


def _read_description(node: Node) -> str:
    """What the document says of a scheme, with the targets of links, which say where to get it."""
    text = node.read("description")
    if not isinstance(text, str):
        return ""
    shown = _LINK.sub(r"\1 (\2)", text[: MAX_DESCRIPTION * 8])
    return sanitize_prose(shown, MAX_DESCRIPTION).replace("`", "'")


def _classify(context: ReaderContext, node: Node, name: str, base: str) -> SecurityScheme:
    kind, place, parameter = (node.read(key) for key in ("type", "in", "name"))
    if kind == "apiKey" and place in ("header", "query", "cookie") and _is_usable_name(parameter):
        return SecurityScheme(name, "apiKey", place, parameter)
    if kind == "apiKey":
        reason = "an apiKey needs `in` and `name`; its credential cannot be sent"
        context.problems.add(node.to_problem(reason))
    made = SecurityScheme(name, _classify_scheme(kind, node.read("scheme")))
    if made.kind == "mutualTLS":
        reason = "mutual TLS is not supported; operations that want it need another way in"
        context.problems.add(node.to_problem(reason))
    elif made.kind == "other" and kind != "apiKey":
        shown = sanitize_line(node.read("scheme") or kind, 40)
        reason = f"{shown!r} cannot be used; operations that want it need another way in"
        context.problems.add(node.to_problem(reason))
    elif made.kind == "oauth2":
        url, grants = _read_flows(node, base)
        scheme = SecurityScheme(name, "oauth2", token_url=url, grants=grants)
        return _add_login(scheme, _list_flows(node), base)
    elif made.kind == "openIdConnect":
        found = servers.resolve_token_url(node.read("openIdConnectUrl"), base)
        return SecurityScheme(name, "openIdConnect", discovery=found)
    return made


def _read_flows(node: Node, base: str) -> tuple[str, tuple[Grant, ...]]:
    """Return the token endpoint of the flows that a program can use, and the grants that it accepts
    there.

    Only one endpoint is kept; flows with another one are left out.
    """
    flows = _list_flows(node)
    url, grants = "", set[Grant]()
    for name in sorted(flows, key=lambda name: list(_FLOWS).index(name) if name in _FLOWS else 99):
        found = servers.resolve_token_url(flows[name].read("tokenUrl"), base)
        if name in _FLOWS and found and found == (url or found):
            url = found
            grants |= {*_FLOWS[name]}
            if servers.resolve_token_url(flows[name].read("refreshUrl"), base) == found:
                grants.add("refresh_token")
    return url, tuple(grant for grant in get_args(Grant) if grant in grants)


def _list_flows(node: Node) -> dict[str, Node]:
    flows = dict(node.get("flows").list_items())
    if not flows and isinstance(node.read("flow"), str):
        flows = {node.read("flow"): node}
    return flows


def _add_login(scheme: SecurityScheme, flows: dict[str, Node], base: str) -> SecurityScheme:
    """Return the scheme with the endpoints at which a person logs in.

    An implicit flow is read as one that gives a code (RFC 9700 section 2.1.2); its token endpoint
    is the one of the other flows, if any.
    """

    def read(name: str, key: str) -> str:
        return servers.resolve_token_url(flows[name].read(key), base) if name in flows else ""

    codes = ("authorizationCode", "accessCode", "implicit")
    page = next(filter(None, (read(name, "authorizationUrl") for name in codes)), "")
    device = read("deviceAuthorization", "deviceAuthorizationUrl")
    own = (*codes[:2], "deviceAuthorization")
    tokens = next(filter(None, (read(name, "tokenUrl") for name in own)), "")
    login = tokens if tokens != scheme.token_url else ""
    return replace(scheme, authorization_url=page, device_url=device, login_url=login)


def _is_usable_name(parameter: Any) -> bool:
    return isinstance(parameter, str) and parameter.isprintable() and 0 < len(parameter) <= 200


def _classify_scheme(kind: Any, scheme: Any) -> Kind:
    word = str(scheme).strip().lower()
    if kind == "basic" or (kind == "http" and word == "basic"):
        return "basic"
    if kind == "http" and word == "bearer":
        return "bearer"
    if kind == "http" and word == "digest":
        return "digest"
    if kind == "mutualTLS" or (kind == "http" and word == "mutual"):
        return "mutualTLS"
    if kind == "oauth2":
        return "oauth2"
    return "openIdConnect" if kind == "openIdConnect" else "other"


@dataclass(frozen=True, eq=False)
class KnownSchemes:
    """The schemes by name, and the alternatives of operations that require none."""

    schemes: dict[str, SecurityScheme]
    forgotten: tuple[tuple[str, ...], ...]

    @cached_property
    def keys(self) -> list[SecurityScheme]:
        """The schemes that stand where a parameter could."""
        return [scheme for scheme in self.schemes.values() if scheme.kind == "apiKey"]


def find_credential_places(
    required: tuple[tuple[str, ...], ...], known: KnownSchemes
) -> set[tuple[str, str]]:
    """Return the (location, lower-case name) of an operation's credentials, which no argument
    fills.
    """
    return {
        _locate_credential(scheme)
        for scheme in known.keys
        if any(scheme.name in names for names in required)
    }


def join_required_credentials(
    required: tuple[tuple[str, ...], ...], nodes: list[Node], known: KnownSchemes
) -> tuple[tuple[str, ...], ...]:
    """Return the alternatives of an operation, before them all of its credentials together that
    it also declares as required parameters.

    A document that requires both parameters and offers their schemes as alternatives means both: a
    required parameter is always sent.
    """
    keys = [s for s in known.keys if any(s.name in names for names in required)]
    if len(keys) < 2:
        return required
    named = {
        (node.value["in"], str(node.value["name"]).lower())
        for node in nodes
        if is_true(node.read("required"))
    }
    found = (scheme.name for scheme in keys if _locate_credential(scheme) in named)
    together = tuple(dict.fromkeys(found))
    if len(together) < 2 or any({*together} <= {*names} for names in required):
        return required
    return (together, *required)


def find_forgotten_requirements(
    operation: Node, nodes: list[Node], known: KnownSchemes
) -> tuple[tuple[str, ...], ...]:
    """Return the alternatives of an operation that requires no credential: that of its
    Authorization header parameter where it has one, else those that the whole document forgot. An
    operation that says itself that it takes none gets none.
    """
    if any(map(_is_authorization, nodes)):
        return ((AUTHORIZATION.name,), ())
    if operation.read("security") is not None or not known.forgotten:
        return ()
    named = {(n.value["in"], str(n.value["name"]).lower()) for n in nodes}
    taken = {scheme.name for scheme in known.keys if _locate_credential(scheme) in named}
    return tuple(names for names in known.forgotten if not taken & {*names})


def _is_authorization(node: Node) -> bool:
    """Whether a parameter is the Authorization header, which section 4.8.12.1 excludes as a
    parameter.
    """
    return node.value["in"] == "header" and str(node.value["name"]).lower() == "authorization"


def _locate_credential(scheme: SecurityScheme) -> tuple[str, str]:
    return scheme.location, scheme.parameter.lower()
