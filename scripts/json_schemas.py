"""JSON Schemas (draft 2020-12) of what each command prints with `--json`.

scripts/reference.py writes them to docs/json/ and lists them in docs/json.md; tests hold what the
commands really print against them. Properties may be added; none is taken away or changes its type.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Schema = dict[str, Any]

DRAFT = "https://json-schema.org/draft/2020-12/schema"


def text(says: str = "", *values: str) -> Schema:
    told: Schema = {"type": "string"}
    if values:
        told["enum"] = list(values)
    return told | ({"description": says} if says else {})


def number(says: str = "") -> Schema:
    return {"type": "number"} | ({"description": says} if says else {})


def whole(says: str = "") -> Schema:
    return {"type": "integer"} | ({"description": says} if says else {})


def flag(says: str = "") -> Schema:
    return {"type": "boolean"} | ({"description": says} if says else {})


def moment(says: str) -> Schema:
    return number(f"{says} Seconds since 1970.")


def anything(says: str) -> Schema:
    return {"description": says}


def maybe(schema: Schema) -> Schema:
    """The same, or null."""
    if "type" in schema and isinstance(schema["type"], str) and "enum" not in schema:
        return {**schema, "type": [schema["type"], "null"]}
    return {"anyOf": [schema, {"type": "null"}]}


def many(items: Schema, says: str = "") -> Schema:
    return {"type": "array", "items": items} | ({"description": says} if says else {})


def table(values: Schema, says: str) -> Schema:
    """An object whose names are data."""
    return {"type": "object", "description": says, "additionalProperties": values}


def shape(_optional: Mapping[str, Schema] | None = None, /, **properties: Schema) -> Schema:
    """An object that has all of these, and may have those that are optional."""
    return {
        "type": "object",
        "properties": {**properties, **(_optional or {})},
        "required": list(properties),
    }


def either(*schemas: Schema) -> Schema:
    return {"anyOf": list(schemas)}


TEXTS = many(text())
ACCESS = text("What it does at the API.", "read", "write")
TOOL = text("`server.tool`.")

CONTENT = many({"type": "object", "required": ["type"]}, "Blocks of MCP content.")
RESULT = shape(
    {
        "structuredContent": {"type": "object"},
        "isError": flag("Whether it failed."),
        "_meta": shape(
            {"toolwright": {"type": "object", "description": "The call's id, the trust, the rule."}}
        ),
    },
    content=CONTENT,
)
"""A result of an MCP tool."""

REQUEST = shape(
    {
        "body": text(),
        "body_base64": text("In place of `body` where that is no text."),
        "cut_at": whole("So many bytes of the body are shown."),
        "bytes": whole("The length of a body that was cut."),
    },
    method=text(),
    url=text(),
    headers=many(many(text()), "Pairs of name and value."),
)
CHANGE = shape(where=text(), before=text(), after=text())
APPROVAL_FIELDS: Mapping[str, Schema] = {
    "approval": text("Its id."),
    "state": text("`pending`, `approved`, `done`, `failed`, `rejected`, `expired` …"),
    "tool": TOOL,
    "version": whole("The server's version."),
    "arguments": {"type": "object"},
    "request": REQUEST,
    "changes": many(CHANGE, "What differs from the present state, where a read could tell."),
    "digest": text("Names this exact request: `approve --digest`."),
    "created": moment("When it was asked."),
    "expires": moment("Until when it can be decided."),
    "task": text(),
    "reason": text("Why it waits."),
    "decided_by": maybe(text()),
    "decision_reason": maybe(text()),
    "outcome": maybe(anything("What came of it, once it was sent.")),
}
APPROVAL = shape(**APPROVAL_FIELDS)

EXCHANGE = {"type": "object", "description": "A request and its response, as the broker saw them."}
CALL = shape(
    call=text("Its id."),
    tool=TOOL,
    version=whole(),
    state=text("`done`, `intended`, `unknown` …"),
    succeeded=flag(),
    started=moment("When it began."),
    latency_ms=number("Milliseconds."),
    failure=maybe(shape({"status": maybe(whole())}, kind=text(), message=text())),
    cause=maybe({"type": "object", "required": ["kind", "reason"]}),
    difference=maybe({"type": "object"}),
    arguments={"type": "object"},
    result=anything("The server's result, an MCP tool result."),
    exchanges=many(EXCHANGE),
    task=text(),
    reason=text(),
    approval=maybe(text("The approval that it was sent by.")),
)
AUDIT_FIELDS: Mapping[str, Schema] = {
    "id": whole(),
    "chain": text(),
    "sequence": whole("Its place in the chain."),
    "time": moment("When it was written."),
    "kind": text(),
    "subject": text("The id that it is about."),
    "payload": anything("What is recorded."),
    "previous": text("The hash of the row before."),
    "hash": text(),
}
AUDIT_ROW = shape(**AUDIT_FIELDS)

SPENT: Mapping[str, Schema] = {
    "questions": whole("Questions to models."),
    "tokens_in": whole(),
    "tokens_out": whole(),
    "cost": number("Money, by docs/authors.md."),
}
FORGED = {
    "type": ["object", "null"],
    "description": "What it came to: of a forge `server`, `version`, `state`, `tools` …; of a task "
    "an MCP tool result, or its question; of a job that waits what it waits for.",
}
NEEDS = {"type": "object", "description": "What a person has to do; `kind`, `what` and `how`."}
JOB_REPORT = shape(
    {"needs": NEEDS},
    job=text("Its id."),
    state=text("", "queued", "running", "waiting", "done", "failed", "cancelled"),
    message=text(),
    result=FORGED,
)
JOB_FIELDS: Mapping[str, Schema] = {
    "job": text("Its id."),
    "kind": text("`forge`, `do`, `repair` …"),
    "state": text("", "queued", "running", "waiting", "done", "failed", "cancelled"),
    "stage": text("The step that it is at."),
    "progress": number("0 to 1."),
    "message": text(),
    "result": FORGED,
    "taken_up": whole("How often a process took it up."),
    "needs": NEEDS,
    "created": moment("When it was made."),
    "updated": moment("When it last changed."),
    "events": many({"type": "array"}, "The latest: time, stage, message."),
}
DRAFT_LINE: Mapping[str, Schema] = {
    "number": whole(),
    "verdict": text(),
    "why": text(),
    "author": text(),
    "model": text(),
}
REPORT = shape(
    stage=text(),
    verdict=text(),
    elapsed_ms=number("Milliseconds."),
    cases=many({"type": "object", "required": ["operation", "case", "verdict"]}),
    findings=many({"type": "object"}),
    coverage=number("0 to 1."),
    note=text(),
    code=text("Names the reason of a verdict, or empty."),
    learned=many({"type": "object"}),
)
MODEL_CALL = shape(
    **{name: SPENT[name] for name in ("tokens_in", "tokens_out", "cost")},
    purpose=text(),
    author=text(),
    model=text(),
    state=text(),
    seconds=number(),
    prompt=text("A digest of what was asked."),
    message=text(),
)
JOB = shape(
    **JOB_FIELDS,
    drafts=many(shape(**DRAFT_LINE)),
    models=shape(**SPENT, asked=many(MODEL_CALL)),
)

SERVER_FIELDS: Mapping[str, Schema] = {
    "tool_id": text("The server's name."),
    "version": whole(),
    "digest": text("Of its files."),
    "title": text(),
    "description": text(),
    "state": text("`active`, `experimental`, `quarantined`, `archived` …"),
    "created": moment("When this version was made."),
    "created_by": text(),
    "source": text("What it was made of."),
    "parent": maybe(text("The version that it was made from.")),
    "base_url": text(),
    "base_image": text(),
    "permissions": many(text(), "What it declares."),
    "tools": many(
        shape(
            {"level": text("read, write or destructive")}, name=text(), access=ACCESS, group=text()
        )
    ),
    "trust_level": text("`probationary`, `standard`, `trusted`, `experimental`, `degraded`"),
    "reliability_score": maybe(number("0 to 1; null before the first call that counts.")),
    "window_ratio": maybe(number("0 to 1, of the latest calls that count.")),
    "window_lower_bound": maybe(number("Its lower 95 % bound.")),
    "window_size": whole(),
    "total_invocations": whole(),
    "successful_invocations": whole(),
    "counted_invocations": whole(),
    "avg_latency_ms": maybe(number("Milliseconds, to a tenth.")),
    "unclear_failures": whole(),
    "refusing_share": maybe(number("0 to 1; null where that is within bounds.")),
    "last_failure": maybe(moment("When it last failed.")),
    "last_failure_reason": maybe(text()),
}
VOID_GRANT = shape(what=text(), kind=text(), flaw=text(), reason=text("Why it does not count."))
HEALTH = shape(
    causes=table(whole(), "How often calls failed, by cause."),
    last_cause=text(),
    drifting=table(whole(), "Undocumented answers, by tool."),
    repairs=many({"type": "object"}),
    trial=maybe({"type": "object"}),
    learned=TEXTS,
    document=maybe({"type": "object"}),
)
SERVER = shape(
    **SERVER_FIELDS,
    quarantine=text("Why it is held back, or empty."),
    edited=text("That its files are not those of its version, or empty."),
    health=HEALTH,
    models=shape(**SPENT),
    packages=many(text(), "Packages of PyPI that it imports."),
    classified=table(text(), "What a person said of tools: read, write or destructive."),
    granted=many(text(), "Permissions that it has."),
    granted_void=many(VOID_GRANT),
    reports=many(REPORT, "The proofs of its version."),
    operations=table({"type": "object"}, "Record and trust by tool."),
    versions=many({"type": "array"}, "Version, digest, parent."),
    lineage=many({"type": "object"}, "Trees of versions."),
)
FIELD: Mapping[str, Schema] = {
    "name": text("The key of `toolwright call`."),
    "types": text(),
    "required": flag(),
    "description": text(),
    "example": anything("A value that its schema takes."),
}
ARGUMENT = shape(**FIELD, fields=many(shape(**FIELD), "What it holds: `body.name` …"))
TOOL_REPORT = shape(
    tool=TOOL,
    version=whole(),
    state=text("The server's."),
    title=text(),
    description=text(),
    level=text("read, write or destructive"),
    group=text(),
    input_schema=anything("A JSON Schema."),
    output_schema=anything("A JSON Schema."),
    arguments=many(ARGUMENT),
    example=text("A command that calls it."),
    permissions=TEXTS,
    granted=TEXTS,
    trust_level=text(),
    to_more_trust=TEXTS,
    calls=many(shape(call=text(), started=moment("When."), outcome=text(), latency_ms=number())),
)
RULE = shape(
    rule=text("Its id."),
    state=text("", "live", "not signed", "revoked", "expired", "used up"),
    tool=TOOL,
    version=maybe(whole()),
    where=many({"type": "object"}, "Conditions on arguments."),
    says=text("The rule as a sentence."),
    created=moment("When it was made."),
    expires=moment("When it ends."),
    max=maybe(whole("Calls at most.")),
    uses=whole(),
    by=text(),
    approval=maybe(text()),
    revoked=maybe(moment("When it was revoked.")),
    revoked_by=maybe(text()),
)
REPROOF = shape(
    server=text(), version=whole(), verdict=text(), reason=text(), job=text("That writes it anew.")
)
PROBLEM = shape(file=text(), pointer=text("The place in the file."), reason=text())
FREEZE = shape(
    {"lift": text("The signature that lifted it.")},
    epoch=whole("Counts freezes and lifts."),
    frozen=flag(),
    since=moment("Since when."),
    by=text(),
    reason=text(),
)
SECRET_PLACED = shape(
    name=text(),
    to=many(text(), "Where it may go."),
    warning=text(),
    version=maybe(whole("The version that was made to send it.")),
)
DECIDED = shape(
    **APPROVAL_FIELDS, refused=text("Why it was not decided, or empty."), rule=maybe(text())
)
SPAN = shape(**SPENT, most=number("0 for no limit."))
ARCHIVED = shape(server=text(), state=text())

COMMANDS: Mapping[str, tuple[str, Schema]] = {
    "toolwright": (
        "The home at a glance.",
        shape(
            has_pin=flag(),
            frozen_by=text("Empty where nothing is frozen."),
            pending=many(text(), "Approvals to decide."),
            unsent=many(text(), "Approvals that were approved and not sent."),
            waiting=many(text(), "Jobs that need a person."),
            asked=many(text(), "Tasks in words whose question is for a client's model."),
            answer=text("The command that answers the newest such job, or empty."),
            servers=TEXTS,
            broken=many(text(), "The last repairs of servers that they did not mend."),
            running=many(text(), "Kinds of live processes."),
            control=text("Where the control plane is, or empty."),
            frozen_for=text("The reason that was given with the freeze, or empty."),
            locked=many(text(), "Targets of messages that get none, since push is locked."),
            next=many(text(), "Likely next commands."),
        ),
    ),
    "setup": (
        "What is ready. With `--client` that client alone, with a key's option the key.",
        either(
            shape(
                {
                    "key": text("The fingerprint of a key that was made now, or empty."),
                    "has_pin": flag(),
                    "clients": many(shape(client=text(), path=text(), has_toolwright=flag())),
                    "next": many(text(), "Likely next commands."),
                    "kept_engine": text("What the home keeps of `--engine`."),
                },
                home=text(),
                engine=text("What servers run on."),
            ),
            shape(
                {
                    "has_toolwright": flag(),
                    "backup": text("A copy of what was there, or empty."),
                    "entry": text("With `--print`: what belongs into the file."),
                },
                client=text(),
                path=text(),
            ),
            shape(key=text("The fingerprint of the key that signs decisions.")),
        ),
    ),
    "compile": (
        "The bundle, or why there is none (exit code 1).",
        either(
            shape(
                bundle=text("Its directory."),
                name=text(),
                base_url=text(),
                tools=whole(),
                reads=whole(),
                writes=whole(),
                groups=table(whole(), "Tools by group."),
                credentials=TEXTS,
                problems=many(PROBLEM, "What was left out."),
            ),
            shape(refused=PROBLEM, problems=many(PROBLEM)),
        ),
    ),
    "do": (
        "The result, as an MCP client gets it; a question or another need as a job; or the error.",
        either(RESULT, JOB_REPORT, shape(error=text())),
    ),
    "find": (
        "Tools that fit, best first; then those that fit and are held back.",
        many(
            shape(
                {"level": text("read, write or destructive"), "why": text("Why it is held back.")},
                entry=text("The server."),
                tool=text("Its tool."),
                score=number("Higher fits better; scores of two tasks do not compare."),
                description=text(),
                title=text(),
                entry_description=text(),
                group=text(),
                state=text(),
            )
        ),
    ),
    "forge": ("How the job stands.", JOB_REPORT),
    "submit": (
        "How the job stands, or what is wrong with the draft.",
        either(JOB_REPORT, shape(problems=many(shape(pointer=text(), reason=text())))),
    ),
    "add": (
        "The server.",
        shape(
            server=text(),
            version=whole(),
            state=text(),
            unchanged=flag("Whether it was registered like this already."),
            permissions=TEXTS,
            tools=many(shape(name=text(), access=ACCESS)),
            left_out=many({"type": "object"}),
            prompts=TEXTS,
            resources=TEXTS,
            templates=TEXTS,
        ),
    ),
    "import-clients": (
        "What was imported, or with `--undo` put back.",
        either(
            shape(imported=many(shape(server=text(), done=flag()))),
            shape(undone=many(shape(server=text(), done=flag()))),
        ),
    ),
    "remove": ("The server that was taken out of use.", ARCHIVED),
    "archive": ("The server that was taken out of use.", ARCHIVED),
    "grant": (
        "A list of what a server declares; without one every grant; else what was changed.",
        either(
            many(shape(permission=text(), granted=flag())),
            shape(granted=many(shape(what=text(), kind=text())), void=many(VOID_GRANT)),
            shape(server=text(), permission=text(), granted=many(text(), "What it has now.")),
            shape(signed=many(text(), "What counts from now on.")),
        ),
    ),
    "call": (
        "The result, as an MCP client gets it. What waits for a person has `structuredContent` "
        "with `state` `pending` and the `approval` (exit code 3).",
        RESULT,
    ),
    "list": ("The servers.", many(shape(**SERVER_FIELDS))),
    "show": ("One server, or one tool.", either(SERVER, TOOL_REPORT)),
    "versions": (
        "The versions, newest first.",
        shape(
            server=text(),
            versions=many(
                shape(
                    version=whole(),
                    current=flag(),
                    created=moment("When it was made."),
                    created_by=text(),
                    digest=text(),
                    parent=maybe(text()),
                    base_image=text(),
                    kept=flag("Whether its files are still there."),
                    learned=TEXTS,
                )
            ),
            trial=maybe({"type": "object"}),
        ),
    ),
    "diff": (
        "What changed.",
        {
            **shape(server=text(), to=whole(), lines=TEXTS),
            "properties": {
                "server": text(),
                "from": whole("A version."),
                "to": whole("A version."),
                "lines": many(text(), "With `+`, `-` or `#` before them."),
            },
            "required": ["server", "from", "to", "lines"],
        },
    ),
    "rollback": (
        "The versions.",
        {
            "type": "object",
            "properties": {
                "server": text(),
                "from": whole("The version before."),
                "to": whole("The version that is in use again."),
                "version": whole("Its new number."),
            },
            "required": ["server", "from", "to", "version"],
        },
    ),
    "reprove": ("The servers.", many(REPROOF)),
    "images rebuild": (
        "The image and the servers that were proved on it.",
        shape(image=text(), changed=flag(), servers=many(REPROOF)),
    ),
    "logs": (
        "Calls, newest first; with `--call` one; with `--audit` rows of the audit log.",
        either(many(CALL), CALL, many(AUDIT_ROW)),
    ),
    "replay": (
        "What was replayed, and whether it came out the same.",
        shape(
            verdict=text("", "same", "different", "not replayed"),
            replays=many(
                shape(
                    id=text(),
                    subject=text(),
                    version=whole(),
                    engine=text(),
                    difference=maybe({"type": "object", "required": ["where", "expected", "got"]}),
                    notes=TEXTS,
                    reason=text(),
                    verdict=text("", "same", "different", "not replayed"),
                )
            ),
        ),
    ),
    "jobs": (
        "Jobs; one with its drafts and what models were asked; with `--cost` what models cost; "
        "with `--draft` a draft; with `--brief` the brief; with `--resume` how it stands.",
        either(
            many(shape(**JOB_FIELDS)),
            JOB,
            shape(
                day=SPAN,
                month=SPAN,
                models=many(shape(**SPENT, model=text())),
                jobs=many(shape(**SPENT, job=text())),
            ),
            shape(
                **DRAFT_LINE,
                job=text(),
                created=moment("When it was handed in."),
                content={"type": "object"},
                diagnosis=many({"type": "object"}, "What its author was told."),
                reports=many(REPORT),
            ),
            shape(job=text(), brief=text()),
            JOB_REPORT,
        ),
    ),
    "allow": ("How the job stands.", JOB_REPORT),
    "source add": ("The source.", shape(source=text(), header=text(), secret=text())),
    "source allow": ("What is allowed.", shape(allowed=TEXTS)),
    "source list": (
        "Sources, what is allowed, and what counts for nothing.",
        shape(
            sources=many(shape(url=text(), header=text(), secret=text("Its name."))),
            allowed=many(
                shape(
                    origin=text(),
                    kind=text(),
                    detail=text(),
                    granted_by=text(),
                    granted=moment("When."),
                )
            ),
            void=many(VOID_GRANT),
        ),
    ),
    "source remove": ("Whether it was there.", shape(what=text(), removed=flag())),
    "secret set": ("Where it may go.", SECRET_PLACED),
    "secret bind": ("Where it may go.", SECRET_PLACED),
    "secret list": (
        "Names, never values.",
        many(shape(server=text(), name=text(), to=many(text(), "Where it may go."))),
    ),
    "secret remove": ("Whether it was there.", shape(name=text(), removed=flag())),
    "login": ("Who is logged in.", shape(target=text(), account=text(), logged_in=flag())),
    "logout": (
        "Who is logged out.",
        shape(target=text(), logged_in=flag(), problem=text("Why tokens were not revoked.")),
    ),
    "accounts": (
        "The accounts, or with `--use` the one chosen.",
        either(
            many(
                shape(
                    credential=text(),
                    account=text(),
                    default=flag(),
                    login=text("Where it logged in, or empty."),
                    renews=flag("Whether it renews itself."),
                )
            ),
            shape(server=text(), credential=text(), account=text()),
        ),
    ),
    "approvals": (
        "What waits for a person, and what was approved and not sent.",
        many(shape(**APPROVAL_FIELDS, text=text("As a person is shown it."))),
    ),
    "approve": ("The request and what came of it.", DECIDED),
    "reject": ("The request.", DECIDED),
    "rules": ("The rules.", many(RULE)),
    "rules list": ("The rules.", many(RULE)),
    "rules revoke": ("Whether it counted before.", shape(rule=text(), revoked=flag())),
    "classify": ("Both levels.", shape(tool=TOOL, before=text(), level=text())),
    "push add": ("The target.", shape(name=text(), links=flag())),
    "push list": ("The targets.", many(shape(name=text(), kind=text()))),
    "push remove": ("The target.", shape(name=text(), removed=flag())),
    "push test": (
        "What came of each message.",
        many(shape(name=text(), problem=text("Empty where it was sent."))),
    ),
    "push unlock": ("Whether messages carry links.", shape(unlocked=flag())),
    "push lock": ("Whether messages carry links.", shape(unlocked=flag())),
    "audit verify": (
        "Whether every chain is whole (else exit code 1).",
        shape(
            whole=flag(),
            broken=maybe(
                {"type": "object", "required": ["chain", "sequence", "reason"]},
            ),
            rows=whole(),
            differences=many(text(), "What tables say otherwise than the audit."),
            seconds=number(),
        ),
    ),
    "audit search": (
        "Rows, newest first.",
        many(shape(**AUDIT_FIELDS, server=text(), tool=text(), task=text())),
    ),
    "audit show": (
        "All about one id.",
        shape({"call": CALL, "approval": APPROVAL}, audit=many(AUDIT_ROW)),
    ),
    "audit export": ("The file.", shape(rows=whole(), file=text())),
    "audit archive": (
        "The files that rows were moved to.",
        many(shape(file=text(), rows=whole(), calls=whole())),
    ),
    "kill": (
        "What was stopped.",
        shape(
            processes=whole(),
            acknowledged=whole("Processes that stopped by themselves."),
            sigkilled=whole(),
            containers=whole("Sandboxes that were killed."),
            left=whole("Sandboxes that are still there."),
            milliseconds=number(),
            engine_silent=flag(),
            epoch=whole("Counts freezes and lifts."),
        ),
    ),
    "unfreeze": ("The state.", FREEZE),
    "work": (
        "With `--approval` what came of it, else after how long it ended.",
        either(
            shape(
                approval=text(),
                state=text(),
                outcome=maybe(anything("What came of it.")),
            ),
            shape(
                idle=number("Seconds without work."),
                jobs=many(shape(job=text(), kind=text(), state=text()), "What became of each."),
            ),
        ),
    ),
    "control": (
        "With `--url` or `--open` a link that logs in once; with `--stop` whether one ran.",
        either(shape(url=text()), shape(stopped=flag())),
    ),
    "export": (
        "The image.",
        shape(
            image=text(),
            id=text(),
            environment=many(text(), "Variables that it reads credentials from."),
        ),
    ),
    "doctor": (
        "The checks.",
        many(
            shape(
                name=text(),
                verdict=text("", "ok", "warning", "failed"),
                found=text(),
                hint=text("What to do."),
            )
        ),
    ),
    "uninstall": ("Whether the home was removed.", shape(home=text(), removed=flag())),
    "backup": (
        "The file.",
        shape(
            file=text(),
            sha256=text(),
            bytes=whole(),
            files=whole(),
            made=moment("When it was made."),
            vault_key=text("Where the key of its secrets is, or empty."),
            left_out=TEXTS,
            key_file=text("Where the key was written, or empty."),
        ),
    ),
    "restore": (
        "What the backup changes, and what was done.",
        shape(
            restored=maybe(
                shape(
                    epoch=whole(),
                    expired=TEXTS,
                    unknown=TEXTS,
                    approved_since=many(text(), "Approved since, and not in the backup."),
                    cancelled_jobs=TEXTS,
                )
            ),
            made=moment("When it was made."),
            toolwright=text("The version that made it."),
            files=whole(),
            brings_back=TEXTS,
            keeps=TEXTS,
            loses=TEXTS,
            blind=text(),
            servers=many(text(), "What this home has, which is replaced."),
            calls_since=whole("Calls of this home since the backup."),
            secrets=text(),
        ),
    ),
}
"""By command: what it prints, in a sentence, and its schema."""


def build_schema(command: str) -> Schema:
    """The schema of a command's output, as a document of its own."""
    says, schema = COMMANDS[command]
    typed = f"toolwright {command}" if command != "toolwright" else command
    return {"$schema": DRAFT, "title": f"{typed} --json", "description": says, **schema}


def name_file(command: str) -> str:
    """The file of a command's schema in docs/json."""
    return f"{command.replace(' ', '-')}.schema.json"


def find_command(words: list[str]) -> str:
    """The command that words begin with, as COMMANDS names it; "" where it has no schema."""
    plain = [word for word in words if not word.startswith("-")]
    for length in (2, 1):
        if " ".join(plain[:length]) in COMMANDS and len(plain) >= length:
            return " ".join(plain[:length])
    return "" if plain else "toolwright"
