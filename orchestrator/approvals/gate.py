"""May this call go ahead? Pure policy (docs/architecture.md, "Trust and the gate")."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from registry.rules import Condition, Rule
from registry.trust import EXEMPT_SUCCESSES, Standing, write_exempt
from sandbox.apispec import Access


@dataclass(frozen=True)
class Allow:
    """`rule` is the standing rule that allows it, to be counted before the call runs."""

    reason: str
    rule: Rule | None = None


@dataclass(frozen=True)
class Ask:
    """A person decides on the exact request."""

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
class Write:
    """What the gate knows of a write. `digest` is the bundle's.

    `operation` is the operation's own standing, `vouched` how many of its writes under this version
    people approved one by one, which count only where the record says that it is exempt. `erases`
    says that it deletes something. `rules` are the tool's standing rules whose signatures were
    checked.
    """

    operation: Standing
    vouched: int = 0
    erases: bool = True
    tool: str = ""
    version: int = 0
    digest: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    rules: tuple[Rule, ...] = ()
    now: float = 0.0


@dataclass(frozen=True)
class Question:
    """What the gate is asked: the server's state and standing, the tool, whether all is frozen.

    `write` is there where the call writes and its own record was looked up.
    """

    state: str
    access: Access
    server: Standing
    write: Write | None
    frozen: bool


def rule(question: Question) -> Ruling:
    """The ruling on one call. Fails closed: a state that is not known is denied."""
    if question.frozen:
        return Deny("Toolwright is frozen; a person can lift it with `toolwright unfreeze`")
    if question.state == "experimental":
        return Ask("the server is experimental: it was registered though a stage failed")
    if question.state != "active":
        return Deny(f"the server is {question.state}")
    if question.server.level == "degraded":
        return Deny("the server is degraded: too many of its last calls failed")
    if question.access == "read":
        return Allow(f"a read of a {question.server.level} server")
    if question.write is None:
        return Ask(f"a write of a {question.server.level} server")
    if exempt(question.server, question.write):
        return Allow("a trusted server, and this write has succeeded fifty times")
    standing = matching(question.write)
    if standing is not None:
        return Allow(f"the rule {standing.id} allows it", standing)
    return Ask(f"a write of a {question.server.level} server")


def exempt(server: Standing, write: Write) -> bool:
    """Whether a write needs no confirmation any more: by its record, which anyone who can write
    into the database can make up, and by as many approvals, which only a person can sign.
    """
    return write_exempt(server, write.operation) and write.vouched >= EXEMPT_SUCCESSES


def matching(write: Write) -> Rule | None:
    """The first live rule that covers this call. None ever covers what deletes something."""
    if write.erases:
        return None
    return next((rule for rule in write.rules if covers(rule, write)), None)


def erases(method: str, operation: str, name: str) -> bool:
    """Whether an operation deletes something: by its method, or by the first word of its names."""
    first = {_WORD.findall(text)[:1][0].lower() for text in (operation, name) if _WORD.search(text)}
    return method == "DELETE" or bool(first & _ERASING)


def covers(rule: Rule, write: Write) -> bool:
    """Whether a rule is live and says exactly this tool, this version and these arguments."""
    if f"{rule.server}.{rule.tool}" != write.tool or not rule.live(write.now):
        return False
    if rule.version is not None and (rule.version, rule.digest) != (write.version, write.digest):
        return False
    return all(holds(condition, write.arguments) for condition in rule.where)


def holds(condition: Condition, arguments: Mapping[str, Any]) -> bool:
    """Whether the arguments have that value, of that very type, in that place."""
    present, value = argument(condition.path, arguments)
    if not present:
        return False
    if condition.pattern:
        return isinstance(value, str) and fits_pattern(condition.pattern, value)
    return same(value, condition.equals)


def argument(path: str, arguments: Any) -> tuple[bool, Any]:
    """Whether there is an argument at a path such as `body.zone`, and its value; "" is them all."""
    value = arguments
    for key in path.split(".") if path else ():
        if not isinstance(value, Mapping) or key not in value:
            return False, None
        value = value[key]
    return True, value


def fits_pattern(pattern: str, text: str) -> bool:
    """Whether a text fits a pattern in which `*` stands for any characters but slashes and line
    breaks. Takes time in proportion to the text: texts come from strangers, so no regex is run.
    """
    if "\n" in text or "\r" in text:
        return False
    wanted, found = pattern.split("/"), text.split("/")
    return len(wanted) == len(found) and all(map(_fits_segment, wanted, found))


def _fits_segment(pattern: str, text: str) -> bool:
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


def same(value: Any, wanted: Any) -> bool:
    """Equal as JSON: True is not 1, 1 is not 1.0, and so on inside."""
    if isinstance(value, Mapping) and isinstance(wanted, Mapping):
        return value.keys() == wanted.keys() and all(same(value[k], wanted[k]) for k in value)
    if isinstance(value, list):
        return type(wanted) is list and len(value) == len(wanted) and all(map(same, value, wanted))
    return type(value) is type(wanted) and bool(value == wanted)
