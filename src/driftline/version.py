"""The version of Driftline."""

__version__ = "0.1.0"
