"""Fetching through Chromium, for pages that are drawn by scripts. Nothing of it is loaded before it is needed."""
