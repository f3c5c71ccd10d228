"""The steps that create a store's schema or bring it up to date, run by Alembic on a connection that is already open.

A change of the schema is a change of `schema.py` and a new module in `steps`, named after its revision; a test compares
the two. `engine.NEWEST` names the last revision.
"""
