"""The plan of a log-in: everything that a person is shown of it before it begins."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from urllib.parse import parse_qsl, urlsplit

from orchestrator.errors import LoginFailed
from orchestrator.logins.exchange import OWN_PARAMETERS, Client, Wanted, choose_client_auth
from orchestrator.logins.metadata import (
    AuthorizationDiscovery,
    AuthorizationServer,
    Fetch,
    LoginTarget,
    discover_server,
    find_login_server,
    is_safe_url,
)
from registry.models import DocumentationSource
from sandbox.bundle.credential import Credential
from sandbox.bundle.model import Bundle
from sandbox.credentials.oauth_secret import TOKEN_KINDS
from sandbox.credentials.uses import TOKEN_REQUEST, SecretUse, goes_in_header, list_secret_uses
from sandbox.wire.policy import Origin, parse_origin

OFFLINE = "offline_access"
"""The scope that asks for a refresh token (OpenID Connect Core 1.0, section 11)."""


@dataclass(frozen=True)
class LoginOrder:
    """What a person asked for: the credential that is logged in to, under which account, and what
    they said of the authorization server and of the client.
    """

    server: str
    credential: Credential
    base_url: str
    uses: tuple[SecretUse, ...]
    account: str = ""
    issuer: str = ""
    client: Client | None = None
    scopes: tuple[str, ...] = ()
    parameters: tuple[tuple[str, str], ...] = ()
    source: DocumentationSource | None = None
    """The source that the log-in is for, where it is for no registered server."""

    @property
    def target(self) -> str:
        """What a person types behind `toolwright login`."""
        return self.source.url if self.source else self.server


@dataclass(frozen=True)
class LoginPlan:
    """A log-in as it will be. Without a `client` one is registered. `uses` is where the secret is
    let go, `told` how the authorization server was found.
    """

    order: LoginOrder
    server: AuthorizationServer
    wanted: Wanted
    client: Client | None
    uses: tuple[SecretUse, ...]
    told: tuple[str, ...]

    def list_origins(self) -> tuple[Origin, ...]:
        """The origins that Toolwright itself asks: all but the page that the browser opens."""
        urls = [url for name, url in self.server.list_urls().items() if name != "log-in page"]
        if self.client is not None:
            urls = [url for url in urls if url != self.server.registration_url]
        return tuple(dict.fromkeys(origin for url in urls if (origin := parse_origin(url))))


def choose_credential(bundle: Bundle, name: str) -> Credential:
    """The credential of a server that a person logs in to: by its name, else the one there is.
    Raises LoginFailed.
    """
    fitting = [c for c in bundle.credentials if c.kind in TOKEN_KINDS]
    fitting = fitting or [c for c in bundle.credentials if _is_bearer(c)]
    if name:
        fitting = [c for c in bundle.credentials if c.name == name and _takes_token(c)]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        names = ", ".join(f"{bundle.name}.{each.name}" for each in fitting)
        raise LoginFailed(f"{bundle.name} has several log-ins; name one of {names}")
    others = [f"`toolwright secret set {bundle.name}.{c.name}`" for c in bundle.credentials]
    given = f" It takes what is set by hand: {' or '.join(others)}." if others else ""
    raise LoginFailed(
        f"{bundle.name} has no credential {name or 'that a log-in gives'}.{given} One that its "
        "description forgot: `toolwright forge … --auth bearer=@NAME`"
    )


def list_login_uses(bundle: Bundle, credential: Credential) -> tuple[SecretUse, ...]:
    """Where the bundle takes a credential's token."""
    uses = list_secret_uses(bundle).get(credential.name, ())
    return tuple(use for use in uses if use.place != TOKEN_REQUEST)


async def plan_login(order: LoginOrder, fetch: Fetch) -> LoginPlan:
    """Find the authorization server and what to ask it for. Raises LoginFailed."""
    for name, _ in order.parameters:
        if name in OWN_PARAMETERS:
            raise LoginFailed(f"{name} is not a parameter that can be given")
    found = await _find_server(order, fetch)
    server = found.server
    if not server.token_url or not (server.authorization_url or server.device_url):
        raise LoginFailed(
            f"{server.issuer or 'the authorization server'} names no endpoint at which a person "
            "logs in"
        )
    _check_endpoints(server)
    tokens = order.credential.tokens
    scopes = order.scopes or (tokens.needed_scopes if tokens else ()) or found.scopes
    parameters = order.parameters
    if OFFLINE in server.scopes and OFFLINE not in scopes and not order.scopes:
        # A server that has this scope gives no refresh token without it, nor without consent.
        scopes = (*scopes, OFFLINE)
        if not any(name == "prompt" for name, _ in parameters):
            parameters = (*parameters, ("prompt", "consent"))
    client = order.client
    if client is None and not server.registration_url:
        raise LoginFailed(
            "this authorization server registers no clients by itself. Register one on its site, "
            "as a native or desktop application with the redirect URI http://127.0.0.1/callback, "
            f"then `toolwright login {shlex.quote(order.target)} --client-id ID "
            "[--client-secret @NAME]`"
        )
    if client is not None and client.secret:
        client = replace(client, auth=choose_client_auth(server))
    wanted = Wanted(scopes, found.resource, parameters)
    return LoginPlan(order, server, wanted, client, tuple(_list_uses(order, server)), found.told)


def _check_endpoints(server: AuthorizationServer) -> None:
    """Raises LoginFailed for an endpoint of a description or of metadata that may not be used."""
    for name, url in server.list_urls().items():
        if not is_safe_url(url):
            raise LoginFailed(f"the URL for {name} is no https URL: {url[:200]!r}")
    given = {name for name, _ in parse_qsl(urlsplit(server.authorization_url).query)}
    if taken := sorted(given & OWN_PARAMETERS):
        # Of a parameter that is there twice, a server may take either.
        raise LoginFailed(f"the log-in page's URL has {', '.join(taken)} of its own")


async def _find_server(order: LoginOrder, fetch: Fetch) -> AuthorizationDiscovery:
    if order.issuer:
        server = await discover_server(order.issuer, fetch)
        return AuthorizationDiscovery(server, told=(f"the metadata of {order.issuer}",))
    tokens = order.credential.tokens
    declared, discovery = AuthorizationServer(), ""
    if tokens is not None:
        declared = AuthorizationServer(
            authorization_url=tokens.authorization_url,
            device_url=tokens.device_url,
            token_url=tokens.login_url or tokens.url,
        )
        discovery = tokens.discovery
    return await find_login_server(LoginTarget(order.base_url, declared, discovery), fetch)


def _list_uses(order: LoginOrder, server: AuthorizationServer) -> Iterator[SecretUse]:
    yield from order.uses
    urls = (server.token_url, server.revocation_url)
    for origin in dict.fromkeys(origin for url in urls if (origin := parse_origin(url))):
        yield SecretUse(origin, TOKEN_REQUEST)


def _takes_token(credential: Credential) -> bool:
    return credential.kind in TOKEN_KINDS or _is_bearer(credential)


def _is_bearer(credential: Credential) -> bool:
    kinds = ("bearer", "apiKey")
    return credential.kind in kinds and goes_in_header(credential, "Authorization")


def describe_plan(plan: LoginPlan, new_hosts: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The lines that a person is shown before they say yes with the PIN."""
    order, server = plan.order, plan.server
    account = f", account {order.account}" if order.account else ""
    own = order.source.url if order.source else f"{order.server}.{order.credential.name}"
    yield "log-in for", f"{own}{account}"
    for way in plan.told:
        yield "found by", way
    if server.issuer:
        yield "issuer", server.issuer
    for name, url in server.list_urls().items():
        if name != "registration" or plan.client is None:
            yield name, url
    if plan.client is None:
        yield "client", "none was given: Toolwright registers one there"
    else:
        shown = " with a secret" if plan.client.secret else ""
        yield "client", f"{plan.client.id}{shown}"
    yield "scopes", " ".join(plan.wanted.scopes) or "none asked for"
    if plan.wanted.resource:
        yield "resource", plan.wanted.resource
    for use in plan.uses:
        yield "is to go to", str(use)
    for host in new_hosts:
        yield "is to be allowed", host
