"""What models were asked and what it cost, who wrote a draft, and what a waiting job needs.
Frozen: a later change is a later revision.
"""

from __future__ import annotations

from alembic import op
from sqlalchemy import Column, Float, Index, Integer, MetaData, String, Table, Text

revision = "0007"
down_revision = "0006"

metadata = MetaData()

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


def upgrade() -> None:
    metadata.tables["model_calls"].create(op.get_bind())
    op.add_column("drafts", Column("author", String(16), nullable=False, server_default="client"))
    op.add_column("drafts", Column("model", Text, nullable=False, server_default=""))
    op.add_column("jobs", Column("needs", Text, nullable=False, server_default="{}"))
