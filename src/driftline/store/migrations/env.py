"""What Alembic runs: our tables on the connection that it was given."""

from alembic import context

from driftline.store.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,
    transactional_ddl=False,
)
context.run_migrations()
