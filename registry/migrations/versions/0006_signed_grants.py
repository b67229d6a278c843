"""Grants are signed. What was granted before is kept and counts for nothing until it is confirmed.
Frozen: a later change is a later revision.
"""

from __future__ import annotations

from alembic import op
from sqlalchemy import Column, Integer, Text

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.add_column("grants", Column("detail", Text, nullable=False, server_default=""))
    op.add_column("grants", Column("serial", Integer, nullable=False, server_default="1"))
    op.add_column("grants", Column("signature", Text, nullable=False, server_default=""))
