"""The command `driftline`: one module per group of commands."""
