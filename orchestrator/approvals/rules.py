"""Standing rules and classifications as people make them: checked, signed, stored, told."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from orchestrator.clearance import effective
from orchestrator.errors import OrchestratorError
from orchestrator.gate import argument, erases, holds
from orchestrator.moments import parse_moment
from registry.overrides import (
    Level,
    Override,
    looser,
    operation_of,
    requests_of,
)
from registry.records import Approval, Entry, new_id
from registry.rules import MAX_CONDITIONS, MAX_SECONDS, Condition, Rule
from registry.signing import Signer, fits
from registry.store import Store
from sandbox.bundle import Bundle

DEFAULT_SECONDS = 7 * 86400.0


@dataclass(frozen=True)
class Always:
    """What a person wants allowed from now on, beginning with the approval they decide.

    Each of `where` is `name=value` or `name=pattern` with `*`; without any, exactly the approval's
    arguments are meant. `until` is a moment as people type it, "" a week; `max_uses` counts calls.
    """

    where: tuple[str, ...] = ()
    until: str = ""
    max_uses: int | None = None
    any_version: bool = False


def rule_for(
    store: Store, approval: Approval, always: Always, signer: Signer, by: str, now: float
) -> Rule:
    """A signed rule that covers this approval. Raises OrchestratorError where there is to be none.

    What deletes something gets none: it is asked about every time.
    """
    entry = store.entry(approval.entry)
    _check_allowed(approval, entry, always)
    if erasing(store, approval, signer.public):
        name = f"{approval.entry}.{approval.tool}"
        raise OrchestratorError(
            f"{name} deletes something, so it is asked about every time. If it does not, "
            f"`toolwright classify {name} write` says so."
        )
    expires = _expiry(always.until, now)
    rule = Rule(
        id=new_id(),
        server=approval.entry,
        tool=approval.tool,
        version=None if always.any_version else entry.version,
        digest="" if always.any_version else entry.digest,
        where=_conditions(always.where, approval.arguments),
        created=now,
        expires=expires,
        max_uses=always.max_uses,
        by=by,
        approval=approval.id,
    )
    return Rule(**{**vars(rule), "signature": signer.sign(rule.body())})


def always_from(value: Any) -> Always:
    """What a page or a script asks for, as JSON. Raises OrchestratorError."""
    try:
        where = value.get("where") or {}
        pairs = [f"{name}={text}" for name, text in where.items()]
        most = value.get("max")
        return Always(
            where=tuple(pairs),
            until=str(value.get("until") or ""),
            max_uses=None if most is None else int(most),
            any_version=value.get("any_version") is True,
        )
    except (AttributeError, TypeError, ValueError) as error:
        raise OrchestratorError(f"`always` cannot be read: {error}.") from error


def rule_text(rule: Rule) -> str:
    """A rule as a sentence."""
    conditions = ", ".join(condition_text(condition) for condition in rule.where)
    version = "any version" if rule.version is None else f"version {rule.version}"
    return f"{rule.server}.{rule.tool} ({version}) with {conditions or 'no arguments'}"


def condition_text(condition: Condition) -> str:
    if condition.pattern:
        return f"{condition.path} like {condition.pattern}"
    if not condition.path:
        return f"exactly {json.dumps(condition.equals, ensure_ascii=False)}"
    return f"{condition.path}={json.dumps(condition.equals, ensure_ascii=False)}"


def rule_json(rule: Rule, now: float, public: str) -> dict[str, Any]:
    """A rule as scripts and the page see it; `state` says whether it counts."""
    return {
        "rule": rule.id,
        "state": rule_state(rule, now, public),
        "tool": f"{rule.server}.{rule.tool}",
        "version": rule.version,
        "where": [vars(condition) for condition in rule.where],
        "says": rule_text(rule),
        "created": rule.created,
        "expires": rule.expires,
        "max": rule.max_uses,
        "uses": rule.uses,
        "by": rule.by,
        "approval": rule.approval,
        "revoked": rule.revoked,
        "revoked_by": rule.revoked_by,
    }


def rule_state(rule: Rule, now: float, public: str) -> str:
    """`live`, or why it counts no more."""
    if not fits(public, rule.body(), rule.signature):
        return "not signed"
    if rule.revoked is not None:
        return "revoked"
    if now >= rule.expires:
        return "expired"
    return "live" if rule.live(now) else "used up"


def classify(
    store: Store, bundle: Bundle, tool: str, level: Level, signer: Signer | None, now: float
) -> bool:
    """Say what an operation does; False where it needs the person's key and `signer` is None.

    Only what makes it less strict than it counts at present needs the key. Raises UnknownTool's
    KeyError for a tool that is not there.
    """
    definition = bundle.tool(tool)
    operation = operation_of(definition)
    present = present_level(store, bundle, tool, signer)
    if looser(level, present) and signer is None:
        return False
    override = Override(
        server=bundle.name,
        operation=operation,
        level=level,
        requests=requests_of(definition),
        changed=now,
        by="terminal",
    )
    signature = signer.sign(override.body()) if signer else ""
    store.set_override(Override(**{**vars(override), "signature": signature}))
    return True


def present_level(store: Store, bundle: Bundle, tool: str, signer: Signer | None) -> Level:
    """What a tool counts as by the override that is stored, whoever signed it.

    Believing an unsigned loosening here would only let it be tightened without the key.
    """
    definition = bundle.tool(tool)
    override = store.overrides(bundle.name).get(operation_of(definition))
    public = signer.public if signer else ""

    def signed(found: Override) -> bool:
        return not public or fits(public, found.body(), found.signature)

    return effective(definition, override, signed, bundle.provenance.author == "compiler")


def erasing(store: Store, approval: Approval, public: str) -> bool:
    """Whether what waits deletes something: by its method and names, or as a person says, who has
    to have signed it with the key `public` to say that it does not.
    """
    tool = store.entry(approval.entry).tool(approval.tool)
    operation = str(tool.definition.get("_meta", {}).get("toolwright", {}).get("operation") or "")
    said = store.overrides(approval.entry).get(operation or tool.name)
    if said is not None and said.level == "destructive":
        return True
    if said is not None and fits(public, said.body(), said.signature):
        return False
    return tool.destructive and erases(approval.wire.method, operation, tool.name)


def _check_allowed(approval: Approval, entry: Entry, always: Always) -> None:
    if entry.version != approval.version:
        raise OrchestratorError(
            f"{entry.name} is at version {entry.version}; a rule for what version "
            f"{approval.version} asked makes no sense. Ask for the call again."
        )
    if always.max_uses is not None and always.max_uses < 1:
        raise OrchestratorError("a rule that may be used less than once is none.")
    if len(always.where) > MAX_CONDITIONS:
        raise OrchestratorError(f"a rule has at most {MAX_CONDITIONS} conditions.")


def _expiry(until: str, now: float) -> float:
    expires = parse_moment(until, now, ahead=True, whole_day=True) if until else None
    if expires is None:
        return now + DEFAULT_SECONDS
    if not now < expires <= now + MAX_SECONDS:
        raise OrchestratorError("a rule ends in the future, and within a year.")
    return expires


def _conditions(where: Iterable[str], arguments: Any) -> tuple[Condition, ...]:
    """The conditions that were given, each true of the arguments; else the arguments themselves."""
    pairs = tuple(where)
    if not pairs:
        return (Condition("", dict(arguments)),)
    return tuple(_condition(pair, arguments) for pair in pairs)


def _condition(pair: str, arguments: Any) -> Condition:
    path, equals, text = pair.partition("=")
    if not equals or not path:
        raise OrchestratorError(f"{pair!r} is no condition. Write NAME=VALUE, such as zone=a.org.")
    present, value = argument(path, arguments)
    if not present:
        raise OrchestratorError(f"the request that waits has no argument {path!r}.")
    condition = _read_condition(path, text, value)
    if not holds(condition, arguments):
        raise OrchestratorError(
            f"{pair!r} does not hold for the request that waits, whose {path} is "
            f"{json.dumps(value, ensure_ascii=False)[:200]}."
        )
    return condition


def _read_condition(path: str, text: str, value: Any) -> Condition:
    """A text means what the argument is: of a string itself or a pattern, of anything else JSON."""
    if isinstance(value, str) and not text.startswith('"'):
        return Condition(path, pattern=text) if "*" in text else Condition(path, text)
    try:
        return Condition(path, json.loads(text))
    except ValueError:
        return Condition(path, text)
