"""Creating, checking and rendering standing rules, and classifying operations."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from orchestrator.approvals.dates import parse_moment
from orchestrator.approvals.gate import find_argument, is_condition_met, is_erasing
from orchestrator.approvals.signed_policy import raise_level, resolve_level
from orchestrator.errors import OrchestratorError
from registry.approvals.rules import MAX_CONDITIONS, MAX_SECONDS, ApprovalRule, Condition
from registry.database.canonical import hash_text
from registry.models import Approval, Entry, generate_id
from registry.secrets.signing import Signer, verify_signature
from registry.servers.classifications import (
    Classification,
    ClassificationTable,
    Level,
    get_operation_key,
    is_looser,
    list_requests,
)
from registry.store import Store
from sandbox.bundle.model import Bundle, compute_operation_digest
from sandbox.wire.exchange import WireRequest
from sandbox.wire.graphql import extract_document

DEFAULT_SECONDS = 7 * 86400.0
MAX_NAMED = 20
"""Arguments that the refusal of a condition names."""


@dataclass(frozen=True)
class RuleRequest:
    """The standing rule that a person asks for with the approval they decide.

    Each of `where` is `name=value` or `name=pattern` with `*`; without any, exactly the approval's
    arguments are meant. `until` is a moment as people type it, "" a week; `max_uses` counts calls.
    """

    where: tuple[str, ...] = ()
    until: str = ""
    max_uses: int | None = None
    any_version: bool = False


def create_rule(
    store: Store, approval: Approval, always: RuleRequest, signer: Signer, by: str, now: float
) -> ApprovalRule:
    """A signed rule that covers this approval. Raises OrchestratorError where it cannot have one:

    an operation that deletes something is asked about every time.
    """
    entry = store.servers.get(approval.entry)
    _check_rule_allowed(approval, entry, always)
    if is_erasing_approval(store, approval, signer.public):
        name = f"{approval.entry}.{approval.tool}"
        raise OrchestratorError(
            f"{name} deletes something, so it is asked about every time. If it does not, "
            f"`toolwright classify {name} write` says so."
        )
    expires = _parse_expiry(always.until, now)
    rule = ApprovalRule(
        id=generate_id(),
        server=approval.entry,
        tool=approval.tool,
        version=None if always.any_version else entry.version,
        digest="" if always.any_version else entry.digest,
        where=_parse_conditions(always.where, approval.arguments),
        created=now,
        expires=expires,
        max_uses=always.max_uses,
        by=by,
        approval=approval.id,
        operation=entry.get_tool(approval.tool).operation_digest,
        author=entry.author,
        method=approval.wire.method,
        url=approval.wire.url.partition("?")[0],
        document=_hash_document(approval.wire),
    )
    return ApprovalRule(**{**vars(rule), "signature": signer.sign(rule.to_signed_body())})


def _hash_document(wire: WireRequest) -> str:
    document = extract_document(wire.body)
    return hash_text(document) if document else ""


def parse_rule_request(value: Any) -> RuleRequest:
    """Parse the JSON of a page or script. Raises OrchestratorError where it is malformed."""
    try:
        where = value.get("where") or {}
        pairs = [f"{name}={text}" for name, text in where.items()]
        most = value.get("max")
        return RuleRequest(
            where=tuple(pairs),
            until=str(value.get("until") or ""),
            max_uses=None if most is None else int(most),
            any_version=value.get("any_version") is True,
        )
    except (AttributeError, TypeError, ValueError) as error:
        raise OrchestratorError(f"`always` cannot be read: {error}.") from error


def render_rule(rule: ApprovalRule) -> str:
    """A rule as a sentence."""
    conditions = ", ".join(render_condition(condition) for condition in rule.where)
    version = "any version" if rule.version is None else f"version {rule.version}"
    return f"{rule.server}.{rule.tool} ({version}) with {conditions or 'no arguments'}"


def render_condition(condition: Condition) -> str:
    if condition.pattern:
        return f"{condition.path} like {condition.pattern}"
    if not condition.path:
        return f"exactly {json.dumps(condition.equals, ensure_ascii=False)}"
    return f"{condition.path}={json.dumps(condition.equals, ensure_ascii=False)}"


def encode_rule(rule: ApprovalRule, now: float, public: str) -> dict[str, Any]:
    """A rule as JSON for scripts and the page; `state` is `live` or why it is not."""
    return {
        "rule": rule.id,
        "state": find_rule_state(rule, now, public),
        "tool": f"{rule.server}.{rule.tool}",
        "version": rule.version,
        "where": [vars(condition) for condition in rule.where],
        "says": render_rule(rule),
        "created": rule.created,
        "expires": rule.expires,
        "max": rule.max_uses,
        "uses": rule.uses,
        "by": rule.by,
        "approval": rule.approval,
        "revoked": rule.revoked,
        "revoked_by": rule.revoked_by,
    }


def find_rule_state(rule: ApprovalRule, now: float, public: str) -> str:
    """`live`, `not signed`, `revoked`, `expired` or `used up`."""
    if not verify_signature(public, rule.to_signed_body(), rule.signature):
        return "not signed"
    if rule.revoked is not None:
        return "revoked"
    if now >= rule.expires:
        return "expired"
    return "live" if rule.is_live(now) else "used up"


def classify_operation(
    classifications: ClassificationTable,
    bundle: Bundle,
    tool: str,
    level: Level,
    signer: Signer | None,
    now: float,
) -> bool:
    """Set the level of an operation; False where that needs the person's key and `signer` is None.

    Only a level less strict than the present one needs the key. Raises KeyError for an unknown
    tool.
    """
    definition = bundle.get_tool(tool)
    operation = get_operation_key(definition)
    present = find_present_level(classifications, bundle, tool, signer)
    if is_looser(level, present) and signer is None:
        return False
    override = Classification(
        server=bundle.name,
        operation=operation,
        level=level,
        requests=list_requests(definition),
        changed=now,
        by="terminal",
        definition=compute_operation_digest(definition),
        program=bundle.program,
        serial=classifications.get_next_serial(bundle.name, operation),
    )
    signature = signer.sign(override.to_signed_body()) if signer else ""
    classifications.store_classification(
        Classification(**{**vars(override), "signature": signature})
    )
    return True


def find_present_level(
    classifications: ClassificationTable, bundle: Bundle, tool: str, signer: Signer | None
) -> Level:
    """The level of a tool by the stored override; `signer`, where given, checks its signature.

    Accepting an unsigned loosening here only lets it be tightened without the key.
    """
    definition = bundle.get_tool(tool)
    override = classifications.find(bundle.name).get(get_operation_key(definition))
    public = signer.public if signer else ""

    def signed(found: Classification) -> bool:
        return not public or verify_signature(public, found.to_signed_body(), found.signature)

    compiled = bundle.provenance.author == "compiler"
    level = resolve_level(definition, override, signed, compiled, bundle.program)
    raised = classifications.find_raised()
    return raise_level(level, bundle, definition, override, signed, raised)


def is_erasing_approval(store: Store, approval: Approval, public: str) -> bool:
    """Whether a waiting write deletes something: by its method and names, or by a person's
    classification. One that says it does not has to be signed with the key `public`.
    """
    tool = store.servers.get(approval.entry).get_tool(approval.tool)
    operation = str(tool.definition.get("_meta", {}).get("toolwright", {}).get("operation") or "")
    said = store.classifications.find(approval.entry).get(operation or tool.name)
    if said is not None and said.level == "destructive":
        return True
    if (
        said is not None
        and said.definition == tool.operation_digest
        and verify_signature(public, said.to_signed_body(), said.signature)
    ):
        return False
    return tool.destructive and is_erasing(approval.wire.method, operation, tool.name)


def _check_rule_allowed(approval: Approval, entry: Entry, always: RuleRequest) -> None:
    if entry.version != approval.version:
        raise OrchestratorError(
            f"{entry.name} is at version {entry.version}; a rule for what version "
            f"{approval.version} asked makes no sense. Ask for the call again."
        )
    if always.max_uses is not None and always.max_uses < 1:
        raise OrchestratorError("a rule that may be used less than once is none.")
    if len(always.where) > MAX_CONDITIONS:
        raise OrchestratorError(f"a rule has at most {MAX_CONDITIONS} conditions.")


def _parse_expiry(until: str, now: float) -> float:
    expires = parse_moment(until, now, ahead=True, whole_day=True) if until else None
    if expires is None:
        return now + DEFAULT_SECONDS
    if not now < expires <= now + MAX_SECONDS:
        raise OrchestratorError("a rule ends in the future, and within a year.")
    return expires


def _parse_conditions(where: Iterable[str], arguments: Any) -> tuple[Condition, ...]:
    """The given conditions, each checked against the arguments; without any, equality with them."""
    pairs = tuple(where)
    if not pairs:
        return (Condition("", dict(arguments)),)
    return tuple(_parse_condition(pair, arguments) for pair in pairs)


def _parse_condition(pair: str, arguments: Any) -> Condition:
    path, equals, text = pair.partition("=")
    if not equals or not path:
        raise OrchestratorError(f"{pair!r} is no condition. Write NAME=VALUE, such as zone=a.org.")
    present, value = find_argument(path, arguments)
    if not present:
        known = ", ".join(islice(_list_paths(arguments), MAX_NAMED))
        raise OrchestratorError(
            f"the request that waits has no argument {path!r}. It has {known or 'none'}."
        )
    condition = _infer_condition(path, text, value)
    if not is_condition_met(condition, arguments):
        raise OrchestratorError(
            f"{pair!r} does not hold for the request that waits, whose {path} is "
            f"{json.dumps(value, ensure_ascii=False)[:200]}."
        )
    return condition


def _list_paths(arguments: Any, before: str = "") -> Iterator[str]:
    """The paths that conditions may name: of each value that is no object."""
    for name, value in arguments.items() if isinstance(arguments, Mapping) else ():
        path = f"{before}{name}"
        inner = islice(_list_paths(value, f"{path}."), MAX_NAMED)
        yield from inner if isinstance(value, Mapping) and value else (path,)


def _infer_condition(path: str, text: str, value: Any) -> Condition:
    """Read the text by the argument's type: a string or pattern for a string, JSON otherwise."""
    if isinstance(value, str) and not text.startswith('"'):
        return Condition(path, pattern=text) if "*" in text else Condition(path, text)
    try:
        return Condition(path, json.loads(text))
    except ValueError:
        return Condition(path, text)
