"""Writes and jobs that wait for a person; the rules that people made; what was decided."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from orchestrator.approvals.needs import hash_needs, is_allowable, list_need_items, names_file
from orchestrator.approvals.preview import find_changes
from orchestrator.approvals.rules import render_condition, render_rule
from orchestrator.approvals.sending import render_unsent_line
from orchestrator.approvals.text import (
    MAX_CLAIM,
    MAX_GLANCE,
    escape_line,
    hash_approval,
    is_glanceable,
    render_claims,
    render_glance,
    render_steps,
)
from orchestrator.control.answering import ShownQuestion, show_question
from orchestrator.control.rooms.jobs import describe_job, find_jobs
from orchestrator.control.texts import ShownText, cut_text, format_date, show_line
from registry.approvals.rules import ApprovalRule, Condition, RuleTable
from registry.errors import RowNotFound
from registry.jobs.drafts import awaits_draft
from registry.jobs.jobs import awaits_answer, awaits_client
from registry.models import Approval, Job, RegisteredTool
from registry.needs import OrderNeed
from registry.store import Store

VERBS = {"POST": "Sends to", "PUT": "Replaces", "PATCH": "Changes", "DELETE": "Deletes"}
DELETES = "It deletes something. That cannot be undone here."
DESTROYS = "It can destroy what it writes to."
MAX_FIELDS = 20
MAX_CELL = 200
MAX_SENTENCE = 600
"""Characters of the sentence of a standing rule that fit beside the button that makes it."""
ALWAYS = "7d"
"""How long a rule of the page counts."""
DECIDED = 20


@dataclass(frozen=True)
class WriteChange:
    """A field of a write: what it is, and what it will be."""

    where: ShownText
    before: ShownText
    after: ShownText


@dataclass(frozen=True)
class WriteSummary:
    """What a write does and to what: fields that change where the old ones are known, else those of
    its body. `left` are changes that are not shown. It says nothing that the exact text below it
    does not.
    """

    verb: ShownText
    method: ShownText
    path: ShownText
    host: ShownText
    purpose: ShownText
    named: ShownText
    changes: tuple[WriteChange, ...]
    left: int
    fields: tuple[tuple[ShownText, ShownText], ...]


@dataclass(frozen=True)
class ShownRequest:
    """A request in words, where it can be shown whole, and as it is sent: all that is decided.
    `is_whole` says that the words hold all of the body, and `rest` what else they do not.
    """

    id: str
    summary: WriteSummary | None
    text: str
    is_whole: bool = False
    rest: tuple[str, ...] = ()


@dataclass(frozen=True)
class ShownTool:
    """The tool that a request is made by: what its server says that it does ("" where it is
    registered in another version by now), and why it is marked as destructive ("" where it is not).
    """

    described: ShownText
    destroys: str


@dataclass(frozen=True)
class ShownApproval:
    """A card with the whole of what is decided. Without the whole it cannot be approved. `always`
    is the sentence of the standing rule that it can become, "" where it can become none.
    """

    id: str
    name: ShownText
    version: int
    created: float
    expires: float
    tool: ShownTool
    request: ShownRequest
    decisions: tuple[str, ...]
    digest: str
    always: str
    always_for: str = ALWAYS


@dataclass(frozen=True)
class ShownNeed:
    """What a job has to be allowed. `items` are "" where they are too long to be shown, and
    `command` is the way at the terminal. It has a digest only where it is allowed on the page.
    """

    what: str
    items: str
    command: str
    digest: str = ""


@dataclass(frozen=True)
class WaitingJob:
    """A job that a person can let go on; `is_asked`, whether its client's model was asked first."""

    id: str
    name: ShownText
    shown_id: ShownText
    word: ShownText
    created: float
    asked: ShownText
    told: ShownText
    question: ShownQuestion | None
    need: ShownNeed | None
    is_asked: bool

    @property
    def about(self) -> str:
        """What it waits for, told apart from what it waited for before."""
        question = self.question.question if self.question else ""
        return f"{question} {self.need.digest if self.need else ''}"


@dataclass(frozen=True)
class UnsentWrite:
    """What was approved and is not sent, and how it stands."""

    tool: ShownText
    told: ShownText


@dataclass(frozen=True)
class Waiting:
    """What waits for a person. `damaged` says of rows that cannot be read what is wrong."""

    approvals: tuple[ShownApproval, ...]
    damaged: tuple[ShownText, ...]
    jobs: tuple[WaitingJob, ...]
    unsent: tuple[UnsentWrite, ...]

    @property
    def count(self) -> int:
        return len(self.approvals) + len(self.damaged) + len(self.jobs) - self.of_clients

    @property
    def of_clients(self) -> int:
        """How many runs wait for a client's model."""
        return sum(job.is_asked for job in self.jobs)


@dataclass(frozen=True)
class ShownRule:
    id: str
    sentence: ShownText
    used: str
    until: str


@dataclass(frozen=True)
class DecidedApproval:
    """What was decided, with the request that it was about."""

    tool: ShownText
    state: str
    by: ShownText
    at: float
    id: str
    shown_id: ShownText
    request: ShownRequest


def view_waiting(store: Store) -> Waiting:
    freeze, now = store.processes.get_freeze(), time.time()
    return Waiting(
        tuple(show_approval(store, each) for each in store.approvals.find("pending")),
        tuple(cut_text(str(damaged)) for damaged in store.approvals.find_damaged()),
        tuple(_show_job(store, job) for job in sorted(find_waiting_jobs(store), key=awaits_client)),
        tuple(
            UnsentWrite(name_tool(each), cut_text(render_unsent_line(each, freeze, now)))
            for each in store.approvals.find("approved")
        ),
    )


def find_waiting_jobs(store: Store) -> list[Job]:
    """The jobs that a person can let go on: one that waits for code alone waits for its client."""
    return [job for job in find_jobs(store, ("waiting",)) if job.needs or not awaits_draft(job)]


def name_tool(approval: Approval) -> ShownText:
    return cut_text(f"{approval.entry}.{approval.tool}")


def show_approval(store: Store, approval: Approval) -> ShownApproval:
    tool = show_tool(store, approval)
    return ShownApproval(
        approval.id,
        name_tool(approval),
        approval.version,
        approval.created,
        approval.expires,
        tool,
        show_request(approval),
        list_decisions(approval),
        hash_approval(approval),
        # What deletes is asked for each time.
        _explain_always(approval) if is_glanceable(approval) and not tool.destroys else "",
    )


def show_tool(store: Store, approval: Approval) -> ShownTool:
    """The tool of a request, as it is registered and by the method of the request."""
    tool = _find_tool(store, approval)
    told = str(tool.definition.get("description") or "") if tool else ""
    if approval.wire.method == "DELETE":
        destroys = DELETES
    else:
        destroys = DESTROYS if tool is not None and tool.destructive else ""
    return ShownTool(cut_text(" ".join(told.split())), destroys)


def _find_tool(store: Store, approval: Approval) -> RegisteredTool | None:
    """None where it is not registered any more as it was when the request was made."""
    try:
        entry = store.servers.get(approval.entry)
        return entry.get_tool(approval.tool) if entry.version == approval.version else None
    except (RowNotFound, KeyError):
        return None


def list_decisions(approval: Approval) -> tuple[str, ...]:
    """What can be decided where only the beginning of a long request is shown, or all of it."""
    return ("approve", "reject") if is_glanceable(approval) else ("reject",)


def show_request(approval: Approval) -> ShownRequest:
    if not is_glanceable(approval):
        return ShownRequest(approval.id, None, render_glance(approval))
    rest = tuple(_list_rest(approval))
    text, is_whole = render_glance(approval), shows_whole_body(approval)
    return ShownRequest(approval.id, summarize_write(approval), text, is_whole, rest)


def shows_whole_body(approval: Approval) -> bool:
    """Whether the table of a request's summary shows all of its body, and its line all of its
    address. Only a body that is written as Python writes it: another reader of another spelling, or
    of a name that comes twice, may find something else in it.
    """
    wire = approval.wire
    if urlsplit(wire.url).fragment:
        return False
    if not wire.body:
        return True
    try:
        value = json.loads(wire.body)
    except (ValueError, RecursionError):
        return False
    if not isinstance(value, dict) or not _is_written_by_python(wire.body, value):
        return False
    changes = find_changes(wire, approval.present) if approval.present else ()
    if not changes:
        fields = _list_fields(wire.body)
        return len(fields) == len(value) and all(_fits(*each) for each in fields)
    told = {change.where: change.after for change in changes[:MAX_FIELDS]}
    return all(
        told.get(f"/{name}") == json.dumps(each, ensure_ascii=False)
        and _fits(name, told[f"/{name}"])
        for name, each in value.items()
    )


def _fits(*cells: str) -> bool:
    return all(len(each) <= MAX_CELL for each in cells)


def _is_written_by_python(body: bytes, value: Any) -> bool:
    return any(
        body
        == json.dumps(value, ensure_ascii=ascii, separators=separators).encode("utf-8", "replace")
        for ascii in (True, False)
        for separators in ((",", ":"), (", ", ": "))
    )


def _list_rest(approval: Approval) -> Iterator[str]:
    """What the text of a request says that its summary does not, but for its body."""
    yield from render_steps(approval)
    for name, value in approval.wire.headers:
        yield f"{escape_line(name)}: {escape_line(value)}"
    arguments = dict(approval.arguments)
    if not _names_all(approval, arguments):
        yield f"arguments {escape_line(json.dumps(arguments, ensure_ascii=False))}"
    shown = "task" if approval.task else "why"
    yield from (line for line in render_claims(approval) if not line.startswith(f"{shown}: "))


def _names_all(approval: Approval, arguments: Any) -> bool:
    """Whether all values of the arguments stand in the address or in the body of the request."""
    parts = urlsplit(approval.wire.url)
    sent = [*parts.path.split("/"), *(value for _, value in parse_qsl(parts.query))]
    try:
        body = json.loads(approval.wire.body or b"null")
    except (ValueError, RecursionError):
        body = None
    known = {unquote(each) for each in sent} | set(_list_leaves(body))
    return all(leaf in known for leaf in _list_leaves(arguments))


def _list_leaves(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for each in value.values():
            yield from _list_leaves(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _list_leaves(each)
    elif value is not None:
        yield value if isinstance(value, str) else json.dumps(value)


def summarize_write(approval: Approval) -> WriteSummary:
    """What a write does and to what, and its fields."""
    wire = approval.wire
    place = urlsplit(wire.url)
    changes = find_changes(wire, approval.present) if approval.present else ()
    fields = () if changes else _list_fields(wire.body)
    return WriteSummary(
        show_line(VERBS.get(wire.method, "Asks")),
        show_line(wire.method),
        show_line(f"{place.path or '/'}{'?' if place.query else ''}{place.query}"),
        show_line(place.netloc if place.scheme == "https" else f"{place.scheme}://{place.netloc}"),
        _show_purpose(approval),
        show_line(approval.tool),
        tuple(
            WriteChange(
                _show_cell(change.where.removeprefix("/") or "all of it"),
                _show_cell(change.before),
                _show_cell(change.after),
            )
            for change in changes[:MAX_FIELDS]
        ),
        max(0, len(changes) - MAX_FIELDS),
        tuple((_show_cell(key), _show_cell(value)) for key, value in fields),
    )


def _show_purpose(approval: Approval) -> ShownText:
    """What the client says that the write is for, in its words, and why it is asked about: there
    stands also what the API's document says against it.
    """
    said = ". ".join(filter(None, (approval.task, approval.reason)))
    return ShownText(escape_line(said[:MAX_CLAIM]) + ("…" if len(said) > MAX_CLAIM else ""))


def _show_cell(text: str) -> ShownText:
    cut = "… (whole below)" if len(text) > MAX_CELL else ""
    return show_line(text[:MAX_CELL] + cut)


def _list_fields(body: bytes) -> Sequence[tuple[str, str]]:
    """The members of a JSON object; none where it is anything else or a name comes twice, since
    nobody knows which of the two its reader takes.
    """
    try:
        value = json.loads(body, object_pairs_hook=_build_object)
    except (ValueError, RecursionError):
        return ()
    if not isinstance(value, dict) or len(value) > MAX_FIELDS:
        return ()
    return [(name, _render_field(each)) for name, each in value.items()]


def _render_field(value: Any) -> str:
    """A text as it is, unless it would look like another JSON value, such as `"true"`."""
    if isinstance(value, str):
        try:
            json.loads(value)
        except (ValueError, RecursionError):
            return value
    return json.dumps(value, ensure_ascii=False)


def _build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    built = dict(pairs)
    if len(built) < len(pairs):
        raise ValueError("a name comes twice")
    return built


def _explain_always(approval: Approval) -> str:
    """The whole sentence of what a standing rule will mean; "" where there can be none."""
    with_ = escape_line(render_condition(Condition("", dict(approval.arguments))))
    name = escape_line(f"{approval.entry}.{approval.tool}")
    what = f"{name} (version {approval.version}) with {with_}"
    told = f"Approves this, and for 7 days {what} is sent without asking."
    return told if len(told) <= MAX_SENTENCE else ""


def _show_job(store: Store, job: Job) -> WaitingJob:
    asks, need = awaits_answer(job), show_need(job)
    whom = "the model of its client" if awaits_client(job) else "you"
    return WaitingJob(
        job.id,
        cut_text(f"{job.kind} {job.id}"),
        cut_text(job.id),
        cut_text(f"A task asks {whom}" if asks else f"A job waits: {job.kind}"),
        job.created,
        describe_job(job),
        # What is needed stands below with its button, without the command that allows it.
        cut_text("" if asks or need else job.message),
        show_question(job, "waits", store),
        need,
        awaits_client(job),
    )


def show_need(job: Job) -> ShownNeed | None:
    """What a person can allow so that a job goes on."""
    if not is_allowable(job.needs):
        return None
    items = "\n".join(map(escape_line, list_need_items(job.needs)))
    what = "all of this" if isinstance(job.needs, OrderNeed) else f"a {job.needs.kind}"
    command = f"toolwright allow {escape_line(job.id)}"
    if len(items) > MAX_GLANCE:
        return ShownNeed(what, "", command)
    digest = "" if names_file(job.needs) else hash_needs(job.needs)
    return ShownNeed(what, items, command, digest)


def view_rules(rules: RuleTable) -> tuple[ShownRule, ...]:
    """The standing rules that were not revoked."""
    return tuple(_show_rule(rule) for rule in rules.find() if rule.revoked is None)


def _show_rule(rule: ApprovalRule) -> ShownRule:
    most = "" if rule.max_uses is None else f" of {rule.max_uses}"
    used = f"{rule.uses}{most}"
    return ShownRule(rule.id, cut_text(render_rule(rule)), used, format_date(rule.expires))


def view_decided(approvals: Iterable[Approval]) -> tuple[DecidedApproval, ...]:
    """The approvals that do not wait any more, those that were decided last first."""
    decided = [each for each in approvals if each.state != "pending"]
    decided.sort(key=_find_end, reverse=True)
    return tuple(
        DecidedApproval(
            name_tool(each),
            each.state,
            cut_text(each.decided_by),
            _find_end(each),
            each.id,
            cut_text(each.id),
            show_request(each),
        )
        for each in decided[:DECIDED]
    )


def _find_end(approval: Approval) -> float:
    return approval.decided_at or approval.created
