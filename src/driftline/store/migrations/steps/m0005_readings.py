"""States know how the text of the version in force was read: those from before do not, and are read anew in time."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("states", sa.Column("reading", sa.Text))
