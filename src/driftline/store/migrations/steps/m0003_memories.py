"""What is learned of pages and hosts is kept, and changes name their cause."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("changes", sa.Column("cause", sa.LargeBinary))
    op.create_table(
        "memories",
        sa.Column(
            "page_id",
            sa.Integer,
            sa.ForeignKey("pages.id", ondelete="CASCADE", name="fk_memories_page_id"),
            primary_key=True,
            autoincrement=False,
        ),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "host_memories",
        sa.Column("host", sa.Text, primary_key=True),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )
