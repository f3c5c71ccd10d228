"""Whole sites: finding their pages by links, sitemaps and feeds."""
