"""Contents are kept under the page that has them, so that they are written and removed with it.

Contents that several pages have are copied to each of them; what no page has is dropped.
"""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None

_COPY = """
INSERT INTO blobs (page_id, digest, base, depth, size, data, level)
WITH RECURSIVE needed (page_id, digest) AS (
    SELECT page_id, body FROM versions
    UNION SELECT page_id, text FROM versions
    UNION SELECT page_id, kept_body FROM states WHERE kept_body IS NOT NULL
    UNION SELECT page_id, kept_text FROM states WHERE kept_text IS NOT NULL
    UNION SELECT needed.page_id, old_blobs.base FROM needed JOIN old_blobs ON old_blobs.digest = needed.digest
    WHERE old_blobs.base IS NOT NULL
)
SELECT needed.page_id, old.digest, old.base, old.depth, old.size, old.data, old.level
FROM needed JOIN old_blobs AS old ON old.digest = needed.digest
ORDER BY needed.page_id, old.depth
"""


def upgrade() -> None:
    op.drop_index("ix_blobs_loose", "blobs")
    op.rename_table("blobs", "old_blobs")
    if op.get_bind().dialect.name == "postgresql":
        op.execute(
            "ALTER INDEX pk_blobs RENAME TO pk_old_blobs"
        )  # names of indexes are those of the whole schema there
    op.create_table(
        "blobs",
        sa.Column("page_id", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("digest", sa.LargeBinary, nullable=False),
        sa.Column("base", sa.LargeBinary),
        sa.Column("depth", sa.Integer, nullable=False),
        sa.Column("size", sa.Integer, nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
        sa.Column("level", sa.Integer),
        sa.PrimaryKeyConstraint("page_id", "digest", name="pk_blobs"),
        sa.ForeignKeyConstraint(["page_id"], ["pages.id"], name="fk_blobs_page_id", ondelete="CASCADE"),
    )
    op.execute(_COPY)
    op.drop_table("old_blobs")
    loose = sa.text("level IS NULL")
    op.create_index("ix_blobs_loose", "blobs", ["level"], sqlite_where=loose, postgresql_where=loose)
