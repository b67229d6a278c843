"""What a session may ask the network for. Comes from the bundle and the session's class alone."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

from sandbox.apispec import Access
from sandbox.authscheme import Credential
from sandbox.bundle import Bundle, ToolDefinition
from sandbox.graphql import carried
from sandbox.plainrequest import canonical

DEFAULT_PORTS = {"http": 80, "https": 443}
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_PLACEHOLDER = re.compile(r"\{[^{}/]*\}")


@dataclass(frozen=True)
class Origin:
    scheme: str
    host: str
    port: int

    def __str__(self) -> str:
        default = DEFAULT_PORTS.get(self.scheme) == self.port
        return f"{self.scheme}://{self.host}" + ("" if default else f":{self.port}")


@dataclass(frozen=True)
class Rule:
    """One request that is allowed: method, origin and path template, with its credentials; where
    there is a GraphQL `document`, with a body that carries that one.
    """

    method: str
    origin: Origin
    path: re.Pattern[str]
    template: str
    tool: str
    security: tuple[tuple[str, ...], ...]
    access: Access = "write"
    document: str = ""

    @property
    def repeatable(self) -> bool:
        """Whether the request may be sent again unasked: it reads, by its method and its tool."""
        return self.access == "read" and self.method in SAFE_METHODS


@dataclass(frozen=True)
class Policy:
    """The requests of one session."""

    rules: tuple[Rule, ...]

    def match(self, method: str, url: str, body: bytes = b"") -> Rule | None:
        """The rule that allows this request, or None.

        The path is compared as sent: a literal part of a template must stand there letter for
        letter, a placeholder takes one or more characters but no `/`, `?` or `#`, and a `;` only
        from its beginning on, as the matrix style writes it.
        """
        origin = origin_of(url)
        if origin is None:
            return None
        path = urlsplit(url).path or "/"
        if not canonical(path):
            return None
        for rule in self.rules:
            if rule.method == method and rule.origin == origin and rule.path.match(path):
                if not rule.document or carried(body) == rule.document:
                    return rule
        return None


def read_policy(bundle: Bundle) -> Policy:
    """The policy of a read session: the requests of the bundle's read tools."""
    return _policy(bundle, tuple(t for t in bundle.tools if t.access == "read"))


def tool_policy(bundle: Bundle, tool: str) -> Policy:
    """The policy of a single-use session: the requests of that tool. Raises KeyError."""
    return _policy(bundle, (bundle.tool(tool),))


def origin_of(url: str) -> Origin | None:
    """The origin of an absolute http(s) URL, or None where it has none or carries user info."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if parts.scheme not in DEFAULT_PORTS or not host or "@" in parts.netloc or "\\" in url:
        return None
    return Origin(parts.scheme, host.rstrip("."), port or DEFAULT_PORTS[parts.scheme])


def token_origins(credentials: Iterable[Credential]) -> frozenset[Origin]:
    """The origins at which the broker itself may have to ask for these credentials' tokens."""
    urls = (url for credential in credentials for url in credential.token_urls())
    return frozenset(origin for origin in map(origin_of, urls) if origin)


def granted_hosts(bundle: Bundle) -> frozenset[str]:
    """The `host` or `host:port` names of the bundle's network permissions."""
    prefix = "network:"
    return frozenset(p.removeprefix(prefix) for p in bundle.permissions if p.startswith(prefix))


def _policy(bundle: Bundle, tools: tuple[ToolDefinition, ...]) -> Policy:
    hosts = granted_hosts(bundle)
    rules = []
    for tool in tools:
        for request in tool.requests:
            origin = origin_of(_PLACEHOLDER.sub("x", request.url))
            if origin is None or not ({origin.host, f"{origin.host}:{origin.port}"} & hosts):
                continue
            template = "/" + request.url.split("://", 1)[1].partition("/")[2]
            rules.append(
                Rule(
                    method=request.method,
                    origin=origin,
                    path=_path_pattern(template),
                    template=template,
                    tool=tool.name,
                    security=tool.security,
                    access=tool.access,
                    document=request.document,
                )
            )
    return Policy(tuple(rules))


def _path_pattern(template: str) -> re.Pattern[str]:
    literals = _PLACEHOLDER.split(template.partition("?")[0].partition("#")[0])
    return re.compile("(?:[^/?#;]+|;[^/?#]+)".join(map(re.escape, literals)) + r"\Z")
