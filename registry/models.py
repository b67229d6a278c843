"""Value types of the registry's rows. Times are epoch seconds unless stated otherwise."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from registry import trust
from registry.needs import Need
from sandbox.bundle.apispec import Access
from sandbox.bundle.model import Bundle, compute_operation_digest
from sandbox.bundle.report import StageReport
from sandbox.schemas.accepted import build_tool_listing
from sandbox.session.recording import CallRecording
from sandbox.wire.access import is_self_evident
from sandbox.wire.exchange import WireRequest, WriteStep

EntryState = Literal["active", "experimental", "quarantined", "archived"]
InvocationState = Literal["intended", "done", "unknown"]
ApprovalState = Literal[
    "pending", "approved", "rejected", "expired", "claimed", "sending", "done", "failed", "unknown"
]
JobState = Literal["queued", "running", "waiting", "done", "failed", "cancelled"]
JobKind = Literal["forge", "call", "do", "repair"]
GrantKind = Literal[
    "host",
    "private_host",
    "permission",
    "source",
    "budget",
    "package",
    "tests",
    "secret",
    "succession",
    "file",
    "meant",
    "account",
]

ENDED_JOBS: tuple[JobState, ...] = ("done", "failed", "cancelled")
"""The states that a job never leaves."""
CALLABLE: tuple[EntryState, ...] = ("active", "experimental")
"""The states in which a server may be found and called."""


def generate_id() -> str:
    """An id that cannot be guessed, for approvals, invocations, jobs and processes."""
    return secrets.token_hex(8)


@dataclass(frozen=True)
class RegisteredTool:
    """One tool of a registered version. `listed` is the JSON text of what `tools/list` shows,
    `operation_digest` says what it does (`sandbox.bundle.model.compute_operation_digest`), and
    `self_evident` that only a person makes another access of its own (`sandbox.wire.access`).
    """

    name: str
    access: Access
    destructive: bool
    listed: str
    operation_digest: str = ""
    self_evident: bool = False

    @property
    def definition(self) -> dict[str, Any]:
        """The tool as `tools/list` shows it."""
        value: dict[str, Any] = json.loads(self.listed)
        return value

    @property
    def group(self) -> str:
        """The heading under which lists show the tool; "" where there is none."""
        meta = self.definition.get("_meta", {}).get("toolwright", {})
        return str(meta.get("group", ""))


@dataclass(frozen=True)
class Entry:
    """One version of a registered server. `parent` is the `name@version:digest` of the bundle it
    was changed from, or "".

    `source` is the document or task it was made from, `created_by` who made it (author, model).
    """

    name: str
    version: int
    digest: str
    title: str
    description: str
    state: EntryState
    created: float
    created_by: str
    source: str
    permissions: tuple[str, ...]
    base_url: str
    base_image: str = ""
    parent: str = ""
    tools: tuple[RegisteredTool, ...] = field(default=(), repr=False)

    @property
    def author(self) -> str:
        """Who made it, without the model."""
        return self.created_by.partition(" ")[0]

    def get_tool(self, name: str) -> RegisteredTool:
        """The tool of that name. Raises KeyError."""
        for tool in self.tools:
            if tool.name == name:
                return tool
        raise KeyError(name)


@dataclass(frozen=True)
class ServerSummary:
    """One line of a list of servers: the current version. `tools` is the number of its tools,
    `refusing` those that refuse more of their calls than is usual.
    """

    name: str
    version: int
    state: EntryState
    title: str
    tools: int
    standing: trust.Standing
    refusing: tuple[str, ...] = ()


def build_entry(
    bundle: Bundle, now: float, state: EntryState = "active", created_by: str = ""
) -> Entry:
    """The entry of a bundle. `created_by` is its author and model where none is given."""
    made = bundle.provenance
    return Entry(
        name=bundle.name,
        version=bundle.version,
        digest=bundle.compute_digest(),
        title=bundle.title,
        description=bundle.description,
        state=state,
        created=now,
        created_by=created_by or " ".join(filter(None, (made.author, made.model))),
        source=made.source,
        permissions=bundle.permissions,
        base_url=bundle.base_url,
        base_image=made.base_image,
        parent=made.parent,
        tools=tuple(
            RegisteredTool(
                tool.name,
                tool.access,
                tool.destructive,
                json.dumps(build_tool_listing(bundle, tool)),
                compute_operation_digest(tool),
                is_self_evident(tool),
            )
            for tool in bundle.tools
        ),
    )


def describe_server(entry: Entry, standing: trust.Standing) -> dict[str, Any]:
    """The JSON object that `toolwright show NAME --json` prints for a server."""
    return {
        "tool_id": entry.name,
        "version": entry.version,
        "digest": entry.digest,
        "title": entry.title,
        "description": entry.description,
        "state": entry.state,
        "created": entry.created,
        "created_by": entry.created_by,
        "source": entry.source,
        "parent": entry.parent,
        "base_url": entry.base_url,
        "base_image": entry.base_image,
        "permissions": list(entry.permissions),
        "tools": [
            {"name": tool.name, "access": tool.access, "group": tool.group} for tool in entry.tools
        ],
        "trust_level": standing.level,
        "reliability_score": _round(standing.score, 4),
        "window_ratio": _round(standing.ratio, 4),
        "window_lower_bound": _round(standing.wilson, 4),
        "window_size": standing.window,
        "total_invocations": standing.total,
        "successful_invocations": standing.successful,
        "counted_invocations": standing.counted,
        "avg_latency_ms": _round(standing.average_latency_ms, 1),
        "unclear_failures": standing.unclear,
        "refusing_share": _round(standing.refusing, 4),
        "last_failure": standing.last_failure,
        "last_failure_reason": standing.last_failure_reason,
    }


def _round(number: float | None, digits: int) -> float | None:
    return None if number is None else round(number, digits)


@dataclass(frozen=True)
class CallFailure:
    """Why a call did not succeed: a kind of `registry.trust.FAULTS`, and the HTTP status."""

    kind: str
    message: str = ""
    status: int | None = None


@dataclass(frozen=True)
class CallDifference:
    """Where an answer that was given differs from the API's description: `kind` is `schema`,
    `malformed` or `depth`, `where` a JSON pointer into the result.
    """

    kind: str
    where: str = ""
    reason: str = ""


@dataclass(frozen=True)
class Invocation:
    """One tool call. Stored as `intended` before a write leaves, as `done` with what came of it.

    `exchanges` are plain JSON values whose secrets were taken out before; `approval` is the id of
    the approval it ran on. `disputed`: a person marked the result wrong. The store bounds texts and
    JSON (see `registry.database.canonical.to_bounded_json`). It keeps the `recording` as far as
    there is room, and gives it back by `RecordingTable.get_recording` alone. `serial` is the number
    of the call among those that its process has begun (0: not counted), which only the audit keeps;
    `unstorable` describes, by column, values that were replaced because no row can hold them.
    """

    id: str
    entry: str
    version: int
    tool: str
    access: Access
    started: float
    arguments: Mapping[str, Any] = field(default_factory=dict)
    task: str = ""
    reason: str = ""
    session: str = ""
    result: Any = None
    failure: CallFailure | None = None
    difference: CallDifference | None = None
    latency_ms: float = 0.0
    exchanges: tuple[Mapping[str, Any], ...] = ()
    approval: str | None = None
    process: str = ""
    state: InvocationState = "done"
    disputed: bool = False
    recording: CallRecording | None = field(default=None, repr=False)
    serial: int = 0
    unstorable: Mapping[str, str] = field(default_factory=dict)

    @property
    def succeeded(self) -> bool:
        return self.state == "done" and self.failure is None and not self.disputed

    @property
    def counted(self) -> bool:
        """Whether the outcome enters the ladder (`registry.trust.is_counted`)."""
        if self.state != "done":
            return False
        return self.failure is None or trust.is_counted(self.failure.kind)

    @property
    def fault(self) -> trust.Fault:
        """Whose doing the outcome is; "nobody's" before there is one."""
        if self.state != "done":
            return "nobody"
        if self.disputed:
            return "server"
        return trust.judge_fault(self.failure.kind) if self.failure else ""


@dataclass(frozen=True)
class Approval:
    """One write that waits for a person: the call, and the exact request that it would send.

    `wire` is the captured request without credentials, `wire_digest` what execution must reproduce.
    Only a pending, unexpired approval can be decided, once; only an approved, unexpired one can be
    claimed, once. `decision` is the signed decision (`registry.approvals.decisions`). `present` is
    the JSON text of what the write would change, as it was read before, where it could be. One that
    was spent names the call it was spent on, `invocation`, and its `serial`. `steps` and `uses` are
    those of its terms (`registry.approvals.terms`).
    """

    id: str
    entry: str
    version: int
    tool: str
    arguments: Mapping[str, Any]
    wire: WireRequest
    wire_digest: str
    created: float
    expires: float
    state: ApprovalState = "pending"
    task: str = ""
    session: str = ""
    reason: str = ""
    decided_by: str = ""
    decided_at: float | None = None
    decision_reason: str = ""
    claimed_by: str = ""
    outcome: Any = None
    decision: str = field(default="", repr=False)
    present: str = field(default="", repr=False)
    invocation: str = ""
    serial: int = 0
    steps: tuple[WriteStep, ...] = ()
    uses: tuple[WriteStep, ...] = ()


@dataclass(frozen=True)
class JobEvent:
    time: float
    stage: str
    message: str


@dataclass(frozen=True)
class Job:
    """Work that outlives a call. `progress` is 0..1; `attempt` counts claims and fences writes.
    `needs` is what somebody has to give it before it can go on; None where it waits for no such
    thing.
    """

    id: str
    kind: JobKind
    request: Mapping[str, Any]
    created: float
    updated: float
    state: JobState = "queued"
    stage: str = ""
    progress: float = 0.0
    message: str = ""
    result: Any = None
    attempt: int = 0
    owner: str = ""
    log: tuple[JobEvent, ...] = ()
    needs: Need | None = None


@dataclass(frozen=True)
class DraftRow:
    """A draft that was submitted for a forge job, with its verdict. `author` is `client`, `openai`
    or `sampling`, and `model` the name that the model reported.

    `content` is what was handed in, `reports` are the stages', `diagnosis` is what its author was
    told; `verdict` is "" until it was judged.
    """

    job: str
    number: int
    digest: str
    created: float
    content: Mapping[str, Any] = field(repr=False)
    verdict: Literal["", "passed", "failed"] = ""
    reports: tuple[StageReport, ...] = field(default=(), repr=False)
    diagnosis: tuple[Mapping[str, Any], ...] = ()
    author: str = "client"
    model: str = ""


@dataclass(frozen=True)
class Process:
    """A running Toolwright process. `start_time` is the operating system's, against reused pids.
    `stalls` counts how often something held up its event loop, `longest_stall` is in seconds.
    """

    id: str
    pid: int
    start_time: float
    kind: str
    started: float
    heartbeat: float
    acknowledged_epoch: int = 0
    stalls: int = 0
    longest_stall: float = 0.0


@dataclass(frozen=True)
class Freeze:
    """The state of the kill switch. `epoch` grows with every freeze and never shrinks. `lift` is
    the signature of who lifted the freeze of that epoch, without which it is not lifted.
    """

    epoch: int
    frozen: bool
    since: float
    by: str
    reason: str
    lift: str = field(default="", repr=False)

    def to_signed_body(self) -> dict[str, Any]:
        """The JSON value that is signed to lift a freeze."""
        return {"kind": "unfreeze", "epoch": self.epoch, "since": self.since, "by": self.by}


@dataclass(frozen=True)
class DocumentationSource:
    """A URL that documentation may be read from, and the vault's secret for a request header."""

    url: str
    header: str = ""
    secret: str = ""


@dataclass(frozen=True)
class Grant:
    """A `host:port` that a person allowed; `private_host` also where its address is private. Of a
    `permission`, `origin` is the server and the permission: `notes fs:/data:ro`; of a `source`, its
    URL; of a `budget`, the job that may cost more; of a `secret`, the server's and its own name;
    of a `succession`, the server. `detail` names the secret that goes there: the vault's name
    behind an `env:NAME` ("" for NAME itself), `HEADER=@SECRET` of a source; of a `budget` it says
    how many more the job has; of a `secret` to which origins and in which place it goes, a line
    each; of a `succession` it is the digest of the one change of version that it allows. A `meant`
    says that a task, whose sha256 `origin` is, means the registered source that `detail` is.

    It counts where the person's key signed it and `serial` is past `revoked`, the newest serial of
    this origin and kind that the audit says was taken away.
    """

    origin: str
    kind: GrantKind
    granted_by: str
    granted: float
    detail: str = ""
    serial: int = 1
    signature: str = field(default="", repr=False)
    revoked: int = 0

    def to_signed_body(self) -> dict[str, Any]:
        """The signed JSON value."""
        return {
            "kind": "grant",
            "grant": self.kind,
            "origin": self.origin,
            "detail": self.detail,
            "serial": self.serial,
            "by": self.granted_by,
            "granted": self.granted,
        }


@dataclass(frozen=True)
class AuditRow:
    """One link of an audit chain. `hash` covers all fields but `id`, which orders all chains.

    `subject` is the id or name of what the row is about; `payload` is canonical JSON.
    """

    id: int
    chain: str
    sequence: int
    time: float
    kind: str
    subject: str
    payload: str
    previous: str
    hash: str


@dataclass(frozen=True)
class ToolMatch:
    """A tool that fits a task. A higher `score` fits better; scores of two tasks do not compare.

    `listed`, `access` and `self_evident` are those of its `RegisteredTool`; `listed` is "" where
    its row cannot be read.
    """

    entry: str
    tool: str
    score: float
    description: str
    title: str
    entry_description: str
    group: str = ""
    listed: str = ""
    access: Access = "write"
    self_evident: bool = False
    state: EntryState = "active"


Verdict = Literal["reuse", "choose", "forge"]
Veto = Literal["another verb", "another vendor"]


@dataclass(frozen=True)
class Bands:
    """From which probability on a match is taken for the task's, and below which for none."""

    reuse: float = 0.7
    forge: float = 0.1


@dataclass(frozen=True)
class Judgement:
    """How sure it is that a tool is what some words mean; the fields are those of `Route`."""

    probability: float
    margin: float
    vetoes: tuple[Veto, ...]


LEAST_SHOWN = 0.005
"""The score of a tool that is shown as one that fits a task; a smaller one is shown as 0.00."""


@dataclass(frozen=True)
class Route:
    """Where a task may go: the tools that fit it, best first, and P(the first is right).

    `vetoes` are reasons why the first may be the wrong one however alike it sounds. `by_meaning` is
    False where only words were compared. `margin` is how far the first is ahead of the
    best other, from 0 to 1, by words and by meaning together: near 0 they can hardly be told apart.
    """

    matches: tuple[ToolMatch, ...]
    probability: float
    vetoes: tuple[Veto, ...]
    by_meaning: bool
    bands: Bands = Bands()
    margin: float = 0.0

    @property
    def verdict(self) -> Verdict:
        """`reuse`: the first is the task's tool; `forge`: probably none is; else `choose`.

        It says what the words and their meaning come to, and permits nothing. Words alone are never
        enough for `reuse`.
        """
        if not self.matches or self.probability < self.bands.forge:
            return "forge"
        sure = self.by_meaning and not self.vetoes and self.probability >= self.bands.reuse
        return "reuse" if sure else "choose"
