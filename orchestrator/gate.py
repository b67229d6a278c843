"""May this call go ahead? Pure policy (docs/architecture.md, "Trust and the gate")."""

from __future__ import annotations

from dataclasses import dataclass

from registry.trust import Standing, write_exempt
from sandbox.apispec import Access


@dataclass(frozen=True)
class Allow:
    reason: str


@dataclass(frozen=True)
class Ask:
    """A person decides on the exact request."""

    reason: str


@dataclass(frozen=True)
class Deny:
    reason: str


Ruling = Allow | Ask | Deny


@dataclass(frozen=True)
class Question:
    """What the gate is asked: the server's state and standing, the tool, whether all is frozen.

    `operation` is the operation's own standing, which only writes need.
    """

    state: str
    access: Access
    server: Standing
    operation: Standing | None
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
    if question.operation and write_exempt(question.server, question.operation):
        return Allow("a trusted server, and this write has succeeded fifty times")
    return Ask(f"a write of a {question.server.level} server")
