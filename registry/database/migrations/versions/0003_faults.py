"""Columns for what a server decided of its last calls, and up to where its cases were tried."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Column, Integer, String

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Make them."""
    op.add_column("trust", Column("recent", String(50), nullable=False, server_default=""))
    op.add_column("trust", Column("vouched", Integer, nullable=False, server_default="0"))
