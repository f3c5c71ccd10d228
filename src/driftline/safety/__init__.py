"""Unsafe pages: blocklists, reports of users, and hosts that look like others."""
