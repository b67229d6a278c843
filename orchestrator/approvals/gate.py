"""The gate: whether a call may run. Pure policy (docs/architecture.md, "Trust and the gate")."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from registry.approvals.rules import ApprovalRule, Condition
from registry.database.canonical import hash_text
from registry.trust import EXEMPT_SUCCESSES, Standing, is_write_exempt
from sandbox.bundle.apispec import Access
from sandbox.bundle.model import RequestPattern
from sandbox.wire.policy import is_request_of, parse_origin, parse_template_origin


@dataclass(frozen=True)
class Allow:
    """The call may run. `rule` is the standing rule that allows it; its use is counted first."""

    reason: str
    rule: ApprovalRule | None = None


@dataclass(frozen=True)
class Ask:
    """The call waits until a person decides on its exact request."""

    reason: str


@dataclass(frozen=True)
class Deny:
    reason: str


_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_ERASING = frozenset(
    "clear delete destroy drop erase expire flush prune purge remove revoke terminate trash "
    "truncate uninstall wipe".split()
)

Ruling = Allow | Ask | Deny


@dataclass(frozen=True)
class WriteFacts:
    """The facts about a write that the gate judges. `digest` is the bundle's,
    `operation_digest` that of what the tool's operation does.

    `operation` is the operation's own standing, `vouched` how many of its writes under this version
    people approved one by one, which count only where the record says that it is exempt. `erases`
    says that it deletes something. `rules` are the tool's standing rules whose signatures were
    checked. `author` made the version, `requests` are all that its tool may send.
    """

    operation: Standing
    vouched: int = 0
    erases: bool = True
    tool: str = ""
    version: int = 0
    digest: str = ""
    operation_digest: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    author: str = ""
    requests: tuple[RequestPattern, ...] = ()
    rules: tuple[ApprovalRule, ...] = ()
    now: float = 0.0


@dataclass(frozen=True)
class GateQuestion:
    """The facts about a call that the gate judges.

    `write` is None for a read, and where the facts about a write were not looked up: then a person
    is asked.
    """

    state: str
    access: Access
    server: Standing
    write: WriteFacts | None
    frozen: bool


def judge_call(question: GateQuestion) -> Ruling:
    """The ruling on one call. Fails closed: an unknown state is denied."""
    if question.frozen:
        return Deny("Toolwright is frozen; a person can lift it with `toolwright unfreeze`")
    if question.state == "experimental":
        return Ask("the server is experimental: it was registered though a stage failed")
    if question.state == "archived":
        return Deny("the server is archived: whoever forges or adds it again brings it back")
    if question.state != "active":
        return Deny(f"the server is {question.state}")
    if question.server.level == "degraded":
        return Deny("the server is degraded: too many of its last calls failed")
    if question.access == "read":
        return Allow(f"a read of a {question.server.level} server")
    if question.write is None:
        return Ask(f"a write of a {question.server.level} server")
    if is_exempt(question.server, question.write):
        return Allow("a trusted server, and this write has succeeded fifty times")
    standing = find_matching_rule(question.write)
    if standing is not None:
        return Allow(f"the rule {standing.id} allows it", standing)
    return Ask(f"a write of a {question.server.level} server")


def is_exempt(server: Standing, write: WriteFacts) -> bool:
    """Whether a write needs no confirmation any more; what deletes always does. Its record alone
    does not suffice, since anyone who can write to the database can forge it; as many signed
    approvals are needed too.
    """
    vouched = write.vouched >= EXEMPT_SUCCESSES
    return not write.erases and vouched and is_write_exempt(server, write.operation)


def describe_asking(
    server: Standing,
    operation: Standing,
    *,
    destructive: bool = False,
    erases: bool = False,
    rules: int = 0,
) -> str:
    """When `judge_call` has a person asked about a write of an active server, in words, and what is
    missing until it asks no more; `rules` are the standing ones. What is destructive and deletes
    nothing is exempt as any other write is.
    """
    if erases:
        return "each time: it deletes something, and no rule and no record can allow that"
    if rules:
        allowed = "a rule of yours allows" if rules == 1 else f"your {rules} rules allow"
        told = f"each time, but for what {allowed}"
    elif destructive:
        told = "each time, as long as no rule of yours allows it: it can destroy what it writes to"
    else:
        told = "each time"
    if is_write_exempt(server, operation):
        return f"{told}, until you have approved {EXEMPT_SUCCESSES} calls of it one by one"
    done = min(operation.version_successes, EXEMPT_SUCCESSES)
    return (
        f"{told}, until the server is trusted and {EXEMPT_SUCCESSES} calls of this tool "
        f"that you approved succeeded ({done} so far)"
    )


def find_matching_rule(write: WriteFacts) -> ApprovalRule | None:
    """The first live rule that covers this call. No rule covers a call that deletes something."""
    if write.erases:
        return None
    return next((rule for rule in write.rules if covers_write(rule, write)), None)


def is_erasing(method: str, operation: str, name: str) -> bool:
    """Whether an operation deletes something: by its method, or by the first word of its names."""
    first = {_WORD.findall(text)[:1][0].lower() for text in (operation, name) if _WORD.search(text)}
    return method == "DELETE" or bool(first & _ERASING)


def covers_write(rule: ApprovalRule, write: WriteFacts) -> bool:
    """Whether a rule is live and covers exactly this tool, this version and these arguments. One
    for any version covers those that the same author made, and that ask for what was approved.
    """
    if f"{rule.server}.{rule.tool}" != write.tool or not rule.is_live(write.now):
        return False
    if rule.operation != write.operation_digest:
        return False
    if rule.version is not None and (rule.version, rule.digest) != (write.version, write.digest):
        return False
    if rule.version is None and not (rule.author == write.author and asks_the_same(rule, write)):
        return False
    return all(is_condition_met(condition, write.arguments) for condition in rule.where)


def asks_the_same(rule: ApprovalRule, write: WriteFacts) -> bool:
    """Whether all requests of a tool go to the origin of the approved one, which is one of them.
    What a tool asks for besides HTTP is granted by name, and a call of another tool is judged by
    that tool's own rules.
    """
    asked = [each for each in write.requests if parse_template_origin(each.url)]
    origin = parse_origin(rule.url)
    same_origin = all(parse_template_origin(each.url) == origin for each in asked)
    return not asked or (same_origin and any(_is_of_pattern(rule, each) for each in asked))


def _is_of_pattern(rule: ApprovalRule, pattern: RequestPattern) -> bool:
    document = hash_text(pattern.document) if pattern.document else ""
    same_document = not document or document == rule.document
    return same_document and is_request_of(pattern, rule.method, rule.url)


def is_condition_met(condition: Condition, arguments: Mapping[str, Any]) -> bool:
    """Whether the arguments satisfy a condition: the same JSON value, or a match of its pattern."""
    present, value = find_argument(condition.path, arguments)
    if not present:
        return False
    if condition.pattern:
        return isinstance(value, str) and matches_pattern(condition.pattern, value)
    return is_same_json(value, condition.equals)


def find_argument(path: str, arguments: Any) -> tuple[bool, Any]:
    """Whether there is an argument at a path such as `body.zone`, and its value. "" means all."""
    value = arguments
    for key in path.split(".") if path else ():
        if not isinstance(value, Mapping) or key not in value:
            return False, None
        value = value[key]
    return True, value


def matches_pattern(pattern: str, text: str) -> bool:
    """Whether a text matches a pattern in which `*` stands for any characters but slashes and line
    breaks. Runs in linear time: the text is untrusted, so no regex is used.
    """
    if "\n" in text or "\r" in text:
        return False
    wanted, found = pattern.split("/"), text.split("/")
    return len(wanted) == len(found) and all(map(_matches_segment, wanted, found))


def _matches_segment(pattern: str, text: str) -> bool:
    first, *rest = pattern.split("*")
    if not rest:
        return text == first
    *middle, last = rest
    end = len(text) - len(last)
    if not text.startswith(first) or not text.endswith(last) or end < len(first):
        return False
    at = len(first)
    for part in middle:
        place = text.find(part, at, end)
        if place < 0:
            return False
        at = place + len(part)
    return True


def is_same_json(value: Any, wanted: Any) -> bool:
    """Whether two JSON values are equal in value and type, deeply: True is not 1, 1 is not 1.0."""
    if isinstance(value, Mapping) and isinstance(wanted, Mapping):
        return value.keys() == wanted.keys() and all(
            is_same_json(value[k], wanted[k]) for k in value
        )
    if isinstance(value, list):
        return (
            type(wanted) is list
            and len(value) == len(wanted)
            and all(map(is_same_json, value, wanted))
        )
    return type(value) is type(wanted) and bool(value == wanted)
