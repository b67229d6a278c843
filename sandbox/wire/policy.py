"""Network policy of a session, derived from its bundle and class (read, or one tool) alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from urllib.parse import urljoin, urlsplit

import re2  # type: ignore[import-untyped]

from sandbox.bundle.apispec import Access
from sandbox.bundle.credential import Credential
from sandbox.bundle.model import Bundle, RequestPattern, ToolDefinition
from sandbox.wire.canonical import is_canonical_path
from sandbox.wire.exchange import WireRequest
from sandbox.wire.graphql import extract_document, is_plain_request
from sandbox.wire.overrides import names_act

COMPILER = "compiler"
DEFAULT_PORTS = {"http": 80, "https": 443}
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_PLACEHOLDER = re.compile(r"\{[^{}/]*\}")
VALUE = "(?:[^/?#;]+|;[^/?#]+)"
MAX_VALUES = 64
"""Values in a template that has several in a segment."""
_NOTHING = re.compile(r"(?!)")


@dataclass(frozen=True)
class Origin:
    scheme: str
    host: str
    port: int

    def __str__(self) -> str:
        default = DEFAULT_PORTS.get(self.scheme) == self.port
        return f"{self.scheme}://{self.host}" + ("" if default else f":{self.port}")


@dataclass(frozen=True)
class RequestRule:
    """An allowed request: method, origin and path template, and the credentials to add. With a
    GraphQL `document`, the body must carry exactly that document. Where who wrote the code is not
    `believed` that a tool reads, no query may say that it acts. A writing tool's request `acts`
    where its description, or a person, says that it writes, whatever its method.
    """

    method: str
    origin: Origin
    path: re.Pattern[str]
    template: str
    tool: str
    security: tuple[tuple[str, ...], ...]
    access: Access = "write"
    document: str = ""
    believed: bool = True
    acts: bool = False

    @property
    def place(self) -> tuple[str, Origin, str]:
        """What is asked for, but for the values in the path."""
        return self.method, self.origin, self.template

    def is_act(self, url: str) -> bool:
        """Whether a request of a writing tool may be its write, whatever its method: its operation
        writes, or its query says that it does.
        """
        return self.acts or (self.access == "write" and names_act(urlsplit(url).query))

    def refuses_act(self, url: str) -> bool:
        """Whether the query says that the request acts, and the rule's author is not believed that
        it does not.
        """
        return not self.believed and names_act(urlsplit(url).query)

    @property
    def repeatable(self) -> bool:
        """Whether the request may be retried: both its method and its tool are read-only."""
        return self.access == "read" and self.method in SAFE_METHODS


@dataclass(frozen=True)
class Policy:
    """The requests of one session."""

    rules: tuple[RequestRule, ...]

    def find_rule(self, request: WireRequest) -> RequestRule | None:
        """The rule that allows this request, or None.

        The path is compared as sent: a literal part of a template must match exactly, a placeholder
        takes one or more characters but no `/`, `?` or `#`, and a `;` only as its first one, as in
        the matrix style (OpenAPI 3.1, Parameter Object; RFC 6570 section 3.2.7).
        """
        origin = parse_origin(request.url)
        if origin is None:
            return None
        path = urlsplit(request.url).path or "/"
        if not is_canonical_path(path):
            return None
        for rule in self.rules:
            if rule.method == request.method and rule.origin == origin and rule.path.match(path):
                if not rule.document or _carries_document(request, rule):
                    return rule
        return None


def _carries_document(request: WireRequest, rule: RequestRule) -> bool:
    """Whether a request is just the GraphQL operation that the rule allows."""
    declared = rule.template.partition("#")[0].partition("?")[2]
    return (
        is_plain_request(request)
        and urlsplit(request.url).query == declared
        and extract_document(request.body) == rule.document
    )


def build_read_policy(bundle: Bundle) -> Policy:
    """The policy of a read session: the requests of the bundle's read tools."""
    return _build_policy(bundle, tuple(t for t in bundle.tools if t.access == "read"))


def build_tool_policy(bundle: Bundle, tool: str) -> Policy:
    """The policy of a single-use session: the requests of that tool. Raises KeyError."""
    return _build_policy(bundle, (bundle.get_tool(tool),))


def parse_origin(url: str) -> Origin | None:
    """The origin of an absolute http(s) URL; None if it has none or carries user info."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if parts.scheme not in DEFAULT_PORTS or not host or "@" in parts.netloc or "\\" in url:
        return None
    return Origin(parts.scheme, host.rstrip("."), port or DEFAULT_PORTS[parts.scheme])


def join_url(url: str, target: str) -> str:
    """The absolute target of a redirect (RFC 3986 section 5); "" if it cannot be parsed."""
    try:
        return urljoin(url, target)
    except ValueError:
        return ""


def is_request_of(pattern: RequestPattern, method: str, url: str) -> bool:
    """Whether a request, whatever its query and body, is one that a template stands for."""
    path = urlsplit(url).path or "/"
    same_place = parse_template_origin(pattern.url) == parse_origin(url)
    return (
        pattern.method == method
        and same_place
        and bool(compile_template(_get_path_template(pattern)).match(path))
    )


def parse_template_origin(url: str) -> Origin | None:
    """The origin of a URL template. None if it is none, or a placeholder stands in it: what fills
    one could name another host.
    """
    authority = re.split(r"[/?#]", url.partition("://")[2], maxsplit=1)[0]
    if not authority or set(authority) & set("{}"):
        return None
    return parse_origin(_PLACEHOLDER.sub("x", url))


def list_token_origins(credentials: Iterable[Credential]) -> frozenset[Origin]:
    """Origins that the broker itself may have to ask for these credentials' tokens."""
    urls = (url for credential in credentials for url in credential.list_token_urls())
    return frozenset(origin for origin in map(parse_origin, urls) if origin)


def list_granted_hosts(bundle: Bundle) -> frozenset[str]:
    """The `host` or `host:port` names of the bundle's network permissions."""
    prefix = "network:"
    return frozenset(p.removeprefix(prefix) for p in bundle.permissions if p.startswith(prefix))


def _build_policy(bundle: Bundle, tools: tuple[ToolDefinition, ...]) -> Policy:
    hosts = list_granted_hosts(bundle)
    # What no description has is judged by its method, as in a tool that reads.
    writes = _list_writes(bundle) if any(t.access == "write" for t in tools) else frozenset()
    rules = []
    for tool in tools:
        for request in tool.requests:
            origin = parse_template_origin(request.url)
            if origin is None or not ({origin.host, f"{origin.host}:{origin.port}"} & hosts):
                continue
            template = _get_path_template(request)
            rules.append(
                RequestRule(
                    method=request.method,
                    origin=origin,
                    path=compile_template(template),
                    template=template,
                    tool=tool.name,
                    security=tool.security,
                    access=tool.access,
                    document=request.document,
                    believed=tool.access == "write" or bundle.provenance.author == COMPILER,
                    acts=tool.access == "write" and _to_bare_request(request) in writes,
                )
            )
    return Policy(tuple(rules))


def _list_writes(bundle: Bundle) -> frozenset[tuple[str, str, str]]:
    """The requests that are said to write: by the API's description, or as all that a tool does
    which writes, as a person may have said.
    """
    described = {
        _to_bare_request(RequestPattern(each.method.upper(), each.url, each.document)): each.access
        for each in (bundle.spec.operations if bundle.spec else ())
    }
    alone = (tool.requests for tool in bundle.tools if tool.access == "write")
    return frozenset(
        [
            *(request for request, access in described.items() if access != "read"),
            *(_to_bare_request(each[0]) for each in alone if len(each) == 1),
        ]
    )


def _to_bare_request(request: RequestPattern) -> tuple[str, str, str]:
    """A request without its query, which is no part of what a template stands for."""
    return request.method, request.url.partition("#")[0].partition("?")[0], request.document


def _get_path_template(request: RequestPattern) -> str:
    return "/" + request.url.split("://", 1)[1].partition("/")[2]


def compile_template(
    template: str, value: str = VALUE, write: Callable[[str], str] = re.escape
) -> re.Pattern[str]:
    """The pattern of a template without its query: `value` in the place of each placeholder, and
    what `write` makes of the text between them.

    It is matched in linear time. Python's own would try every way to divide a segment among the
    values that stand in it (`/{base}...{head}`), so these are for RE2, whose `match` is the same.
    A template of more than `MAX_VALUES` then matches nothing.
    """
    literals = _PLACEHOLDER.split(template.partition("?")[0].partition("#")[0])
    expression = value.join(map(write, literals))
    if all("/" in literal for literal in literals[1:-1]):
        return re.compile(expression + r"\Z")
    if len(literals) > MAX_VALUES + 1:
        return _NOTHING
    options = re2.Options()
    options.log_errors = False
    compiled: re.Pattern[str] = re2.compile(expression + r"\z", options)
    return compiled
