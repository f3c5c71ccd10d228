"""What the user says of a change is kept beside what was found, so that it can be withdrawn."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "feedback",
        sa.Column("page_id", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("sequence", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("verdict", sa.Text, nullable=False),
        sa.Column("page_keys", sa.LargeBinary, nullable=False),
        sa.Column("host_keys", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("page_id", "sequence", name="pk_feedback"),
        sa.ForeignKeyConstraint(
            ["page_id", "sequence"],
            ["changes.page_id", "changes.sequence"],
            name="fk_feedback_page_id",
            ondelete="CASCADE",
        ),
    )
