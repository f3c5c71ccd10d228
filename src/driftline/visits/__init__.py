"""Visits of users: the second paper's rank, and importers for browser histories, server logs and CSV."""
