"""Values of a routed call: the call, and its reply (done, pending or refused)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from registry.models import Approval
from registry.sessions.kept_results import ResultSource
from registry.trust import Standing
from sandbox.session.interface import Outcome
from sandbox.wire.notifications import Hearer, LogListener, ignore_progress


@dataclass(frozen=True)
class Lineage:
    """The chain of calls that a nested call is made by, outermost first, as `server.tool`. `made`
    lists every call made so far under the client's call; all of the chain share it.
    """

    names: tuple[str, ...]
    made: list[str]


@dataclass(frozen=True)
class Call:
    """A requested tool call. `read_by` is the model that extracted its arguments from the task, ""
    where somebody gave them; `task`, `reason` and `session` are the caller's words. `heard` gets
    its progress, `logged` the log messages of a third-party server. `within` is None for a client's
    own call. `note` says how its arguments were read, `asks` why this call is a write that a
    person has to see, whatever its tool is (`orchestrator.gateway.arguments`). `flow` says which of
    its values came from another server's answer: such a write is always shown to a person.
    `sources` are the servers whose answers values were taken from. `secrets` are the values of
    arguments that no record may have, `secret_places` where these stand in the arguments, with
    their places in the request (`orchestrator.gateway.secret_arguments`).
    """

    server: str
    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    task: str = ""
    reason: str = ""
    session: str = ""
    read_by: str = ""
    within: Lineage | None = field(default=None, compare=False, repr=False)
    note: str = field(default="", compare=False, repr=False)
    asks: str = field(default="", compare=False, repr=False)
    flow: str = field(default="", compare=False, repr=False)
    sources: tuple[ResultSource, ...] = field(default=(), compare=False, repr=False)
    secrets: frozenset[str] = field(default=frozenset(), compare=False, repr=False)
    secret_places: Mapping[tuple[str, ...], str] = field(
        default_factory=dict, compare=False, repr=False
    )
    heard: Hearer = field(default=ignore_progress, compare=False, repr=False)
    logged: LogListener | None = field(default=None, compare=False, repr=False)

    @property
    def name(self) -> str:
        return f"{self.server}.{self.tool}"

    @property
    def has_vault_secret(self) -> bool:
        """Whether one of the call's secrets could be added to the request from the vault."""
        return bool(self.secret_places) and any(self.secret_places.values())


@dataclass(frozen=True)
class Done:
    """The call ran. `standing` is the server's before this call was counted, `rule` the id of the
    standing rule that allowed it, `cause` why it failed, in words. `is_drift`: the API is no longer
    as its description says.
    """

    call: Call
    invocation: str
    outcome: Outcome
    standing: Standing
    rule: str = ""
    cause: str = ""
    is_drift: bool = False


@dataclass(frozen=True)
class Pending:
    """The call waits for a person to decide on its exact request. Nothing was sent. `claims` is
    what the API's document says against its arguments.
    """

    call: Call
    approval: Approval
    reason: str
    claims: str = ""


@dataclass(frozen=True)
class RefusedCall:
    """The gate denied the call. Nothing was sent."""

    call: Call
    reason: str


Reply = Done | Pending | RefusedCall


def split_tool_name(name: str) -> tuple[str, str] | None:
    """`server.tool` as its two parts, or None where it is not of that form."""
    server, dot, tool = name.partition(".")
    return (server, tool) if dot and server and tool else None
