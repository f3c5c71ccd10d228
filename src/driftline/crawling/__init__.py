"""Whole sites: which pages there are, found by following links, sitemaps and feeds."""
