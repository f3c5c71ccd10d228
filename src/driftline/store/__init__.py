"""The database: schema, statements, history, contents, and everything else that is kept."""
