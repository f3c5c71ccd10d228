"""The laboratory: a simulated web and the programs that measure Driftline on it."""
