"""The values of a routed call: what was asked, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from registry.records import Approval
from registry.trust import Standing
from sandbox.notices import LogEar
from sandbox.progress import Hearer, unheard
from sandbox.runner import Outcome


@dataclass(frozen=True)
class Lineage:
    """The calls that a call is made by, the client's first, as `server.tool`; `made` grows with
    every call that any of them makes.
    """

    names: tuple[str, ...]
    made: list[str]


@dataclass(frozen=True)
class Call:
    """A tool call as asked for; `read_by` is the model that read its arguments out of the task, ""
    where somebody gave them; `task`, `reason` and `session` are the caller's words. `heard` is
    told how far it has come, `logged` what a third-party server logs meanwhile. `within` is there
    where another call makes it.
    """

    server: str
    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    task: str = ""
    reason: str = ""
    session: str = ""
    read_by: str = ""
    within: Lineage | None = field(default=None, compare=False, repr=False)
    heard: Hearer = field(default=unheard, compare=False, repr=False)
    logged: LogEar | None = field(default=None, compare=False, repr=False)

    @property
    def name(self) -> str:
        return f"{self.server}.{self.tool}"


@dataclass(frozen=True)
class Done:
    """The call ran. `standing` is the server's before this call was counted, `rule` the id of the
    standing rule that allowed it, `cause` why it failed, in words.
    """

    call: Call
    invocation: str
    outcome: Outcome
    standing: Standing
    rule: str = ""
    cause: str = ""


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
