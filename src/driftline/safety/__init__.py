"""Unsafe pages: blocklists, what users report, and names that pass for others."""
