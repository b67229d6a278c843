"""What an approval's write would change, as it was before. Frozen: a later change is a later
revision.
"""

from __future__ import annotations

from alembic import op
from sqlalchemy import Column, Text

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.add_column("approvals", Column("present", Text, nullable=False, server_default=""))
