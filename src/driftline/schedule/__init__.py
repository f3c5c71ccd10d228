"""Which pages to check next, and when."""
