"""Signed policy: the rules, approvals and classifications whose signatures are valid."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from orchestrator.approvals.gate import WriteFacts, is_erasing
from orchestrator.calls import Call
from registry.approvals.authority import Authority
from registry.approvals.decisions import build_forgery_check
from registry.approvals.rules import ApprovalRule
from registry.errors import KeyChanged, PinUnusable, SignedHeadsDamaged
from registry.models import Approval, Entry
from registry.secrets.signing import verify_signature
from registry.servers.classifications import (
    Classification,
    Level,
    get_level,
    get_operation_key,
    is_looser,
    list_requests,
)
from registry.store import Store
from registry.trust import EXEMPT_SUCCESSES, Standing, is_write_exempt
from sandbox.bundle.apispec import Access
from sandbox.bundle.model import Bundle, RequestPattern, ToolDefinition
from sandbox.bundle.permissions import READING, is_permission_request
from sandbox.wire.policy import SAFE_METHODS

Signed = Callable[[Classification], bool]
UNSURE = (PinUnusable, KeyChanged, SignedHeadsDamaged)
"""Errors after which no public key can be trusted, so no signature counts."""


@dataclass
class SignedPolicy:
    """Reads what people signed; whatever the pinned key did not sign is left out."""

    store: Store
    authority: Authority
    _vouched: dict[tuple[str, int, str], int] = field(default_factory=dict)

    def find_key(self) -> str:
        """The public key, in hex; "" where there is none or it is not the pinned one."""
        try:
            return self.authority.load_key()
        except UNSURE:
            return ""

    def find_obstacle(self) -> str:
        """The reason why no decision counts at present; "" where decisions count."""
        try:
            self.authority.load_key()
        except UNSURE as error:
            return str(error)
        return ""

    def check_forgery(self, approval: Approval, now: float) -> str:
        """The reason why a decision is not authentic under the pinned key; "" where it is."""
        return build_forgery_check(self.find_key())(approval, now)

    def is_signed(self, override: Classification) -> bool:
        return verify_signature(self.find_key(), override.to_signed_body(), override.signature)

    def classify_bundle(self, bundle: Bundle) -> Bundle:
        """The bundle with its tools' access as people classified them."""
        overrides = self.store.classifications.find(bundle.name)
        return apply_overrides(bundle, overrides, self.is_signed)

    def describe_write(
        self, call: Call, entry: Entry, bundle: Bundle, server: Standing, now: float
    ) -> WriteFacts:
        """Collect what the gate needs to judge a write."""
        erasing = self._is_erasing(bundle, call.tool)
        operation = self.store.standings.get_operation(call.server, call.tool)
        return WriteFacts(
            operation=operation,
            vouched=self._count_vouched(entry, call.tool)
            if is_write_exempt(server, operation)
            else 0,
            erases=erasing,
            tool=call.name,
            version=entry.version,
            digest=entry.digest,
            arguments=call.arguments,
            author=entry.author,
            requests=bundle.get_tool(call.tool).requests,
            rules=() if erasing else self._find_rules(call),
            now=now,
        )

    def _is_erasing(self, bundle: Bundle, name: str) -> bool:
        """Whether a tool deletes something. A person may classify it as destructive, or, with a
        signature, as not destructive; `bundle` has these classifications applied already.
        """
        tool = bundle.get_tool(name)
        said = self.store.classifications.find(bundle.name).get(get_operation_key(tool))
        if not tool.destructive or (said is not None and said.level == "destructive"):
            return tool.destructive
        methods = {request.method for request in tool.requests} or {""}
        return any(is_erasing(method, tool.operation, tool.name) for method in methods)

    def _find_rules(self, call: Call) -> tuple[ApprovalRule, ...]:
        found = self.store.rules.find(call.server, call.tool)
        key = self.find_key() if found else ""
        return tuple(
            rule for rule in found if verify_signature(key, rule.to_signed_body(), rule.signature)
        )

    def _count_vouched(self, entry: Entry, tool: str) -> int:
        of = (entry.name, entry.version, tool)
        if self._vouched.get(of, 0) < EXEMPT_SUCCESSES:
            self._vouched[of] = self.store.approvals.count_approved_writes(
                *of, self.check_forgery, EXEMPT_SUCCESSES
            )
        return self._vouched[of]


def apply_overrides(
    bundle: Bundle, overrides: Mapping[str, Classification], signed: Signed
) -> Bundle:
    """The bundle with the effective access and destructiveness of each tool."""
    compiled = bundle.provenance.author == "compiler"
    tools = []
    for tool in bundle.tools:
        level = resolve_level(tool, overrides.get(get_operation_key(tool)), signed, compiled)
        access: Access = "read" if level == "read" else "write"
        tools.append(replace(tool, access=access, destructive=level == "destructive"))
    return replace(bundle, tools=tuple(tools))


def _is_unsafe(request: RequestPattern) -> bool:
    if is_permission_request(request):
        return request.method not in READING
    return request.method not in SAFE_METHODS


def resolve_level(
    tool: ToolDefinition, override: Classification | None, signed: Signed, compiled: bool
) -> Level:
    """The effective level of a tool: a person's classification where valid, else its server's.

    A stricter level needs no signature; a less strict one needs a signature over exactly these
    requests. Code that our compiler did not write is not trusted to call an unsafe method a read
    (safe methods: RFC 9110 section 9.2.1).
    """
    own = get_level(tool)
    unsafe = [request for request in tool.requests if _is_unsafe(request)]
    # What a description says of its methods is no word on what is no request to its API.
    if own == "read" and unsafe and (not compiled or any(map(is_permission_request, unsafe))):
        own = "write"
    if override is None or override.level == own:
        return own
    if is_looser(override.level, own):
        meant = override.requests == list_requests(tool) and signed(override)
        return override.level if meant else own
    return override.level
