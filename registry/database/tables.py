"""The registry's tables. A change here needs a new migration and a new `HEAD`."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Float,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
    UniqueConstraint,
    event,
    false,
    text,
)

HEAD = "0005"
"""The revision in `registry/database/migrations` that makes exactly these tables."""

metadata = MetaData()

# SQLite's own row numbers have 64 bits as INTEGER, and only as that
# (https://www.sqlite.org/lang_createtable.html#rowid).
ROW_ID = BigInteger().with_variant(Integer(), "sqlite")

entries = Table(
    "entries",
    metadata,
    Column("name", String(40), primary_key=True),
    Column("version", Integer, nullable=False),
    Column("state", String(12), nullable=False),
)

versions = Table(
    "versions",
    metadata,
    Column("entry", ForeignKey("entries.name"), primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("digest", String(64), nullable=False),
    Column("title", Text, nullable=False),
    Column("description", Text, nullable=False),
    Column("created", Float, nullable=False),
    Column("created_by", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("permissions", Text, nullable=False),
    Column("base_url", Text, nullable=False),
    Column("base_image", Text, nullable=False),
    Column("parent", Text, nullable=False),
)

tools = Table(
    "tools",
    metadata,
    Column("entry", String(40), primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("name", String(40), nullable=False),
    Column("access", String(5), nullable=False),
    Column("destructive", Boolean, nullable=False),
    Column("listed", Text, nullable=False),
    Column("operation_digest", String(64), nullable=False),
    Column("self_evident", Boolean, nullable=False, server_default=false()),
    ForeignKeyConstraint(["entry", "version"], ["versions.entry", "versions.version"]),
    UniqueConstraint("entry", "version", "name"),
)

reports = Table(
    "reports",
    metadata,
    Column("entry", String(40), primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("report", Text, nullable=False),
    ForeignKeyConstraint(["entry", "version"], ["versions.entry", "versions.version"]),
)

trust = Table(
    "trust",
    metadata,
    Column("entry", ForeignKey("entries.name"), primary_key=True),
    # "" is the server as a whole.
    Column("operation", String(40), primary_key=True),
    Column("version", Integer, nullable=False),
    Column("total", Integer, nullable=False),
    Column("successful", Integer, nullable=False),
    Column("counted", Integer, nullable=False),
    Column("latency_total_ms", Float, nullable=False),
    Column("ordinal", Integer, nullable=False),
    Column("window", String(50), nullable=False),
    Column("ladder_successes", Integer, nullable=False),
    Column("ladder_version", Integer, nullable=False),
    Column("version_successes", Integer, nullable=False),
    Column("last_failure", Float),
    Column("last_failure_reason", Text, nullable=False),
    Column("recent", String(50), nullable=False, server_default=""),
    Column("vouched", Integer, nullable=False, server_default="0"),
)

invocations = Table(
    "invocations",
    metadata,
    Column("sequence", Integer, primary_key=True),
    Column("id", String(32), nullable=False, unique=True),
    Column("entry", ForeignKey("entries.name"), nullable=False),
    Column("version", Integer, nullable=False),
    Column("tool", String(40), nullable=False),
    Column("access", String(5), nullable=False),
    Column("started", Float, nullable=False),
    Column("arguments", Text, nullable=False),
    Column("task", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("session", Text, nullable=False),
    Column("result", Text, nullable=False),
    Column("failure_kind", String(40)),
    Column("failure_message", Text, nullable=False),
    Column("failure_status", Integer),
    Column("difference", Text),
    Column("latency_ms", Float, nullable=False),
    Column("exchanges", Text, nullable=False),
    # What of the row could not be stored and was replaced, by column, as JSON; "" for nothing.
    Column("unstorable", Text, nullable=False, server_default=""),
    # One intent per approval, ever: what makes a write happen at most once.
    Column("approval", ForeignKey("approvals.id"), unique=True),
    Column("process", String(32), nullable=False),
    Column("state", String(8), nullable=False),
    Column("disputed", Boolean, nullable=False),
    # The server's and the operation's `TrustRecord.ordinal` after it; NULL where it did not count.
    Column("ordinal", Integer),
    Column("operation_ordinal", Integer),
    Index("invocations_by_entry", "entry", "sequence"),
    Index("invocations_by_state", "state", "process"),
    Index("invocations_by_session", "session", "sequence", sqlite_where=text("session != ''")),
)

kept_results = Table(
    "kept_results",
    metadata,
    # The digest of the session's name, and the number of the result in it.
    Column("session", String(64), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    # The call or job that it came of.
    Column("call", String(32), nullable=False),
    Column("tool", Text, nullable=False),
    Column("created", Float, nullable=False),
    Column("expires", Float, nullable=False),
    # Of the JSON text, before it was packed.
    Column("size", Integer, nullable=False),
    # The servers whose data it holds, each with the places that it may talk to, as JSON.
    Column("sources", Text, nullable=False),
    # NULL once it is gone.
    Column("content", LargeBinary),
    Index("kept_results_by_expiry", "expires"),
)

recordings = Table(
    "recordings",
    metadata,
    # The bytes of all recordings up to the end of this one, dropped ones too: what is kept lies
    # between two of these numbers, so nothing has to be added up to know how much it is.
    Column("end", ROW_ID, primary_key=True, autoincrement=False),
    Column("invocation", ForeignKey("invocations.id"), nullable=False, unique=True),
    # NULL for one that was too large to keep.
    Column("content", LargeBinary),
)

approvals = Table(
    "approvals",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("entry", ForeignKey("entries.name"), nullable=False),
    Column("version", Integer, nullable=False),
    Column("tool", String(40), nullable=False),
    Column("arguments", Text, nullable=False),
    Column("wire", Text, nullable=False),
    Column("wire_digest", String(64), nullable=False),
    Column("created", Float, nullable=False),
    Column("expires", Float, nullable=False),
    Column("state", String(8), nullable=False),
    Column("task", Text, nullable=False),
    Column("session", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("decided_by", Text, nullable=False),
    Column("decided_at", Float),
    Column("decision_reason", Text, nullable=False),
    Column("claimed_by", String(32), nullable=False),
    Column("outcome", Text, nullable=False),
    Column("decision", Text, nullable=False, server_default=""),
    Column("present", Text, nullable=False, server_default=""),
    # The call that it was spent on, and its number among all that were spent; "" and 0 before.
    Column("invocation", String(32), nullable=False, server_default=""),
    Column("serial", Integer, nullable=False, server_default="0"),
    Column("steps", Text, nullable=False, server_default="[]"),
    Column("uses", Text, nullable=False, server_default="[]"),
    Index("approvals_by_state", "state", "created"),
)

rules = Table(
    "rules",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("entry", ForeignKey("entries.name"), nullable=False),
    Column("tool", String(40), nullable=False),
    # What was signed, as canonical JSON: `registry.approvals.rules.ApprovalRule`.
    Column("body", Text, nullable=False),
    Column("signature", Text, nullable=False),
    Column("created", Float, nullable=False),
    Column("uses", Integer, nullable=False),
    Column("revoked", Float),
    Column("revoked_by", Text, nullable=False),
    Index("rules_by_tool", "entry", "tool"),
)

overrides = Table(
    "overrides",
    metadata,
    Column("entry", ForeignKey("entries.name"), primary_key=True),
    # The operation's id, or the tool's name where it has none.
    Column("operation", String(200), primary_key=True),
    Column("level", String(11), nullable=False),
    Column("body", Text, nullable=False),
    Column("signature", Text, nullable=False),
    Column("changed", Float, nullable=False),
    Column("by", Text, nullable=False),
)

jobs = Table(
    "jobs",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("kind", String(8), nullable=False),
    Column("request", Text, nullable=False),
    Column("created", Float, nullable=False),
    Column("updated", Float, nullable=False),
    Column("state", String(9), nullable=False),
    Column("stage", Text, nullable=False),
    Column("progress", Float, nullable=False),
    Column("message", Text, nullable=False),
    Column("result", Text, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("owner", String(32), nullable=False),
    Column("log", Text, nullable=False),
    Column("needs", Text, nullable=False, server_default="{}"),
    Index("jobs_by_state", "state", "created"),
)

drafts = Table(
    "drafts",
    metadata,
    Column("job", ForeignKey("jobs.id"), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("digest", String(64), nullable=False),
    Column("created", Float, nullable=False),
    Column("content", Text, nullable=False),
    Column("verdict", String(7), nullable=False),
    Column("reports", Text, nullable=False),
    Column("diagnosis", Text, nullable=False),
    Column("author", String(16), nullable=False, server_default="client"),
    Column("model", Text, nullable=False, server_default=""),
    UniqueConstraint("job", "digest"),
)

model_calls = Table(
    "model_calls",
    metadata,
    Column("id", Integer, primary_key=True),
    # "" where no job asked.
    Column("job", String(32), nullable=False),
    # The server that it was about; it may not be registered yet.
    Column("server", String(40), nullable=False),
    Column("purpose", String(16), nullable=False),
    Column("author", String(16), nullable=False),
    Column("model", Text, nullable=False),
    Column("prompt", Text, nullable=False),
    Column("prompt_digest", String(64), nullable=False),
    Column("started", Float, nullable=False),
    Column("seconds", Float, nullable=False),
    # While it is asked, what it may cost at most.
    Column("tokens_in", Integer, nullable=False),
    Column("tokens_out", Integer, nullable=False),
    Column("cost", Float, nullable=False),
    Column("state", String(8), nullable=False),
    Column("content", Text, nullable=False),
    Column("message", Text, nullable=False),
    Index("model_calls_by_job", "job", "prompt_digest"),
    Index("model_calls_by_time", "started"),
    Index("model_calls_by_server", "server"),
)

trials = Table(
    "trials",
    metadata,
    Column("entry", String(40), primary_key=True),
    Column("version", Integer, nullable=False),
    Column("previous", Integer, nullable=False),
    Column("began", Float, nullable=False),
    Column("calls", Integer, nullable=False),
    Column("succeeded", Integer, nullable=False),
    Column("failed", Integer, nullable=False),
    # Of the version before, in its last window.
    Column("old_succeeded", Integer, nullable=False),
    Column("old_failed", Integer, nullable=False),
    Column("ended", Float),
    Column("outcome", Text, nullable=False),
)

watched = Table(
    "watched",
    metadata,
    Column("source", String(2000), primary_key=True),
    Column("checked", Float, nullable=False),
    Column("etag", Text, nullable=False),
    Column("modified", Text, nullable=False),
    Column("digest", String(64), nullable=False),
    Column("problem", Text, nullable=False),
)

processes = Table(
    "processes",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("pid", Integer, nullable=False),
    Column("start_time", Float, nullable=False),
    Column("kind", Text, nullable=False),
    Column("started", Float, nullable=False),
    Column("heartbeat", Float, nullable=False),
    Column("acknowledged_epoch", Integer, nullable=False),
    Column("stalls", Integer, nullable=False, server_default="0"),
    Column("longest_stall", Float, nullable=False, server_default="0"),
)

freeze = Table(
    "freeze",
    metadata,
    # The one row has id 1; none yet means never frozen.
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("epoch", Integer, nullable=False),
    Column("frozen", Boolean, nullable=False),
    Column("since", Float, nullable=False),
    Column("by", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("lift", Text, nullable=False),
)

sources = Table(
    "sources",
    metadata,
    Column("url", String(2000), primary_key=True),
    Column("header", Text, nullable=False),
    Column("secret", Text, nullable=False),
)

grants = Table(
    "grants",
    metadata,
    Column("origin", String(300), primary_key=True),
    Column("kind", String(12), primary_key=True),
    Column("granted_by", Text, nullable=False),
    Column("granted", Float, nullable=False),
    Column("detail", Text, nullable=False, server_default=""),
    Column("serial", Integer, nullable=False, server_default="1"),
    Column("signature", Text, nullable=False, server_default=""),
)

audit = Table(
    "audit",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("chain", String(32), nullable=False),
    Column("sequence", Integer, nullable=False),
    Column("time", Float, nullable=False),
    Column("kind", String(40), nullable=False),
    Column("subject", Text, nullable=False),
    Column("payload", Text, nullable=False),
    Column("previous", String(64), nullable=False),
    Column("hash", String(64), nullable=False),
    UniqueConstraint("chain", "sequence"),
    Index("audit_by_subject", "subject"),
    # Without it SQLite may give a deleted row's id to a later one.
    sqlite_autoincrement=True,
)

documents = Table(
    "search_documents",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("entry", ForeignKey("entries.name"), nullable=False, index=True),
    Column("tool", String(40), nullable=False),
    # The digest of the text that its vector is made of: `registry.search.vectors`.
    Column("meaning", String(64), nullable=False, index=True),
    # Without it SQLite may give a deleted row's id to a later one.
    sqlite_autoincrement=True,
)

# What is kept of the texts of a server's documents: `registry.search.documents.ServerDocuments`.
search_servers = Table(
    "search_servers",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("entry", ForeignKey("entries.name"), nullable=False, unique=True),
    Column("ids", LargeBinary, nullable=False),
    Column("tools", Text, nullable=False),
    Column("access", Text, nullable=False),
    Column("words", Text, nullable=False),
    Column("sizes", LargeBinary, nullable=False),
    Column("postings", LargeBinary, nullable=False),
    Column("example_sizes", LargeBinary, nullable=False),
    Column("example_postings", LargeBinary, nullable=False),
)

# A row for each server, written anew whenever what can be found of it changes.
search_changes = Table(
    "search_changes",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("entry", ForeignKey("entries.name"), nullable=False, unique=True),
    sqlite_autoincrement=True,
)

# Tasks that a tool is for (`registry.search.examples`): how often they meant it, and did not.
examples = Table(
    "search_examples",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("entry", ForeignKey("entries.name"), nullable=False),
    Column("tool", String(40), nullable=False),
    Column("origin", String(8), nullable=False),
    Column("task", Text, nullable=False),
    Column("good", Integer, nullable=False),
    Column("bad", Integer, nullable=False),
    Column("used", Float, nullable=False),
    UniqueConstraint("entry", "tool", "origin", "task"),
)

vectors = Table(
    "search_vectors",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("meaning", String(64), nullable=False, unique=True),
    Column("vector", LargeBinary, nullable=False),
)

# Alembic's own table, which its migrations make by themselves.
alembic_version = Table(
    "alembic_version",
    MetaData(),
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)

AUDIT_GUARDS = (
    "CREATE TRIGGER audit_is_not_edited BEFORE UPDATE ON audit "
    "BEGIN SELECT RAISE(ABORT, 'the audit is append-only'); END",
    "CREATE TRIGGER audit_is_not_deleted BEFORE DELETE ON audit "
    "BEGIN SELECT RAISE(ABORT, 'the audit is append-only'); END",
)


def _after_create(_target: MetaData, connection: Connection, **_: object) -> None:
    if connection.dialect.name == "sqlite":
        for statement in AUDIT_GUARDS:
            connection.exec_driver_sql(statement)


event.listen(metadata, "after_create", _after_create)
