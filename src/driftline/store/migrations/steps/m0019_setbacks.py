"""When a clock was seen to have been set back, and since when hosts want to be left alone.

Of the pauses that are known it is only sure that none was asked for longer than a day before its end.
"""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "setbacks",
        sa.Column("seen_at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("seen_at", name="pk_setbacks"),
    )
    op.add_column("pauses", sa.Column("asked_at", sa.Double))
    op.execute("UPDATE pauses SET asked_at = until - 86400")
