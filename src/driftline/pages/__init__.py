"""What is watched: addresses in canonical form, intervals, and lists of pages to import."""
