"""Since when a run recorded what no report named."""

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("runs", sa.Column("unreported_since", sa.Double))
    # until now only checks that were killed were known to have no report
    op.execute("UPDATE runs SET unreported_since = started_at WHERE ended_at IS NULL AND scope <> 'run'")
