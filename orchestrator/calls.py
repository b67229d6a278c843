"""The values of a routed call: what was asked, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from registry.records import Approval
from registry.trust import Standing
from sandbox.progress import Hearer, unheard
from sandbox.runner import Outcome


@dataclass(frozen=True)
class Call:
    """A tool call as asked for; `task`, `reason` and `session` are the caller's words. `heard` is
    told how far it has come.
    """

    server: str
    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    task: str = ""
    reason: str = ""
    session: str = ""
    heard: Hearer = field(default=unheard, compare=False, repr=False)

    @property
    def name(self) -> str:
        return f"{self.server}.{self.tool}"


@dataclass(frozen=True)
class Done:
    """The call ran. `standing` is the server's before this call was counted, `rule` the id of the
    standing rule that allowed it.
    """

    call: Call
    invocation: str
    outcome: Outcome
    standing: Standing
    rule: str = ""


@dataclass(frozen=True)
class Pending:
    """A person has to decide on the exact request first. Nothing was sent."""

    call: Call
    approval: Approval
    reason: str


@dataclass(frozen=True)
class Refused:
    """The gate said no. Nothing was sent."""

    call: Call
    reason: str


Reply = Done | Pending | Refused


def split_name(name: str) -> tuple[str, str] | None:
    """`server.tool` as its two parts, or None where it is not of that form."""
    server, dot, tool = name.partition(".")
    return (server, tool) if dot and server and tool else None
