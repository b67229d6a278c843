"""New versions on trial, and API descriptions that are watched for changes.
Frozen: a later change is a later revision.
"""

from __future__ import annotations

from alembic import op
from sqlalchemy import Column, Float, Integer, MetaData, String, Table, Text

revision = "0008"
down_revision = "0007"

metadata = MetaData()

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


def upgrade() -> None:
    for table in metadata.sorted_tables:
        table.create(op.get_bind())
