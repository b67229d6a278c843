"""What calls took in, so that they can be run again. Frozen: a later change is a later revision."""

from __future__ import annotations

from alembic import op
from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKey,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
)

revision = "0004"
down_revision = "0003"

metadata = MetaData()

Table("invocations", metadata, Column("id", String(32), primary_key=True))

Table(
    "recordings",
    metadata,
    Column(
        "end",
        BigInteger().with_variant(Integer(), "sqlite"),
        primary_key=True,
        autoincrement=False,
    ),
    Column("invocation", ForeignKey("invocations.id"), nullable=False, unique=True),
    Column("content", LargeBinary),
)


def upgrade() -> None:
    metadata.tables["recordings"].create(op.get_bind())
