"""Metadata of authorization servers (RFC 8414, OpenID Connect Discovery 1.0) and of protected
resources (RFC 9728). The documents are strangers': every part is bounded and checked here.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from orchestrator.errors import LoginFailed
from sandbox.credentials.token_endpoint import parse_object
from sandbox.errors import ResponseTooLarge, UpstreamUnreachable
from sandbox.wire.exchange import WireRequest, WireResponse
from sandbox.wire.policy import Origin, parse_origin

Fetch = Callable[[WireRequest], Awaitable[WireResponse]]
"""Sends a request of our own. Raises UpstreamUnreachable, ResponseTooLarge or TimeoutError."""
MAX_URL = 2000
MAX_WORDS = 200
MAX_SERVERS = 8
OPENID = "/.well-known/openid-configuration"
OAUTH = "/.well-known/oauth-authorization-server"
RESOURCE = "/.well-known/oauth-protected-resource"
_WORD = re.compile(r"[!#-\[\]-~]{1,200}\Z")
_RESOURCE_METADATA = re.compile(
    r'(?:^|[\s,])resource_metadata\s*=\s*(?:"([^"\\]{1,2000})"|([^\s",]{1,2000}))', re.IGNORECASE
)


@dataclass(frozen=True)
class AuthorizationServer:
    """The endpoints of an authorization server, "" where it has none or none is known.

    `auth_methods` are the ways in which a client may show its secret, none where that was not said;
    `names_itself` that its answers to the browser carry its `iss` (RFC 9207).
    """

    issuer: str = ""
    authorization_url: str = ""
    token_url: str = ""
    device_url: str = ""
    registration_url: str = ""
    revocation_url: str = ""
    scopes: tuple[str, ...] = ()
    auth_methods: tuple[str, ...] = ()
    names_itself: bool = False

    def list_urls(self) -> dict[str, str]:
        """The endpoints that there are, by what they are for."""
        named = {
            "log-in page": self.authorization_url,
            "device codes": self.device_url,
            "tokens": self.token_url,
            "registration": self.registration_url,
            "revocation": self.revocation_url,
        }
        return {name: url for name, url in named.items() if url}


@dataclass(frozen=True)
class ProtectedResource:
    """What an API says of itself (RFC 9728): its identifier, and who logs in for it."""

    resource: str
    issuers: tuple[str, ...]
    scopes: tuple[str, ...] = ()


@dataclass(frozen=True)
class LoginTarget:
    """What a log-in is for: the API's base URL, and what its description says of log-ins."""

    base_url: str
    declared: AuthorizationServer = field(default_factory=AuthorizationServer)
    discovery: str = ""


@dataclass(frozen=True)
class AuthorizationDiscovery:
    """An authorization server, the resource that its tokens are for (RFC 8707; "" where nobody
    named one), the scopes that the resource names, and how it was found, in words.
    """

    server: AuthorizationServer
    resource: str = ""
    scopes: tuple[str, ...] = ()
    told: tuple[str, ...] = ()


def is_safe_url(url: object) -> bool:
    """Whether a text is a URL that a log-in may use: https, or http on the loopback."""
    if not isinstance(url, str) or not url.isascii() or not 0 < len(url) <= MAX_URL:
        return False
    if any(letter <= " " or letter in '"<>\\^`{|}#\x7f' for letter in url):
        return False
    origin = parse_origin(url)
    return origin is not None and (origin.scheme == "https" or is_loopback(origin))


def is_loopback(origin: Origin) -> bool:
    """Whether an origin is this machine by its very name (RFC 6761, section 6.3)."""
    if origin.host == "localhost":
        return True
    try:
        return ip_address(origin.host).is_loopback
    except ValueError:
        return False


def parse_server(said: Mapping[str, Any]) -> AuthorizationServer:
    """Parse a metadata document. Raises LoginFailed for an endpoint that may not be used."""
    methods = said.get("code_challenge_methods_supported")
    if isinstance(methods, list) and methods and "S256" not in methods:
        raise LoginFailed("the authorization server does not take PKCE with S256 (RFC 7636)")
    return AuthorizationServer(
        _parse_url(said, "issuer"),
        _parse_url(said, "authorization_endpoint"),
        _parse_url(said, "token_endpoint"),
        _parse_url(said, "device_authorization_endpoint"),
        _parse_url(said, "registration_endpoint"),
        _parse_url(said, "revocation_endpoint"),
        _parse_words(said.get("scopes_supported")),
        _parse_words(said.get("token_endpoint_auth_methods_supported")),
        said.get("authorization_response_iss_parameter_supported") is True,
    )


async def discover_server(issuer: str, fetch: Fetch) -> AuthorizationServer:
    """Find the metadata of an issuer, whose very name it has to give (RFC 8414 section 3.3): else
    one server could speak for another. Raises LoginFailed.
    """
    if not is_safe_url(issuer) or urlsplit(issuer).query:
        raise LoginFailed(f"{issuer[:200]!r} is no https URL of an authorization server")
    tried = []
    for url in _list_metadata_urls(issuer):
        answer = await _get(url, fetch)
        if answer is None or answer.status != 200:
            tried.append(f"{url} ({answer.status if answer else 'no answer'})")
            continue
        server = parse_server(parse_object(answer))
        if server.issuer.rstrip("/") != issuer.rstrip("/"):
            raise LoginFailed(
                f"{url} is the metadata of {server.issuer[:200] or 'nobody'}, not of {issuer}"
            )
        return server
    raise LoginFailed(f"{issuer} has no metadata: {', '.join(tried)}")


async def find_login_server(target: LoginTarget, fetch: Fetch) -> AuthorizationDiscovery:
    """Find who logs in for an API: by its description, else by what the API says of itself. Raises
    LoginFailed with what was tried.
    """
    declared = target.declared
    resource = await _find_resource(target.base_url, fetch)
    if declared.token_url and (declared.authorization_url or declared.device_url):
        found = AuthorizationDiscovery(
            await _complete(declared, fetch), told=("the API's description",)
        )
        return _name_resource(found, resource)
    if target.discovery:
        return _name_resource(await _read_discovery(target, fetch), resource)
    if resource is not None:
        issuer = resource.issuers[0]
        told = (f"{resource.resource} names {issuer}",)
        server = await discover_server(issuer, fetch)
        return AuthorizationDiscovery(server, resource.resource, resource.scopes, told)
    issuers = (declared.authorization_url, declared.token_url, target.base_url)
    origins = dict.fromkeys(origin for url in issuers if (origin := parse_origin(url)))
    reasons = []
    for origin in origins:
        try:
            server = await discover_server(str(origin), fetch)
        except LoginFailed as error:
            reasons.append(str(error))
            continue
        if _agree(declared, server):
            return AuthorizationDiscovery(server, told=(f"the metadata at {origin}",))
        reasons.append(f"{origin} has other endpoints than the API's description")
    raise LoginFailed(
        f"nothing says where to log in: {'; '.join(reasons)[:1500]}. If you know the server: "
        "`toolwright login … --issuer https://…`"
    )


def _name_resource(
    found: AuthorizationDiscovery, resource: ProtectedResource | None
) -> AuthorizationDiscovery:
    """The server with the API's identifier, where the API itself names that very server."""
    if resource is None or found.server.issuer not in ("", *resource.issuers):
        return found
    told = f"{resource.resource} names {', '.join(resource.issuers)}"
    return replace(found, resource=resource.resource, told=(*found.told, told))


async def _complete(declared: AuthorizationServer, fetch: Fetch) -> AuthorizationServer:
    """What a description declares, with what the metadata of the same endpoints adds to it."""
    origin = parse_origin(declared.token_url)
    try:
        found = await discover_server(str(origin), fetch)
    except LoginFailed:
        return declared
    if not _agree(declared, found) or found.token_url != declared.token_url:
        return declared
    kept = {name: value for name, value in vars(declared).items() if value}
    return replace(found, **kept)


def _agree(declared: AuthorizationServer, found: AuthorizationServer) -> bool:
    """Whether metadata has, of each endpoint that a description declares, that very one."""
    return all(
        getattr(declared, name) in ("", getattr(found, name))
        for name in ("authorization_url", "token_url", "device_url")
    )


async def _read_discovery(target: LoginTarget, fetch: Fetch) -> AuthorizationDiscovery:
    """The server of a description's `openIdConnectUrl`. Its issuer is of the same origin; some give
    a pattern of it (`{tenantid}`), which is no name to compare with.
    """
    url = target.discovery
    if not is_safe_url(url):
        raise LoginFailed(f"{url[:200]!r} is no https URL")
    answer = await _get(url, fetch)
    if answer is None or answer.status != 200:
        raise LoginFailed(f"{url} answered {answer.status if answer else 'nothing'}")
    said = dict(parse_object(answer))
    issuer = said.get("issuer")
    if not isinstance(issuer, str) or parse_origin(issuer) != parse_origin(url):
        raise LoginFailed(f"{url} is the metadata of another server: {str(issuer)[:200]!r}")
    if "{" in issuer:
        said["issuer"] = ""
    return AuthorizationDiscovery(parse_server(said), told=(url,))


async def _find_resource(base_url: str, fetch: Fetch) -> ProtectedResource | None:
    """What the API at a URL says of itself: where its challenge points, else at the usual place
    (RFC 9728 sections 3.1 and 5.1). Only what it says of its own origin counts.
    """
    for url in [url async for url in _iterate_resource_urls(base_url, fetch)]:
        answer = await _get(url, fetch)
        said = parse_object(answer) if answer and answer.status == 200 else {}
        named, issuers = said.get("resource"), said.get("authorization_servers")
        if not is_safe_url(named) or not isinstance(issuers, list):
            continue
        if not _covers(str(named), base_url):
            raise LoginFailed(f"{url} speaks for {str(named)[:200]}, which is not {base_url}")
        usable = tuple(filter(is_safe_url, issuers[:MAX_SERVERS]))
        if usable:
            return ProtectedResource(str(named), usable, _parse_words(said.get("scopes_supported")))
    return None


async def _iterate_resource_urls(base_url: str, fetch: Fetch):  # type: ignore[no-untyped-def]
    origin, path = parse_origin(base_url), urlsplit(base_url).path.rstrip("/")
    answer = await _get(base_url, fetch)
    challenge = answer.get_header("www-authenticate") if answer else None
    found = _RESOURCE_METADATA.search((challenge or "")[:8000])
    if found:
        url = found[1] or found[2]
        if is_safe_url(url):
            yield url
    if path:
        yield f"{origin}{RESOURCE}{path}"
    yield f"{origin}{RESOURCE}"


def _covers(resource: str, base_url: str) -> bool:
    """Whether a resource's identifier is that of the API at a base URL, or of a part of its path
    (RFC 9728 section 3.3).
    """
    own, base = urlsplit(resource).path.rstrip("/"), urlsplit(base_url).path.rstrip("/")
    return parse_origin(resource) == parse_origin(base_url) and f"{base}/".startswith(f"{own}/")


def _list_metadata_urls(issuer: str) -> Iterator[str]:
    origin, path = parse_origin(issuer), urlsplit(issuer).path.rstrip("/")
    found = (f"{origin}{OAUTH}{path}", f"{origin}{path}{OPENID}", f"{origin}{OPENID}{path}")
    yield from dict.fromkeys(found)


async def _get(url: str, fetch: Fetch) -> WireResponse | None:
    """The answer to a GET without any credential; None where none came. Redirects are not followed:
    they would lead to hosts that nobody named.
    """
    try:
        return await fetch(WireRequest("GET", url, (("Accept", "application/json"),)))
    except (ResponseTooLarge, TimeoutError):
        return None
    except UpstreamUnreachable as error:
        if "source allow" in str(error):
            raise LoginFailed(str(error)) from error
        return None


def _parse_url(said: Mapping[str, Any], key: str) -> str:
    url = said.get(key)
    if url in (None, ""):
        return ""
    if not is_safe_url(url):
        raise LoginFailed(f"the metadata's {key} is no https URL: {str(url)[:120]!r}")
    return str(url)


def _parse_words(value: Any) -> tuple[str, ...]:
    words = value[:MAX_WORDS] if isinstance(value, list) else []
    return tuple(word for word in words if isinstance(word, str) and _WORD.match(word))
