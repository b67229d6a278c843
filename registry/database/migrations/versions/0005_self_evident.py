"""A column for tools whose access follows from their requests. Those of earlier releases get it
when they are published anew.
"""

from __future__ import annotations

from alembic import op
from sqlalchemy import Boolean, Column, false

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Make it."""
    op.add_column("tools", Column("self_evident", Boolean, nullable=False, server_default=false()))
