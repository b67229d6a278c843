"""Signed policy: the rules, approvals and classifications whose signatures are valid."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from orchestrator.approvals.gate import WriteFacts, is_erasing
from orchestrator.calls import Call
from registry.approvals.authority import Authority
from registry.approvals.decisions import build_forgery_check
from registry.approvals.rules import ApprovalRule
from registry.audit.trail import AuditFacts, AuditTrail
from registry.errors import AuditBroken, KeyChanged, PinUnusable, SignedHeadsDamaged
from registry.models import Approval, Entry, EntryState
from registry.secrets.signing import verify_signature
from registry.servers.classifications import (
    Classification,
    Level,
    find_raised_level,
    get_level,
    get_operation_key,
    is_looser,
)
from registry.store import Store
from registry.trust import EXEMPT_SUCCESSES, Standing, is_write_exempt
from sandbox.bundle.apispec import Access
from sandbox.bundle.model import Bundle, ToolDefinition, compute_operation_digest
from sandbox.bundle.permissions import is_permission_request
from sandbox.errors import BundleInvalid
from sandbox.wire.access import is_mutation, is_unsafe
from sandbox.wire.graphql import classify_document
from sandbox.wire.policy import SAFE_METHODS

Signed = Callable[[Classification], bool]
UNSURE = (PinUnusable, KeyChanged, SignedHeadsDamaged)
"""Errors after which no public key can be trusted, so no signature counts."""


@dataclass
class SignedPolicy:
    """Reads what people signed; whatever the pinned key did not sign is left out."""

    store: Store
    authority: Authority
    trail: AuditTrail = field(init=False)
    _vouched: dict[tuple[str, int, str], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.trail = AuditTrail(self.store.audit, self.authority.heads)

    def find_key(self) -> str:
        """The public key, in hex; "" where there is none or it is not the pinned one."""
        try:
            return self.authority.load_key()
        except UNSURE:
            return ""

    def find_sound_key(self) -> str:
        """The public key; "" also where the audit is not whole, since what was taken away may then
        not be known.
        """
        return "" if self.trail.find_problem() else self.find_key()

    def find_obstacle(self) -> str:
        """The reason why no decision counts at present; "" where decisions count."""
        try:
            self.authority.load_key()
        except UNSURE as error:
            return str(error)
        problem = self.trail.find_problem()
        return str(AuditBroken(problem)) if problem else ""

    def check_forgery(self, approval: Approval, now: float) -> str:
        """The reason why a decision is not authentic under the pinned key; "" where it is."""
        return build_forgery_check(self.find_sound_key())(approval, now)

    def is_signed(self, override: Classification) -> bool:
        """Whether a person signed a classification, and nobody classified the operation since."""
        serial, _ = self.trail.read().classified.get((override.server, override.operation), (0, ""))
        return override.serial == serial and verify_signature(
            self.find_sound_key(), override.to_signed_body(), override.signature
        )

    def find_classifications(self, server: str) -> Mapping[str, Classification]:
        """The classifications of a server by operation. Where the table has another one than the
        audit, the stricter of the two, which needs no signature.
        """
        found = dict(self.store.classifications.find(server))
        for (name, operation), (serial, level) in self.trail.read().classified.items():
            stored = found.get(operation)
            if name != server or (stored is not None and stored.serial == serial):
                continue
            if stored is None or is_looser(stored.level, level):
                found[operation] = Classification(server, operation, level, (), 0.0, "audit")
        return found

    def find_classified(self, servers: Collection[str]) -> frozenset[str]:
        """Those of the servers whose self-evident tools (`sandbox.wire.access`) may count as
        something else, since a person classified an operation of theirs; all of them where somebody
        said of a safe request, or of code without one, that it is no read.
        """
        raised = self.store.classifications.find_raised()
        if any(not one.requests or _has_safe_request(one) for one in raised):
            return frozenset(servers)
        own = {name for name, _ in self.trail.read().classified}
        return frozenset(own | self.store.classifications.find_servers()) & {*servers}

    def classify_bundle(self, bundle: Bundle) -> Bundle:
        """The bundle with its tools' access as people classified them, under this name or another.
        While the audit is not whole no bundle is believed that an unsafe method reads.
        """
        overrides = self.find_classifications(bundle.name)
        whole = not self.trail.find_problem()
        reads = self.trail.read().reads.get(bundle.name) if bundle.version > 1 else None
        raised = self.store.classifications.find_raised()
        return apply_overrides(bundle, overrides, self.is_signed, whole, reads, raised)

    def check_entry(self, entry: Entry) -> Entry:
        """A current version as the audit has it, in the stricter of the registry's and the audit's
        states. Raises BundleInvalid where it is not the newest one that was published.
        """
        facts = self.trail.read()
        problem = find_version_problem(facts, entry)
        newest = facts.newest.get(entry.name, entry.version)
        if not problem and newest != entry.version:
            problem = f"it is not the current version; the audit says that this is {newest}"
        if problem:
            raise BundleInvalid(entry.name, f"version {entry.version}", f"{problem}; it is not run")
        return replace(entry, state=choose_stricter_state(entry.state, facts.states[entry.name]))

    def check_version(self, entry: Entry) -> None:
        """Raises BundleInvalid for a version that was not published as it is."""
        problem = find_version_problem(self.trail.read(), entry)
        if problem:
            raise BundleInvalid(entry.name, f"version {entry.version}", f"{problem}; it is not run")

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
            operation_digest=compute_operation_digest(bundle.get_tool(call.tool)),
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
        said = self.find_classifications(bundle.name).get(get_operation_key(tool))
        if not tool.destructive or (said is not None and said.level == "destructive"):
            return tool.destructive
        methods = {request.method for request in tool.requests} or {""}
        return any(is_erasing(method, tool.operation, tool.name) for method in methods)

    def _find_rules(self, call: Call) -> tuple[ApprovalRule, ...]:
        found = self.store.rules.find(call.server, call.tool)
        key, facts = self.find_sound_key() if found else "", self.trail.read()
        return tuple(
            replace(rule, uses=max(rule.uses, facts.rule_uses[rule.id]))
            for rule in found
            if rule.id not in facts.revoked_rules
            and verify_signature(key, rule.to_signed_body(), rule.signature)
        )

    def _count_vouched(self, entry: Entry, tool: str) -> int:
        of = (entry.name, entry.version, tool)
        if self._vouched.get(of, 0) < EXEMPT_SUCCESSES:
            self._vouched[of] = self.store.approvals.count_approved_writes(
                *of, self.check_forgery, EXEMPT_SUCCESSES
            )
        return self._vouched[of]


def find_version_problem(facts: AuditFacts, entry: Entry) -> str:
    """Why a version is not what was published under its number; "" where it is."""
    published = facts.published.get((entry.name, entry.version))
    if published is None:
        return "the registry has it and the audit knows of no such publication"
    if published != entry.digest:
        return "its digest in the registry is not the one that was published"
    return ""


def choose_stricter_state(stored: EntryState, audited: EntryState) -> EntryState:
    """Of two states of a server the one that allows less: an edited row opens nothing."""
    order: tuple[EntryState, ...] = ("active", "experimental")
    if stored not in order:
        return stored
    if audited not in order:
        return audited
    return max(stored, audited, key=order.index)


def apply_overrides(
    bundle: Bundle,
    overrides: Mapping[str, Classification],
    signed: Signed,
    believed: bool = True,
    reads: frozenset[str] | None = None,
    raised: Sequence[Classification] = (),
) -> Bundle:
    """The bundle with the effective access and destructiveness of each tool. A compiled bundle is
    `believed` what it says of its operations; where there are `reads`, of these and of GraphQL
    queries, which say it themselves. A later version makes no read of what its first one wrote, or
    did not have. `raised` are the classifications of all servers that make something no read.
    """
    compiled, program = believed and bundle.provenance.author == "compiler", bundle.program
    tools = []
    for tool in bundle.tools:
        override = overrides.get(get_operation_key(tool))
        known = reads is None or _is_query(tool) or compute_operation_digest(tool) in reads
        level = resolve_level(tool, override, signed, compiled and known, program)
        level = raise_level(level, bundle, tool, override, signed, raised)
        access: Access = "read" if level == "read" else "write"
        destructive = level == "destructive"
        # Most count as their server says, and making one anew takes as long as all else here.
        same = (tool.access, tool.destructive) == (access, destructive)
        tools.append(tool if same else replace(tool, access=access, destructive=destructive))
    return replace(bundle, tools=tuple(tools))


def raise_level(
    level: Level,
    bundle: Bundle,
    tool: ToolDefinition,
    override: Classification | None,
    signed: Signed,
    raised: Sequence[Classification],
) -> Level:
    """The level of a tool, or the stricter one that a person gave its requests under another name,
    unless a person signed what this very tool is.
    """
    if not raised:
        return level
    meant = (compute_operation_digest(tool), bundle.program)
    if override and (override.definition, override.program) == meant and signed(override):
        return level
    held = find_raised_level(raised, bundle.name, tool)
    return held if is_looser(level, held) else level


def _has_safe_request(classified: Classification) -> bool:
    return any(method in SAFE_METHODS for method, _ in classified.requests)


def _is_query(tool: ToolDefinition) -> bool:
    documents = [request.document for request in tool.requests]
    return all(document and classify_document(document) == "query" for document in documents)


def resolve_level(
    tool: ToolDefinition,
    override: Classification | None,
    signed: Signed,
    compiled: bool,
    program: str = "",
) -> Level:
    """The effective level of a tool: a person's classification where valid, else its server's.

    A stricter level needs no signature; a less strict one needs a signature over exactly this
    operation, and over this `program` where somebody wrote it. Code that our compiler did not write
    is not trusted to call an unsafe method a read (safe methods: RFC 9110 section 9.2.1), and
    nobody's is that a GraphQL mutation reads.
    """
    own = get_level(tool)
    if own == "read" and any(map(is_mutation, tool.requests)):
        own = "write"
    unsafe = [request for request in tool.requests if is_unsafe(request)]
    # What a description says of its methods is no word on what is no request to its API.
    if own == "read" and unsafe and (not compiled or any(map(is_permission_request, unsafe))):
        own = "write"
    if override is None or override.level == own:
        return own
    if is_looser(override.level, own):
        meant = (override.definition, override.program) == (compute_operation_digest(tool), program)
        return override.level if meant and signed(override) else own
    return override.level
