"""The drafts that clients hand in for forge jobs. Frozen: a later change is a later revision."""

from __future__ import annotations

from alembic import op
from sqlalchemy import (
    Column,
    Float,
    ForeignKey,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

revision = "0002"
down_revision = "0001"

metadata = MetaData()

Table("jobs", metadata, Column("id", String(32), primary_key=True))

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
    UniqueConstraint("job", "digest"),
)


def upgrade() -> None:
    metadata.tables["drafts"].create(op.get_bind())
