"""What was recorded and is still to be told: what an earlier version left untold, nobody knows any more."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "outbox",
        sa.Column(
            "page_id",
            sa.Integer,
            sa.ForeignKey("pages.id", ondelete="CASCADE", name="fk_outbox_page_id"),
            primary_key=True,
            autoincrement=False,
        ),
        sa.Column("sequence", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("what", sa.Text, primary_key=True),
    )
