"""Signed decisions, standing rules, people's classification of operations. Frozen: a later change
is a later revision.
"""

from __future__ import annotations

from alembic import op
from sqlalchemy import Column, Float, ForeignKey, Index, Integer, MetaData, String, Table, Text

revision = "0003"
down_revision = "0002"

metadata = MetaData()

Table("entries", metadata, Column("name", String(40), primary_key=True))

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


def upgrade() -> None:
    for name in ("rules", "overrides"):
        metadata.tables[name].create(op.get_bind())
    decision = Column("decision", Text, nullable=False, server_default="")
    op.add_column("approvals", decision)
