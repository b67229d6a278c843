"""Kept results of sessions, and calls by their session."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Column, Float, Integer, LargeBinary, String, Text, text

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Make them."""
    op.create_index(
        "invocations_by_session",
        "invocations",
        ["session", "sequence"],
        sqlite_where=text("session != ''"),
    )
    op.create_table(
        "kept_results",
        Column("session", String(64), primary_key=True),
        Column("number", Integer, primary_key=True, autoincrement=False),
        Column("call", String(32), nullable=False),
        Column("tool", Text, nullable=False),
        Column("created", Float, nullable=False),
        Column("expires", Float, nullable=False),
        Column("size", Integer, nullable=False),
        Column("sources", Text, nullable=False),
        Column("content", LargeBinary),
    )
    op.create_index("kept_results_by_expiry", "kept_results", ["expires"])
