"""Differences between two versions of a page: lines, words, tables, markup, and the HTML page that shows them."""
