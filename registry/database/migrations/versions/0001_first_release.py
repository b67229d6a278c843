"""The tables of the first release. Frozen: a later change is a later revision."""

from __future__ import annotations

from alembic import op
from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

revision = "0001"
down_revision = None

metadata = MetaData()
ROW_ID = BigInteger().with_variant(Integer(), "sqlite")

Table(
    "entries",
    metadata,
    Column("name", String(40), primary_key=True),
    Column("version", Integer, nullable=False),
    Column("state", String(12), nullable=False),
)

Table(
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

Table(
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
    ForeignKeyConstraint(["entry", "version"], ["versions.entry", "versions.version"]),
    UniqueConstraint("entry", "version", "name"),
)

Table(
    "reports",
    metadata,
    Column("entry", String(40), primary_key=True),
    Column("version", Integer, primary_key=True, autoincrement=False),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("report", Text, nullable=False),
    ForeignKeyConstraint(["entry", "version"], ["versions.entry", "versions.version"]),
)

Table(
    "trust",
    metadata,
    Column("entry", ForeignKey("entries.name"), primary_key=True),
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
)

Table(
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
    Column("unstorable", Text, nullable=False, server_default=""),
    Column("approval", ForeignKey("approvals.id"), unique=True),
    Column("process", String(32), nullable=False),
    Column("state", String(8), nullable=False),
    Column("disputed", Boolean, nullable=False),
    Column("ordinal", Integer),
    Column("operation_ordinal", Integer),
    Index("invocations_by_entry", "entry", "sequence"),
    Index("invocations_by_state", "state", "process"),
)

Table(
    "recordings",
    metadata,
    Column("end", ROW_ID, primary_key=True, autoincrement=False),
    Column("invocation", ForeignKey("invocations.id"), nullable=False, unique=True),
    Column("content", LargeBinary),
)

Table(
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
    Column("invocation", String(32), nullable=False, server_default=""),
    Column("serial", Integer, nullable=False, server_default="0"),
    Column("steps", Text, nullable=False, server_default="[]"),
    Column("uses", Text, nullable=False, server_default="[]"),
    Index("approvals_by_state", "state", "created"),
)

Table(
    "rules",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("entry", ForeignKey("entries.name"), nullable=False),
    Column("tool", String(40), nullable=False),
    Column("body", Text, nullable=False),
    Column("signature", Text, nullable=False),
    Column("created", Float, nullable=False),
    Column("uses", Integer, nullable=False),
    Column("revoked", Float),
    Column("revoked_by", Text, nullable=False),
    Index("rules_by_tool", "entry", "tool"),
)

Table(
    "overrides",
    metadata,
    Column("entry", ForeignKey("entries.name"), primary_key=True),
    Column("operation", String(200), primary_key=True),
    Column("level", String(11), nullable=False),
    Column("body", Text, nullable=False),
    Column("signature", Text, nullable=False),
    Column("changed", Float, nullable=False),
    Column("by", Text, nullable=False),
)

Table(
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

Table(
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

Table(
    "model_calls",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("job", String(32), nullable=False),
    Column("server", String(40), nullable=False),
    Column("purpose", String(16), nullable=False),
    Column("author", String(16), nullable=False),
    Column("model", Text, nullable=False),
    Column("prompt", Text, nullable=False),
    Column("prompt_digest", String(64), nullable=False),
    Column("started", Float, nullable=False),
    Column("seconds", Float, nullable=False),
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

Table(
    "trials",
    metadata,
    Column("entry", String(40), primary_key=True),
    Column("version", Integer, nullable=False),
    Column("previous", Integer, nullable=False),
    Column("began", Float, nullable=False),
    Column("calls", Integer, nullable=False),
    Column("succeeded", Integer, nullable=False),
    Column("failed", Integer, nullable=False),
    Column("old_succeeded", Integer, nullable=False),
    Column("old_failed", Integer, nullable=False),
    Column("ended", Float),
    Column("outcome", Text, nullable=False),
)

Table(
    "watched",
    metadata,
    Column("source", String(2000), primary_key=True),
    Column("checked", Float, nullable=False),
    Column("etag", Text, nullable=False),
    Column("modified", Text, nullable=False),
    Column("digest", String(64), nullable=False),
    Column("problem", Text, nullable=False),
)

Table(
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

Table(
    "freeze",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("epoch", Integer, nullable=False),
    Column("frozen", Boolean, nullable=False),
    Column("since", Float, nullable=False),
    Column("by", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("lift", Text, nullable=False),
)

Table(
    "sources",
    metadata,
    Column("url", String(2000), primary_key=True),
    Column("header", Text, nullable=False),
    Column("secret", Text, nullable=False),
)

Table(
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

Table(
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
    sqlite_autoincrement=True,
)

Table(
    "search_documents",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("entry", ForeignKey("entries.name"), nullable=False, index=True),
    Column("tool", String(40), nullable=False),
    Column("words", Text, nullable=False),
    Column("stems", LargeBinary, nullable=False),
    Column("worths", LargeBinary, nullable=False),
    Column("example_stems", LargeBinary, nullable=False),
    Column("meaning", String(64), nullable=False, index=True),
    sqlite_autoincrement=True,
)

Table(
    "search_changes",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("entry", ForeignKey("entries.name"), nullable=False, unique=True),
    sqlite_autoincrement=True,
)

Table(
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

Table(
    "search_vectors",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("meaning", String(64), nullable=False, unique=True),
    Column("vector", LargeBinary, nullable=False),
)

AUDIT_GUARDS = (
    "CREATE TRIGGER audit_is_not_edited BEFORE UPDATE ON audit "
    "BEGIN SELECT RAISE(ABORT, 'the audit is append-only'); END",
    "CREATE TRIGGER audit_is_not_deleted BEFORE DELETE ON audit "
    "BEGIN SELECT RAISE(ABORT, 'the audit is append-only'); END",
)


def upgrade() -> None:
    connection = op.get_bind()
    metadata.create_all(connection)
    if connection.dialect.name == "sqlite":
        for statement in AUDIT_GUARDS:
            connection.exec_driver_sql(statement)
