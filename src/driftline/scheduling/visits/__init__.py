"""Visits brought in from where they are recorded: browsers, web servers, tables."""
