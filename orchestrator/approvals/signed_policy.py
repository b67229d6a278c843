"""What people signed, as the gate is told of it: rules, approvals, classifications."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from orchestrator.calls import Call
from orchestrator.gate import Write, erases
from registry.authority import Authority
from registry.decisions import forgery_check
from registry.errors import KeyChanged, NotaryDamaged, PinUnusable
from registry.overrides import (
    Level,
    Override,
    level_of,
    looser,
    operation_of,
    requests_of,
)
from registry.records import Approval, Entry
from registry.rules import Rule
from registry.signing import fits
from registry.store import Store
from registry.trust import EXEMPT_SUCCESSES, Standing, write_exempt
from sandbox.apispec import Access
from sandbox.asked import READING, is_asked
from sandbox.bundle import Bundle, RequestPattern, ToolDefinition
from sandbox.policy import SAFE_METHODS

Signed = Callable[[Override], bool]
UNSURE = (PinUnusable, KeyChanged, NotaryDamaged)
"""What keeps us from knowing whose signature counts."""


@dataclass
class Clearance:
    """Reads what people signed and leaves out whatever the known key did not sign."""

    store: Store
    authority: Authority
    _vouched: dict[tuple[str, int, str], int] = field(default_factory=dict)

    def key(self) -> str:
        """The public key; "" where there is none, or where it is not the one known before."""
        try:
            return self.authority.key()
        except UNSURE:
            return ""

    def held(self) -> str:
        """Why no decision counts at present, or nothing where they do."""
        try:
            self.authority.key()
        except UNSURE as error:
            return str(error)
        return ""

    def forgery(self, approval: Approval, now: float) -> str:
        """`registry.decisions.problem` by the known key."""
        return forgery_check(self.key())(approval, now)

    def signed(self, override: Override) -> bool:
        return fits(self.key(), override.body(), override.signature)

    def classified(self, bundle: Bundle) -> Bundle:
        """The bundle with its tools as people classified them."""
        overrides = self.store.overrides(bundle.name)
        return classified(bundle, overrides, self.signed)

    def write(
        self, call: Call, entry: Entry, bundle: Bundle, server: Standing, now: float
    ) -> Write:
        """What the gate wants to know of a write."""
        erasing = self._erases(bundle, call.tool)
        operation = self.store.operation_standing(call.server, call.tool)
        return Write(
            operation=operation,
            vouched=self._vouched_for(entry, call.tool) if write_exempt(server, operation) else 0,
            erases=erasing,
            tool=call.name,
            version=entry.version,
            digest=entry.digest,
            arguments=call.arguments,
            rules=() if erasing else self._rules(call),
            now=now,
        )

    def _erases(self, bundle: Bundle, name: str) -> bool:
        """Whether a tool deletes something. A person may say that it is destructive, or, by their
        key, that it is not: the bundle is classified already.
        """
        tool = bundle.tool(name)
        said = self.store.overrides(bundle.name).get(operation_of(tool))
        if not tool.destructive or (said is not None and said.level == "destructive"):
            return tool.destructive
        methods = {request.method for request in tool.requests} or {""}
        return any(erases(method, tool.operation, tool.name) for method in methods)

    def _rules(self, call: Call) -> tuple[Rule, ...]:
        found = self.store.rules(call.server, call.tool)
        key = self.key() if found else ""
        return tuple(rule for rule in found if fits(key, rule.body(), rule.signature))

    def _vouched_for(self, entry: Entry, tool: str) -> int:
        of = (entry.name, entry.version, tool)
        if self._vouched.get(of, 0) < EXEMPT_SUCCESSES:
            self._vouched[of] = self.store.vouched(*of, self.forgery, EXEMPT_SUCCESSES)
        return self._vouched[of]


def classified(bundle: Bundle, overrides: Mapping[str, Override], signed: Signed) -> Bundle:
    """The bundle with each tool's access and destructiveness as they count."""
    compiled = bundle.provenance.author == "compiler"
    tools = []
    for tool in bundle.tools:
        level = effective(tool, overrides.get(operation_of(tool)), signed, compiled)
        access: Access = "read" if level == "read" else "write"
        tools.append(replace(tool, access=access, destructive=level == "destructive"))
    return replace(bundle, tools=tuple(tools))


def _is_unsafe(request: RequestPattern) -> bool:
    if is_asked(request):
        return request.method not in READING
    return request.method not in SAFE_METHODS


def effective(
    tool: ToolDefinition, override: Override | None, signed: Signed, compiled: bool
) -> Level:
    """What a tool counts as: what a person said, where they may, else what its server says.

    To make it stricter needs no proof; to make it less strict needs a signature for exactly these
    requests. Code that our compiler did not write is not believed that a method that writes reads.
    """
    own = level_of(tool)
    unsafe = [request for request in tool.requests if _is_unsafe(request)]
    # What a description says of its methods is no word on what is no request to its API.
    if own == "read" and unsafe and (not compiled or any(map(is_asked, unsafe))):
        own = "write"
    if override is None or override.level == own:
        return own
    if looser(override.level, own):
        meant = override.requests == requests_of(tool) and signed(override)
        return override.level if meant else own
    return override.level
